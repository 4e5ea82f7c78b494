from __future__ import annotations

import pytest

from jp.conversation.entries import JsonObject
from jp.conversation.resource import ImageBlock, Resource, TextBlock
from jp.conversation.thread import (
    AssistantData,
    AssistantReasoning,
    AssistantText,
    Thread,
    ToolCall,
    ToolResult,
    UserResource,
    UserText,
    ViewEvent,
)
from jp.provider.errors import ProviderError
from jp.provider.models import find_model
from jp.provider.ollama.request import build_messages

SEEING, BLIND = "qwen3.5:9b", "llama3"
PNG = Resource(uri="file:///a.png", mime_type="image/png", blob=b"\x89PNG", name="a.png")


def messages(*events: ViewEvent, model: str = SEEING) -> list[JsonObject]:
    thread = Thread(model=model, system=(), tools=(), events=events)
    return build_messages(thread, find_model("ollama", model), provider="ollama").messages


def user(text: str, turn: int = 0, origin: str = "r") -> UserText:
    return UserText(text=text, turn=turn, origin=origin)


def thought(text: str, **metadata: object) -> AssistantReasoning:
    return AssistantReasoning(text=text, turn=0, metadata=metadata or None)


def call(number: int = 0, name: str = "run") -> ToolCall:
    return ToolCall(call_id="c", name=name, arguments={"a": 1}, turn=0, origin=f"t{number}")


def result(text: str, number: int = 0, *, is_error: bool = False) -> ToolResult:
    content = (TextBlock(text=text),)
    return ToolResult(call=f"t{number}", call_id="c", name="run", content=content, turn=0, is_error=is_error)


def test_what_is_attached_stands_before_what_is_asked_in_one_message() -> None:
    text = UserResource(resource=Resource(uri="u:1", text="alpha"), turn=0, origin="r")
    image = UserResource(resource=PNG, turn=0, origin="r")

    assert messages(text, image, user("Why?")) == [
        {
            "role": "user",
            "content": '<attachment uri="u:1">\nalpha\n</attachment>\n\na.png (file:///a.png):\n\nWhy?',
            "images": ["iVBORw=="],
        }
    ]


def test_requests_of_different_times_stay_apart() -> None:
    assert messages(user("a"), user(" "), user("b", turn=1)) == [
        {"role": "user", "content": "a"},
        {"role": "user", "content": "b"},
    ]


def test_an_answer_is_one_message() -> None:
    own = thought("hm", provider="ollama", model=SEEING)
    more = thought("so", provider="ollama", model=SEEING)

    assert messages(user("a"), own, AssistantText(text="Let me look.", turn=0), more, call(), result("ok")) == [
        {"role": "user", "content": "a"},
        {
            "role": "assistant",
            "content": "Let me look.",
            "thinking": "hm\n\nso",
            "tool_calls": [{"function": {"name": "run", "arguments": {"a": 1}}}],
        },
        {"role": "tool", "tool_name": "run", "content": "ok"},
    ]


@pytest.mark.parametrize("made", [{}, {"provider": "ollama", "model": "llama3"}, {"provider": "x", "model": SEEING}])
def test_reasoning_of_somebody_else_is_not_sent(made: dict[str, str]) -> None:
    told = messages(user("a"), thought("hm", **made), thought(" "), AssistantText(text="Yes.", turn=0))

    assert told[1] == {"role": "assistant", "content": "Yes."}


def test_data_and_empty_texts_are_told_as_texts_and_not_at_all() -> None:
    told = messages(user("a"), AssistantText(text="\n", turn=0), AssistantData(text='{"b":1}', turn=0))

    assert told[1:] == [{"role": "assistant", "content": '{"b":1}'}]


def test_a_schema_is_told_behind_the_request_that_has_it() -> None:
    asked = UserText(text="a", turn=0, origin="r", schema={"type": "object"})

    (told,) = messages(asked)

    assert told["content"].startswith("a\n\nYour final answer")
    assert told["content"].endswith('{"type":"object"}')


def test_results_are_told_in_the_order_of_the_calls_and_an_error_says_that_it_is_one() -> None:
    told = messages(user("a"), call(0), call(1, "look"), result("two", 1), result("one", is_error=True))

    assert told[2:] == [
        {"role": "tool", "tool_name": "run", "content": "Error: one"},
        {"role": "tool", "tool_name": "look", "content": "two"},
    ]


def pictured(model: str) -> list[JsonObject]:
    content = (TextBlock(text="seen"), ImageBlock(mime_type="image/png", blob=b"\x89PNG"))
    shown = ToolResult(call="t0", call_id="c", name="run", content=content, turn=0)
    return messages(user("a"), call(), shown, AssistantText(text="b", turn=0), model=model)[2:]


def test_images_of_a_tool_are_shown_by_the_user_to_a_model_that_sees() -> None:
    assert pictured(SEEING) == [
        {"role": "tool", "tool_name": "run", "content": "seen\n[image content: shown below]"},
        {"role": "user", "content": "What the tools returned as images:", "images": ["iVBORw=="]},
        {"role": "assistant", "content": "b"},
    ]


def test_images_of_a_tool_are_a_note_to_a_model_that_does_not() -> None:
    assert pictured(BLIND) == [
        {
            "role": "tool",
            "tool_name": "run",
            "content": "seen\n[content: image/png, 4 bytes, cannot be shown to this model]",
        },
        {"role": "assistant", "content": "b"},
    ]


@pytest.mark.parametrize(
    ("model", "mime_type", "hint"),
    [
        (BLIND, "image/png", "text can be attached: ask again without it"),
        (SEEING, "application/pdf", "text, JPEG, PNG and WebP can be attached: ask again without it"),
    ],
)
def test_what_a_model_does_not_take_is_an_error_where_it_is_new_and_a_note_later(
    model: str, mime_type: str, hint: str
) -> None:
    attached = UserResource(resource=Resource(uri="u:1", mime_type=mime_type, blob=b"1234"), turn=0, origin="r")

    with pytest.raises(ProviderError) as caught:
        messages(attached, user("a"), model=model)
    told = messages(attached, user("a"), AssistantText(text="b", turn=0), user("c", turn=1, origin="r2"), model=model)

    assert caught.value.kind == "unsupported"
    assert caught.value.hint == hint
    assert told[0]["content"] == f"[u:1: {mime_type}, 4 bytes, cannot be shown to this model]\n\na"
