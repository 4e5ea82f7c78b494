"""Asking for an account: part by part, each answer checked and folded, with no more questions than are allowed."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import msgspec
from msgspec.structs import replace

from jp.context.budget import estimate_messages
from jp.context.claims import Evidence, check_claims
from jp.context.failure_policy import next_action
from jp.context.leaving import Leaving
from jp.context.ledger import Ledger
from jp.context.markers import Cutter
from jp.context.summary_fold import Told, fold_summaries
from jp.context.summary_request import (
    LEAST_ROOM,
    Asking,
    Known,
    SummaryRequest,
    answer_budget,
    build_request,
    repaired,
    room_for_record,
)
from jp.context.summary_schema import StructuredSummary, SummaryError, SummaryReply, capped, shortened
from jp.context.summary_source import Source, parts_of
from jp.context.summary_state import SummaryState
from jp.context.summary_text import render_summary

MOST_CALLS = 2

_LONGEST_PROBLEM = 200

_REUSED = "Account of the messages that come next, read from them before:\n{account}\n"


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What the host has decided.

    `window` is that of the summarizer, `limit` the most tokens that a summary may have, `calls` how often a model is
    asked for one trigger at most. `has_other_model` says that the conversation's own model is another than that for
    summaries, and may be asked where that cannot be reached.
    """

    window: int
    limit: int
    may_fall_back: bool
    has_provider: bool = True
    has_other_model: bool = False
    calls: int = MOST_CALLS


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """All that a host brings to a compaction."""

    terms: Terms
    asking: Asking
    cutter: Cutter


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What came of asking, and in how many calls of a model; neither `told` nor `error` where nobody was asked."""

    told: Told | None = None
    error: SummaryError | None = None
    calls: int = 0


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """The material of a summary in order, where earlier accounts of raw messages are reused.

    `account` is of what comes first. A section is new, or an account of messages that come later. `ledger` is what the
    tools recorded in the new ones.
    """

    account: StructuredSummary | None
    sections: tuple[Source | StructuredSummary, ...]
    ledger: Ledger


def ask(
    leaving: Leaving, setup: Setup, reading: Reading | None = None
) -> Generator[SummaryRequest, SummaryReply, Asked]:
    """Ask for an account of what leaves; what there is no call left for is not accounted for.

    Args:
        leaving: what leaves; all of it is evidence for what the model claims.
        setup: the host's terms.
        reading: what the model is shown of it; everything without one.
    """
    terms = setup.terms
    if not terms.has_provider or terms.calls < 1:
        return Asked(error=SummaryError(kind="no_provider", detail="no model is set up for summaries"))
    if reading is None:
        reading = Reading(account=None, sections=(leaving.source,), ledger=leaving.computed.ledger)
    previous = leaving.previous if reading.account is None else SummaryState(account=reading.account)
    known = Known(previous=previous, ledger=reading.ledger)
    budget = answer_budget(estimate_messages(leaving.gone))
    room = room_for_record(terms.window, known, budget)
    if room < LEAST_ROOM:
        return Asked(
            error=SummaryError(kind="no_provider", detail="the window of the model for summaries is too small")
        )
    parts = _parts(reading.sections, room, terms.calls)
    interview = _Interview(setup, known, evidence_of(leaving))
    end = yield from interview.about(parts, budget)
    if isinstance(end, SummaryError):
        return Asked(error=end, calls=interview.calls)
    return Asked(told=end, calls=interview.calls)


def _parts(sections: Sequence[Source | StructuredSummary], room: int, calls: int) -> list[str]:
    """Return the sections as texts, one a question; new ones share the questions that accounts leave."""
    texts: list[str] = []
    for number, section in enumerate(sections):
        if isinstance(section, Source):
            left = calls - len(texts) - (len(sections) - number - 1)
            texts += parts_of(section, room, max(left, 1))
        else:
            texts.append(_REUSED.format(account=msgspec.json.encode(section).decode()))
    return texts


def evidence_of(leaving: Leaving) -> Evidence:
    """Everything that a model is told about what leaves, before it was shortened."""
    previous = leaving.previous or SummaryState()
    known = (render_summary(state, "") for state in (previous, SummaryState(ledger=leaving.computed.ledger)))
    texts = (*(piece.text for piece in leaving.source.pieces), *known)
    said = (
        *(piece.text for piece in leaving.source.pieces if piece.is_said),
        *previous.spoken.all(),
        *previous.account.requirements,
    )
    return Evidence(texts, said=said, spoke=leaving.source.spoke or bool(previous.spoken.all() or previous.inherited))


class _Interview:
    def __init__(self, setup: Setup, known: Known, evidence: Evidence) -> None:
        self._terms = setup.terms
        self._asking = setup.asking
        self._known = known
        self._evidence = evidence
        self.calls = 0

    def about(self, parts: Sequence[str], budget: int) -> Generator[SummaryRequest, SummaryReply, Told | SummaryError]:
        before = self._known.previous or SummaryState()
        account, unsupported = before.account, 0
        for number, text in enumerate(parts):
            if self.calls >= self._terms.calls:
                return Told(account=account, unsupported=unsupported, is_local=True)
            request = build_request(
                self._asking,
                self._known,
                text,
                budget=budget,
                place=(number, len(parts)),
                spoke=self._evidence.spoke,
            )
            reply = yield from self._reply(request)
            if isinstance(reply, SummaryError):
                return reply
            checked = check_claims(capped(reply), self._evidence)
            account = fold_summaries(account, checked.account)
            unsupported += checked.unsupported
            self._known = replace(self._known, previous=replace(before, account=account))
        return Told(account=account, unsupported=unsupported, is_local=not parts)

    def _reply(self, request: SummaryRequest) -> Generator[SummaryRequest, SummaryReply, SummaryReply]:
        """The answer to `request`; where that cannot be used, the one to asking again."""
        while True:
            reply = yield request
            self.calls += 1
            if isinstance(reply, StructuredSummary):
                return reply
            action = next_action(
                reply.kind,
                calls_left=0 if request.is_repair else self._terms.calls - self.calls,
                has_other_model=self._terms.has_other_model and not request.on_main,
                may_fall_back=self._terms.may_fall_back,
            )
            if action == "repair":
                problem = " ".join((reply.detail or reply.kind).split())
                request = repaired(request, shortened(problem, _LONGEST_PROBLEM))
            elif action == "other_model":
                request = replace(request, on_main=True)
            else:
                return reply
