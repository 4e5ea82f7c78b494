"""The turn as a state machine: what happened, what is next. Pure and total."""

from __future__ import annotations

from typing import Literal, assert_never

import msgspec
from msgspec.structs import replace

from jp.conversation.entries import Finish

Ending = Literal["answered", "empty", "refused", "capped", "failed"]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Where a turn stops by itself. `max_continuations` counts how often a cut answer is continued."""

    max_cycles: int = 50
    max_continuations: int = 5


class TurnState(msgspec.Struct, frozen=True, kw_only=True):
    """How far a turn has come. `cycle` counts from 0, `attempt` from 1 within it.

    `answered` says that some message text or data has come in this turn.
    """

    cycle: int = 0
    attempt: int = 1
    continuations: int = 0
    answered: bool = False


class AttemptEnded(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt is over.

    `incomplete` says that a message stands there which is not complete yet, `answered` that message text or data came,
    `calls` how many complete calls. `retryable` is about an error: whether waiting and asking again may help.
    """

    finish: Finish
    incomplete: bool = False
    answered: bool = False
    calls: int = 0
    retryable: bool = False


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """Send a request. `continuing`: the answer goes on where shown text was cut off. `retry` counts from 1, 0: none."""

    continuing: bool = False
    retry: int = 0


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
        case "length" if ended.incomplete and state.continuations < limits.max_continuations:
            return _next_cycle(replace(state, continuations=state.continuations + 1), limits, Ask(continuing=True))
        case "error" | "cancelled" if ended.retryable:
            return replace(state, attempt=state.attempt + 1), Ask(continuing=ended.incomplete, retry=state.attempt)
        case finish:
            return state, EndTurn(ending=_ending(finish, answered=state.answered))


def after_tools(state: TurnState, limits: Limits) -> tuple[TurnState, Ask | EndTurn]:
    """Decide what follows when every call of the cycle has its response."""
    return _next_cycle(state, limits, Ask())


def _ending(finish: Finish, *, answered: bool) -> Ending:
    match finish:
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
    return replace(state, cycle=state.cycle + 1, attempt=1), ask
