"""The beginning and the end of a transcript that stay, within a budget of tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from jp.context.anchors import is_real_user
from jp.context.budget import estimate_message
from jp.context.groups import GroupIndex, leading_systems, pending_group
from jp.context.markers import Cutter, bounded, checksum_of
from jp.context.types import Digested, Message, TextBlock, Transcript, texts_of

PROTECTED_GROUPS = 3


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """The messages before `end` are protected. `tokens` is what those after the system messages cost.

    `oversized` is the position of a request that would have been among them and is too
    large: its text is to be preserved in bounds (`jp.context.anchors.preserve`), once.
    """

    end: int
    tokens: int
    oversized: int | None = None


def protect_head(
    messages: Sequence[Message],
    index: GroupIndex,
    costs: Sequence[int],
    *,
    cap: int,
    groups: int = PROTECTED_GROUPS,
) -> Head:
    """The leading system messages and the first `groups` groups after them, as far as they cost at most `cap`.

    Once the transcript has a summary, only the system messages: the summary says what the beginning was about. That it
    has one is read off the transcript, so it holds after a restart. `costs` are those of the groups. Pending calls
    belong to the end of a transcript and are never in its head.
    """
    number = leading_systems(messages)
    allowed = 0 if any(message.meta.kind == "summary" for message in messages) else max(groups, 0)
    tokens = 0
    oversized = None
    for group in index.groups[number : number + allowed]:
        if group.pending:
            break
        if tokens + costs[number] > cap:
            oversized = group.start if is_real_user(messages[group.start]) else None
            break
        tokens += max(costs[number], 0)
        number += 1
    end = index.groups[number - 1].end if number else 0
    return Head(end=end, tokens=tokens, oversized=oversized)


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


Demote = Callable[[Message], Message]
"""What a result is replaced by; itself where nothing shorter says enough."""

BODY_LIMIT = 2_000


class Relief(msgspec.Struct, frozen=True, kw_only=True):
    """`tokens` is what the tail costs now; `demoted` are the positions of the results that gave way, in their order.

    `relieved` is False where it is still above the ceiling. `messages` is the very object that came in where nothing
    gave way.
    """

    messages: Transcript
    tokens: int
    relieved: bool
    demoted: tuple[int, ...] = ()


def relieve_pressure(
    messages: Transcript, index: GroupIndex, demote: Demote, *, tail_start: int, ceiling: int
) -> Relief:
    """`messages` with as many results from `tail_start` on demoted as it takes to cost at most `ceiling` tokens.

    The oldest go first and those of the newest round last. Those of pending calls, and what is `verbatim` or digested
    already, stay.
    """
    changed: dict[int, Message] = {}
    tokens = sum(estimate_message(message) for message in messages[tail_start:])
    for position in range(tail_start, len(messages)):
        if tokens <= ceiling:
            break
        message = messages[position]
        if not _may_give_way(message) or index.groups[index.group_of[position]].pending:
            continue
        shorter = demote(message)
        saved = estimate_message(message) - estimate_message(shorter)
        if saved > 0:
            changed[position] = shorter
            tokens -= saved
    result = tuple(changed.get(at, message) for at, message in enumerate(messages)) if changed else messages
    return Relief(messages=result, tokens=tokens, relieved=tokens <= ceiling, demoted=tuple(changed))


def bounding(cutter: Cutter, limit: int = BODY_LIMIT) -> Demote:
    """A way to demote that needs to know nothing of tools: every text keeps its beginning and end.

    The checksum in `meta.digested` is that of all texts together; each marker has the handle of its own.
    """

    def demote(message: Message) -> Message:
        if isinstance(message.content, str):
            content = bounded(message.content, limit, cutter)
        else:
            content = tuple(
                replace(block, text=bounded(block.text, limit, cutter)) if isinstance(block, TextBlock) else block
                for block in message.content
            )
        if content == message.content:
            return message
        whole = "".join(texts_of(message))
        size = len(whole.encode("utf-8", "surrogatepass"))
        digested = Digested(sha256=checksum_of(whole), original_bytes=size, rule="bounded")
        return replace(message, content=content, meta=replace(message.meta, digested=digested))

    return demote


def _may_give_way(message: Message) -> bool:
    return message.role == "tool" and not message.meta.verbatim and message.meta.digested is None
