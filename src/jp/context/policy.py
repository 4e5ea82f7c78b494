"""Decides when compaction is due, and how to react to failed summaries."""

from __future__ import annotations

from typing import Literal, assert_never

import msgspec
from msgspec.structs import replace

from jp.context.summary_schema import ErrorKind

Reason = Literal["threshold", "hard_limit", "provider_overflow"]
"""`hard_limit`: the next request would not fit. `provider_overflow`: the provider said so."""

Obstacle = Literal["below", "cooldown", "blocked_thrash", "infeasible", "min_reclaim"]
"""`below`: it is not due. `cooldown`: it failed a moment ago. `blocked_thrash`: it failed to free enough several times.
`infeasible`: nothing can be removed. `min_reclaim`: too little can be removed.
"""


class Numbers(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens: in `used` what the last request took, in `projected` what the next one will.

    `limit` is the window without what is reserved for the answer; `reclaimable` is the estimate of what can be left
    out, and `least` how much that has to be, to be worth an edit.
    """

    used: int
    projected: int
    threshold: int
    limit: int
    reclaimable: int
    least: int = 0


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """Further facts from the host.

    `has_overflowed`: the provider refused the request as too long. `is_cooling` and `is_blocked`: see `Obstacle`.
    """

    has_overflowed: bool = False
    is_cooling: bool = False
    is_blocked: bool = False


class Triggered(msgspec.Struct, frozen=True, kw_only=True, tag_field="verdict", tag="triggered"):
    """Compaction is due."""

    reason: Reason
    numbers: Numbers


class NotTriggered(msgspec.Struct, frozen=True, kw_only=True, tag_field="verdict", tag="not_triggered"):
    """Compaction is not due. `reason` is the reason for which it would be, without the obstacle."""

    because: Obstacle
    numbers: Numbers
    reason: Reason | None = None


Verdict = Triggered | NotTriggered

_USUAL = Circumstances()


def decide(numbers: Numbers, circumstances: Circumstances = _USUAL) -> Verdict:
    """Return whether compaction is due before the next request, with the reason or the obstacle.

    Recent failures do not prevent it for a request that would not fit.
    """
    reason = _reason(numbers, circumstances)
    if reason is None:
        return NotTriggered(because="below", numbers=numbers)
    obstacle = _obstacle(reason, numbers, circumstances)
    if obstacle is not None:
        return NotTriggered(because=obstacle, numbers=numbers, reason=reason)
    return Triggered(reason=reason, numbers=numbers)


def _reason(numbers: Numbers, circumstances: Circumstances) -> Reason | None:
    reasons: tuple[tuple[Reason, bool], ...] = (
        ("provider_overflow", circumstances.has_overflowed),
        ("hard_limit", numbers.projected > numbers.limit),
        ("threshold", numbers.projected >= numbers.threshold),
    )
    return next((reason for reason, holds in reasons if holds), None)


def _obstacle(reason: Reason, numbers: Numbers, circumstances: Circumstances) -> Obstacle | None:
    is_urgent = reason != "threshold"
    obstacles: tuple[tuple[Obstacle, bool], ...] = (
        ("infeasible", numbers.reclaimable <= 0),
        ("blocked_thrash", circumstances.is_blocked and not is_urgent),
        ("cooldown", circumstances.is_cooling and not is_urgent),
        ("min_reclaim", numbers.reclaimable < numbers.least and not is_urgent),
    )
    return next((obstacle for obstacle, holds in obstacles if holds), None)


UNREACHABLE_LADDER = (30, 120, 600)
TIMEOUT_LADDER = (60, 300, 900)
UNUSABLE_SECONDS = 60
_LONGEST_SECONDS = 900

GROWTH_PERCENT = 10
STRIKES = 2
SUPPRESSED_TRIGGERS = 10

UNUSABLE: frozenset[ErrorKind] = frozenset({"truncated", "empty", "tool_markup", "malformed"})
"""Errors after which a model is asked once more: it answered, and its answer cannot be read."""

SummaryVerdict = Literal["go", "cooldown", "configuration", "growth", "strikes"]
"""`go`: a summary may be tried. Otherwise why not.

`cooldown`: a failure was not long ago. `configuration`: it needs a person, and nothing has changed since. `growth`: the
last summary was not worth it, and there is not enough more. `strikes`: that was so twice, and the next triggers are
let pass.
"""


class PolicyState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The record of failures. The host stores it and passes it in again.

    Until `resting_until` no model is asked, nor with the `refused_configuration`, nor, after a summary that freed too
    little, below `growth_needed` tokens and for `suppressed` more triggers. `unreachable` and `timeouts` count in a
    row.
    """

    resting_until: float = 0.0
    refused_configuration: str = ""
    unreachable: int = 0
    timeouts: int = 0
    strikes: int = 0
    growth_needed: int = 0
    suppressed: int = 0


class SummaryCircumstances(msgspec.Struct, frozen=True, kw_only=True):
    """The host's facts at a trigger.

    `configuration` identifies the setup of its provider, such as a checksum of the settings; `used` are the tokens of
    the transcript.
    """

    now: float
    configuration: str
    used: int


class Permission(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict, and the state to store."""

    verdict: SummaryVerdict
    state: PolicyState


def may_summarise(state: PolicyState, at: SummaryCircumstances) -> Permission:
    """Return whether to try a summary at this trigger. Skipped triggers count: call it once for each."""
    if state.suppressed:
        return Permission(verdict="strikes", state=replace(state, suppressed=state.suppressed - 1))
    if state.growth_needed and at.used < state.growth_needed:
        return Permission(verdict="growth", state=state)
    return Permission(verdict=may_ask(state, at), state=state)


def may_ask(state: PolicyState, at: SummaryCircumstances) -> SummaryVerdict:
    """Return whether to ask the provider, regardless of the worth of earlier summaries.

    A clock that was set back by more than the longest rest ends the rest.
    """
    if state.refused_configuration and state.refused_configuration == at.configuration:
        return "configuration"
    return "cooldown" if 0 < state.resting_until - at.now <= _LONGEST_SECONDS else "go"


def after_failure(state: PolicyState, kind: ErrorKind, at: SummaryCircumstances) -> PolicyState:
    """Return the state after a trigger that ended with an error of this `kind`."""
    match kind:
        case "auth" | "permission" | "quota":
            return replace(state, refused_configuration=at.configuration)
        case "network" | "stream_cut" | "overloaded":
            seconds = _rung(UNREACHABLE_LADDER, state.unreachable)
            return replace(state, unreachable=state.unreachable + 1, resting_until=at.now + seconds)
        case "timeout":
            seconds = _rung(TIMEOUT_LADDER, state.timeouts)
            return replace(state, timeouts=state.timeouts + 1, resting_until=at.now + seconds)
        case "truncated" | "empty" | "tool_markup" | "malformed":
            return replace(state, resting_until=at.now + UNUSABLE_SECONDS)
        case "no_provider":
            return state
        case _:
            assert_never(kind)


def after_answer(state: PolicyState) -> PolicyState:
    """Return the state after a valid answer of the provider, whose failures are forgotten."""
    return replace(state, refused_configuration="", unreachable=0, timeouts=0, resting_until=0.0)


def after_success(state: PolicyState) -> PolicyState:
    """Return the state after a summary that freed enough."""
    return replace(state, strikes=0, growth_needed=0, suppressed=0)


def after_ineffective(state: PolicyState, at: SummaryCircumstances) -> PolicyState:
    """Return the state after a summary that freed too little: the next one needs a tenth more tokens.

    After two in a row the next ten triggers are skipped as well.
    """
    strikes = state.strikes + 1
    return replace(
        state,
        strikes=strikes,
        growth_needed=_tenth_more(at.used),
        suppressed=SUPPRESSED_TRIGGERS if strikes >= STRIKES else 0,
    )


def after_ineligible(state: PolicyState, at: SummaryCircumstances) -> PolicyState:
    """Return the state after a trigger at which too little could leave: no strike, but there has to be a tenth more."""
    return replace(state, growth_needed=_tenth_more(at.used))


def _tenth_more(used: int) -> int:
    return used + max(used * GROWTH_PERCENT // 100, 1)


def _rung(ladder: tuple[int, ...], failures: int) -> int:
    return ladder[min(failures, len(ladder) - 1)]
