from __future__ import annotations

import pytest

from jp.conversation.resource import TextBlock
from jp.conversation.thread import AssistantReasoning, AssistantText, Thread, ToolCall, ToolResult, UserText, ViewEvent
from jp.provider.anthropic.vendor import AnthropicAdapter
from jp.provider.errors import ProviderError

MODEL = "claude-haiku-4-5"


def thought(origin: str, text: str = "hm", *, model: str = MODEL) -> AssistantReasoning:
    metadata = {"provider": "anthropic", "model": model, "signature": f"sig-{origin}"}
    return AssistantReasoning(text=text, turn=0, origin=origin, metadata=metadata)


def hidden(origin: str) -> AssistantReasoning:
    metadata = {"provider": "anthropic", "model": MODEL, "redacted": f"data-{origin}"}
    return AssistantReasoning(text="", turn=0, origin=origin, metadata=metadata)


def called(origin: str) -> tuple[ToolCall, ToolResult]:
    call = ToolCall(call_id=origin, name="read", arguments={}, turn=0, origin=origin)
    return call, ToolResult(call=origin, call_id=origin, name="read", content=(TextBlock(text="…"),), turn=0)


# As the API counts: 0 the user, 1 the first answer, 2 the user, 3 the second answer with the results of its tools.
EVENTS: tuple[ViewEvent, ...] = (
    UserText(text="Hi", turn=0),
    thought("t1"),
    AssistantText(text="Hello", turn=0),
    thought("t2"),
    AssistantText(text="Well", turn=0),
    UserText(text="Go on", turn=1),
    thought("t3"),
    *called("c1"),
    hidden("t4"),
    *called("c2"),
)


def located(message: str, events: tuple[ViewEvent, ...] = EVENTS) -> tuple[str, ...]:
    thread = Thread(model=MODEL, system=(), tools=(), events=events)
    error = ProviderError(message, kind="rejected_reasoning")
    return AnthropicAdapter().locate_rejected(thread, error)


@pytest.mark.parametrize(
    ("place", "origins"),
    [
        ("messages.1.content.0", ("t1",)),
        ("messages.1.content.2", ("t2",)),
        ("messages.1.content.1", ("t1", "t2")),
        ("messages.3.content.0", ("t3", "t4")),
        ("messages.3.content.3", ("t3", "t4")),
        ("messages.3.content.0.type", ("t3", "t4")),
        ("messages.5.content.0", ("t3", "t4")),
        ("messages.2.content.0", ()),
        ("messages.99.content.0", ()),
        ("messages.1.content.99", ("t1", "t2")),
        ("messages", ()),
    ],
    ids=[
        "a thought of an earlier answer",
        "another one",
        "what is no thought means those beside it",
        "the newest answer is meant as a whole",
        "its blocks are counted through the results of its tools",
        "a field of a block",
        "messages counted as they are sent",
        "the user has no thoughts",
        "no such message",
        "no such block",
        "no place",
    ],
)
def test_a_place_names_thoughts(place: str, origins: tuple[str, ...]) -> None:
    assert located(f"anthropic answered 400: {place}: Invalid `signature` in `thinking` block") == origins


def test_an_error_without_a_place_names_none() -> None:
    assert located("thinking blocks cannot be modified") == ()


def test_where_nobody_has_answered_nothing_is_found() -> None:
    assert located("messages.0.content.0: Invalid `signature` in `thinking` block", EVENTS[:1]) == ()


def test_thoughts_of_another_model_are_not_meant() -> None:
    foreign = (*EVENTS[:1], thought("t0", model="claude-opus-5"), *EVENTS[1:])

    assert located("messages.1.content.0: Invalid `signature` in `thinking` block", foreign) == ("t1",)
