"""From bounds to turns: every form of a bound, and every way in which none is left."""

from __future__ import annotations

import pytest

from jp.compaction.overlays import (
    Ago,
    AtTurn,
    BeforeLast,
    Bound,
    Keep,
    KeepFor,
    KeepTokens,
    KeepTurns,
    Policy,
    Range,
    RangeRequest,
    SinceCompaction,
    StreamShape,
    TurnFacts,
    check_choice,
    resolve,
    union_with_summaries,
)
from jp.errors import UsageError

HOUR = 3600.0
NOTHING = KeepTurns(0)
NOW = 100 * HOUR


def turn(number: int, *, tokens: int = 100, began: float | None = None) -> TurnFacts:
    return TurnFacts(number=number, id=f"t{number}", began=began, tokens=tokens)


TEN = StreamShape(turns=tuple(turn(number, began=NOW - (10 - number) * HOUR) for number in range(10)))
"""Ten turns, an hour from each to the next; the last one began an hour ago."""


def found(
    *,
    start: Bound | None = None,
    end: Bound | None = None,
    first: Keep = NOTHING,
    last: Keep = NOTHING,
    shape: StreamShape = TEN,
    policy: Policy = "tools",
) -> tuple[int, int] | None:
    wish = RangeRequest(start=start, end=end, keep_first=first, keep_last=last)
    result = resolve(wish, shape, policy, now=NOW)
    return None if result is None else (result.first, result.last)


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (None, (0, 9)),
        (AtTurn(0), (0, 9)),
        (AtTurn(9), (9, 9)),
        (AtTurn(10), None),
        (BeforeLast(0), (9, 9)),
        (BeforeLast(3), (6, 9)),
        (BeforeLast(99), (0, 9)),
        (Ago(3 * HOUR), (7, 9)),
        (Ago(99 * HOUR), (0, 9)),
        (Ago(0.5 * HOUR), None),
        (SinceCompaction(), (0, 9)),
    ],
)
def test_a_range_begins_where_its_first_bound_says(start: Bound | None, expected: tuple[int, int] | None) -> None:
    assert found(start=start) == expected


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (AtTurn(0), (0, 0)),
        (AtTurn(4), (0, 4)),
        (AtTurn(99), (0, 9)),
        (BeforeLast(0), (0, 9)),
        (BeforeLast(3), (0, 6)),
        (BeforeLast(9), (0, 0)),
        (BeforeLast(10), None),
        (Ago(3 * HOUR), (0, 7)),
        (Ago(0.5 * HOUR), (0, 9)),
        (Ago(99 * HOUR), None),
    ],
)
def test_a_range_ends_where_its_last_bound_says(end: Bound, expected: tuple[int, int] | None) -> None:
    assert found(end=end) == expected


@pytest.mark.parametrize(
    ("keep", "expected"),
    [
        (KeepTurns(0), (0, 9)),
        (KeepTurns(3), (0, 6)),
        (KeepTurns(10), None),
        (KeepTurns(99), None),
        (KeepFor(2 * HOUR), (0, 7)),
        (KeepFor(0.5 * HOUR), (0, 9)),
        (KeepFor(99 * HOUR), None),
        (KeepTokens(0), (0, 9)),
        (KeepTokens(250), (0, 7)),
        (KeepTokens(300), (0, 6)),
        (KeepTokens(1), (0, 8)),
        (KeepTokens(100_000), None),
    ],
)
def test_what_is_kept_at_the_end_is_not_in_the_range(keep: Keep, expected: tuple[int, int] | None) -> None:
    assert found(last=keep) == expected


@pytest.mark.parametrize(
    ("keep", "expected"),
    [
        (KeepTurns(2), (2, 9)),
        (KeepFor(2 * HOUR), (3, 9)),
        (KeepTokens(250), (2, 9)),
        (KeepTurns(10), None),
    ],
)
def test_what_is_kept_at_the_beginning_is_not_in_the_range(keep: Keep, expected: tuple[int, int] | None) -> None:
    assert found(first=keep) == expected


def test_bounds_and_what_is_kept_hold_together() -> None:
    assert found(start=AtTurn(1), end=BeforeLast(1), first=KeepTurns(3), last=KeepTurns(4)) == (3, 5)
    assert found(start=AtTurn(7), last=KeepTurns(3)) is None


def test_an_empty_stream_and_one_turn() -> None:
    assert found(shape=StreamShape(turns=())) is None
    assert found(shape=StreamShape(turns=(turn(0),))) == (0, 0)
    assert found(shape=StreamShape(turns=(turn(0),)), last=KeepTurns(1)) is None


def test_turns_that_were_undone_are_not_counted_but_may_lie_inside() -> None:
    shape = StreamShape(turns=tuple(turn(number) for number in (0, 1, 3, 4)))

    assert found(shape=shape, last=KeepTurns(2)) == (0, 1)
    assert found(shape=shape, end=BeforeLast(1)) == (0, 3)
    assert found(shape=shape, start=AtTurn(2), end=AtTurn(2)) is None


def test_turns_whose_time_is_not_known_are_no_bound_and_are_kept_with_the_newest() -> None:
    shape = StreamShape(turns=(turn(0, began=NOW - 9 * HOUR), turn(1), turn(2, began=NOW - HOUR)))

    assert found(shape=shape, start=Ago(5 * HOUR)) == (2, 2)
    assert found(shape=shape, end=Ago(5 * HOUR)) == (0, 0)
    assert found(shape=shape, last=KeepFor(2 * HOUR)) == (0, 0)
    assert found(shape=shape, first=KeepFor(2 * HOUR)) == (2, 2)
    assert found(shape=StreamShape(turns=(turn(0), turn(1))), first=KeepFor(HOUR)) is None


def test_last_is_counted_for_each_policy_by_itself() -> None:
    shape = StreamShape(turns=TEN.turns, covered={"reasoning": 7, "summary": 9})

    assert found(start=SinceCompaction(), shape=shape, policy="reasoning") == (8, 9)
    assert found(start=SinceCompaction(), shape=shape, policy="tools") == (0, 9)
    assert found(start=SinceCompaction(), shape=shape, policy="summary") is None


@pytest.mark.parametrize(
    ("wanted", "summaries", "expected"),
    [
        ((3, 7), [], (3, 7)),
        ((3, 5), [(7, 9)], (3, 5)),
        ((3, 7), [(5, 9)], (3, 9)),
        ((3, 8), [(0, 4)], (0, 8)),
        ((0, 9), [(3, 5)], (0, 9)),
        ((3, 5), [(0, 9)], (0, 9)),
        ((7, 10), [(0, 4), (4, 7), (10, 15)], (0, 15)),
        ((5, 9), [(0, 4)], (0, 9)),
    ],
)
def test_a_summary_grows_over_those_it_touches(
    wanted: tuple[int, int], summaries: list[tuple[int, int]], expected: tuple[int, int]
) -> None:
    ranges = [Range(first=first, last=last) for first, last in summaries]

    assert union_with_summaries(Range(first=wanted[0], last=wanted[1]), ranges) == Range(
        first=expected[0], last=expected[1]
    )


def test_bounds_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(UsageError, match="end cannot be 'last'"):
        check_choice(None, SinceCompaction())
    with pytest.raises(UsageError, match="begins with turn 5 and ends with turn 3"):
        check_choice(AtTurn(5), AtTurn(3))
    check_choice(AtTurn(3), AtTurn(3))
    check_choice(BeforeLast(0), AtTurn(3))
