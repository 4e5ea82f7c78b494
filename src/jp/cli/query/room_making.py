"""Making room: what is left out, step by step, until a request is as short as it has to be."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from jp.cli.compacting.order import Order
from jp.cli.compacting.summarizer import error_kind_of, limit_of, local_summary, summarizer_for
from jp.cli.places import AnyWorkspace
from jp.cli.query.budget import payment
from jp.cli.query.wiring import Wiring
from jp.compaction.overlays import NEWEST_CYCLES, UNCOVERED_CYCLES
from jp.compaction.planning import Planner, PolicyWish, wish_of
from jp.compaction.ranges import KeepTurns, Range, RangeWish, SinceCompaction
from jp.config.compaction import profiles_of
from jp.context.failure_policy import Circumstances, PolicyState, after_answer, after_failure, may_ask
from jp.conversation.entries import AnyEntry, Compaction, SummaryPolicy
from jp.errors import JpError
from jp.turn.ports import Recorder

_ONLY_SUMMARY = PolicyWish(summary=True)


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """How many tokens, as they are estimated, are to be freed, and how many have to be or nothing can be sent.

    `is_urgent`: the request cannot be sent as it is, so that nothing is held back.
    """

    wanted: int
    least: int = 0
    is_urgent: bool = False


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """Overlays, how many tokens they free, and what is to be remembered of asking for a summary."""

    state: PolicyState
    overlays: tuple[Compaction, ...] = ()
    freed: int = 0


class RoomMaker:
    """Makes overlays for one request. Nothing is written here."""

    def __init__(
        self,
        wiring: Wiring,
        recorder: Recorder,
        workspace: AnyWorkspace,
        order: Order,
        *,
        log: Callable[[str], None],
    ) -> None:
        self._wiring = wiring
        self._recorder = recorder
        self._workspace = workspace
        self._order = order
        self._log = log

    async def make(self, planner: Planner, need: Need, state: PolicyState, at: Circumstances) -> Draft:
        """Draft what frees enough, in the order of what it loses.

        First what needs no model, then a summary of old turns where the profile has one, then one of the finished
        cycles of the turn that runs. Where nothing can be sent otherwise, what is usually kept leaves, too.
        """
        draft = self._mechanical(planner, need, Draft(state=state))
        if draft.freed < need.wanted and self._order.wish.summary:
            draft = await self._summarised(planner, need, draft, at)
        if draft.freed < need.wanted:
            draft = await self._without_work(planner, draft, at, keep=UNCOVERED_CYCLES)
        if need.is_urgent and (not draft.overlays or draft.freed < need.least):
            draft = self._with(planner, draft, self._planned(planner, is_forced=True))
        if need.is_urgent and draft.freed < need.least and not self._order.wish.summary:
            draft = await self._summarised(planner, need, draft, at)
        if need.is_urgent and draft.freed < need.least:
            draft = await self._without_work(planner, draft, at, keep=NEWEST_CYCLES)
        return draft

    def can_free(self, planner: Planner) -> bool:
        """Return whether there is anything that may leave before a request has to: old turns or finished cycles."""
        auto = self._wiring.config.conversation.compaction.auto
        return len(planner.shape.turns) > auto.min_turns or planner.finished_cycles() is not None

    def _mechanical(self, planner: Planner, need: Need, draft: Draft) -> Draft:
        overlays: tuple[Compaction, ...] = ()
        auto = self._wiring.config.conversation.compaction.auto
        if need.is_urgent or len(planner.shape.turns) > auto.min_turns:
            overlays = self._planned(planner, is_forced=False)
        return self._with(planner, draft, planner.with_inside(overlays, self._wish))

    @property
    def _wish(self) -> PolicyWish:
        profile = profiles_of(self._wiring.config.conversation.compaction)["default"]
        return replace(wish_of(profile), summary=False)

    def _planned(self, planner: Planner, *, is_forced: bool) -> tuple[Compaction, ...]:
        return planner.plan(self._wish, self._bounds(is_forced=is_forced)).overlays

    def _with(self, planner: Planner, draft: Draft, overlays: Sequence[Compaction]) -> Draft:
        """`draft` with more overlays, where they free more."""
        whole = (*draft.overlays, *overlays)
        freed = planner.effect(whole).freed
        return replace(draft, overlays=whole, freed=freed) if freed > draft.freed else draft

    async def _summarised(self, planner: Planner, need: Need, draft: Draft, at: Circumstances) -> Draft:
        """`draft` with a summary, where one comes to be."""
        auto = self._wiring.config.conversation.compaction.auto
        if not need.is_urgent and len(planner.shape.turns) <= auto.min_turns:
            return draft
        found = self._told(planner, need, draft)
        if found is None:
            return draft
        policy, state = await self._summary(found, draft.state, at, may_be_local=need.is_urgent)
        draft = replace(draft, state=state)
        return draft if policy is None else self._with(planner, draft, (replace(planner.bare(found), summary=policy),))

    async def _without_work(self, planner: Planner, draft: Draft, at: Circumstances, *, keep: int) -> Draft:
        """`draft` with a summary of the running turn's finished cycles but the newest `keep`, in place of digests."""
        found = planner.finished_cycles(keep=keep)
        if found is None:
            return draft
        policy, state = await self._summary(found, draft.state, at, may_be_local=True)
        if policy is None:
            return replace(draft, state=state)
        rest = tuple(overlay for overlay in draft.overlays if overlay.to_cycle is None)
        whole = (*rest, replace(planner.bare(found), summary=policy))
        freed = planner.effect(whole).freed
        return replace(draft, state=state, overlays=whole, freed=freed) if freed > draft.freed else draft

    async def _summary(
        self, found: Range, state: PolicyState, at: Circumstances, *, may_be_local: bool
    ) -> tuple[SummaryPolicy | None, PolicyState]:
        """Return a summary, and what is to be remembered of asking a model for it.

        Only a profile that has a summary asks one; where none answers, `may_be_local` makes it of the log.
        """
        entries = tuple(self._recorder.entries)
        limit = limit_of(self._wiring.config, self._wiring.model)
        policy: SummaryPolicy | None = None
        if self._order.wish.summary and may_ask(state, at) == "go":
            policy, state = await self._asked(entries, found, limit, state, at)
        if policy is None and may_be_local:
            policy = local_summary(entries, found, self._recorder, limit=limit)
        return policy, state

    def _told(self, planner: Planner, need: Need, draft: Draft) -> Range | None:
        """The turns of a summary: without those that are kept, unless room has to be made and that is too little."""
        limit = limit_of(self._wiring.config, self._wiring.model)
        usual = planner.plan(_ONLY_SUMMARY, self._bounds(is_forced=False)).summary
        if not need.is_urgent:
            return usual
        if usual is not None:
            told = sum(turn.tokens for turn in planner.shape.turns if usual.first <= turn.number <= usual.last)
            if draft.freed + told - limit >= need.least:
                return usual
        return planner.plan(_ONLY_SUMMARY, self._bounds(is_forced=True)).summary

    async def _asked(
        self, entries: Sequence[AnyEntry], found: Range, limit: int, state: PolicyState, at: Circumstances
    ) -> tuple[SummaryPolicy | None, PolicyState]:
        """What a model has written, and what is to be remembered of asking it."""
        wiring, order = self._wiring, self._order.summary
        try:
            summarizer = summarizer_for(
                wiring.config,
                order,
                self._workspace,
                model=wiring.model,
                notice=self._log,
                pay=payment(wiring.cap, wiring.config),
            )
            written = await summarizer.write(entries, found, order, self._recorder, limit=limit)
        except JpError as error:
            wiring.notice(f"no summary: {error.message}")
            return None, after_failure(state, error_kind_of(error), at)
        return written.policy, after_answer(state)

    def _bounds(self, *, is_forced: bool) -> RangeWish:
        """What follows the last compaction, without what is kept and without the turn that runs."""
        keep = KeepTurns(0) if is_forced else self._order.bounds.keep_last
        if isinstance(keep, KeepTurns):
            keep = KeepTurns(keep.turns + 1)
        keep_first = KeepTurns(0) if is_forced else self._order.bounds.keep_first
        return RangeWish(start=SinceCompaction(), keep_first=keep_first, keep_last=keep)
