"""The end of a transcript that stays exactly as it is, within a budget of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from jp.context.groups import GroupIndex, pending_group

SOFT_PERCENT = 150
MIN_GROUPS = 3

Reason = Literal[
    "nothing",
    "everything",
    "budget",
    "crossing",
    "min_groups",
    "anchor",
    "raw_budget",
    "mandatory_over_budget",
]
"""Why a tail starts where it does.

`nothing`: there is nothing behind the head. `everything`: all of that fits. `budget`: the next older group would not
fit. `crossing`, `min_groups`, `anchor`: it goes over the budget, though not over the soft ceiling, for one group that
began within it, for the least number of groups, or for the anchor. `raw_budget`: everything would have fitted under the
ceiling and something had to go. `mandatory_over_budget`: what has to stay alone is above the ceiling.
"""


class TailLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How long a tail may be.

    `soft_percent` of `budget` is the ceiling; `min_groups` are kept while they fit under it. `must_shrink` says that a
    trigger has fired: keeping everything is then only an answer where everything fits into the budget itself.
    """

    budget: int
    soft_percent: int = SOFT_PERCENT
    min_groups: int = MIN_GROUPS
    must_shrink: bool = False

    @property
    def ceiling(self) -> int:
        """The most tokens that a tail may have, unless what has to stay has more."""
        budget = max(self.budget, 0)
        return max(budget * self.soft_percent // 100, budget)


class TailSelection(msgspec.Struct, frozen=True, kw_only=True):
    """The tail begins with group `start` and costs `tokens`, `overshoot` more than the budget."""

    start: int
    tokens: int
    reason: Reason
    overshoot: int


def select_tail_by_budget(
    index: GroupIndex,
    costs: Sequence[int],
    limits: TailLimits,
    *,
    head_end: int,
    anchor: int | None = None,
) -> TailSelection:
    """The newest groups that fit, walking back from the end; `head_end` is the number of the first one not protected.

    The last group and everything from a pending round on always stay. `anchor` is the group of the latest real request,
    for which the tail grows up to the ceiling and never beyond (otherwise `jp.context.anchors.preserve` keeps its
    text). `costs` are those of the groups; negative ones count as nothing. A larger budget never selects fewer groups.
    """
    count = len(index.groups)
    if head_end >= count:
        return TailSelection(start=count, tokens=0, reason="nothing", overshoot=0)
    first = _mandatory(index, head_end)
    selected = _selected(_Walk(costs, limits.budget, first, head_end), limits, anchor)
    if not (limits.must_shrink and selected.reason == "everything") or selected.tokens <= max(limits.budget, 0):
        return selected
    raw = _Walk(costs, limits.budget, first, head_end)
    raw.back(limits.ceiling, min_groups=0, crossing=False)
    raw.to_anchor(anchor, limits.budget)
    # A smaller budget, under whose ceiling not everything fits, may go over it and would keep more.
    smaller = replace(limits, budget=_greatest_below(selected.tokens, limits))
    other = _selected(_Walk(costs, smaller.budget, first, head_end), smaller, anchor)
    start = min(raw.start, other.start)
    tokens = sum(max(cost, 0) for cost in costs[start:])
    overshoot = max(tokens - max(limits.budget, 0), 0)
    return TailSelection(start=start, tokens=tokens, reason="raw_budget", overshoot=overshoot)


def _selected(walk: _Walk, limits: TailLimits, anchor: int | None) -> TailSelection:
    """Return what `walk` comes to, where everything may stay that fits under the ceiling."""
    if walk.tokens > limits.ceiling:
        return walk.ended("mandatory_over_budget")
    reason = walk.back(limits.ceiling, min_groups=limits.min_groups, crossing=True)
    reason = walk.to_anchor(anchor, limits.ceiling) or reason
    return walk.ended("everything" if walk.is_whole else reason)


def _greatest_below(tokens: int, limits: TailLimits) -> int:
    """Return the greatest budget whose ceiling is below `tokens`."""
    budget = tokens * 100 // limits.soft_percent
    while replace(limits, budget=budget).ceiling >= tokens:
        budget -= 1
    return budget


def _mandatory(index: GroupIndex, head_end: int) -> int:
    last = len(index.groups) - 1
    pending = pending_group(index)
    return max(min(last, last if pending is None else pending), head_end)


class _Walk:
    """A tail that grows at its beginning."""

    def __init__(self, costs: Sequence[int], budget: int, start: int, head_end: int) -> None:
        self._costs = [max(cost, 0) for cost in costs]
        self._budget = max(budget, 0)
        self._head_end = head_end
        self.start = start
        self.tokens = sum(self._costs[start:])

    @property
    def is_whole(self) -> bool:
        """Whether it begins where nothing is protected any more."""
        return self.start == self._head_end

    def back(self, ceiling: int, *, min_groups: int, crossing: bool) -> Reason:
        """Take older groups: into the budget, then one that crosses it, then up to `min_groups`."""
        reason: Reason = "budget"
        may_cross = crossing and self.tokens <= self._budget
        while self.start > self._head_end:
            tokens = self.tokens + self._costs[self.start - 1]
            if tokens > self._budget:
                wanted = len(self._costs) - self.start < min_groups
                if tokens > ceiling or not (may_cross or wanted):
                    break
                reason = "crossing" if may_cross else "min_groups"
                may_cross = False
            self.start -= 1
            self.tokens = tokens
        return reason

    def to_anchor(self, anchor: int | None, ceiling: int) -> Reason | None:
        """Grow to `anchor`, if that fits under `ceiling`."""
        if anchor is None or not self._head_end <= anchor < self.start:
            return None
        tokens = self.tokens + sum(self._costs[anchor : self.start])
        if tokens > ceiling:
            return None
        self.start, self.tokens = anchor, tokens
        return "anchor"

    def ended(self, reason: Reason) -> TailSelection:
        return TailSelection(
            start=self.start, tokens=self.tokens, reason=reason, overshoot=max(self.tokens - self._budget, 0)
        )
