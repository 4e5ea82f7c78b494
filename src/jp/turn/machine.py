"""The turn as a state machine: what happened, what is next. Pure and total."""

from __future__ import annotations

from typing import Literal, assert_never

import msgspec
from msgspec.structs import replace

from jp.conversation.entries import Finish

Ending = Literal["answered", "empty", "uncalled", "refused", "capped", "failed"]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a turn.

    `max_continuations` limits how often a cut answer is continued. `max_insistence` limits how often a required call
    is requested again.
    """

    max_cycles: int = 50
    max_continuations: int = 5
    max_insistence: int = 3


class TurnState(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a turn.

    `cycle` counts from 0, and `attempt` counts from 1 within a cycle. `retries` counts the attempts after transient
    failures. `mended` is true if one attempt was sent without rejected reasoning. `answered` is true if message text
    or data has arrived in this turn.
    """

    cycle: int = 0
    attempt: int = 1
    retries: int = 0
    mended: bool = False
    continuations: int = 0
    insistence: int = 0
    answered: bool = False


class AttemptEnded(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt is over.

    `incomplete` says that a message stands there which is not complete yet, or which something may have to follow,
    `whole` that a failure came after all that there was to come, `answered` that message text or data came,
    `calls` how many complete calls, `owing` that a call was demanded and none came. Two are about an error: `retryable`
    says that waiting and asking again may help, `mendable` that the next request will be without what it failed for.
    """

    finish: Finish
    incomplete: bool = False
    whole: bool = False
    answered: bool = False
    calls: int = 0
    owing: bool = False
    retryable: bool = False
    mendable: bool = False


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """Send a request.

    `continuing`: the answer goes on where its message is incomplete. `insisting`: what came lacks the call that was
    demanded, so it is demanded again.
    """

    continuing: bool = False
    insisting: bool = False


class RunTools(msgspec.Struct, frozen=True, kw_only=True):
    """Run the calls of the cycle."""


class EndTurn(msgspec.Struct, frozen=True, kw_only=True):
    """The turn is over."""

    ending: Ending


def after_attempt(state: TurnState, ended: AttemptEnded, limits: Limits) -> tuple[TurnState, Ask | RunTools | EndTurn]:
    """Decide what follows an attempt."""
    state = replace(state, answered=state.answered or ended.answered)
    match ended.finish:
        case "stop" | "tools" | "length" if ended.calls:
            return state, RunTools()
        case "stop" | "tools" if ended.owing and state.insistence < limits.max_insistence:
            return _next_cycle(replace(state, insistence=state.insistence + 1), limits, Ask(insisting=True))
        case "length" if ended.incomplete and state.continuations < limits.max_continuations:
            return _next_cycle(replace(state, continuations=state.continuations + 1), limits, Ask(continuing=True))
        case "error" | "cancelled" if ended.mendable and not ended.whole:
            return replace(state, attempt=state.attempt + 1, mended=True), Ask(continuing=ended.incomplete)
        case "error" | "cancelled" if ended.retryable and not ended.whole:
            retried = replace(state, attempt=state.attempt + 1, retries=state.retries + 1)
            return retried, Ask(continuing=ended.incomplete)
        case finish:
            came: Finish = "stop" if ended.whole else finish
            return state, EndTurn(ending=_ending(came, answered=state.answered, owing=ended.owing))


def after_tools(state: TurnState, limits: Limits) -> tuple[TurnState, Ask | EndTurn]:
    """Decide what follows when every call of the cycle has its response."""
    return _next_cycle(state, limits, Ask())


def _ending(finish: Finish, *, answered: bool, owing: bool) -> Ending:
    match finish:
        case "stop" | "tools" if owing:
            return "uncalled"
        case "stop" | "tools":
            return "answered" if answered else "empty"
        case "length":
            return "capped"
        case "refused":
            return "refused"
        case "error" | "cancelled":
            return "failed"
        case _:
            assert_never(finish)


def _next_cycle(state: TurnState, limits: Limits, ask: Ask) -> tuple[TurnState, Ask | EndTurn]:
    if state.cycle + 1 >= limits.max_cycles:
        return state, EndTurn(ending="capped")
    return replace(state, cycle=state.cycle + 1, attempt=1, retries=0, mended=False), ask
