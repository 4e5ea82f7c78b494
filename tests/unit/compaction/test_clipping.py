from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from jp.compaction.overlays import ForkedStream, forked_stream
from jp.conversation.entries import AnyEntry, Compaction, Header, Revert, SummaryPolicy, ToolCallPolicy
from jp.conversation.forking import TurnRange
from logs import ask, say, start

HEADER = Header(id="h", format=1, created_at="", nonce="n")
STRIP = ToolCallPolicy(policy="strip", request=True, response=True)


def stream(*compactions: AnyEntry, turns: int = 5) -> list[AnyEntry]:
    """Turns `t0`, `t1`, …, and these entries after them."""
    entries: list[AnyEntry] = [HEADER]
    for number in range(turns):
        entries += [start(number), replace(ask("?"), id=f"q{number}"), replace(say("!"), id=f"a{number}")]
    return [*entries, *compactions]


def fork(entries: Sequence[AnyEntry], first: int, last: int) -> ForkedStream:
    return forked_stream(entries, TurnRange(first=first, last=last))


def clipped(compaction: Compaction, first: int, last: int) -> Compaction | None:
    found = [entry for entry in fork(stream(compaction), first, last).entries if isinstance(entry, Compaction)]
    return found[0] if found else None


def strip(from_turn: int, to_turn: int, **fields: str | int) -> Compaction:
    return replace(
        Compaction(id="c", from_turn=from_turn, to_turn=to_turn, reasoning="strip", tool_calls=STRIP), **fields
    )


@pytest.mark.parametrize("compaction", [strip(0, 1), strip(1, 1, from_id="t1", to_id="t1"), strip(0, 2, to_cycle=1)])
def test_what_covers_nothing_else_stays_word_for_word(compaction: Compaction) -> None:
    assert clipped(compaction, 0, 2) is compaction


@pytest.mark.parametrize(
    ("compaction", "first", "last", "expected"),
    [
        (strip(0, 4), 0, 2, strip(0, 2, from_id="t0", to_id="t2")),
        (strip(0, 4), 2, 3, strip(0, 1, from_id="t2", to_id="t3")),
        (strip(3, 3), 1, 4, strip(2, 2, from_id="t3", to_id="t3")),
        (strip(0, 9), 3, 4, strip(0, 1, from_id="t3", to_id="t4")),
        (strip(0, 0, to_id="t3"), 0, 1, strip(0, 1, from_id="t0", to_id="t1")),
        (strip(0, 1, to_id="nobody"), 0, 4, strip(0, 1, from_id="t0", to_id="t1")),
        (strip(0, 3, to_cycle=2), 0, 2, strip(0, 2, from_id="t0", to_id="t2")),
        (strip(0, 3, to_cycle=2), 1, 3, strip(0, 2, from_id="t1", to_id="t3", to_cycle=2)),
    ],
)
def test_what_covers_more_is_clipped_and_numbered_anew(
    compaction: Compaction, first: int, last: int, expected: Compaction
) -> None:
    assert clipped(compaction, first, last) == expected


@pytest.mark.parametrize(
    ("compaction", "first", "last"), [(strip(0, 1), 2, 4), (strip(3, 4), 0, 2), (strip(3, 1), 0, 4)]
)
def test_what_concerns_nothing_that_is_copied_stays_behind(compaction: Compaction, first: int, last: int) -> None:
    assert clipped(compaction, first, last) is None
    assert fork(stream(compaction), first, last).notices == ()


SUMMARY = Compaction(id="c", from_turn=1, to_turn=2, summary=SummaryPolicy(text="What was said."))


def test_a_summary_of_turns_that_are_all_copied_comes_along() -> None:
    expected = replace(SUMMARY, from_turn=0, to_turn=1, from_id="t1", to_id="t2")

    assert clipped(SUMMARY, 1, 3) == expected
    assert clipped(SUMMARY, 0, 2) is SUMMARY


@pytest.mark.parametrize(("first", "last"), [(0, 1), (2, 4), (2, 2)])
def test_a_summary_of_more_is_left_behind_with_a_notice(first: int, last: int) -> None:
    found = fork(stream(SUMMARY), first, last)

    assert found.notices == ("the summary of turns 1 to 2 was not copied: it covers turns that are not in the fork",)
    assert not any(isinstance(entry, Compaction) for entry in found.entries)


def test_what_else_a_compaction_does_comes_along_without_its_summary() -> None:
    both = replace(SUMMARY, reasoning="strip")

    assert clipped(both, 0, 1) == Compaction(
        id="c", from_turn=1, to_turn=1, from_id="t1", to_id="t1", reasoning="strip"
    )


def test_a_summary_that_ends_before_the_cycles_of_a_turn_tells_nothing_of_that_turn() -> None:
    found = fork(stream(replace(SUMMARY, to_turn=3, to_cycle=0)), 0, 2)

    assert found.notices == ()
    assert found.entries[-1] == replace(SUMMARY, from_id="t1", to_id="t2")


def test_a_summary_of_one_turn_is_told_of_as_such() -> None:
    (notice,) = fork(stream(replace(SUMMARY, to_cycle=0)), 2, 2).notices

    assert notice.startswith("the summary of turn 1 was not copied")


@pytest.mark.parametrize(
    "more", [[replace(SUMMARY, summary=SummaryPolicy(text=" "))], [SUMMARY, Revert(entries=("c",))]]
)
def test_nothing_is_said_of_a_summary_that_was_blank_or_undone(more: list[AnyEntry]) -> None:
    found = fork(stream(*more), 0, 1)

    assert found.notices == ()
    assert not any(isinstance(entry, Compaction | Revert) for entry in found.entries)


def test_a_compaction_before_the_range_says_nothing_of_it() -> None:
    entries = [*stream(strip(0, 9), turns=2), start(7), ask("?")]

    assert [entry.id for entry in fork(entries, 2, 2).entries if isinstance(entry, Compaction)] == []
