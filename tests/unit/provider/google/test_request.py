from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from google_oracle import assert_accepted
from jp.conversation.entries import JsonObject
from jp.conversation.thread import Parameters, Thread, ToolDefinition, UserText
from jp.errors import ConfigurationError
from jp.provider.base import WireRequest
from jp.provider.google.request import render

MODEL = "gemini-3.8-flash"
RUN = ToolDefinition(
    name="run", description="Run it.", parameters={"properties": {"a": {"type": "string"}}, "required": ["a"]}
)
LOOK = ToolDefinition(name="look", description=" ", parameters={"type": "object", "properties": {}})
SCHEMA: JsonObject = {"type": "object", "properties": {"a": {"type": "string"}}}


def rendered(
    parameters: Parameters | None = None,
    *,
    model: str = MODEL,
    tools: Sequence[ToolDefinition] = (),
    schema: JsonObject | None = None,
) -> WireRequest:
    request = render(
        Thread(
            model=model,
            system=("Be brief.", " "),
            tools=tuple(tools),
            events=(UserText(text="Hi", turn=0),),
            parameters=parameters or Parameters(),
            schema=schema,
        )
    )
    assert_accepted(request.body)
    return request


def mode(parameters: Parameters | None = None, *, model: str = MODEL, tools: Sequence[ToolDefinition] = ()) -> object:
    config = rendered(parameters, model=model, tools=tools).body.get("toolConfig")
    return None if config is None else config["functionCallingConfig"]


def test_the_model_stands_in_the_address() -> None:
    assert rendered().path == f"/models/{MODEL}:streamGenerateContent?alt=sse"
    assert rendered(model="a b/ü?").path == "/models/a%20b%2F%C3%BC%3F:streamGenerateContent?alt=sse"
    assert rendered(model="tunedModels/my one").path == "/tunedModels/my%20one:streamGenerateContent?alt=sse"
    assert rendered(model="models/x").path == "/models/x:streamGenerateContent?alt=sse"
    assert rendered(model="models/").path == "/models/models%2F:streamGenerateContent?alt=sse"


def test_a_request_has_what_was_asked_for_and_nothing_else() -> None:
    assert rendered(model="gemini-2.5-flash-lite").body == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "toolConfig": {"functionCallingConfig": {"mode": "NONE"}},
        "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
    }


def test_tools_have_the_schemas_that_they_were_declared_with() -> None:
    request = rendered(tools=(LOOK, RUN))

    assert request.body["tools"] == [
        {
            "functionDeclarations": [
                {"name": "look"},
                {
                    "name": "run",
                    "description": "Run it.",
                    "parametersJsonSchema": {"type": "object", **RUN.parameters},
                },
            ]
        }
    ]
    assert [msgspec.json.decode(tool)["name"] for tool in request.sections.tools] == ["look", "run"]


def test_the_choice_of_tool_is_a_mode() -> None:
    tools = (LOOK, RUN)

    assert mode(tools=tools) == {"mode": "VALIDATED"}
    assert mode(Parameters(tool_choice="none"), tools=tools) == {"mode": "NONE"}
    assert mode(Parameters(tool_choice="required"), tools=tools) == {"mode": "ANY"}
    assert mode(Parameters(tool_choice="run"), tools=tools) == {"mode": "ANY", "allowedFunctionNames": ["run"]}
    assert mode() == {"mode": "NONE"}
    assert mode(model="gemma-4-31b-it") is None
    assert mode(model="gemma-4-31b-it", tools=tools) is None


def test_sampling_limits_and_stop_words_stand_in_the_generation_config() -> None:
    parameters = Parameters(max_tokens=9, temperature=0.5, top_p=0.9, top_k=3, stop_words=(" ", *"abcdef"))
    request = rendered(parameters)

    assert request.body["generationConfig"] == {
        "maxOutputTokens": 9,
        "temperature": 0.5,
        "topP": 0.9,
        "topK": 3,
        "stopSequences": ["a", "b", "c", "d", "e"],
        "thinkingConfig": {"includeThoughts": True},
    }
    assert request.omitted == ("'f' not sent: the API takes 5 stop words",)


def test_sampling_is_omitted_where_the_model_ignores_it() -> None:
    request = rendered(Parameters(temperature=0.5), model="gemini-4-argon")

    assert "temperature" not in request.body["generationConfig"]
    assert request.omitted == ("'temperature' not sent: 'gemini-4-argon' takes none",)


def test_an_answer_is_held_to_its_schema() -> None:
    config = rendered(schema=SCHEMA).body["generationConfig"]

    assert config["responseMimeType"] == "application/json"
    assert config["responseJsonSchema"] == {**SCHEMA, "propertyOrdering": ["a"]}
    assert "responseMimeType" not in rendered(schema=SCHEMA, model="gemma-4-31b-it").body.get("generationConfig", {})


def test_what_only_the_api_knows_goes_into_the_request_as_it_is() -> None:
    settings = [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}]
    other: JsonObject = {"safetySettings": settings, "generationConfig": {"seed": 3}}
    body = render(
        Thread(
            model=MODEL,
            system=(),
            tools=(),
            events=(UserText(text="Hi", turn=0),),
            parameters=Parameters(max_tokens=9, other=other),
        )
    ).body

    assert body["safetySettings"] == settings
    assert body["generationConfig"]["seed"] == 3
    assert body["generationConfig"]["maxOutputTokens"] == 9


@pytest.mark.parametrize("name", ["contents", "tools", "toolConfig", "systemInstruction", "model"])
def test_what_the_log_says_was_sent_cannot_be_set(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"'{name}' cannot be set by `other`"):
        rendered(Parameters(other={name: {}}))


def test_sections_are_what_a_cache_sees() -> None:
    found = rendered().sections

    assert found.tools == ()
    assert found.system == (b'{"text":"Be brief."}',)
    assert found.messages == ((b'"user"', b'{"text":"Hi"}'),)
