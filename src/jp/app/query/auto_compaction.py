"""Automatic compaction: room in the model's window, made before a request that comes near to it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from math import ceil
from pathlib import Path
from time import time

import msgspec
from msgspec.structs import replace

from jp.app.compaction.compact import summarizing
from jp.app.compaction.order import CompactionOrder, order_of
from jp.app.compaction.summarizer import error_kind_of, limit_of, local_summary, summarizer_for, texts_of
from jp.app.estimates import known_error
from jp.app.query.budget import payment
from jp.app.query.wiring import Wiring
from jp.compaction.fact_lines import StatusLineFormatter
from jp.compaction.overlays import (
    NEWEST_CYCLES,
    UNCOVERED_CYCLES,
    KeepTurns,
    Range,
    RangeRequest,
    SinceCompaction,
    compactions_in_force,
)
from jp.compaction.planning import Planner, PolicyRequest, ResultObserver, requested_policies
from jp.config.model import AppConfig, AutoConfig, profiles_of
from jp.context.policy import Circumstances as Around
from jp.context.policy import (
    NotTriggered,
    Numbers,
    PolicyState,
    SummaryCircumstances,
    Triggered,
    after_answer,
    after_failure,
    after_ineffective,
    after_ineligible,
    after_success,
    decide,
    may_ask,
    may_summarise,
)
from jp.conversation.entries import AnyEntry, Compaction, CycleEnd, SummaryPolicy
from jp.conversation.turns import prompt_tokens, reported_usage, turns_text
from jp.errors import JpError, StorageError
from jp.file_access import read_beginning
from jp.provider.base import Sections, WireRequest
from jp.provider.errors import ProviderError
from jp.remedies import ChangeConversation, Compact, Option, phrase
from jp.turn.bound_reasoning import render_bound
from jp.turn.measuring import prompt_size
from jp.turn.ports import Recorder
from jp.turn.sent import sent_requests, thread_of
from jp.workspace.files import SYSTEM, make_directories, replace_file, timestamp

_ONLY_SUMMARY = PolicyRequest(summary=True)


_MOST_RETRIES = 1
"""Most retries of a summary request: a turn waits for it, and a local summary is always possible."""

_PART_OF_TARGET = 3
"""One summary takes at most this part of the target, or a second one and the newest cycles would not fit into it."""


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens to be freed, as estimated, and how many of them must be or nothing can be sent.

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


class OverlayMaker:
    """Makes overlays for one request. Nothing is written here."""

    def __init__(
        self,
        wiring: Wiring,
        recorder: Recorder,
        order: CompactionOrder,
    ) -> None:
        self._wiring = wiring
        self._recorder = recorder
        self._order = order
        self._log = wiring.context.options.log

    async def make(self, planner: Planner, need: Need, state: PolicyState, at: SummaryCircumstances) -> Draft:
        """Draft what frees enough, in the order of what it loses.

        First what needs no model, then a summary of old turns where the profile has one, then one of the finished
        cycles of the turn that runs. A request that cannot be sent is reason enough to go on down to the target with
        turns that are kept otherwise, and with a summary that the profile does not have; the newest cycles but the
        last leave only where it does not fit without.
        """
        draft = self._mechanical(planner, need, Draft(state=state))
        if draft.freed < need.wanted and self._order.wish.summary:
            draft = await self._summarized(planner, need, draft, at)
        if draft.freed < need.wanted:
            draft = await self._without_work(planner, need, draft, at, keep=UNCOVERED_CYCLES)
        if not need.is_urgent:
            return draft
        if draft.freed < need.wanted:
            draft = self._with(planner, draft, self._planned(planner, is_forced=True))
        if draft.freed < need.wanted:
            draft = await self._summarized(planner, need, draft, at)
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
        return planner.tokens - planner.size(old if cycles is None else (*old, _emptied(planner, cycles)))

    def _has_old_turns(self, planner: Planner) -> bool:
        return len(planner.shape.turns) > self._wiring.config.conversation.compaction.auto.min_turns

    def _mechanical(self, planner: Planner, need: Need, draft: Draft) -> Draft:
        overlays: tuple[Compaction, ...] = ()
        if need.is_urgent or self._has_old_turns(planner):
            overlays = self._planned(planner, is_forced=False)
        return self._with(planner, draft, planner.with_inside(overlays, self._wish))

    @property
    def _wish(self) -> PolicyRequest:
        profile = profiles_of(self._wiring.config.conversation.compaction)["default"]
        return replace(requested_policies(profile), summary=False)

    def _planned(self, planner: Planner, *, is_forced: bool) -> tuple[Compaction, ...]:
        return planner.plan(self._wish, self._bounds(is_forced=is_forced)).overlays

    def _with(self, planner: Planner, draft: Draft, overlays: Sequence[Compaction]) -> Draft:
        """Return `draft` with more overlays, where they free more, without those that say nothing beside them."""
        before = (one for one in draft.overlays if not any(_includes(other, one) for other in overlays))
        whole = (*before, *overlays)
        freed = planner.tokens - planner.size(whole)
        return replace(draft, overlays=whole, freed=freed) if freed > draft.freed else draft

    async def _summarized(self, planner: Planner, need: Need, draft: Draft, at: SummaryCircumstances) -> Draft:
        """Return `draft` with a summary, where one comes to be."""
        if not need.is_urgent and not self._has_old_turns(planner):
            return draft
        found = self._told(planner, need, draft)
        if found is None:
            return draft
        policy, state = await self._summary(found, need, draft.state, at)
        draft = replace(draft, state=state)
        return draft if policy is None else self._with(planner, draft, (replace(planner.bare(found), summary=policy),))

    async def _without_work(
        self, planner: Planner, need: Need, draft: Draft, at: SummaryCircumstances, *, keep: int
    ) -> Draft:
        """Return `draft` with a summary of the running turn's finished cycles without the newest `keep`."""
        found = planner.finished_cycles(keep=keep)
        if found is None:
            return draft
        policy, state = await self._summary(found, need, draft.state, at)
        if policy is None:
            return replace(draft, state=state)
        rest = tuple(overlay for overlay in draft.overlays if overlay.to_cycle is None)
        whole = (*rest, replace(planner.bare(found), summary=policy))
        freed = planner.tokens - planner.size(whole)
        return replace(draft, state=state, overlays=whole, freed=freed) if freed > draft.freed else draft

    async def _summary(
        self, found: Range, need: Need, state: PolicyState, at: SummaryCircumstances
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
        """Return the turns of a summary: without those that are kept, unless it is urgent and that is too little."""
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
        self, entries: Sequence[AnyEntry], found: Range, limit: int, state: PolicyState, at: SummaryCircumstances
    ) -> tuple[SummaryPolicy | None, PolicyState]:
        """Return the policy that a model has written, and the state to be remembered of asking it."""
        wiring, order = self._wiring, self._order.summary
        try:
            summarizer = summarizer_for(
                _impatient(wiring.config),
                order,
                self._wiring.context.workspace,
                model=wiring.model,
                notice=self._log,
                pay=payment(wiring.cap, wiring.config),
            )
            with wiring.context.options.progress(summarizing(found, summarizer.model)):
                written = await summarizer.write(entries, found, order, self._recorder, limit=limit)
        except JpError as error:
            wiring.notice(phrase("no summary: ", error.message))
            return None, after_failure(state, error_kind_of(error), at)
        return written.policy, after_answer(state)

    def _bounds(self, *, is_forced: bool) -> RangeRequest:
        """Return the turns after the last compaction, without what is kept and without the turn that runs."""
        keep = KeepTurns(0) if is_forced else self._order.bounds.keep_last
        if isinstance(keep, KeepTurns):
            keep = KeepTurns(keep.turns + 1)
        keep_first = KeepTurns(0) if is_forced else self._order.bounds.keep_first
        return RangeRequest(start=SinceCompaction(), keep_first=keep_first, keep_last=keep)


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


