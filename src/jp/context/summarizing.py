"""One compaction by summary, from the trigger to the messages that come out: without I/O, for hosts of either colour.

`summarising` is a generator: it yields what a model is to be asked, is sent what came of it, and returns the outcome.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Literal

import msgspec
from msgspec.structs import replace

from jp.context.budget import PER_MESSAGE, estimate_message, estimate_messages
from jp.context.groups import index_groups
from jp.context.policy import (
    PolicyState,
    SummaryCircumstances,
    SummaryVerdict,
    after_answer,
    after_failure,
    after_ineffective,
    after_success,
    may_ask,
    may_summarise,
    next_action,
)
from jp.context.sanitize import WORTH_PERCENT, is_well_paired, is_worth_it
from jp.context.summary_asking import Asked, Setup, SummaryProvider, SummaryRequest, ask
from jp.context.summary_fold import Told, archive, fit_summary, fold_state, leave, told_locally
from jp.context.summary_schema import ErrorKind, SummaryReply
from jp.context.summary_text import SummaryState, is_summary, summary_row
from jp.context.tail import BODY_LIMIT, Demote, bounding, relieve_pressure
from jp.context.types import Transcript

_LIMIT_PERCENT = 15
_MOST_TOKENS = 20_000
_SMALL_BODY = 200
_SHORT_SUMMARY = 500

Status = Literal["summarised", "fallback", "unchanged", "ineffective", "infeasible", "too_large", "nothing"]
"""How a compaction ended.

