from __future__ import annotations

import pytest

from jp.conversation.entries import JsonObject
from jp.conversation.thread import AssistantText, Parameters, Thread, ToolDefinition, UserText
from jp.errors import ConfigurationError
from jp.provider.base import WireRequest
from jp.provider.errors import ProviderError
from jp.provider.ollama.request import Server, render
from ollama_oracle import assert_accepted

LOOK = ToolDefinition(name="look", description="Look.", parameters={})
RUN = ToolDefinition(name="run", description="", parameters={"type": "object", "properties": {"a": {}}})
ASKED = UserText(text="Hi", turn=0, origin="r")
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


def rendered(
    *,
    model: str = "qwen3.5:9b",
    tools: tuple[ToolDefinition, ...] = (),
    schema: JsonObject | None = None,
    server: Server | None = None,
    **parameters: object,
) -> WireRequest:
    thread = Thread(
        model=model,
        system=("Be brief.", " ", "Be kind."),
        tools=tools,
        events=(ASKED, AssistantText(text="Hello", turn=0), UserText(text="More", turn=1, origin="r2")),
        parameters=Parameters(**parameters),  # pyright: ignore[reportArgumentType] - what a test says is well-formed
        schema=schema,
    )
    return render(thread, server or Server(context_window=4096))


def test_a_request_always_says_how_much_is_to_be_held_and_that_nothing_may_be_forgotten() -> None:
    request = rendered()

    assert (request.path, request.framing, request.omitted, request.unfit) == ("/api/chat", "ndjson", (), None)
    assert request.body == {
        "model": "qwen3.5:9b",
        "messages": [
            {"role": "system", "content": "Be brief.\n\nBe kind."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Hello"},
            {"role": "user", "content": "More"},
        ],
        "stream": True,
        "think": True,
        "truncate": False,
        "shift": False,
        "options": {"num_ctx": 4096},
    }


def test_parameters_become_options() -> None:
    server = Server(context_window=4096, keep_alive="10m")
    request = rendered(server=server, max_tokens=9, temperature=0.5, top_p=0.9, top_k=3, stop_words=("END", ""))

    assert_accepted(request.body)
    assert request.body["keep_alive"] == "10m"
    assert request.body["options"] == {
        "num_ctx": 4096,
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 3,
        "num_predict": 9,
        "stop": ["END"],
    }


@pytest.mark.parametrize(
    "other", [{"context_window": 99}, {"options": {"num_ctx": 99}}, {"context_window": 1, "options": {"num_ctx": 99}}]
)
def test_a_parameter_says_for_one_conversation_how_much_is_held(other: JsonObject) -> None:
    body = rendered(other=other).body

    assert body["options"]["num_ctx"] == 99
    assert "context_window" not in body


def test_what_only_the_server_knows_is_merged() -> None:
    body = rendered(other={"options": {"seed": 1}, "keep_alive": 0}).body

    assert body["options"] == {"num_ctx": 4096, "seed": 1}
    assert body["keep_alive"] == 0


@pytest.mark.parametrize("window", ["many", 0, True, 1.5])
def test_a_window_that_is_none_is_refused(window: object) -> None:
    with pytest.raises(ConfigurationError, match="is no context window"):
        rendered(other={"context_window": window})


def test_what_is_recorded_as_sent_cannot_be_replaced() -> None:
    with pytest.raises(ConfigurationError, match="'messages' cannot be set"):
        rendered(other={"messages": []})


@pytest.mark.parametrize(
    ("model", "server"),
    [("kimi-k2.5:cloud", Server(context_window=4096)), ("gpt-oss:120b", Server(context_window=4096, is_hosted=True))],
)
def test_in_the_cloud_a_model_keeps_its_whole_window(model: str, server: Server) -> None:
    assert rendered(model=model, server=server).body["options"] == {}


def test_tools_have_properties_be_there_none() -> None:
    request = rendered(tools=(LOOK, RUN))

    assert_accepted(request.body)
    assert [tool["function"]["parameters"] for tool in request.body["tools"]] == [
        {"type": "object", "properties": {}},
        {"type": "object", "properties": {"a": {}}},
    ]


@pytest.mark.parametrize(
    ("tools", "choice", "plea"),
    [
        ((LOOK, RUN), "auto", ""),
        ((LOOK, RUN), "required", "\n\nCall one of the tools now."),
        ((LOOK,), "required", "\n\nCall the tool 'look' now."),
        ((LOOK, RUN), "run", "\n\nCall the tool 'run' now."),
        ((), "required", ""),
    ],
)
def test_a_call_is_demanded_in_words(tools: tuple[ToolDefinition, ...], choice: str, plea: str) -> None:
    assert rendered(tools=tools, tool_choice=choice).body["messages"][-1]["content"] == f"More{plea}"


def test_where_nothing_is_asked_nothing_can_be_demanded() -> None:
    thread = Thread(
        model="m",
        system=(),
        tools=(LOOK,),
        events=(AssistantText(text="a", turn=0),),
        parameters=Parameters(tool_choice="look"),
    )

    assert render(thread, Server(context_window=9)).body["messages"] == [{"role": "assistant", "content": "a"}]


def test_no_tool_is_to_be_called_where_none_is_offered() -> None:
    assert "tools" not in rendered(tools=(LOOK,), tool_choice="none").body


def test_an_answer_is_held_to_a_schema_where_no_tool_could_be_called() -> None:
    assert rendered(schema=SCHEMA).body["format"] == SCHEMA
    assert "format" not in rendered(schema=SCHEMA, tools=(LOOK,)).body
    assert rendered(schema=SCHEMA, tools=(LOOK,), tool_choice="none").body["format"] == SCHEMA


def test_a_schema_loses_the_patterns_at_which_the_server_fails() -> None:
    schema = {
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "pattern": "[a-z]+"},
            "b": {"anyOf": [{"pattern": "^a$"}, {"pattern": "^a"}]},
        },
        "default": {"pattern": "x"},
    }

    assert rendered(schema=schema).body["format"] == {
        "type": "object",
        "properties": {"pattern": {"type": "string"}, "b": {"anyOf": [{"pattern": "^a$"}, {}]}},
        "default": {"pattern": "x"},
    }


def test_a_request_without_a_message_is_refused() -> None:
    with pytest.raises(ProviderError, match="there is no message to send"):
        render(Thread(model="m", system=("a",), tools=(), events=()), Server(context_window=9))


def test_a_request_that_cannot_fit_says_so_and_how_it_would() -> None:
    text = " ".join(["lorem"] * 4000)
    thread = Thread(model="m", system=(), tools=(), events=(UserText(text=text, turn=0),))

    unfit = render(thread, Server(provider="den", context_window=1000)).unfit

    assert unfit is not None
    assert unfit.message == "den holds 1000 tokens, and the request has 3000 at the very least"
    assert unfit.hint.startswith("set `providers.llm.den.context_window` higher than 1000, ")


def test_a_cache_sees_tools_then_the_system_prompt_then_messages() -> None:
    found = rendered(tools=(LOOK,)).sections

    assert (len(found.tools), len(found.system)) == (1, 1)
    assert found.messages[0] == (b'"user"', b'{"content":"Hi"}')