_LARGEST = 1024 * 1024

_REFUSED_SECS = 3600
"""Seconds before a provider that refused a key, or whose quota was used up, is asked again: jp does not learn of
another key, or of a bill that was paid."""

_NEAR = 3
"""Estimates are hardly ever off by more: a request that is so many times smaller is not looked at closely."""


_WORTH_A_BREAK = 2
"""A compaction breaks the cache of the prefix once, however much leaves: it has to come at least half of the way down
to the target, unless nothing can be sent without it."""


_MOST_OVERFLOWS = 2
"""Most compactions of one request that the provider finds too long."""


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """A model's window, in tokens: what a request may have, from where on it is compacted, and down to where."""

    limit: int
    threshold: int
    target: int


class PolicyFile:
    """A file that keeps the memory of failures beyond this process. It is a help and no more: errors are ignored."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def read(self) -> PolicyState:
        """Return the state that is remembered."""
        if self._path is None:
            return PolicyState()
        try:
            return msgspec.json.decode(read_beginning(self._path, _LARGEST), type=PolicyState)
        except (OSError, ValueError, RecursionError):
            return PolicyState()

    def write(self, state: PolicyState) -> None:
        """Remember it; nothing is written where nothing is to be remembered."""
        if self._path is None or (state == PolicyState() and not self._path.exists()):
            return
        with suppress(StorageError):
            make_directories(self._path.parent, private=True)
            replace_file(self._path, msgspec.json.encode(state))


def ratio_in(recorder: Recorder, wiring: Wiring) -> float | None:
    """Return the reported tokens for one estimated, of the newest request in the log that this model answered.

    None where there is none, or it cannot be rendered again.
    """
    entries = recorder.entries
    settings = wiring.settings
    reported = reported_usage(entries)
    for sent in reversed(sent_requests(entries)):
        usage = reported.get((sent.turn, sent.cycle, sent.attempt))
        if (sent.context.provider, sent.context.model) != (settings.provider, settings.model):
            return None
        if usage is not None and prompt_tokens(usage):
            try:
                thread = thread_of(sent, entries, loader=recorder, status_formatter=StatusLineFormatter())
                wire = render_bound(wiring.provider, thread, entries[: sent.entries]).wire
                size = prompt_size(wire.sections)
            except JpError:
                return None
            return prompt_tokens(usage) / max(size.total, 1)
    return None


class AutomaticCompaction:
    """The port `jp.turn.ports.Room`, for one turn."""

    def __init__(
        self,
        wiring: Wiring,
        recorder: Recorder,
        conversation: str,
    ) -> None:
        options = wiring.context.options
        self._wiring = wiring
        self._recorder = recorder
        self._conversation = conversation
        self._log = options.log
        path = wiring.context.workspace.user_data / "compaction" / f"{conversation}.json" if options.persist else None
        self._file = PolicyFile(path)
        self._order = order_of(wiring.config.conversation.compaction, profile=self._auto.profile)
        self._maker = OverlayMaker(wiring, recorder, self._order)
        self._status_formatter = StatusLineFormatter()
        self._observer = ResultObserver(texts_of(recorder))
        self._window = self._known_window()
        self._ratio: float | None = None
        self._bytes = 0  # of the request that was looked at last
        self._overflows: tuple[int, int] = (0, 0)  # answered before a request that is too long; tries at it
        self._made_at = -1  # how many entries there were when room was made last

    async def before(self, request: WireRequest) -> Sequence[Compaction]:
        """See the port."""
        window = self._window
        if window is None:
            return ()
        sections = request.sections
        if self._is_clearly_below(sections, window.threshold):
            return ()
        estimated = prompt_size(sections).total
        if estimated * _NEAR < window.threshold:
            return ()
        projected = round(estimated * self._measured_ratio())
        if projected < window.threshold:
            return ()
        overlays: Sequence[Compaction] = ()
        if len(self._recorder.entries) != self._made_at:
            overlays = await self._room(projected, must_fit=projected > window.limit)
        if not overlays and projected > window.limit:
            raise self._too_long(projected, window)
        return overlays

    async def after_overflow(self) -> Sequence[Compaction]:
        """See the port. For each request twice: first the newest cycles stay, then all leave but the last one."""
        answered = sum(isinstance(entry, CycleEnd) and entry.error is None for entry in self._recorder.entries)
        before, tries = self._overflows
        self._overflows = (answered, tries + 1 if before == answered else 1)
        return await self._room(0, must_fit=True) if self._overflows[1] <= _MOST_OVERFLOWS else ()

    def _is_clearly_below(self, sections: Sections, threshold: int) -> bool:
        """Return whether what was reported of the last request, and a token for each byte since, are no reason to look.

        Estimating a whole request takes far longer than counting its bytes.
        """
        before, self._bytes = self._bytes, _size(sections)
        last = next((entry for entry in reversed(self._recorder.entries) if isinstance(entry, CycleEnd)), None)
        reported = 0 if last is None or not before else prompt_tokens(last.usage)
        return bool(reported) and reported + max(self._bytes - before, 0) < threshold

    @property
    def _auto(self) -> AutoConfig:
        return self._wiring.config.conversation.compaction.auto

    async def _room(self, projected: int, *, must_fit: bool) -> Sequence[Compaction]:
        """Return the overlays that make room; none where there is none to make, or it is not worth it.

        A `projected` of 0 says that only the provider knows how long the request is.
        """
        ratio, now = self._measured_ratio(), time()
        planner = self._planner() if not projected else None
        used = projected if planner is None else round(planner.tokens * ratio)
        at = SummaryCircumstances(now=now, configuration=f"{self._wiring.model} {now // _REFUSED_SECS:.0f}", used=used)
        permission = may_summarise(self._file.read(), at)
        self._file.write(permission.state)
        around = Around(
            has_overflowed=not projected,
            is_cooling=permission.verdict == "growth",
            is_blocked=permission.verdict == "strikes",
        )
        if not self._is_triggered(used, used, around):
            return ()
        planner = planner or self._planner()
        window = self._window or Window(limit=used, threshold=used, target=used)
        least = max(used - window.threshold + 1, (used - window.target) // _WORTH_A_BREAK, 1)
        if not must_fit and round(self._maker.most_freed(planner) * ratio) < least:
            self._log("no automatic compaction: too little of it is in old turns and finished cycles")
            self._file.write(after_ineligible(permission.state, at))
            return ()
        draft = await self._maker.make(planner, self._need(used, ratio, must_fit=must_fit), permission.state, at)
        freed = round(draft.freed * ratio)
        if not self._is_triggered(used, freed, around, least=least):
            self._file.write(after_ineffective(draft.state, at))
            return ()
        if used - freed <= window.target:
            self._file.write(after_success(draft.state))
        else:
            self._file.write(after_ineffective(draft.state, replace(at, used=used - freed)))
        self._tell(draft.overlays, used, used - freed)
        self._made_at = len(self._recorder.entries) + len(draft.overlays)
        stamped = timestamp(SYSTEM.now())
        return [replace(overlay, at=stamped) for overlay in draft.overlays]

    def _planner(self) -> Planner:
        tools = self._wiring.config.conversation.tools
        return Planner(
            tuple(self._recorder.entries),
            self._status_formatter,
            tools,
            now=time(),
            source="auto",
            load=self._observer,
        )

    def _is_triggered(self, used: int, reclaimable: int, around: Around, *, least: int = 0) -> bool:
        """Return whether so much is to be removed; the code of why, or why not, goes to the log with its numbers."""
        window = self._window or Window(limit=used, threshold=used, target=used)
        verdict = decide(
            Numbers(
                used=used,
                projected=used,
                threshold=window.threshold,
                limit=window.limit,
                reclaimable=reclaimable,
                least=least,
            ),
            around,
        )
        if isinstance(verdict, NotTriggered):
            self._log(f"no automatic compaction: {verdict.because}; {reclaimable:,} of {used:,} tokens")
        elif least:
            self._log(f"automatic compaction: {verdict.reason}; {reclaimable:,} of {used:,} tokens")
        return isinstance(verdict, Triggered)

    def _need(self, used: int, ratio: float, *, must_fit: bool) -> Need:
        """Return how much is to be freed, as it is estimated; without a window as much as can be."""
        if self._window is None or used <= self._window.threshold:
            everything = round(used / ratio)
            again = self._overflows[1] == _MOST_OVERFLOWS
            return Need(wanted=everything, least=everything if again else 0, is_urgent=must_fit)
        target = self._window.target
        wanted, least = used - target, max(used - self._window.limit, 0)
        return Need(
            wanted=ceil(wanted / ratio), least=ceil(least / ratio), target=int(target / ratio), is_urgent=must_fit
        )

    def _measured_ratio(self) -> float:
        """Return the reported tokens for one that is estimated, of the newest request that this model has answered."""
        if self._ratio is None or self._wiring.measuring is not None:
            self._ratio = self._newest_ratio()
        return self._ratio

    def _newest_ratio(self) -> float:
        measuring = self._wiring.measuring
        if measuring is not None and measuring.measured:
            newest = measuring.measured[-1]
            return newest.reported / max(newest.estimated, 1)
        if self._ratio is not None:
            return self._ratio
        return ratio_in(self._recorder, self._wiring) or known_error(str(self._wiring.model)).ratio

    def _known_window(self) -> Window | None:
        from jp.app.models import details_of

        details = details_of(self._wiring.config, self._wiring.model)
        if details.context_window is None:
            self._log(f"no automatic compaction: nobody knows the window of {str(self._wiring.model)!r}")
            return None
        wanted = self._wiring.settings.parameters.max_tokens or details.max_output or 0
        limit = details.context_window - min(wanted, details.context_window // 2)
        threshold = round(limit * self._auto.trigger_ratio)
        target = threshold // 2
        if self._auto.target_ratio is not None:
            target = min(round(limit * self._auto.target_ratio), threshold)
        return Window(limit=limit, threshold=threshold, target=target)

    def _tell(self, overlays: Sequence[Compaction], before: int, after: int) -> None:
        number = len(compactions_in_force(self._recorder.entries)) + 1
        made = f"auto-compacted {_covered_text(overlays)}: about {before:,} tokens before, {after:,} now; undo: `"
        self._wiring.notice(phrase(made, Compact(self._conversation, reset=str(number)), "`"))

    def _too_long(self, projected: int, window: Window) -> ProviderError:
        return ProviderError(
            f"the request has about {projected:,} tokens, and {str(self._wiring.model)!r} takes {window.limit:,}",
            kind="context_too_long",
            hint=phrase(
                *("nothing more can be hidden: `", ChangeConversation("undo", self._conversation)),
                *("` takes this request back, `", Option.MODEL),
                "` names one with a larger window, `max_bytes` of a tool bounds its results",
            ),
        )


def _size(sections: Sections) -> int:
    """Return the bytes of a request."""
    sizes = [message.size for message in sections.messages]
    return sum(map(len, sections.system)) + sum(map(len, sections.tools)) + sum(sizes)


def _covered_text(overlays: Sequence[Compaction]) -> str:
    """Return which turns overlays concern: whole ones, and the one that runs."""
    said: list[str] = []
    whole = [overlay for overlay in overlays if overlay.to_cycle is None]
    if whole:
        said.append(turns_text(min(one.from_turn for one in whole), max(one.to_turn for one in whole)))
    running = [overlay.to_turn for overlay in overlays if overlay.to_cycle is not None]
    if running:
        said.append(f"the finished calls of {turns_text(running[-1], running[-1])}")
    return ", ".join(said)
