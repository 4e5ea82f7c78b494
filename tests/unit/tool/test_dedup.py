from __future__ import annotations

import hashlib
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    ConfigDelta,
    Revert,
    ToolCallResponse,
    TurnStart,
)
from jp.conversation.resource import Block, Resource, ResourceBlock, TextBlock
from jp.tool.duplicates import DeliveryIndex, mark_blocks, mark_resources

TEXT = "x" * 301
FILE = Resource(uri="file:///w/a", text=TEXT)
SUM = hashlib.sha256(TEXT.encode()).hexdigest()
STORED = Resource(uri="file:///w/a", sha256=SUM, size=301, chars=301, lines=1)


def request(entry: str, *resources: Resource) -> ChatRequest:
    return ChatRequest(id=entry, content="", resources=resources)


def response(entry: str, *resources: Resource) -> ToolCallResponse:
    blocks: tuple[Block, ...] = (TextBlock(text=TEXT), *(ResourceBlock(resource=each) for each in resources))
    return ToolCallResponse(id=entry, request="call", content=blocks)


def stream(*turns: Sequence[AnyEntry]) -> list[AnyEntry]:
    """A stream with these turns, an answer in each."""
    entries: list[AnyEntry] = [ConfigDelta(id="delta", delta={})]
    for number, turn in enumerate(turns):
        entries += [TurnStart(id=f"t{number}"), *turn, ChatResponse(id=f"m{number}", message="ok")]
    return entries


def marks(
    entries: list[AnyEntry], *resources: Resource, turn: int = 1, enabled: bool = True, lookback_turns: int = 30
) -> list[str | None]:
    marked = mark_resources(
        resources, DeliveryIndex(entries), turn=turn, enabled=enabled, min_bytes=300, lookback_turns=lookback_turns
    )
    assert [replace(each, duplicate_of=None) for each in marked] == list(resources)
    return [each.duplicate_of for each in marked]


@pytest.mark.parametrize("earlier", [FILE, STORED])
@pytest.mark.parametrize("later", [FILE, STORED])
@pytest.mark.parametrize("delivery", [request, response])
def test_what_was_delivered_before_is_marked(earlier: Resource, later: Resource, delivery: type) -> None:
    assert marks(stream([delivery("e1", earlier)]), later) == ["e1"]


def test_blocks_of_a_tool_are_marked_and_others_pass() -> None:
    text, other = TextBlock(text=TEXT), ResourceBlock(resource=replace(FILE, uri="file:///w/b"))
    blocks = (text, ResourceBlock(resource=FILE), other, ResourceBlock(resource=FILE))
    entries = stream([request("e1", FILE)])

    marked = mark_blocks(blocks, DeliveryIndex(entries), turn=0, enabled=True, min_bytes=300, lookback_turns=30)

    duplicate = ResourceBlock(resource=replace(FILE, duplicate_of="e1"))
    assert marked == (text, duplicate, other, duplicate)


@pytest.mark.parametrize(
    "later",
    [
        replace(FILE, uri="file:///w/b"),
        replace(FILE, uri="file:///w/a#L1-2"),
        replace(FILE, text=TEXT + "!"),
        Resource(uri=FILE.uri, blob=TEXT.encode() + b"!"),
    ],
)
def test_another_uri_or_another_content_is_not_marked(later: Resource) -> None:
    assert marks(stream([request("e1", FILE)]), later) == [None]


def test_text_and_bytes_of_one_content_are_one() -> None:
    assert marks(stream([request("e1", FILE)]), Resource(uri=FILE.uri, blob=TEXT.encode())) == ["e1"]


@pytest.mark.parametrize(("size", "expected"), [(300, None), (301, "e1")])
def test_only_what_is_over_the_minimum_is_marked(size: int, expected: str | None) -> None:
    resource = Resource(uri="x", text="é" + "x" * (size - 2))

    assert marks(stream([request("e1", resource)]), resource) == [expected]


@pytest.mark.parametrize(("turn", "expected"), [(30, "e1"), (31, None)])
def test_the_delivery_has_to_be_inside_the_window(turn: int, expected: str | None) -> None:
    turns = [[request("e1", FILE)], *([] for _ in range(turn))]

    assert marks(stream(*turns), FILE, turn=turn) == [expected]


def test_nothing_is_marked_where_it_is_disabled() -> None:
    assert marks(stream([request("e1", FILE)]), FILE, enabled=False) == [None]


def test_nothing_delivered_nothing_marked() -> None:
    assert marks(stream(), FILE) == [None]
    assert marks(stream([request("e1", FILE)])) == []


def test_a_window_of_no_turns_is_the_turn_itself() -> None:
    entries = stream([request("e1", FILE)], [response("e2", FILE)])

    assert marks(entries, FILE, turn=1, lookback_turns=0) == ["e2"]


def test_a_marked_delivery_leads_to_the_first_one() -> None:
    marked = replace(STORED, duplicate_of="e1")
    entries = stream([request("e1", STORED)], [response("e2", marked)], [response("e3", marked)])

    assert marks(entries, FILE, turn=3) == ["e1"]


def test_a_marked_delivery_does_not_stand_for_a_first_one_outside_of_the_window() -> None:
    marked = replace(STORED, duplicate_of="e1")
    entries = stream([request("e1", STORED)], [response("e2", marked)], [])

    assert marks(entries, FILE, turn=2, lookback_turns=1) == [None]


def test_a_mark_whose_referent_a_fork_lacks_is_a_first_delivery() -> None:
    entries = stream([response("e2", replace(STORED, duplicate_of="e1"))])

    assert marks(entries, FILE) == ["e2"]


def test_of_several_full_deliveries_the_first_in_the_window_is_named() -> None:
    entries = stream([request("e1", STORED)], [response("e2", STORED)], [response("e3", STORED)])

    assert marks(entries, FILE, turn=3) == ["e1"]
    assert marks(entries, FILE, turn=3, lookback_turns=2) == ["e2"]


def test_content_that_came_back_is_marked_with_its_own_delivery() -> None:
    changed = replace(FILE, text="y" * 400)
    entries = stream([request("e1", FILE)], [response("e2", changed)])

    assert marks(entries, FILE, changed, turn=2) == ["e1", "e2"]


def test_what_repeats_inside_one_delivery_is_not_marked() -> None:
    assert marks(stream([]), FILE, FILE) == [None, None]


def test_a_turn_that_has_only_begun_is_replaced_by_the_next_one() -> None:
    lone = [TurnStart(id="t1"), TurnStart(id="t2"), TurnStart(id="t3")]
    reverted = Revert(id="r", entries=("t4",))
    entries = [*stream([request("e1", FILE)]), *lone, request("e2"), TurnStart(id="t4"), reverted, TurnStart(id="t5")]

    assert [DeliveryIndex(entries[:end]).turns for end in range(len(entries) + 1)] == [
        0,
        0,
        *[1] * 3,
        *[2] * 4,
        3,
        2,
        3,
    ]


def test_words_before_the_first_start_of_a_turn_are_a_turn() -> None:
    entries: list[AnyEntry] = [request("e1", FILE), TurnStart(id="t1"), request("e2")]

    assert DeliveryIndex(entries).turns == 2
    assert marks(entries, FILE, turn=1, lookback_turns=1) == ["e1"]
