from __future__ import annotations

from collections.abc import Sequence

from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

import transcripts
from jp.context.anchors import latest_real_user
from jp.context.budget import group_costs
from jp.context.groups import Group, GroupIndex, group_at, index_groups, pending_group, start_of
from jp.context.tail import TailLimits, TailSelection, protect_head, select_tail_by_budget
from jp.context.types import Transcript
from transcript_validator import complaints

costs_of = st.lists(st.integers(-2, 40), max_size=8)
limits_of = st.builds(
    TailLimits,
    budget=st.integers(-5, 120),
    soft_percent=st.sampled_from((100, 150, 300)),
    min_groups=st.integers(0, 5),
    must_shrink=st.booleans(),
)


class Case:
    """Groups as their costs, of which one may be pending and one the anchor."""

    def __init__(self, costs: Sequence[int], places: tuple[int, int, int]) -> None:
        head_end, pending, anchor = places
        self.costs = [max(cost, 0) for cost in costs]
        self.raw_costs = costs
        self.count = len(costs)
        self.head_end = min(head_end, self.count)
        self.pending = pending if pending < self.count else None
        self.anchor = anchor if anchor < self.count else None
        self.index = GroupIndex(
            tuple(Group(at, at + 1, "message", at == self.pending) for at in range(self.count)),
            tuple(range(self.count)),
        )

    def select(self, limits: TailLimits) -> TailSelection:
        return select_tail_by_budget(self.index, self.raw_costs, limits, head_end=self.head_end, anchor=self.anchor)

    def total(self, start: int) -> int:
        return sum(self.costs[start:])


cases = st.builds(Case, costs_of, st.tuples(st.integers(0, 9), st.integers(0, 12), st.integers(0, 9)))


def start_by_trying_all(case: Case, limits: TailLimits) -> int:
    """The specification, said of every possible start instead of as a walk."""
    best = start_that_may_be_all(case, limits)
    budget = max(limits.budget, 0)
    mandatory = max(case.count - 1 if case.pending is None else case.pending, case.head_end)
    fits = case.total(mandatory) <= limits.ceiling
    if not (limits.must_shrink and best == case.head_end < case.count and fits and case.total(best) > budget):
        return best
    raw = [start for start in range(best, mandatory) if case.total(start) <= budget]
    smaller = [start_that_may_be_all(case, replace(limits, budget=less)) for less in range(budget)]
    return min([*raw, mandatory, *(start for start in smaller if start > best)])


def start_that_may_be_all(case: Case, limits: TailLimits) -> int:
    """The specification where everything may stay that fits under the ceiling."""
    if case.head_end >= case.count:
        return case.count
    mandatory = max(case.count - 1 if case.pending is None else case.pending, case.head_end)
    budget = max(limits.budget, 0)
    ceiling = max(budget * limits.soft_percent // 100, budget)
    if case.total(mandatory) > ceiling:
        return mandatory

    def is_allowed(start: int) -> bool:
        fits = case.total(start) <= budget
        crosses = case.total(start + 1) <= budget
        is_few = case.count - start <= limits.min_groups
        return case.total(start) <= ceiling and (fits or crosses or is_few or start == case.anchor)

    starts = range(case.head_end, mandatory)
    return min(filter(is_allowed, starts), default=mandatory)


@given(cases, limits_of)
def test_it_is_what_trying_every_start_finds(case: Case, limits: TailLimits) -> None:
    assert case.select(limits).start == start_by_trying_all(case, limits)


@given(cases, limits_of)
def test_it_lies_behind_the_head_is_not_empty_and_keeps_to_its_ceiling_or_says_why_not(
    case: Case, limits: TailLimits
) -> None:
    found = case.select(limits)

    assert case.head_end <= found.start <= case.count
    assert found.start < case.count or case.head_end == case.count
    assert found.tokens == case.total(found.start)
    assert found.overshoot == max(found.tokens - max(limits.budget, 0), 0)
    assert found.tokens <= limits.ceiling or found.reason == "mandatory_over_budget"
    assert case.pending is None or found.start <= max(case.pending, case.head_end)


@given(costs_of, limits_of, st.integers(0, 40), st.integers(0, 12))
def test_an_older_message_does_not_move_where_a_tail_begins(
    costs: list[int], limits: TailLimits, older: int, pending: int
) -> None:
    still = replace(limits, must_shrink=False)
    before = Case(costs, (0, pending, 99)).select(still)

    after = Case([older, *costs], (0, pending + 1, 99)).select(still)

    assert after.start == before.start + 1 or before.start == 0


@given(transcripts.transcripts(), st.integers(0, 3_000), st.integers(0, 600))
def test_head_summary_and_tail_are_what_providers_take_and_the_latest_request_is_there(
    messages: Transcript, budget: int, cap: int
) -> None:
    index = index_groups(messages)
    costs = group_costs(messages, index)
    head = protect_head(messages, index, costs, cap=cap)
    latest = latest_real_user(messages)

    found = select_tail_by_budget(
        index,
        costs,
        TailLimits(budget=budget),
        head_end=group_at(index, head.end),
        anchor=None if latest is None else index.group_of[latest],
    )

    start = start_of(index, found.start)
    assert head.end <= start
    assert head.tokens <= cap
    assert complaints((*messages[: head.end], transcripts.SUMMARY_ROW, *messages[start:])) == []
    pending = pending_group(index)
    assert pending is None or found.start <= pending
    if any(message.meta.kind == "summary" for message in messages):
        assert {message.role for message in messages[: head.end]} <= {"system"}


@given(cases, limits_of, st.integers(0, 60))
@example(Case([10, 2, 30], (0, 99, 99)), TailLimits(budget=25, must_shrink=True), 5)
def test_a_larger_budget_never_selects_fewer_groups(case: Case, limits: TailLimits, more: int) -> None:
    larger = replace(limits, budget=limits.budget + more)

    assert case.select(larger).start <= case.select(limits).start
