from __future__ import annotations

from typing import TypeVar

import pytest

from jp.compaction.status_lines import PlainStatusFormatter
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    CycleEnd,
    Header,
    JsonObject,
    ToolCallRequest,
    TurnStart,
)
from jp.conversation.resource import Carrier, ImageBlock, Payload, Resource, TextBlock, checksum
from jp.conversation.thread import ToolDefinition
from jp.turn.request import (
    ContentCache,
    InlineLoader,
    RequestSettings,
    SchemaReader,
    build_thread,
    canonical_tools,
    rendering_version,
)

C = TypeVar("C", bound=Carrier)

TEXT = "kept elsewhere"
STORED = Payload(sha256=checksum(Payload(text=TEXT)), size=len(TEXT), chars=len(TEXT), lines=1)


class BlobStore:
    """Has one text, and counts how often it is read."""

    def __init__(self) -> None:
        self.count = 0

    def load(self, carrier: C, /) -> C:
        self.count += 1
        loaded = Payload(text=TEXT)
        assert isinstance(loaded, type(carrier))
        return loaded


FIRST: JsonObject = {"type": "object"}
SECOND: JsonObject = {"type": "array"}


@pytest.mark.parametrize(
    ("entries", "schema"),
    [
        ([], None),
        ([TurnStart(), ChatRequest(content="q", schema=FIRST)], FIRST),
        (
            [
                TurnStart(),
                ChatRequest(content="q", schema=FIRST),
                ToolCallRequest(call_id="c", name="n", arguments={}),
                CycleEnd(attempt=1, finish="tools"),
                ChatRequest(content="and shorter"),
            ],
            FIRST,
        ),
        ([TurnStart(), ChatRequest(content="q", schema=FIRST), ChatRequest(content="r", schema=SECOND)], SECOND),
        ([TurnStart(), ChatRequest(content="q", schema=FIRST), ChatResponse(data=1), TurnStart()], None),
    ],
    ids=["none", "the turn's", "through its cycles", "the newest", "not the next turn's"],
)
def test_a_schema_holds_for_its_turn(entries: list[AnyEntry], schema: JsonObject | None) -> None:
    assert SchemaReader().read(entries) == schema


def test_a_conversation_is_named_by_its_log() -> None:
    """So that requests of one conversation reach a provider's cache, and the log tells under which name."""
    asked: tuple[AnyEntry, ...] = (TurnStart(), ChatRequest(content="q"))
    header = Header(id="01m", format=1, created_at="2026-11-20T00:00:00Z")
    settings = RequestSettings(provider="p", model="m", renderer=1)
    logs: tuple[tuple[AnyEntry, ...], ...] = ((header, *asked), asked, ())
    threads = [
        build_thread(log, settings, loader=InlineLoader(), status_formatter=PlainStatusFormatter()) for log in logs
    ]

    assert [thread.conversation for thread in threads] == ["01m", "", ""]


def test_stored_content_is_read_once() -> None:
    store = BlobStore()
    cache = ContentCache(store)

    assert [cache.load(STORED).text for _ in range(3)] == [TEXT] * 3
    assert store.count == 1


@pytest.mark.parametrize(
    "carrier",
    [
        TextBlock(sha256="ab" * 32, size=9, formatted="cut"),
        ImageBlock(mime_type="image/png", sha256="ab" * 32, size=9, formatted="too large"),
        Resource(uri="x", sha256="ab" * 32, size=9, formatted="@@"),
    ],
)
def test_what_is_shown_in_another_form_is_not_read(carrier: Carrier) -> None:
    store = BlobStore()

    assert ContentCache(store).load(carrier) is carrier
    assert store.count == 0


@pytest.mark.parametrize("carrier", [Payload(text="here"), Resource(uri="x", text="here"), STORED])
def test_where_nothing_is_stored_elsewhere_content_is_taken_as_it_is(carrier: Carrier) -> None:
    assert InlineLoader().load(carrier) is carrier


def test_content_that_is_inline_is_not_looked_for_in_the_store() -> None:
    store = BlobStore()

    assert ContentCache(store).load(Payload(text="here")) == Payload(text="here")
    assert store.count == 0


def test_tools_are_as_a_log_gives_them_back() -> None:
    tool = ToolDefinition(name="echo", description="Echo.", parameters={"type": "object", "properties": {}, "a": 1})

    (canonical,) = canonical_tools((tool,))

    assert canonical == tool
    assert list(canonical.parameters) == ["a", "properties", "type"]


def test_the_version_of_a_request_grows_with_its_adapters() -> None:
    first, second = rendering_version(1), rendering_version(2)

    assert second - first == 1
    assert first > 1
