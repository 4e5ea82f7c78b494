"""The passes in a chain: a transcript in as many tokens as a host has room for, with what matters most still in it.

What tools said gives way first, oldest first, because a digest keeps what it was and a handle recalls the rest. Where
that is not enough, the oldest messages leave for the one summary, and what people and models said stays as it was in
the others.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from itertools import accumulate
from types import MappingProxyType
from typing import Literal

import msgspec
from msgspec.structs import replace

from jp.context.arguments import shrink_old_arguments
from jp.context.boundary import align_forward, group_at, start_of
from jp.context.budget import estimate_message, estimate_messages, group_costs
from jp.context.digest import Digester, digest_results, exact_start
from jp.context.failure_policy import Circumstances, PolicyState
from jp.context.groups import GroupIndex, index_groups
from jp.context.head import protect_head
from jp.context.markers import Cutter
from jp.context.summarizing import Outcome, Steps, summarising
from jp.context.summary_asking import Setup
from jp.context.summary_request import SummaryProvider, SummaryRequest
from jp.context.summary_schema import SummaryReply
from jp.context.tail import TailLimits, select_tail_by_budget
from jp.context.tool_kinds import ToolRule, ToolRules
from jp.context.types import Transcript

_HEAD_PERCENT = 10
_SUMMARY_PERCENT = 45
_EXACT_PERCENT = 40
_CUT_RESULT = 100
_LEAST_SUMMARY = 500
"""Tokens of a result that gave way to pressure, and of a summary that says no more than it must."""

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
    at: Circumstances,
) -> Compressing:
    """Make `messages`, whose calls and results are in order, fit into `target` tokens.

    It yields what a model is to be asked and is sent what came of it, as `jp.context.summarizing.summarising` does.
    When it is time is for the host to decide: the less often, the less the provider reads anew, so a target is best
    well below the threshold that asks for it.
    """
    before = estimate_messages(messages)
    if before <= target:
        return Compressed(messages=messages, stage="fits", before=before, after=before)
    digested = _digested(messages, target, setup.cutter, rules)
    after = estimate_messages(digested)
    if after <= target:
        return Compressed(messages=digested, stage="digested", before=before, after=after)
    outcome = yield from _summarised(digested, target, setup, policy=policy, at=at)
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


def _digested(messages: Transcript, target: int, cutter: Cutter, rules: ToolRules) -> Transcript:
    """`messages` with so many of the oldest results and arguments made shorter as it takes, or all that may be."""
    index = index_groups(messages)
    head = protect_head(messages, index, group_costs(messages, index), cap=target * _HEAD_PERCENT // 100).end
    latest = max(exact_start(messages, index, _exact_tail(messages, index, head, target)), head)
    shortest = _shortened(messages, index, cutter, rules, between=(head, latest))
    end = _first_that_fits(messages, shortest, index, target)
    if end >= latest:
        return shortest
    return _shortened(messages, index, cutter, rules, between=(head, end))


def _shortened(
    messages: Transcript, index: GroupIndex, cutter: Cutter, rules: ToolRules, *, between: tuple[int, int]
) -> Transcript:
    shorter = shrink_old_arguments(messages, index, cutter, between=between).messages
    return digest_results(shorter, index, Digester(cutter.artifacts, rules), between=between).messages


def _exact_tail(messages: Transcript, index: GroupIndex, head: int, target: int) -> int:
    """Where those messages begin that stay exact in any case."""
    limits = TailLimits(budget=target * _EXACT_PERCENT // 100, soft_percent=100, min_groups=0)
    tail = select_tail_by_budget(index, group_costs(messages, index), limits, head_end=group_at(index, head))
    return start_of(index, tail.start)


def _first_that_fits(messages: Transcript, shorter: Transcript, index: GroupIndex, target: int) -> int:
    """Before which position the `shorter` messages have to stand, so that with the others all cost at most `target`."""
    total = estimate_messages(messages)
    saved = (estimate_message(old) - estimate_message(new) for old, new in zip(messages, shorter, strict=True))
    enough = (position for position, sum_ in enumerate(accumulate(saved), start=1) if total - sum_ <= target)
    return align_forward(index, next(enough, len(messages)))


def _summarised(messages: Transcript, target: int, setup: Setup, *, policy: PolicyState, at: Circumstances) -> Steps:
    """The one summary for the oldest messages; what it does not take of its share stays free until the next time."""
    index = index_groups(messages)
    costs = group_costs(messages, index)
    head = protect_head(messages, index, costs, cap=target * _HEAD_PERCENT // 100)
    first = group_at(index, head.end)
    fixed = sum(costs[:first])
    room = max(target - fixed, 0)
    limits = TailLimits(budget=room * (100 - _SUMMARY_PERCENT) // 100, soft_percent=100, min_groups=0)
    tail = select_tail_by_budget(index, costs, limits, head_end=first)
    start = start_of(index, tail.start)
    smaller = min(_least(messages, fixed, start), sum(costs) - 1)
    at = replace(at, limit=max(target, smaller))
    return (yield from summarising(messages, (head.end, start), setup, policy=policy, at=at))


def _least(messages: Transcript, head: int, tail_start: int) -> int:
    """Tokens below which no summary gets these messages: their `head`, the tail with cut results, and its own."""
    tail = messages[tail_start:]
    least = (min(estimate_message(row), _CUT_RESULT) if row.role == "tool" else estimate_message(row) for row in tail)
    return head + sum(least) + _LEAST_SUMMARY