`summarised`: a model accounted for what left. `fallback`: no model did, for all or a part of it. The others leave the
messages as they are: `unchanged` for a `reason`; `ineffective`, as the outcome was not worth it; `infeasible`, as none
could be, so nobody was asked; `too_large`, as the request cannot be sent whatever leaves; `nothing`, as nothing can.
"""

Reason = ErrorKind | SummaryVerdict | Literal["", "damaged"]
"""Why a model did not account for it; `damaged`: calls and results are not in order."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it. `messages` is the very object that came in, unless `status` is `summarised` or `fallback`.

    `policy` is to be stored whatever the status is. `before` and `after` are tokens; `calls` is how often a model was
    asked, `unsupported` how many of its claims nothing bears out. `detail` is for a person.
    """

    messages: Transcript
    status: Status
    policy: PolicyState
    before: int
    after: int
    reason: Reason = ""
    detail: str = ""
    calls: int = 0
    unsupported: int = 0
    state: SummaryState | None = None


Steps = Generator[SummaryRequest, SummaryReply, Outcome]


def summary_limit(window: int) -> int:
    """How many tokens a summary may have in a conversation with this `window`."""
    return min(max(window, 0) * _LIMIT_PERCENT // 100, _MOST_TOKENS)


def run(steps: Steps, provider: SummaryProvider) -> Outcome:
    """The outcome of `steps`, whose questions go to `provider`."""
    try:
        request = next(steps)
        while True:
            request = steps.send(provider.summarize(request))
    except StopIteration as end:
        outcome: Outcome = end.value
        return outcome


def summarising(
    messages: Transcript, between: tuple[int, int], setup: Setup, *, policy: PolicyState, at: SummaryCircumstances
) -> Steps:
    """Have what stands between two positions, the second one excluded, stand in the transcript's one summary instead.

    The first position is where the protected head ends, the second where the exact tail starts. Nothing leaves unless
    that is worth it, or the request cannot be sent otherwise; everything that leaves is kept as an artifact.
    """
    compaction = _Compaction(messages, between, setup, at)
    return compaction.steps(policy)


class _Draft(msgspec.Struct, frozen=True, kw_only=True):
    messages: Transcript
    tail_start: int
    tokens: int
    state: SummaryState | None


class _Compaction:
    def __init__(self, messages: Transcript, between: tuple[int, int], setup: Setup, at: SummaryCircumstances) -> None:
        self._messages = messages
        self._leaving = leave(messages, between, setup.cutter)
        self._setup = setup
        self._at = at
        self._staying = estimate_messages((*self._leaving.head, *self._leaving.kept, *self._leaving.tail))
        goes = (*self._leaving.gone, *filter(is_summary, messages))
        self._before = self._staying + estimate_messages(goes)

    def steps(self, policy: PolicyState) -> Steps:
        is_forced = self._at.limit is not None
        permission = may_summarise(policy, self._at)
        verdict = may_ask(policy, self._at) if is_forced else permission.verdict
        if not is_forced:
            if not self._leaving.gone:
                return self._as_it_was("nothing", policy)
            if not is_worth_it(self._before, self._staying):
                return self._as_it_was("infeasible", policy)
            if verdict != "go":
                return self._as_it_was("unchanged", permission.state, reason=verdict)
        asked = Asked()
        if self._leaving.gone and verdict == "go":
            asked = yield from ask(self._leaving, self._setup)
        policy = self._learned(permission.state, asked)
        return self._concluded(asked, policy, verdict)

    def _learned(self, policy: PolicyState, asked: Asked) -> PolicyState:
        if asked.error is not None:
            return after_failure(policy, asked.error.kind, self._at)
        return policy if asked.told is None else after_answer(policy)

    def _concluded(self, asked: Asked, policy: PolicyState, verdict: SummaryVerdict) -> Outcome:
        """What becomes of what was told; of nothing told, what the kind of failure allows."""
        error = asked.error
        reason: Reason = error.kind if error is not None else "" if verdict == "go" else verdict
        told = asked.told
        may_fall_back = error is not None and self._falls_back_after(error.kind)
        if told is None and (may_fall_back or self._at.limit is not None):
            told = told_locally(self._leaving.previous)
        if told is None:
            found = self._as_it_was("unchanged", policy, reason=reason)
        elif self._at.limit is None:
            found = self._committed(told, policy, reason)
        else:
            found = self._forced(told, policy, reason, self._at.limit)
        return replace(found, detail=error.detail if error else "", calls=asked.calls)

    def _falls_back_after(self, kind: ErrorKind) -> bool:
        may_fall_back = self._setup.terms.may_fall_back
        return next_action(kind, calls_left=0, has_other_model=False, may_fall_back=may_fall_back) == "fallback"

    def _committed(self, told: Told, policy: PolicyState, reason: Reason) -> Outcome:
        """The outcome, if it is worth it."""
        room = self._before * WORTH_PERCENT // 100 - self._staying - PER_MESSAGE
        draft = self._draft(self._folded(told), min(self._setup.terms.limit, room))
        if not is_well_paired(draft.messages):
            return self._as_it_was("ineffective", after_ineffective(policy, self._at), reason="damaged")
        if not is_worth_it(self._before, draft.tokens):
            return self._as_it_was("ineffective", after_ineffective(policy, self._at), reason=reason)
        return self._accepted(draft, told, after_success(policy), reason)

    def _forced(self, told: Told, policy: PolicyState, reason: Reason, limit: int) -> Outcome:
        """The outcome, if it can be sent: with the tail's results shorter where it has to be."""
        draft = self._shortest(told, limit)
        fits = draft.tokens <= limit or (not self._at.must_fit and is_worth_it(self._before, draft.tokens))
        if fits and is_well_paired(draft.messages):
            return self._accepted(draft, told, after_success(policy), reason)
        return self._as_it_was("too_large", policy, reason=reason)

    def _shortest(self, told: Told, limit: int) -> _Draft:
        """The messages with as long a summary as they can have within `limit`.

        Where even the shortest is too much, that; or a short one that is of more use, where they need not fit.
        """
        state = self._folded(told)
        for most in (self._setup.terms.limit, limit - self._staying - PER_MESSAGE):
            draft = self._relieved(self._draft(state, most), limit)
            if draft.tokens <= limit:
                return draft
        draft = self._relieved(self._draft(state, 0), limit)
        if self._at.must_fit or draft.tokens <= limit:
            return draft
        return self._relieved(self._draft(state, _SHORT_SUMMARY), limit)

    def _folded(self, told: Told) -> SummaryState | None:
        """What the summary knows; None where there is nothing for one."""
        leaving = self._leaving
        if not leaving.gone and leaving.previous is None:
            return None
        return fold_state(leaving.previous, told, leaving.computed, self._setup.cutter.artifacts)

    def _draft(self, state: SummaryState | None, limit: int) -> _Draft:
        """The messages with a summary of at most `limit` tokens, or of as few as it can have."""
        leaving, cutter = self._leaving, self._setup.cutter
        if state is None:
            start = len(leaving.head) + len(leaving.kept)
            return _Draft(messages=self._messages, tail_start=start, tokens=self._before, state=None)
        is_forced = self._at.limit is not None
        state = fit_summary(state, limit, cutter.nonce, cutter.artifacts, may_cut_request=is_forced)
        row = summary_row(state, leaving.gone, cutter.nonce)
        beginning = (*leaving.head, row, *leaving.kept)
        tokens = self._staying + estimate_message(row)
        return _Draft(messages=(*beginning, *leaving.tail), tail_start=len(beginning), tokens=tokens, state=state)

    def _relieved(self, draft: _Draft, limit: int) -> _Draft:
        """`draft`, in which results of the tail give way until all of it has at most `limit` tokens."""
        messages, start = draft.messages, draft.tail_start
        if draft.tokens <= limit:
            return draft
        before = estimate_messages(messages[:start])
        ceiling = limit - before
        index = index_groups(messages)
        relief = relieve_pressure(messages, index, self._bounding(BODY_LIMIT), tail_start=start, ceiling=ceiling)
        if not relief.relieved:
            relief = relieve_pressure(messages, index, self._bounding(_SMALL_BODY), tail_start=start, ceiling=ceiling)
        return replace(draft, messages=relief.messages, tokens=before + relief.tokens)

    def _bounding(self, limit: int) -> Demote:
        return bounding(self._setup.cutter, limit)

    def _accepted(self, draft: _Draft, told: Told, policy: PolicyState, reason: Reason) -> Outcome:
        archive(self._leaving.gone, self._setup.cutter.artifacts)
        return Outcome(
            messages=draft.messages,
            status="fallback" if told.is_local else "summarised",
            policy=policy,
            before=self._before,
            after=draft.tokens,
            reason=reason,
            unsupported=told.unsupported,
            state=draft.state,
        )

    def _as_it_was(self, status: Status, policy: PolicyState, *, reason: Reason = "") -> Outcome:
        return Outcome(
            messages=self._messages,
            status=status,
            policy=policy,
            before=self._before,
            after=self._before,
            reason=reason,
        )
