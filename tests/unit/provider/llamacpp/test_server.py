from __future__ import annotations

import msgspec
import pytest

from chat_oracle import assert_accepted
from jp.conversation.entries import JsonObject
from jp.conversation.thread import AssistantReasoning, AssistantText, Parameters, Thread, ToolDefinition, UserText
from jp.provider.base import WireRequest
from jp.provider.llamacpp.request import LlamacppAdapter, ReasoningFormat

LOOK = ToolDefinition(name="look", description="Look.", parameters={"type": "object", "properties": {}})
RUN = ToolDefinition(name="run", description="", parameters={"type": "object", "properties": {}})
FOREIGN = ("reasoning_format", "chat_template_kwargs", "top_k", "reasoning_content")
QWEN, OSS = "qwen3.5:9b", "ggml-org/gpt-oss-20b-GGUF"


def rendered(
    model: str = QWEN,
    *,
    reasoning_format: ReasoningFormat = "auto",
    tools: tuple[ToolDefinition, ...] = (),
    made_by: str = QWEN,
    **parameters: object,
) -> WireRequest:
    thread = Thread(
        model=model,
        system=("Be brief.",),
        tools=tools,
        events=(
            UserText(text="Hi", turn=0, origin="a"),
            AssistantReasoning(text="hm", turn=0, metadata={"provider": "llamacpp", "model": made_by}),
            AssistantText(text="Hello", turn=0),
            UserText(text="More", turn=1, origin="b"),
        ),
        parameters=Parameters(**parameters),  # pyright: ignore[reportArgumentType] - what a test says is well-formed
    )
    request = LlamacppAdapter(reasoning_format=reasoning_format).render(thread)
    assert_accepted(request.body, foreign=FOREIGN)
    return request


def test_reasoning_goes_back_as_the_server_names_it() -> None:
    assert rendered(max_tokens=9, top_k=3).body == {
        "model": QWEN,
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 9,
        "top_k": 3,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Hello", "reasoning_content": "hm"},
            {"role": "user", "content": "More"},
        ],
    }


def test_reasoning_of_another_model_is_not_sent() -> None:
    assert rendered(made_by="other").body["messages"][2] == {
        "role": "assistant",
        "content": "Hello",
    }


@pytest.mark.parametrize("wanted", ["deepseek", "none"])
def test_how_reasoning_is_separated_is_said_where_it_is_set(wanted: ReasoningFormat) -> None:
    assert rendered(reasoning_format=wanted).body["reasoning_format"] == wanted


@pytest.mark.parametrize(
    ("model", "reasoning", "template", "said"),
    [
        (QWEN, None, None, ()),
        (QWEN, "off", {"enable_thinking": False}, ()),
        (QWEN, "auto", {"enable_thinking": True}, ()),
        (
            QWEN,
            "high",
            {"enable_thinking": True},
            ("reasoning 'high' sent as on: the model's template knows on and off only",),
        ),
        (OSS, "auto", {"enable_thinking": True}, ()),
        (OSS, "high", {"enable_thinking": True, "reasoning_effort": "high"}, ()),
        (OSS, "max", {"enable_thinking": True, "reasoning_effort": "high"}, ("reasoning 'max' sent as 'high'",)),
        (
            OSS,
            "off",
            {"enable_thinking": False, "reasoning_effort": "low"},
            ("reasoning 'off' sent as 'low': the model knows no less",),
        ),
    ],
)
def test_the_template_is_told_whether_to_think(
    model: str, reasoning: object, template: JsonObject | None, said: tuple[str, ...]
) -> None:
    request = rendered(model, reasoning=reasoning)

    assert (request.body.get("chat_template_kwargs"), request.omitted) == (template, said)


@pytest.mark.parametrize(
    ("choice", "wire", "asked"),
    [
        ("auto", None, "More"),
        ("none", "none", "More"),
        ("required", "required", "More"),
        ("run", "required", "More\n\nCall the tool 'run' now."),
    ],
)
def test_a_tool_is_named_in_words_so_that_all_stay_in_their_places(choice: str, wire: str | None, asked: str) -> None:
    body = rendered(tools=(LOOK, RUN), tool_choice=choice).body

    assert body.get("tool_choice") == wire
    assert body["messages"][-1]["content"] == asked
    assert len(body["tools"]) == 2


def test_nothing_is_demanded_where_no_tool_is_offered() -> None:
    body = rendered(tool_choice="run").body

    assert "tool_choice" not in body
    assert body["messages"][-1]["content"] == "More"


def test_the_same_thread_gives_the_same_bytes() -> None:
    first, second = (msgspec.json.encode(rendered(tools=(RUN,), tool_choice="run").body) for _ in range(2))

    assert first == second
