from __future__ import annotations

import pytest

from jp.compaction.overlays import Point, compactions_in_force, coverages
from jp.conversation.entries import AnyEntry, Compaction, Revert
from jp.conversation.turns import cycles_of, divide, undone
from logs import log, whole_turn

THREE_TURNS = [entry for number in range(3) for entry in whole_turn(number)]


def covered(*entries: AnyEntry) -> list[tuple[Point, Point]]:
    """What the compactions among `entries` cover, after three turns of two cycles."""
    stream = log(*THREE_TURNS, *entries)
    division = divide(stream)
    found = coverages(division, undone(stream), lambda number: cycles_of(division.turns[number]))
    return [(coverage.start, coverage.end) for coverage in found]


@pytest.mark.parametrize(
    ("compaction", "expected"),
    [
        (Compaction(from_turn=0, to_turn=1), ((0, 0), (2, 0))),
        (Compaction(from_turn=1, to_turn=2), ((1, 0), (2, 2))),
        (Compaction(from_turn=-7, to_turn=0), ((0, 0), (1, 0))),
        (Compaction(from_turn=1, to_turn=99), ((1, 0), (2, 2))),
        (Compaction(from_turn=0, to_turn=0, from_id="t1", to_id="t2"), ((1, 0), (2, 2))),
        (Compaction(from_turn=2, to_turn=1, from_id="t0"), ((0, 0), (2, 0))),
        (Compaction(from_turn=1, to_turn=1, from_id="gone", to_id="gone"), ((1, 0), (2, 0))),
    ],
    ids=["numbers", "to the last turn", "before the first", "beyond the last", "ids", "one id", "unknown ids"],
)
def test_a_range_is_where_its_ids_say_or_else_its_numbers(
    compaction: Compaction, expected: tuple[Point, Point]
) -> None:
    assert covered(compaction) == [expected]


@pytest.mark.parametrize(
    "compaction",
    [
        Compaction(from_turn=2, to_turn=1),
        Compaction(from_turn=3, to_turn=9),
        Compaction(from_turn=0, to_turn=-1),
        Compaction(from_turn=0, to_turn=2, from_id="t2", to_id="t0"),
    ],
    ids=["backwards", "beyond the end", "before the start", "ids backwards"],
)
def test_a_range_of_nothing_covers_nothing(compaction: Compaction) -> None:
    assert covered(compaction) == []


def test_a_compaction_covers_only_what_stands_before_it() -> None:
    compaction = Compaction(from_turn=0, to_turn=9, to_id="t9")

    assert covered(compaction, *whole_turn(9)) == [((0, 0), (2, 2))]
    assert covered(*whole_turn(9)[:6], compaction, *whole_turn(9)[6:]) == [((0, 0), (3, 1))]
    assert coverages(divide(log(compaction)), frozenset(), lambda _: []) == []


def test_a_compaction_that_was_undone_covers_nothing() -> None:
    compaction = Compaction(id="z", from_turn=0, to_turn=0)

    assert covered(compaction, Revert(id="r", entries=("z",))) == []
    assert covered(compaction, Revert(id="r", entries=("z",)), Revert(entries=("r",))) == [((0, 0), (1, 0))]


def test_a_range_that_ends_inside_a_turn_has_a_part_for_responses_only() -> None:
    stream = log(
        *THREE_TURNS,
        *(entry for _ in range(3) for entry in whole_turn(9)[1:]),
        Compaction(from_turn=1, to_turn=2, to_cycle=9),
    )
    division = divide(stream)

    found = coverages(division, frozenset(), lambda number: cycles_of(division.turns[number]))

    assert [(one.start, one.end, one.only_responses) for one in found] == [
        ((1, 0), (2, 0), False),
        ((2, 0), (2, 5), True),
    ]


def test_compactions_are_in_force_until_they_are_undone() -> None:
    one, other = Compaction(id="a", from_turn=0, to_turn=0), Compaction(id="b", from_turn=0, to_turn=0)

    assert compactions_in_force(log(*THREE_TURNS, one, other, Revert(entries=("a",)))) == [other]
