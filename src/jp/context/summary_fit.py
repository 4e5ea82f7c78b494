"""A summary within a number of tokens: what matters least goes first, whole, and what was asked for last."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from msgspec import structs
from msgspec.structs import replace

from jp.context.estimate import estimate_tokens
from jp.context.excerpt import NOTE, cut_plainly
from jp.context.handles import Artifacts
from jp.context.ledger import Ledger
from jp.context.mentions import within
from jp.context.spoken import fold_spoken
from jp.context.summary_fold import within_requirements
from jp.context.summary_schema import TouchedFiles
from jp.context.summary_state import Recallable, SummaryState
from jp.context.summary_text import Renderer

_Item = TypeVar("_Item")
_Step = Callable[[SummaryState, Artifacts], SummaryState]


def fit_summary(
    state: SummaryState, limit: int, nonce: str, artifacts: Artifacts, *, may_cut_request: bool = False
) -> SummaryState:
    """`state` so that its text has at most `limit` tokens, or as few as it can have.

    The goal and the next step always stay, and of the request being worked on its beginning and end; all of it, unless
    that may be cut. What the person said and required goes to `artifacts`, and a handle stays.
    """
    renderer = Renderer(nonce)
    for step in (*_STEPS, *(_LAST_STEPS if may_cut_request else ())):
        if estimate_tokens(renderer.text(state)) <= limit:
            break
        state = step(state, artifacts)
    return state


def _fewer_mentions(limit: int) -> _Step:
    def step(state: SummaryState, artifacts: Artifacts) -> SummaryState:
        return replace(state, mentions=within(structs.asdict(state.mentions), limit))

    return step


def _without_asides(state: SummaryState, artifacts: Artifacts) -> SummaryState:
    return replace(state, account=replace(state.account, hypothesis="", open_questions=()))


def _without_told_files(state: SummaryState, artifacts: Artifacts) -> SummaryState:
    return replace(state, account=replace(state.account, files=TouchedFiles(), commands=()))


def _without_what_is_done(state: SummaryState, artifacts: Artifacts) -> SummaryState:
    return replace(state, account=replace(state.account, done=(), errors_and_fixes=()))


def _fewer_of_ledger(files: int, commands: int) -> _Step:
    def step(state: SummaryState, artifacts: Artifacts) -> SummaryState:
        ledger = state.ledger
        fewer = Ledger(
            read=_last(ledger.read, files), modified=ledger.modified, commands=_last(ledger.commands, commands)
        )
        return replace(state, ledger=fewer)

    return step


def _fewer_modified(most: int) -> _Step:
    def step(state: SummaryState, artifacts: Artifacts) -> SummaryState:
        return replace(state, ledger=Ledger(modified=_last(state.ledger.modified, most)))

    return step


def _without_answers(state: SummaryState, artifacts: Artifacts) -> SummaryState:
    return replace(state, answers=(), inherited="")


def _without_decisions(state: SummaryState, artifacts: Artifacts) -> SummaryState:
    account = replace(state.account, decisions=(), constraints=(), open=(), test_command="")
    return replace(state, account=account)


def _fewer_answers(state: SummaryState, artifacts: Artifacts) -> SummaryState:
    return replace(state, answers=state.answers[-3:])


def _fewer_recallable(most: int) -> _Step:
    def step(state: SummaryState, artifacts: Artifacts) -> SummaryState:
        return replace(state, recallable=_last(state.recallable, most))

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


def _shorter_request(limit: int) -> _Step:
    def step(state: SummaryState, artifacts: Artifacts) -> SummaryState:
        active = state.spoken.active
        if len(active) <= limit:
            return state
        shorter = replace(state.spoken, active=cut_plainly(active, limit - NOTE))
        return replace(state, spoken=shorter, whole_request=state.whole_request or artifacts.keep(active))

    return step


def _fewer_requirements(most: int) -> _Step:
    def step(state: SummaryState, artifacts: Artifacts) -> SummaryState:
        return within_requirements(state, artifacts, most)

    return step


def _last(items: tuple[_Item, ...], most: int) -> tuple[_Item, ...]:
    return items[max(len(items) - most, 0) :]


_STEPS: tuple[_Step, ...] = (
    _fewer_mentions(3_000),
    _fewer_mentions(1_000),
    _fewer_mentions(0),
    _fewer_answers,
    _fewer_recallable(10),
    _without_asides,
    _without_told_files,
    _fewer_of_ledger(files=40, commands=10),
    _without_what_is_done,
    _fewer_spoken(12_000),
    _without_answers,
    _fewer_of_ledger(files=10, commands=5),
    _fewer_of_ledger(files=0, commands=3),
    _fewer_modified(10),
    _fewer_modified(0),
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

_LAST_STEPS: tuple[_Step, ...] = (
    *map(_shorter_request, (3_000, 2_000, 1_000)),
    _fewer_recallable(1),
    _shorter_request(300),
    _fewer_recallable(0),
)
"""What is left to do where a request cannot be sent otherwise."""
