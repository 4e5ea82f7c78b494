"""A summary within a number of tokens: what matters least goes first, whole, and what was asked for last."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from jp.context.estimate import estimate_tokens
from jp.context.handles import Artifacts
from jp.context.ledger import Ledger
from jp.context.mentions import Mentions
from jp.context.spoken import fold_spoken
from jp.context.summary_fold import within_requirements
from jp.context.summary_schema import TouchedFiles
from jp.context.summary_state import Recallable, SummaryState
from jp.context.summary_text import render_summary

_Step = Callable[[SummaryState, Artifacts], SummaryState]


def fit_summary(state: SummaryState, limit: int, nonce: str, artifacts: Artifacts) -> SummaryState:
    """`state` so that its text has at most `limit` tokens, or as few as it can have.

    The goal, the next step and the request being worked on always stay. What the person said and required goes to
    `artifacts`, and a handle stays.
    """
    for step in _STEPS:
        if estimate_tokens(render_summary(state, nonce)) <= limit:
            break
        state = step(state, artifacts)
    return state


def _without_mentions(state: SummaryState, artifacts: Artifacts) -> SummaryState:
    return replace(state, mentions=Mentions())


def _without_asides(state: SummaryState, artifacts: Artifacts) -> SummaryState:
    return replace(state, account=replace(state.account, hypothesis="", open_questions=()))


def _without_told_files(state: SummaryState, artifacts: Artifacts) -> SummaryState:
    return replace(state, account=replace(state.account, files=TouchedFiles(), commands=()))


def _without_what_is_done(state: SummaryState, artifacts: Artifacts) -> SummaryState:
    return replace(state, account=replace(state.account, done=(), errors_and_fixes=()))


def _without_reading(state: SummaryState, artifacts: Artifacts) -> SummaryState:
    return replace(state, ledger=replace(state.ledger, read=()))


def _without_ledger(state: SummaryState, artifacts: Artifacts) -> SummaryState:
    return replace(state, ledger=Ledger())


def _without_answers(state: SummaryState, artifacts: Artifacts) -> SummaryState:
    return replace(state, answers=(), inherited="")


def _without_decisions(state: SummaryState, artifacts: Artifacts) -> SummaryState:
    account = replace(state.account, decisions=(), constraints=(), open=(), test_command="")
    return replace(state, account=account)


def _fewer_answers(state: SummaryState, artifacts: Artifacts) -> SummaryState:
    return replace(state, answers=state.answers[-3:])


def _fewer_recallable(most: int) -> _Step:
    def step(state: SummaryState, artifacts: Artifacts) -> SummaryState:
        return replace(state, recallable=state.recallable[-most:])

    return step


def _fewer_spoken(limit: int, *, keep_first: bool = True) -> _Step:
    def step(state: SummaryState, artifacts: Artifacts) -> SummaryState:
        spoken = state.spoken
        begins = keep_first and bool(spoken.first)
        room = limit + len(spoken.active) + (len(spoken.first) if begins else 0)
        found = fold_spoken(spoken.all(), begins=begins, is_active=bool(spoken.active), limit=room)
        if not found.evicted:
            return state
        handle = artifacts.keep("\n\n".join(found.evicted))
        gone = Recallable(handle=handle, what=f"what the person said, {len(found.evicted)} messages")
        return replace(state, spoken=found.spoken, recallable=(*state.recallable, gone))

    return step


def _fewer_requirements(most: int) -> _Step:
    def step(state: SummaryState, artifacts: Artifacts) -> SummaryState:
        return within_requirements(state, artifacts, most)

    return step


_STEPS: tuple[_Step, ...] = (
    _without_mentions,
    _fewer_answers,
    _fewer_recallable(10),
    _without_asides,
    _without_told_files,
    _without_reading,
    _without_what_is_done,
    _fewer_spoken(12_000),
    _without_answers,
    _without_ledger,
    _without_decisions,
    _fewer_spoken(4_000),
    _fewer_recallable(3),
    _fewer_requirements(20),
    _fewer_spoken(0),
    _fewer_requirements(5),
    _fewer_spoken(0, keep_first=False),
    _fewer_requirements(1),
)
"""What goes, one after the other, in the order of what a reader misses least."""
