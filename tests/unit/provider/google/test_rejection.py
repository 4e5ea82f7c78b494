from __future__ import annotations

import pytest

from jp.conversation.entries import JsonObject
from jp.conversation.resource import Resource, TextBlock
from jp.conversation.thread import (
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
from jp.provider.google.vendor import GoogleAdapter

MODEL = "gemini-3.8-flash"
MADE: JsonObject = {"provider": "google", "model": MODEL}
SIGNED: JsonObject = {**MADE, "signature": "s"}


def call(origin: str, name: str, metadata: JsonObject | None) -> ToolCall:
    return ToolCall(call_id=origin, name=name, arguments={}, turn=1, origin=origin, metadata=metadata)


EVENTS: tuple[ViewEvent, ...] = (
    UserText(text="Hi", turn=0),
    AssistantText(text="Hello", turn=0, origin="old", metadata=SIGNED),
    UserText(text="Go on", turn=1),
    AssistantReasoning(text="hm", turn=1, origin="t1", metadata=MADE),
    AssistantReasoning(text="hm", turn=1, origin="t2", metadata=SIGNED),
    AssistantText(text="Well", turn=1, origin="m1", metadata=SIGNED),
    call("c1", "read", SIGNED),
    call("c2", "write", MADE),
    call("c3", "read", None),
    call("c4", "read", {**SIGNED, "model": "gemini-2.5-pro"}),
    ToolResult(call="c1", call_id="c1", name="read", content=(TextBlock(text="…"),), turn=1),
)


def located(message: str, *events: ViewEvent) -> tuple[str, ...]:
    thread = Thread(model=MODEL, system=(), tools=(), events=events or EVENTS)
    return GoogleAdapter().locate_rejected(thread, ProviderError(message, kind="rejected_reasoning"))


MISSING = "Function call is missing a thought_signature. Additional data, function call `{}` , position 2."


@pytest.mark.parametrize(
    ("message", "origins"),
    [
        ("Corrupted thought signature.", ("t2", "m1", "c1", "c2")),
        (MISSING.format("default_api:write"), ("c2",)),
        (MISSING.format("read"), ("c1",)),
        (MISSING.format("default_api:other"), ("t2", "m1", "c1", "c2")),
    ],
)
def test_only_signatures_of_the_current_turn_are_meant(message: str, origins: tuple[str, ...]) -> None:
    assert located(message) == origins


def test_a_turn_begins_with_what_the_user_said_or_attached() -> None:
    attached = UserResource(resource=Resource(uri="u:1", text="x"), turn=2)

    assert located("Corrupted thought signature.", *EVENTS, attached) == ()
    assert located("Corrupted thought signature.", *EVENTS[3:5]) == ("t2",)
