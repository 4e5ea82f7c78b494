from __future__ import annotations

import pytest

from jp.context.groups import align_back, align_forward, group_at, index_groups, start_of
from jp.context.types import Call, Message

CALLS = Message(role="assistant", calls=(Call(id="a", name="run", arguments="{}"),))
INDEX = index_groups((
    Message(role="user"),
    CALLS,
    Message(role="tool", call_id="a"),
    Message(role="tool"),
    Message(role="user"),
))


@pytest.mark.parametrize(
    ("position", "back", "forward"),
    [(-1, 0, 0), (0, 0, 0), (1, 1, 1), (2, 1, 4), (3, 1, 4), (4, 4, 4), (5, 5, 5), (9, 5, 5)],
)
def test_a_cut_goes_to_the_next_place_between_groups(position: int, back: int, forward: int) -> None:
    assert (align_back(INDEX, position), align_forward(INDEX, position)) == (back, forward)


def test_groups_and_messages_are_found_by_each_other() -> None:
    assert [group_at(INDEX, position) for position in range(6)] == [0, 1, 1, 1, 2, 3]
    assert [start_of(INDEX, group) for group in range(4)] == [0, 1, 4, 5]


def test_of_nothing_there_is_one_place() -> None:
    nothing = index_groups(())

    assert [(align_back(nothing, at), align_forward(nothing, at)) for at in (-1, 0, 1)] == [(0, 0)] * 3


def test_aligning_is_not_dragged_back_by_an_id_that_an_early_round_has_too() -> None:
    round_of = (CALLS, Message(role="tool", call_id="a"))
    index = index_groups((*round_of * 50, Message(role="tool", call_id="a")))

    assert align_back(index, 99) == 98
