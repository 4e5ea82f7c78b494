from __future__ import annotations

import pytest

from jp.context.groups import Group, GroupIndex, index_groups
from jp.context.tail import TailLimits, TailSelection, select_tail_by_budget
from jp.context.types import Call, Message, Meta

PENDING = Message(role="assistant", calls=(Call(id="a", name="run", arguments="{}"),), meta=Meta(pending=True))


def index_of(count: int, *, pending: int | None = None) -> GroupIndex:
    groups = tuple(Group(at, at + 1, "message", at == pending) for at in range(count))
    return GroupIndex(groups, tuple(range(count)))


def select(costs: list[int], limits: TailLimits, *, head_end: int = 0, **places: int) -> tuple[int, int, str, int]:
    index = index_of(len(costs), pending=places.get("pending"))
    found = select_tail_by_budget(index, costs, limits, head_end=head_end, anchor=places.get("anchor"))
    return found.start, found.tokens, found.reason, found.overshoot


@pytest.mark.parametrize(
    ("costs", "limits", "selection"),
    [
        ([10] * 8, TailLimits(budget=80), (0, 80, "everything", 0)),
        ([10] * 8, TailLimits(budget=35, soft_percent=100, min_groups=0), (5, 30, "budget", 0)),
        ([10] * 8, TailLimits(budget=40, soft_percent=50), (4, 40, "budget", 0)),
        ([30], TailLimits(budget=40, soft_percent=50), (0, 30, "everything", 0)),
        ([10] * 8, TailLimits(budget=35), (4, 40, "crossing", 5)),
        ([10, 10, 90, 10], TailLimits(budget=60, min_groups=0), (3, 10, "budget", 0)),
        ([10] * 8, TailLimits(budget=15, soft_percent=300, min_groups=4), (4, 40, "min_groups", 25)),
        ([10] * 8, TailLimits(budget=10, min_groups=4), (7, 10, "budget", 0)),
        ([10, 10, 500], TailLimits(budget=100), (2, 500, "mandatory_over_budget", 400)),
        ([10, 10, 10], TailLimits(budget=0), (2, 10, "mandatory_over_budget", 10)),
        ([10, 10, 10], TailLimits(budget=-5), (2, 10, "mandatory_over_budget", 10)),
        ([10, 0, 0, -7], TailLimits(budget=0, min_groups=0), (1, 0, "budget", 0)),
        ([30, 10, 10, 10], TailLimits(budget=40), (0, 60, "everything", 20)),
        ([30, 10, 10, 10], TailLimits(budget=40, must_shrink=True), (1, 30, "raw_budget", 0)),
        ([30, 10, 10, 10], TailLimits(budget=60, must_shrink=True), (0, 60, "everything", 0)),
        ([60], TailLimits(budget=40, must_shrink=True), (0, 60, "raw_budget", 20)),
        ([10, 10, 120], TailLimits(budget=100, min_groups=0), (2, 120, "budget", 20)),
    ],
)
def test_tail_selection_is_deterministic_and_budget_aware(
    costs: list[int], limits: TailLimits, selection: tuple[int, int, str, int]
) -> None:
    assert select(costs, limits) == selection


def test_a_tail_is_never_empty_where_something_is_behind_the_head() -> None:
    assert select([10, 10, 999], TailLimits(budget=0, soft_percent=0, min_groups=0), head_end=2)[0] == 2
    assert select([10, 10], TailLimits(budget=99), head_end=2) == (2, 0, "nothing", 0)
    assert select([], TailLimits(budget=99)) == (0, 0, "nothing", 0)


def test_it_does_not_reach_into_the_head() -> None:
    assert select([10] * 4, TailLimits(budget=99), head_end=2) == (2, 20, "everything", 0)
    assert select([10] * 4, TailLimits(budget=99), head_end=2, anchor=1)[0] == 2


def test_what_is_pending_and_all_behind_it_stays_whatever_it_costs() -> None:
    limits = TailLimits(budget=10, min_groups=0)

    assert select([5, 20, 10, 10], limits, pending=1) == (1, 40, "mandatory_over_budget", 30)
    assert select([5, 5, 5, 5], limits, pending=2) == (1, 15, "crossing", 5)
    messages = (Message(role="user"), PENDING, Message(role="user"))
    assert select_tail_by_budget(index_groups(messages), [0, 50, 0], limits, head_end=0) == TailSelection(
        start=1, tokens=50, reason="mandatory_over_budget", overshoot=40
    )


def test_the_tail_grows_for_the_anchor_up_to_its_ceiling_and_never_beyond() -> None:
    limits = TailLimits(budget=40, soft_percent=200, min_groups=0)

    assert select([10] * 9, limits, anchor=2) == (2, 70, "anchor", 30)
    assert select([10] * 9, limits, anchor=1) == (1, 80, "anchor", 40)
    assert select([10] * 9, limits, anchor=0) == (4, 50, "crossing", 10)
    assert select([10] * 9, limits, anchor=8) == (4, 50, "crossing", 10)
    assert select([10] * 9, TailLimits(budget=80, must_shrink=True), anchor=0) == (1, 80, "raw_budget", 0)
