"""What to do when a summary does not come to be, and when to ask again: decided by the kind of failure alone.

The state is a value that the host stores, so that a restart forgets nothing. `now` is the host's clock in seconds; it
has to go on over restarts, as the time of day does.
"""

from __future__ import annotations

from typing import Literal, assert_never

import msgspec
from msgspec.structs import replace

from jp.context.summary_schema import ErrorKind

UNREACHABLE_LADDER = (30, 120, 600)
TIMEOUT_LADDER = (60, 300, 900)
UNUSABLE_SECONDS = 60
_LONGEST_SECONDS = 900

GROWTH_PERCENT = 10
STRIKES = 2
SUPPRESSED_TRIGGERS = 10

Action = Literal["unchanged", "repair", "other_model", "fallback"]
"""`unchanged`: the messages stay as they are. `repair`: ask once more, saying what was wrong. `other_model`: ask the
conversation's own model. `fallback`: make the summary without a model.
"""

Verdict = Literal["go", "cooldown", "configuration", "growth", "strikes"]
"""`go`: a summary may be tried. Otherwise why not.

`cooldown`: a failure was not long ago. `configuration`: it needs a person, and nothing has changed since. `growth`: the
last summary was not worth it, and there is not enough more. `strikes`: that was so twice, and the next triggers are
let pass.
"""


class PolicyState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is remembered of failures. The host stores it and hands it in again.

    Until `resting_until` nobody is asked, nor with the `refused_configuration`, nor, for a summary that was not worth
    it, below `growth_needed` tokens and for `suppressed` more triggers. `unreachable` and `timeouts` count in a row.
    """

    resting_until: float = 0.0
    refused_configuration: str = ""
    unreachable: int = 0
    timeouts: int = 0
    strikes: int = 0
    growth_needed: int = 0
    suppressed: int = 0


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """What the host knows when a trigger fires.

    `configuration` names how its provider is set up, such as a checksum of the settings; `used` are the tokens of the
    transcript. `limit` is set where the next request cannot be sent otherwise: the tokens that it may have. Unless it
    `must_fit`, what comes as near to that as can be is better than nothing.
    """

    now: float
    configuration: str
    used: int
    limit: int | None = None
    must_fit: bool = True


class Permission(msgspec.Struct, frozen=True, kw_only=True):
    """Whether to try, and the state to store."""

    verdict: Verdict
    state: PolicyState


def may_summarise(state: PolicyState, at: Circumstances) -> Permission:
    """Whether a summary may be tried at this trigger. Triggers that pass count: call it once for each."""
    if state.suppressed:
        return Permission(verdict="strikes", state=replace(state, suppressed=state.suppressed - 1))
    if state.growth_needed and at.used < state.growth_needed:
        return Permission(verdict="growth", state=state)
    return Permission(verdict=may_ask(state, at), state=state)


def may_ask(state: PolicyState, at: Circumstances) -> Verdict:
    """Whether the provider may be asked, whatever earlier summaries were worth.

    A clock that was set back by more than the longest rest ends the rest.
    """
    if state.refused_configuration and state.refused_configuration == at.configuration:
        return "configuration"
    return "cooldown" if 0 < state.resting_until - at.now <= _LONGEST_SECONDS else "go"


def after_failure(state: PolicyState, kind: ErrorKind, at: Circumstances) -> PolicyState:
    """The state after a trigger that ended with an error of this `kind`."""
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
    """The state after the provider answered as it should: what was remembered of it is forgotten."""
    return replace(state, refused_configuration="", unreachable=0, timeouts=0, resting_until=0.0)


def after_success(state: PolicyState) -> PolicyState:
    """The state after a summary that was worth it."""
    return replace(state, strikes=0, growth_needed=0, suppressed=0)


def after_ineffective(state: PolicyState, at: Circumstances) -> PolicyState:
    """The state after a summary that was not worth it: there has to be a tenth more before the next one.

    After two in a row the next ten triggers pass as well.
    """
    strikes = state.strikes + 1
    return replace(
        state,
        strikes=strikes,
        growth_needed=_tenth_more(at.used),
        suppressed=SUPPRESSED_TRIGGERS if strikes >= STRIKES else 0,
    )


def after_ineligible(state: PolicyState, at: Circumstances) -> PolicyState:
    """Return the state after a trigger at which too little could leave: no strike, but there has to be a tenth more."""
    return replace(state, growth_needed=_tenth_more(at.used))


def next_action(kind: ErrorKind, *, calls_left: int, has_other_model: bool, may_fall_back: bool) -> Action:
    """What to do after an error of this `kind`, when so many calls of a model are left for this trigger."""
    match kind:
        case "auth" | "permission" | "quota" | "timeout":
            return "unchanged"
        case "network" | "stream_cut" | "overloaded":
            return "other_model" if has_other_model and calls_left else "unchanged"
        case "truncated" | "empty" | "tool_markup" | "malformed":
            if calls_left:
                return "repair"
            return "fallback" if may_fall_back else "unchanged"
        case "no_provider":
            return "fallback" if may_fall_back else "unchanged"
        case _:
            assert_never(kind)


def _tenth_more(used: int) -> int:
    return used + max(used * GROWTH_PERCENT // 100, 1)


def _rung(ladder: tuple[int, ...], failures: int) -> int:
    return ladder[min(failures, len(ladder) - 1)]
