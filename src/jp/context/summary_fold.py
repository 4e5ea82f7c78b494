"""What an earlier summary knew and what is new, as one: a summary is brought up to date and never summarised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from jp.context.handles import Artifacts
from jp.context.ledger import Ledger, merge_ledgers
from jp.context.mentions import Mentions, merge_mentions
from jp.context.redaction import redacted
from jp.context.spoken import Spoken, fold_spoken
from jp.context.summary_schema import MOST_REQUIREMENTS, StructuredSummary, normalised
from jp.context.summary_state import Provenance, Recallable, SummaryState

MOST_RECALLABLE = 40
_EVICTED_LABEL = 60


class Computed(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the messages that leave without asking anybody, all of it redacted.

    `spoken` has what an earlier summary held and what is new, in one order already; `evicted` are what it has no room
    for. `recallable` are contents worth naming, newest last.
    """

    spoken: Spoken = Spoken()
    evicted: tuple[str, ...] = ()
    ledger: Ledger = Ledger()
    mentions: Mentions = Mentions()
    recallable: tuple[Recallable, ...] = ()
    answers: tuple[str, ...] = ()


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What a model told of the messages that leave: its account, folded over all parts; all of it unless `is_local`."""

    account: StructuredSummary
    unsupported: int = 0
    is_local: bool = False


def fold_summaries(older: StructuredSummary, newer: StructuredSummary) -> StructuredSummary:
    """`newer`, with the requirements of `older` that it lost, which come first."""
    known = {normalised(text) for text in newer.requirements}
    lost = tuple(text for text in older.requirements if normalised(text) not in known)
    return replace(newer, requirements=(*lost, *newer.requirements)) if lost else newer


def fold_state(previous: SummaryState | None, told: Told, computed: Computed, artifacts: Artifacts) -> SummaryState:
    """The state of the summary after this compaction; what there is no room for is kept in `artifacts`.

    Answers, and an earlier record that could not be read, stay until a model has accounted for everything.
    """
    before = previous or SummaryState()
    evicted = tuple(
        Recallable(handle=artifacts.keep(text), what=f"the person: {text[:_EVICTED_LABEL]}")
        for text in computed.evicted
    )
    state = SummaryState(
        account=without_secrets(fold_summaries(before.account, told.account)),
        spoken=computed.spoken,
        ledger=merge_ledgers(before.ledger, computed.ledger),
        mentions=merge_mentions(before.mentions, computed.mentions),
        answers=computed.answers if told.is_local else (),
        inherited=before.inherited if told.is_local else "",
        older_requirements=before.older_requirements,
        recallable=_newest((*before.recallable, *evicted, *computed.recallable)),
        provenance=Provenance(
            is_local=told.is_local,
            unsupported=before.provenance.unsupported + told.unsupported,
            updates=before.provenance.updates + (previous is not None),
        ),
    )
    return within_requirements(state, artifacts, MOST_REQUIREMENTS)


_Nested: TypeAlias = "str | dict[str, _Nested] | list[_Nested] | tuple[_Nested, ...]"
"""An account without its types: it has texts and nothing else."""


def without_secrets(account: StructuredSummary) -> StructuredSummary:
    """`account` with what may be a secret replaced: a model, or an earlier version of jp, may have put one there."""
    told: _Nested = msgspec.to_builtins(account)
    clean = _clean(told, {})
    return account if clean == told else msgspec.convert(clean, StructuredSummary)


def _clean(value: _Nested, known: dict[str, str]) -> _Nested:
    match value:
        case str():
            return redacted(value, known)
        case dict():
            return {name: _clean(below, known) for name, below in value.items()}
        case _:
            return tuple(_clean(item, known) for item in value)


def with_whole_request(state: SummaryState, artifacts: Artifacts) -> SummaryState:
    """`state` with all of the request being worked on, where there was no room for it and it can be recalled."""
    if not state.whole_request:
        return state
    whole = artifacts.recall(state.whole_request)
    if whole is not None:
        return replace(state, spoken=replace(state.spoken, active=whole), whole_request="")
    lost = Recallable(handle=state.whole_request, what="the whole of a request")
    return replace(state, whole_request="", recallable=_newest((*state.recallable, lost)))


def join_states(older: SummaryState, newer: SummaryState) -> SummaryState:
    """What two summaries knew that stood in one transcript, where there should have been one."""
    said = (*older.spoken.all(), *newer.spoken.all())
    handles = filter(None, (older.older_requirements, newer.older_requirements))
    found = tuple(Recallable(handle=handle, what="older requirements") for handle in handles)
    return SummaryState(
        account=fold_summaries(older.account, newer.account),
        spoken=fold_spoken(said, begins=bool(older.spoken.first), is_active=bool(newer.spoken.active)).spoken,
        ledger=merge_ledgers(older.ledger, newer.ledger),
        mentions=merge_mentions(older.mentions, newer.mentions),
        answers=(*older.answers, *newer.answers),
        inherited="\n\n".join(filter(None, (older.inherited, newer.inherited))),
        recallable=_newest((*older.recallable, *newer.recallable, *found)),
        provenance=Provenance(
            is_local=older.provenance.is_local or newer.provenance.is_local,
            unsupported=older.provenance.unsupported + newer.provenance.unsupported,
            updates=older.provenance.updates + newer.provenance.updates,
        ),
    )


def within_requirements(state: SummaryState, artifacts: Artifacts, most: int) -> SummaryState:
    """`state` with its newest `most` requirements; older ones go to `artifacts`, with the handle of those before."""
    requirements = state.account.requirements
    gone = requirements[: max(len(requirements) - most, 0)]
    if not gone:
        return state
    before = [f"Still older requirements: recall {state.older_requirements}"] if state.older_requirements else []
    handle = artifacts.keep("\n".join((*before, *gone)))
    account = replace(state.account, requirements=requirements[len(gone) :])
    return replace(state, account=account, older_requirements=handle)


def _newest(recallable: Sequence[Recallable]) -> tuple[Recallable, ...]:
    """The last of each handle, as many as there is room for."""
    found = {each.handle: each for each in reversed(recallable)}
    return tuple(reversed(list(found.values())[:MOST_RECALLABLE]))
