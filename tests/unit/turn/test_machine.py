from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jp.turn.machine import Ask, AttemptEnded, EndTurn, Limits, RunTools, TurnState, after_attempt, after_tools

LIMITS = Limits(max_cycles=3, max_continuations=2)
FRESH = TurnState()
LAST_CYCLE = TurnState(cycle=2)


@pytest.mark.parametrize(
    ("state", "ended", "step"),
    [
        (FRESH, AttemptEnded(finish="stop", answered=True), EndTurn(ending="answered")),
        (FRESH, AttemptEnded(finish="stop"), EndTurn(ending="empty")),
        (TurnState(answered=True), AttemptEnded(finish="stop"), EndTurn(ending="answered")),
        (FRESH, AttemptEnded(finish="tools", calls=1), RunTools()),
        (FRESH, AttemptEnded(finish="stop", calls=2), RunTools()),
        (FRESH, AttemptEnded(finish="tools"), EndTurn(ending="empty")),
        (FRESH, AttemptEnded(finish="length", incomplete=True, answered=True), Ask(continuing=True)),
        (FRESH, AttemptEnded(finish="length", incomplete=True, calls=1), RunTools()),
        (FRESH, AttemptEnded(finish="length"), EndTurn(ending="capped")),
        (TurnState(continuations=2), AttemptEnded(finish="length", incomplete=True), EndTurn(ending="capped")),
        (LAST_CYCLE, AttemptEnded(finish="length", incomplete=True), EndTurn(ending="capped")),
        (FRESH, AttemptEnded(finish="refused", answered=True), EndTurn(ending="refused")),
        (FRESH, AttemptEnded(finish="error", retryable=True), Ask()),
        (FRESH, AttemptEnded(finish="error", incomplete=True, retryable=True), Ask(continuing=True)),
        (TurnState(attempt=4), AttemptEnded(finish="error", retryable=True), Ask()),
        (FRESH, AttemptEnded(finish="error", calls=1), EndTurn(ending="failed")),
        (FRESH, AttemptEnded(finish="cancelled", answered=True), EndTurn(ending="failed")),
        (FRESH, AttemptEnded(finish="error", mendable=True), Ask()),
        (FRESH, AttemptEnded(finish="error", mendable=True, incomplete=True), Ask(continuing=True)),
        (FRESH, AttemptEnded(finish="stop", answered=True, owing=True), Ask(insisting=True)),
        (FRESH, AttemptEnded(finish="tools", calls=1, owing=True), RunTools()),
        (FRESH, AttemptEnded(finish="refused", owing=True), EndTurn(ending="refused")),
        (TurnState(insistence=3), AttemptEnded(finish="stop", owing=True), EndTurn(ending="uncalled")),
        (LAST_CYCLE, AttemptEnded(finish="stop", owing=True), EndTurn(ending="capped")),
    ],
    ids=[
        "an answer",
        "no answer",
        "an answer before the tools ran counts",
        "calls",
        "calls without saying so",
        "calls announced that did not come",
        "a cut answer is continued",
        "calls before the cut run",
        "a cut without an answer",
        "continued often enough",
        "no cycle left to continue in",
        "a refusal",
        "an error that may pass",
        "an error in the middle of a message",
        "a later attempt",
        "an error that will not pass, whatever was called",
        "cancelled",
        "rejected reasoning can be left out",
        "rejected reasoning in the middle of a message",
        "a demanded call did not come",
        "a demanded call came",
        "a demand is refused",
        "demanded often enough",
        "no cycle left to demand it in",
    ],
)
def test_what_follows_an_attempt(state: TurnState, ended: AttemptEnded, step: Ask | RunTools | EndTurn) -> None:
    assert after_attempt(state, ended, LIMITS)[1] == step


def test_a_retry_stays_in_its_cycle() -> None:
    state, _ = after_attempt(TurnState(cycle=1), AttemptEnded(finish="error", retryable=True), LIMITS)

    assert state == TurnState(cycle=1, attempt=2, retries=1)


def test_an_attempt_without_rejected_reasoning_is_no_retry() -> None:
    state, _ = after_attempt(TurnState(cycle=1), AttemptEnded(finish="error", mendable=True), LIMITS)

    assert state == TurnState(cycle=1, attempt=2, reasoning_removed=True)


def test_a_demand_is_made_again_in_a_new_cycle() -> None:
    state, _ = after_attempt(TurnState(attempt=2, retries=1), AttemptEnded(finish="stop", owing=True), LIMITS)

    assert state == TurnState(cycle=1, insistence=1)


def test_tools_lead_to_the_next_cycle() -> None:
    assert after_tools(TurnState(cycle=0, attempt=3, retries=1, reasoning_removed=True), LIMITS) == (
        TurnState(cycle=1, attempt=1),
        Ask(),
    )


def test_the_last_cycle_is_a_cap() -> None:
    assert after_tools(LAST_CYCLE, LIMITS)[1] == EndTurn(ending="capped")


ENDED = st.builds(
    AttemptEnded,
    finish=st.sampled_from(["stop", "tools", "length", "refused", "cancelled"]),
    incomplete=st.booleans(),
    answered=st.booleans(),
    calls=st.integers(0, 3),
    owing=st.booleans(),
)


@given(st.lists(ENDED, min_size=20, max_size=20))
def test_every_turn_ends_within_its_cycles(attempts: list[AttemptEnded]) -> None:
    state = TurnState()
    for ended in attempts[: LIMITS.max_cycles]:
        state, step = after_attempt(state, ended, LIMITS)
        if isinstance(step, RunTools):
            state, step = after_tools(state, LIMITS)
        if isinstance(step, EndTurn):
            return
    pytest.fail("the turn goes on")
