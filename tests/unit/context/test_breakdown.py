from __future__ import annotations

import msgspec
import pytest

from jp.context.breakdown import (
    BUCKETS,
    UNKNOWN_TOOL,
    Breakdown,
    Measurement,
    Part,
    Room,
    break_down,
)
from jp.context.budget import Item, items_of
from jp.context.types import (
    Call,
    Digested,
    Facts,
    Message,
    Meta,
    ReasoningBlock,
    StoredBlock,
    TextBlock,
    Transcript,
)

PARTS = (
    Part(bucket="system_prompt", tokens=10, size=40),
    Part(bucket="rules", tokens=20, size=80),
    Part(bucket="rules", tokens=10, size=40),
    Part(bucket="memory", tokens=5, size=20, is_static=False),
)
ITEMS = (
    Item(kind="user", tokens=15, size=60, message=0),
    Item(kind="results", tokens=30, size=120, message=1, tool="run"),
    Item(kind="results", tokens=10, size=40, message=2, tool="never heard of"),
)


def tokens(found: Breakdown) -> dict[str, int]:
    return {bucket.kind: bucket.tokens for bucket in found.buckets if bucket.tokens}


def test_there_are_eight_buckets_always_and_what_is_in_them() -> None:
    found = break_down(PARTS, ITEMS, known_tools=["run"])

    assert [bucket.kind for bucket in found.buckets] == list(BUCKETS)
    assert len(BUCKETS) == 8
    assert tokens(found) == {"system_prompt": 10, "rules": 30, "memory": 5, "conversation": 55}
    assert [(share.kind, share.tokens, share.items) for share in found.conversation] == [
        ("user", 15, 1),
        ("results", 40, 2),
    ]
    assert [(tool.name, tool.tokens) for tool in found.tools] == [("run", 30), (UNKNOWN_TOOL, 10)]
    assert [bucket.kind for bucket in found.buckets if not bucket.is_static] == ["memory", "conversation"]
    assert [bucket.kind for bucket in found.buckets if bucket.is_compressible] == ["conversation"]
    assert (found.total, found.estimated, found.other, found.ratio) == (100, 100, 0, 1.0)


def test_system_messages_of_a_transcript_are_system_prompt() -> None:
    found = break_down((), items_of((Message(role="system", content="x" * 400),)))

    assert tokens(found) == {"system_prompt": 104}


def test_measured_provider_usage_can_override_rough_estimates_in_reports() -> None:
    found = break_down(PARTS, ITEMS, known_tools=["run"], measured=Measurement(tokens=133))

    assert (found.total, found.source, found.estimated) == (133, "provider_usage", 100)
    assert found.ratio == pytest.approx(1.33)
    assert sum(tokens(found).values()) == 133
    assert tokens(found)["conversation"] == sum(share.tokens for share in found.conversation) == 73
    assert sum(tool.tokens for tool in found.tools) == found.conversation[-1].tokens
    assert [bucket.estimated for bucket in found.buckets][-1] == 55


def test_what_was_added_since_the_provider_counted_is_estimated() -> None:
    found = break_down(PARTS, ITEMS, measured=Measurement(tokens=100, added=7))

    assert (found.total, found.source) == (107, "provider_usage+estimate")
    assert break_down(PARTS, ITEMS, measured=Measurement(tokens=100, added=-7)).total == 100


@pytest.mark.parametrize("reported", [None, 0, -5])
def test_where_nothing_was_measured_the_estimate_counts(reported: int | None) -> None:
    found = break_down(PARTS, ITEMS, measured=Measurement(tokens=reported, added=7))

    assert (found.total, found.source) == (100, "local_estimate")
    calibrated = break_down(PARTS, ITEMS, measured=Measurement(tokens=reported, ratio=1.5))
    assert (calibrated.total, calibrated.ratio, calibrated.buckets[0].tokens) == (150, 1.5, 15)


def test_what_no_bucket_explains_is_other() -> None:
    found = break_down((), (), measured=Measurement(tokens=12))

    assert (found.total, found.other, found.ratio, tokens(found)) == (12, 12, None, {})


def test_a_bucket_that_is_not_empty_is_seen() -> None:
    parts = (Part(bucket="skills", tokens=1), Part(bucket="tool_definitions", tokens=100_000))

    assert tokens(break_down(parts, (), measured=Measurement(tokens=50)))["skills"] == 1


@pytest.mark.parametrize(
    ("room", "free"),
    [(Room(), None), (Room(window=150, reserved=20), 30), (Room(window=100, reserved=20), 0)],
)
def test_what_is_free_is_never_negative(room: Room, free: int | None) -> None:
    assert break_down(PARTS, ITEMS, room=room).free == free


CANARY = "c4n4ry"


def test_what_fills_a_context_is_shown_without_any_of_its_text() -> None:
    """Whatever text a transcript can hold, none of it is in what is shown."""
    facts = Facts(kind=CANARY, path=CANARY, lines=CANARY, first_error=CANARY)
    digested = Digested(sha256=CANARY)
    messages: Transcript = (
        Message(role="system", content=CANARY, origin=CANARY),
        Message(role="user", content=(TextBlock(text=CANARY, uri=CANARY, origin=CANARY),), origin=CANARY),
        Message(role="user", content=CANARY, meta=Meta(kind="summary")),
        Message(
            role="assistant",
            content=(
                ReasoningBlock(text=CANARY, signature=CANARY, origin=CANARY),
                StoredBlock(sha256=CANARY, size=9, mime_type=CANARY, uri=CANARY, origin=CANARY),
            ),
            calls=(
                Call(id="1", name=CANARY, arguments=CANARY, origin=CANARY),
                Call(id=CANARY, name="run", arguments=CANARY),
            ),
        ),
        Message(role="tool", call_id="1", content=CANARY, meta=Meta(facts=facts)),
        Message(role="tool", call_id=CANARY, content=CANARY, meta=Meta(digested=digested, facts=facts)),
        Message(role="tool", call_id=CANARY, content=CANARY, meta=Meta(facts=facts)),
    )

    found = break_down((), items_of(messages), known_tools=["run"])
    shown = msgspec.json.encode(found)

    assert CANARY.encode() not in shown
    assert {tool.name for tool in found.tools} == {"run", UNKNOWN_TOOL}
    assert msgspec.json.decode(shown, type=Breakdown) == found


def test_the_names_in_its_json_stay() -> None:
    value = msgspec.to_builtins(break_down(PARTS, ITEMS))

    assert list(value) == [
        "room",
        "source",
        "total",
        "estimated",
        "ratio",
        "buckets",
        "other",
        "conversation",
        "tools",
    ]
    assert set(value["buckets"][0]) == {
        "tokens",
        "estimated",
        "size",
        "items",
        "kind",
        "is_static",
        "is_compressible",
    }
    assert set(value["tools"][0]) == {"tokens", "estimated", "size", "items", "name"}
