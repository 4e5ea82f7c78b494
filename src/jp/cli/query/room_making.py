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
from jp.config.model import AppConfig
from jp.context.failure_policy import Circumstances, PolicyState, after_answer, after_failure, may_ask
from jp.conversation.entries import AnyEntry, Compaction, SummaryPolicy
from jp.errors import JpError
from jp.turn.ports import Recorder

_ONLY_SUMMARY = PolicyWish(summary=True)


_MOST_RETRIES = 1
"""Most retries of a summary request: a turn waits for it, and a local summary is always possible."""

_PART_OF_TARGET = 3
"""One summary takes at most this part of the target, or a second one and the newest cycles would not fit into it."""


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """How many tokens, as they are estimated, are to be freed, and how many have to be or nothing can be sent.

    `target` is how many are to be left, None where nobody knows the window. `is_urgent`: the request cannot be sent as
    it is, so that nothing is held back.
    """

    wanted: int
    least: int = 0
    target: int | None = None
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
        cycles of the turn that runs. A request that cannot be sent is reason enough to go on down to the target with
        turns that are kept otherwise, and with a summary that the profile does not have; the newest cycles but the
        last leave only where it does not fit without.
        """
        draft = self._mechanical(planner, need, Draft(state=state))
        if draft.freed < need.wanted and self._order.wish.summary:
            draft = await self._summarised(planner, need, draft, at)
        if draft.freed < need.wanted:
            draft = await self._without_work(planner, need, draft, at, keep=UNCOVERED_CYCLES)
        if not need.is_urgent:
            return draft
        if draft.freed < need.wanted:
            draft = self._with(planner, draft, self._planned(planner, is_forced=True))
        if draft.freed < need.wanted:
            draft = await self._summarised(planner, need, draft, at)
        if draft.freed < need.least:
            draft = await self._without_work(planner, need, draft, at, keep=NEWEST_CYCLES)
        return draft

    def most_freed(self, planner: Planner) -> int:
        """Return how many tokens may leave before a request has to: those of old turns and of finished cycles."""
        bounds = self._bounds(is_forced=False)
        old: tuple[Compaction, ...] = ()
        if self._has_old_turns(planner):
            told = planner.plan(_ONLY_SUMMARY, bounds).summary if self._order.wish.summary else None
            old = planner.plan(self._wish, bounds).overlays if told is None else (_emptied(planner, told),)
        cycles = planner.finished_cycles()
        return planner.effect(old if cycles is None else (*old, _emptied(planner, cycles))).freed

    def _has_old_turns(self, planner: Planner) -> bool:
        return len(planner.shape.turns) > self._wiring.config.conversation.compaction.auto.min_turns

    def _mechanical(self, planner: Planner, need: Need, draft: Draft) -> Draft:
        overlays: tuple[Compaction, ...] = ()
        if need.is_urgent or self._has_old_turns(planner):
            overlays = self._planned(planner, is_forced=False)
        return self._with(planner, draft, planner.with_inside(overlays, self._wish))

    @property
    def _wish(self) -> PolicyWish:
        profile = profiles_of(self._wiring.config.conversation.compaction)["default"]
        return replace(wish_of(profile), summary=False)

    def _planned(self, planner: Planner, *, is_forced: bool) -> tuple[Compaction, ...]:
        return planner.plan(self._wish, self._bounds(is_forced=is_forced)).overlays

    def _with(self, planner: Planner, draft: Draft, overlays: Sequence[Compaction]) -> Draft:
        """`draft` with more overlays, where they free more, without those that say nothing beside them."""
        before = (one for one in draft.overlays if not any(_includes(other, one) for other in overlays))
        whole = (*before, *overlays)
        freed = planner.effect(whole).freed
        return replace(draft, overlays=whole, freed=freed) if freed > draft.freed else draft

    async def _summarised(self, planner: Planner, need: Need, draft: Draft, at: Circumstances) -> Draft:
        """`draft` with a summary, where one comes to be."""
        if not need.is_urgent and not self._has_old_turns(planner):
            return draft
        found = self._told(planner, need, draft)
        if found is None:
            return draft
        policy, state = await self._summary(found, need, draft.state, at)
        draft = replace(draft, state=state)
        return draft if policy is None else self._with(planner, draft, (replace(planner.bare(found), summary=policy),))

    async def _without_work(self, planner: Planner, need: Need, draft: Draft, at: Circumstances, *, keep: int) -> Draft:
        """`draft` with a summary of the running turn's finished cycles but the newest `keep`, in place of digests."""
        found = planner.finished_cycles(keep=keep)
        if found is None:
            return draft
        policy, state = await self._summary(found, need, draft.state, at)
        if policy is None:
            return replace(draft, state=state)
        rest = tuple(overlay for overlay in draft.overlays if overlay.to_cycle is None)
        whole = (*rest, replace(planner.bare(found), summary=policy))
        freed = planner.effect(whole).freed
        return replace(draft, state=state, overlays=whole, freed=freed) if freed > draft.freed else draft

    async def _summary(
        self, found: Range, need: Need, state: PolicyState, at: Circumstances
    ) -> tuple[SummaryPolicy | None, PolicyState]:
        """Return a summary, and what is to be remembered of asking a model for it.

        Only a profile that has a summary asks one; where none answers, it is made of the log, but for old turns only
        where it is urgent.
        """
        entries = tuple(self._recorder.entries)
        limit = self._limit(need)
        policy: SummaryPolicy | None = None
        if self._order.wish.summary and may_ask(state, at) == "go":
            policy, state = await self._asked(entries, found, limit, state, at)
        if policy is None and (need.is_urgent or found.to_cycle is not None):
            policy = local_summary(entries, found, self._recorder, limit=limit)
        return policy, state

    def _told(self, planner: Planner, need: Need, draft: Draft) -> Range | None:
        """The turns of a summary: without those that are kept, unless it is urgent and that is too little."""
        usual = planner.plan(_ONLY_SUMMARY, self._bounds(is_forced=False)).summary
        if not need.is_urgent:
            return usual
        if usual is not None:
            told = sum(turn.tokens for turn in planner.shape.turns if usual.first <= turn.number <= usual.last)
            if draft.freed + told - self._limit(need) >= need.wanted:
                return usual
        return planner.plan(_ONLY_SUMMARY, self._bounds(is_forced=True)).summary

    def _limit(self, need: Need) -> int:
        """Return how many tokens a summary may have at most."""
        limit = limit_of(self._wiring.config, self._wiring.model)
        return limit if need.target is None else min(limit, need.target // _PART_OF_TARGET)

    async def _asked(
        self, entries: Sequence[AnyEntry], found: Range, limit: int, state: PolicyState, at: Circumstances
    ) -> tuple[SummaryPolicy | None, PolicyState]:
        """What a model has written, and what is to be remembered of asking it."""
        wiring, order = self._wiring, self._order.summary
        try:
            summarizer = summarizer_for(
                _impatient(wiring.config),
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


def _impatient(config: AppConfig) -> AppConfig:
    request = config.assistant.request
    request = replace(request, max_retries=min(request.max_retries, _MOST_RETRIES))
    return replace(config, assistant=replace(config.assistant, request=request))


def _emptied(planner: Planner, found: Range) -> Compaction:
    """Return an overlay that leaves next to nothing of `found`: the most that any summary of it could free."""
    return replace(planner.bare(found), summary=SummaryPolicy(text="-"))


def _includes(overlay: Compaction, other: Compaction) -> bool:
    """Return whether `overlay` says all that `other` says, which stands before it."""
    if overlay.to_cycle is not None or other.to_cycle is not None:
        return False
    same = (overlay.reasoning, overlay.tool_calls, overlay.resources)
    says_all = overlay.summary is not None or same == (other.reasoning, other.tool_calls, other.resources)
    return says_all and overlay.from_turn <= other.from_turn and other.to_turn <= overlay.to_turn
