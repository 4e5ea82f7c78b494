from __future__ import annotations

import pytest

from chat_oracle import assert_accepted
from jp.conversation.entries import JsonObject
from jp.conversation.thread import AssistantReasoning, AssistantText, Parameters, Thread, ToolDefinition, UserText
from jp.provider.base import WireRequest
from jp.provider.cerebras.request import CerebrasAdapter

RUN = ToolDefinition(name="run", description="", parameters={"type": "object", "properties": {}})
OSS, GLM, SILENT, NEW = "gpt-oss-120b", "zai-glm-4.7", "llama3.1-8b", "brand-new"


def rendered(
    model: str = OSS, *, schema: JsonObject | None = None, tools: tuple[ToolDefinition, ...] = (), **parameters: object
) -> WireRequest:
    made = {"provider": "cerebras", "model": model}
    thread = Thread(
        model=model,
        system=("Be brief.",),
        tools=tools,
        events=(
            UserText(text="Hi", turn=0, origin="a"),
            AssistantReasoning(text="hm", turn=0, metadata=made),
            AssistantText(text="Hello", turn=0),
            UserText(text="More", turn=1, origin="b", schema=schema),
        ),
        parameters=Parameters(**parameters),  # pyright: ignore[reportArgumentType] - what a test says is well-formed
        schema=schema,
    )
    request = CerebrasAdapter().render(thread)
    assert_accepted(request.body, foreign=("reasoning_format", "reasoning"))
    return request


def test_a_request_has_the_names_that_cerebras_uses() -> None:
    assert rendered(max_tokens=9, temperature=0.5, tools=(RUN,), tool_choice="run").body == {
        "model": OSS,
        "stream": True,
        "tools": [{"type": "function", "function": {"name": "run", "parameters": RUN.parameters}}],
        "tool_choice": {"type": "function", "function": {"name": "run"}},
        "max_completion_tokens": 9,
        "temperature": 0.5,
        "reasoning_format": "parsed",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Hello", "reasoning": "hm"},
            {"role": "user", "content": "More"},
        ],
    }


@pytest.mark.parametrize(
    ("model", "reasoning", "effort", "said"),
    [
        (OSS, None, None, ()),
        (OSS, "auto", None, ()),
        (OSS, "high", "high", ()),
        (OSS, "max", "high", ("reasoning 'max' sent as 'high'",)),
        (OSS, 40_960, "high", ("reasoning 40960 sent as 'high'",)),
        (OSS, "off", "low", ("'gpt-oss-120b' cannot be kept from reasoning: asked for 'low', its least",)),
        (GLM, "off", "none", ()),
        (NEW, "none", "none", ()),
        (NEW, "medium", "medium", ()),
    ],
)
def test_reasoning_is_asked_for_by_an_effort(
    model: str, reasoning: object, effort: str | None, said: tuple[str, ...]
) -> None:
    request = rendered(model, reasoning=reasoning)

    assert (request.body.get("reasoning_effort"), request.omitted) == (effort, said)


@pytest.mark.parametrize(
    ("reasoning", "said"),
    [(None, ()), ("off", ()), ("high", ("reasoning 'high' not sent: 'llama3.1-8b' does not reason",))],
)
def test_a_model_that_does_not_reason_is_not_asked_to(reasoning: object, said: tuple[str, ...]) -> None:
    request = rendered(SILENT, reasoning=reasoning)

    assert "reasoning_format" not in request.body
    assert "reasoning_effort" not in request.body
    assert request.omitted == said


def test_what_the_api_does_not_know_is_omitted_and_said() -> None:
    request = rendered(top_k=3, top_p=0.9)

    assert "top_k" not in request.body
    assert request.body["top_p"] == 0.9
    assert request.omitted == ("'top_k' not sent: the API knows none",)


def test_an_answer_is_held_to_a_strict_schema() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "minItems": 1, "items": {"type": "string"}}}}

    wanted = rendered(schema=schema).body["response_format"]

    assert wanted["json_schema"]["strict"] is True
    assert wanted["json_schema"]["schema"]["required"] == ["a"]
    assert "minItems" not in wanted["json_schema"]["schema"]["properties"]["a"]
