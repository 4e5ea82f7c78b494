from __future__ import annotations

from typing import TypeVar

import pytest
from msgspec.structs import replace

from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    Compaction,
    RequestContext,
    SummaryPolicy,
    ToolCallResponse,
    Unknown,
)
from jp.conversation.resource import (
    AudioBlock,
    Carrier,
    ImageBlock,
    Payload,
    Resource,
    ResourceBlock,
    ResourceLink,
    TextBlock,
)
from jp.conversation.thread import (
    ToolResult,
    UserResource,
    UserText,
    ViewEvent,
    carriers_in,
    map_carriers,
    map_view_carriers,
)

C = TypeVar("C", bound=Carrier)

LINK = ResourceLink(uri="https://example.org/")
RESOURCE = Resource(uri="a:b", text="one")
BLOCKS = (
    TextBlock(text="two"),
    ResourceBlock(resource=RESOURCE),
    LINK,
    ImageBlock(mime_type="image/png", blob=b"three"),
    AudioBlock(mime_type="audio/wav", blob=b"four"),
)


def stored(carrier: C) -> C:
    return replace(carrier, sha256="ab", size=1)


def context(*, tools: Payload | None) -> RequestContext:
    return RequestContext(provider="p", model="m", renderer=1, system=(Payload(text="five"),), tools=tools)


@pytest.mark.parametrize(
    ("entry", "count"),
    [
        (ChatRequest(content="x", resources=(RESOURCE, RESOURCE)), 2),
        (ToolCallResponse(request="c", content=BLOCKS), 4),
        (context(tools=Payload(text="six")), 2),
        (context(tools=None), 1),
        (Compaction(from_turn=0, to_turn=0, summary=SummaryPolicy(text="s", kept=(Payload(text="kept"),))), 1),
    ],
    ids=["request", "response", "context", "context without tools", "compaction"],
)
def test_every_carrier_of_an_entry_is_found_and_changed(entry: AnyEntry, count: int) -> None:
    before = list(carriers_in(entry))

    changed = map_carriers(entry, stored)

    assert len(before) == count
    assert list(carriers_in(changed)) == [stored(carrier) for carrier in before]


@pytest.mark.parametrize(
    "entry",
    [
        ChatRequest(content="x"),
        ToolCallResponse(request="c", content=(LINK,)),
        ToolCallResponse(request="c", content=()),
        RequestContext(provider="p", model="m", renderer=1),
        ChatResponse(message="x"),
        Compaction(from_turn=0, to_turn=0, summary=SummaryPolicy(text="s")),
        Unknown(raw=b"{}"),
    ],
    ids=["request", "link", "nothing", "context", "response", "compaction", "unknown"],
)
def test_an_entry_without_carriers_stays_the_same_object(entry: AnyEntry) -> None:
    assert list(carriers_in(entry)) == []
    assert map_carriers(entry, stored) is entry


def test_the_rest_of_an_entry_stays_as_it_is() -> None:
    entry = ToolCallResponse(id="r", request="c", content=(TextBlock(text="x"), LINK), is_error=True, duration_ms=3)

    assert map_carriers(entry, stored) == replace(entry, content=(stored(TextBlock(text="x")), LINK))


def test_every_carrier_of_a_view_is_changed() -> None:
    attached = UserResource(resource=RESOURCE, turn=0)
    result = ToolResult(call="c", call_id="x", name="run", content=BLOCKS, turn=0)

    changed = map_view_carriers(result, stored)

    assert map_view_carriers(attached, stored) == UserResource(resource=stored(RESOURCE), turn=0)
    assert isinstance(changed, ToolResult)
    assert changed.content == (
        stored(TextBlock(text="two")),
        ResourceBlock(resource=stored(RESOURCE)),
        LINK,
        stored(ImageBlock(mime_type="image/png", blob=b"three")),
        stored(AudioBlock(mime_type="audio/wav", blob=b"four")),
    )


@pytest.mark.parametrize(
    "event",
    [UserText(text="x", turn=0), ToolResult(call="c", call_id="x", name="run", content=(LINK,), turn=0)],
    ids=["text", "link"],
)
def test_a_view_event_without_carriers_stays_the_same_object(event: ViewEvent) -> None:
    assert map_view_carriers(event, stored) is event
