"""What gives way for a budget: enough, no more than that takes, and what is worth least first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jp.context.budget import Candidate, least_loss

_PIECES = st.lists(
    st.tuples(st.integers(0, 500), st.integers(0, 3), st.integers(0, 4)),
    max_size=30,
).map(
    lambda rows: [
        Candidate(key=str(number), freed=freed, rank=rank, loss=loss, position=number)
        for number, (freed, rank, loss) in enumerate(rows)
    ]
)


@given(_PIECES, st.integers(-10, 6000))
def test_enough_is_freed_where_that_can_be(pieces: list[Candidate], need: int) -> None:
    chosen = least_loss(pieces, need)

    freed = sum(one.freed for one in pieces if one.key in chosen)
    assert freed >= min(need, sum(one.freed for one in pieces))


@given(_PIECES, st.integers(1, 6000))
def test_nothing_gives_way_that_is_not_needed(pieces: list[Candidate], need: int) -> None:
    chosen = [one for one in pieces if one.key in least_loss(pieces, need)]

    freed = sum(one.freed for one in chosen)
    assert freed < need or all(freed - one.freed < need for one in chosen)


@given(_PIECES, st.integers(1, 6000))
def test_nothing_of_a_later_pass_gives_way_while_the_earlier_ones_are_enough(
    pieces: list[Candidate], need: int
) -> None:
    chosen = [one for one in pieces if one.key in least_loss(pieces, need)]

    last = max((one.rank for one in chosen), default=0)
    assert sum(one.freed for one in pieces if one.rank < last) < need or not chosen


@given(_PIECES, st.integers(1, 6000))
def test_the_order_in_which_pieces_come_does_not_matter(pieces: list[Candidate], need: int) -> None:
    shuffled = sorted(pieces, key=lambda one: (one.freed, one.key))

    assert least_loss(shuffled, need) == least_loss(pieces, need)
