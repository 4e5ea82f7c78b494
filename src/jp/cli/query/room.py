"""Automatic compaction (RFD D17): room is made before a request that comes near to the model's window.

What a provider has reported counts, and what was added since is estimated. Nothing happens unless it is configured,
nor where nobody knows the window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from math import ceil
from pathlib import Path
from time import time

import msgspec
from msgspec.structs import replace

from jp.cli.compacting.order import order_of
from jp.cli.compacting.report import turns_text
from jp.cli.compacting.summarizer import texts_of
from jp.cli.estimates import known_of
from jp.cli.places import AnyWorkspace
from jp.cli.query.room_making import Need, RoomMaker
from jp.cli.query.wiring import Wiring
from jp.compaction.fact_lines import FactLines
from jp.compaction.overlays import compactions_in_force
from jp.compaction.planning import Planner
from jp.config.compaction import AutoConfig
from jp.context.failure_policy import (
    Circumstances,
    PolicyState,
    after_ineffective,
    after_ineligible,
    after_success,
    may_summarise,
)
from jp.context.triggers import Circumstances as Around
from jp.context.triggers import NotTriggered, Numbers, Triggered, decide
from jp.conversation.entries import Compaction, CycleEnd
from jp.conversation.usage import prompt_tokens, reported_usage
from jp.errors import JpError, StorageError
from jp.provider.base import Sections, WireRequest
from jp.provider.errors import ProviderError
from jp.reading import read_beginning
from jp.turn.bound_reasoning import render_bound
from jp.turn.ports import Recorder
from jp.turn.prompt_size import prompt_size
from jp.turn.sent import sent_requests, thread_of
from jp.workspace.files import make_directories, replace_file
from jp.workspace.stamp import SYSTEM, timestamp

_LARGEST = 1024 * 1024

_REFUSED_SECS = 3600
"""For how long at most nobody is asked who would not take a key, or whose quota was used up: jp is not told of
another key, nor of a bill that was paid."""

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
    """Where what is remembered of failures outlives this process. It is a help and no more: errors are ignored."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def read(self) -> PolicyState:
        """What is remembered."""
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
    """Reported tokens for one that is estimated, of the newest request in the log that the same model answered.

    None where there is none, or it cannot be made anew.
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
                thread = thread_of(sent, entries, loader=recorder, stand_ins=FactLines())
                wire = render_bound(wiring.provider, thread, entries[: sent.entries]).wire
                size = prompt_size(wiring.provider.sections(wire))
            except JpError:
                return None
            return prompt_tokens(usage) / max(size.total, 1)
    return None


class AutomaticRoom:
    """The port `jp.turn.ports.Room`, for one turn."""

    def __init__(
        self,
        wiring: Wiring,
        recorder: Recorder,
        workspace: AnyWorkspace,
        conversation: str,
        *,
        log: Callable[[str], None],
        remembers: bool,
    ) -> None:
        self._wiring = wiring
        self._recorder = recorder
        self._conversation = conversation
        self._log = log
        path = workspace.user_data / "compaction" / f"{conversation}.json" if remembers else None
        self._file = PolicyFile(path)
        self._order = order_of(wiring.config.conversation.compaction, profile=self._auto.profile)
        self._maker = RoomMaker(wiring, recorder, workspace, self._order, log=log)
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
        sections = self._wiring.provider.sections(request)
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
        before, self._bytes = self._bytes, sum(map(len, _items(sections)))
        last = next((entry for entry in reversed(self._recorder.entries) if isinstance(entry, CycleEnd)), None)
        reported = 0 if last is None or not before else prompt_tokens(last.usage)
        return bool(reported) and reported + max(self._bytes - before, 0) < threshold

    @property
    def _auto(self) -> AutoConfig:
        return self._wiring.config.conversation.compaction.auto

    async def _room(self, projected: int, *, must_fit: bool) -> Sequence[Compaction]:
        """The overlays that make room; none where there is none to make, or it is not worth it.

        A `projected` of 0 says that only the provider knows how long the request is.
        """
        ratio, now = self._measured_ratio(), time()
        planner = self._planner() if not projected else None
        used = projected if planner is None else round(planner.tokens * ratio)
        at = Circumstances(now=now, configuration=f"{self._wiring.model} {now // _REFUSED_SECS:.0f}", used=used)
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
        load = texts_of(self._recorder)
        return Planner(tuple(self._recorder.entries), FactLines(), tools, now=time(), source="auto", load=load)

    def _is_triggered(self, used: int, reclaimable: int, around: Around, *, least: int = 0) -> bool:
        """Whether so much is to be left out; the code of why, or why not, goes to the log with its numbers."""
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
        """Reported tokens for one that is estimated, of the newest request that this model has answered."""
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
        return ratio_in(self._recorder, self._wiring) or known_of(str(self._wiring.model)).ratio

    def _known_window(self) -> Window | None:
        from jp.cli.model_details import details_of

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
        undo = f"jp conversation compact --reset={number} {self._conversation}"
        self._wiring.notice(
            f"auto-compacted {_covered_text(overlays)}: about {before:,} tokens before, {after:,} now; undo: `{undo}`"
        )

    def _too_long(self, projected: int, window: Window) -> ProviderError:
        return ProviderError(
            f"the request has about {projected:,} tokens, and {str(self._wiring.model)!r} takes {window.limit:,}",
            kind="context_too_long",
            hint=(
                f"nothing more can be hidden: `jp conversation undo {self._conversation}` takes this request back, "
                "`--model` names one with a larger window, `max_bytes` of a tool bounds its results"
            ),
        )


def _items(sections: Sections) -> Iterator[bytes]:
    yield from sections.system
    yield from sections.tools
    for message in sections.messages:
        yield from message


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
