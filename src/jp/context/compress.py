"""The passes in a chain: a transcript in as many tokens as a host has room for, with what matters most still in it.

What tools said gives way first, oldest first, because a digest keeps what it was and a handle recalls the rest. Where
that is not enough, the oldest messages leave for the one summary, and what people and models said stays as it was in
the others.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal

import msgspec
from msgspec.structs import replace

from jp.context.budget import estimate_message
from jp.context.digest import Digester, digest_results, exact_start
from jp.context.digest_lines import ToolRule, ToolRules
from jp.context.groups import GroupIndex, group_at, index_groups, leading_systems, start_of
from jp.context.leaves import shrink_old_arguments
from jp.context.markers import Cutter
from jp.context.policy import PolicyState, SummaryCircumstances
from jp.context.summarizing import Outcome, summarising
from jp.context.summary_asking import Setup, SummaryProvider, SummaryRequest
from jp.context.summary_fold import stays
from jp.context.summary_schema import SummaryReply
from jp.context.tail import TailLimits, TailSelection, protect_head, select_tail_by_budget
from jp.context.types import Transcript

_HEAD_PERCENT = 10
_SUMMARY_PERCENT = 45
_EXACT_PERCENT = 20
_LEAST_SUMMARY = 500
"""Tokens of a summary that says little more than it must."""

_NO_RULES: Mapping[str, ToolRule] = MappingProxyType({})

Stage = Literal["fits", "digested", "summarised", "too_large"]
"""How far it had to go. `too_large`: it is above the target whatever leaves."""


class Compressed(msgspec.Struct, frozen=True, kw_only=True):
    """`messages` have `after` tokens, and had `before`. `outcome` is that of the summary, where one was tried."""

    messages: Transcript
    stage: Stage
    before: int
    after: int
    outcome: Outcome | None = None


Compressing = Generator[SummaryRequest, SummaryReply, Compressed]


def compressing(
    messages: Transcript,
    target: int,
    setup: Setup,
    rules: ToolRules = _NO_RULES,
    *,
    policy: PolicyState,
    at: SummaryCircumstances,
) -> Compressing:
    """Make `messages`, whose calls and results are in order, fit into `target` tokens.

    It yields what a model is to be asked and is sent what came of it, as `jp.context.summarizing.summarising` does.
    When it is time is for the host to decide: the less often, the less the provider reads anew, so a target is best
    well below the threshold that asks for it.
    """
    rows = _weighed(messages, index_groups(messages), tuple(map(estimate_message, messages)))
    before = sum(rows.costs)
    if before <= target:
        return Compressed(messages=messages, stage="fits", before=before, after=before)
    rows = _digested(rows, target, setup.cutter, rules)
    after = sum(rows.costs)
    if after <= target:
        return Compressed(messages=rows.messages, stage="digested", before=before, after=after)
    at = replace(at, limit=target, must_fit=False)
    outcome = yield from summarising(rows.messages, _middle(rows, target), setup, policy=policy, at=at)
    stage: Stage = "summarised" if outcome.after <= target else "too_large"
    return Compressed(messages=outcome.messages, stage=stage, before=before, after=outcome.after, outcome=outcome)


def run(steps: Compressing, provider: SummaryProvider) -> Compressed:
    """The result of `steps`, whose questions go to `provider`."""
    try:
        request = next(steps)
        while True:
            request = steps.send(provider.summarize(request))
    except StopIteration as end:
        result: Compressed = end.value
        return result


class _Weighed(msgspec.Struct, frozen=True):
    """Messages with what `each` costs, their groups and what each group costs."""

    messages: Transcript
    each: tuple[int, ...]
    index: GroupIndex
    costs: tuple[int, ...]


def _weighed(messages: Transcript, index: GroupIndex, each: tuple[int, ...]) -> _Weighed:
    costs = [0] * len(index.groups)
    for group, cost in zip(index.group_of, each, strict=True):
        costs[group] += cost
    return _Weighed(messages, each, index, tuple(costs))


def _digested(rows: _Weighed, target: int, cutter: Cutter, rules: ToolRules) -> _Weighed:
    """All old results and arguments made shorter that may be.

    All at once: a provider reads everything behind the first change anew, so what changes later costs that once more.
    """
    messages, index = rows.messages, rows.index
    head = protect_head(messages, index, rows.costs, cap=target * _HEAD_PERCENT // 100).end
    tail = _tail(index, rows.costs, target * _EXACT_PERCENT // 100, group_at(index, head))
    exact = max(exact_start(messages, index, start_of(index, tail.start)), head)
    shorter = shrink_old_arguments(messages, index, cutter, between=(head, exact)).messages
    shorter = digest_results(
        shorter, index, Digester(cutter.artifacts, rules, cutter.known), between=(head, exact)
    ).messages
    each = tuple(
        cost if old is new else estimate_message(new)
        for cost, old, new in zip(rows.each, messages, shorter, strict=True)
    )
    return _weighed(shorter, index, each)


def _tail(index: GroupIndex, costs: Sequence[int], budget: int, first: int) -> TailSelection:
    """The newest groups that fit into `budget`, and at least the last; `first` is that behind the head."""
    limits = TailLimits(budget=budget, soft_percent=100, min_groups=0)
    return select_tail_by_budget(index, costs, limits, head_end=first)


def _middle(rows: _Weighed, target: int) -> tuple[int, int]:
    """From where to where messages leave for the one summary.

    What that does not take of its share stays free until the next time.
    """
    messages, index, costs = rows.messages, rows.index, rows.costs
    fixed = [stays(messages, group) for group in index.groups]
    free = [0 if is_fixed else cost for cost, is_fixed in zip(costs, fixed, strict=True)]
    room = target - (sum(costs) - sum(free))
    systems = leading_systems(messages)
    spare = room - _tail(index, free, 0, systems).tokens - _LEAST_SUMMARY
    head = protect_head(messages, index, costs, cap=min(target * _HEAD_PERCENT // 100, max(spare, 0))).end
    first = group_at(index, head)
    room -= sum(free[:first])
    tail = _tail(index, free, min(room * (100 - _SUMMARY_PERCENT) // 100, room - _LEAST_SUMMARY), first)
    return head, start_of(index, tail.start)
