"""Withhold reasoning that a vendor would drop or refuse, because something before it has changed.

Two vendors take a piece of reasoning back only where everything before it is what the model saw when it produced it:
system prompt, tools, messages (platform.claude.com, build-with-claude/preserved-thinking, and developers.openai.com,
guides/keep-prefix-unchanged, both looked up on 2026-11-22). The log has the hashes of every request that was sent, so
a piece is valid if those of the request that it answered are a prefix of the hashes of the request that is to be sent.
Whatever changed the prefix shows in them: a compaction, a revert, another system prompt, a new version of jp. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from operator import ne
from typing import Protocol

import msgspec

from jp.conversation.entries import (
    AnyEntry,
    ChatResponse,
    CycleEnd,
    Digests,
    RequestContext,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
)
from jp.conversation.thread import (
    AssistantData,
    AssistantReasoning,
    AssistantText,
    IncrementalMap,
    LogCursor,
    Thread,
    ToolCall,
    ViewEvent,
    count_unchanged,
)
from jp.conversation.turns import Answer, is_blank
from jp.provider.base import WireRequest
from jp.provider.models import is_readable
from jp.turn.request import digests_of


class Renders(Protocol):
    """The pure half of a provider that makes requests."""

    @property
    def id(self) -> str:
        """The provider's id."""
        ...

    def render(self, thread: Thread) -> WireRequest:
        """Return the request for `thread`."""
        ...


class Rendered(msgspec.Struct, frozen=True, kw_only=True):
    """A request and the thread that it was rendered from, without the reasoning `withheld` (ids of its entries)."""

    thread: Thread
    wire: WireRequest
    withheld: tuple[str, ...] = ()


class _Attempt(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The answers to one request; `end` is None if the writer died first."""

    answers: tuple[Answer, ...]
    end: CycleEnd | None


def render_bound(provider: Renders, thread: Thread, entries: Sequence[AnyEntry]) -> Rendered:
    """Render `thread`, which was built from `entries`, without the reasoning whose prefix has changed.

    Models that do not check the prefix get everything. The choice is made again for each request, so reasoning comes
    back when an undo restores the prefix.

    Raises:
        ConfigurationError: as `Provider.render`.
        ProviderError: as `Provider.render`.
    """
    return BoundRenderer(provider).render(thread, entries)


class BoundRenderer:
    """Renders one request of a log after another as `render_bound` does. The log is read once."""

    def __init__(self, provider: Renders) -> None:
        self._provider = provider
        self._log = _SentLog("", "")
        self._withheld: Collection[str] = ()
        self._reduced = IncrementalMap[ViewEvent, ViewEvent | None](lambda event: event)
        self._models: Sequence[str] = ()
        self._origins = IncrementalMap[ViewEvent, str | None](lambda _: None)

    def render(self, thread: Thread, entries: Sequence[AnyEntry]) -> Rendered:
        """Return what `render_bound` returns. See `LogCursor.advance` on passing the same list of entries again."""
        wire = self._provider.render(thread)
        bound = self._bound_in(thread, wire.prefix_bound)
        whole = Rendered(thread=thread, wire=wire)
        if not bound:
            return whole
        log = self._log_of(thread.model)
        log.update(entries)
        kept = log.valid(bound, whole, digests_of(wire.sections, ()))
        if len(kept) == len(bound):
            return whole
        selection = _Selection(lambda withheld: self._without(thread, withheld), bound, log)
        # What was valid in the last request to this model mostly still is: what it withheld is not there to be seen.
        leading = next(number for number, origin in enumerate(bound) if origin not in kept)
        return selection.grow(selection.shrink({*bound[:leading], *log.last_valid(bound)}))

    def _bound_in(self, thread: Thread, models: Sequence[str]) -> list[str]:
        """Return the ids of the reasoning in `thread` that is checked, in order; `models` are those that it is from."""
        if not models:
            return []
        if self._models != models:
            find = partial(_readable_origin, provider=self._provider.id, model=models[0], reads=models[1:])
            self._models, self._origins = models, IncrementalMap(find)
        return [origin for origin in self._origins.map(thread.events) if origin is not None]

    def _log_of(self, model: str) -> _SentLog:
        if (self._log.provider, self._log.model) != (self._provider.id, model):
            self._log = _SentLog(self._provider.id, model)
        return self._log

    def _without(self, thread: Thread, withheld: tuple[str, ...]) -> Rendered:
        """Render without reasoning; what was answered with it loses the ids by which providers tie the two."""
        if self._withheld != withheld:
            untied = {answer.id for origin in withheld for answer in self._log.attempt_of(origin).answers}
            reduce = partial(_reduced, withheld=frozenset(withheld), untied=untied)
            self._withheld, self._reduced = withheld, IncrementalMap(reduce)
        events = [event for event in self._reduced.map(thread.events) if event is not None]
        shown = msgspec.structs.replace(thread, events=tuple(events)) if withheld else thread
        return Rendered(thread=shown, wire=self._provider.render(shown), withheld=withheld)


def _readable_origin(event: ViewEvent, *, provider: str, model: str, reads: Sequence[str]) -> str | None:
    """Return the id of reasoning that a model takes back as its own; None for anything else."""
    is_own = isinstance(event, AssistantReasoning) and is_readable(event.metadata, provider, model, reads=reads)
    return event.origin if is_own else None


def _reduced(event: ViewEvent, *, withheld: Collection[str], untied: Collection[str]) -> ViewEvent | None:
    if isinstance(event, AssistantReasoning):
        return None if event.origin in withheld else event
    if isinstance(event, (AssistantText, AssistantData, ToolCall)) and event.origin in untied:
        return msgspec.structs.replace(event, metadata=None)
    return event


class _Selection:
    """Renders a thread with some of its reasoning, and tells which of that is valid then."""

    def __init__(
        self, render_without: Callable[[tuple[str, ...]], Rendered], bound: Sequence[str], log: _SentLog
    ) -> None:
        self._render_without = render_without
        self._bound = bound
        self._log = log

    def render(self, chosen: Collection[str]) -> tuple[Rendered, set[str]]:
        """Render the thread with the pieces `chosen`; return all pieces that are valid behind what is rendered."""
        rendered = self._render_without(tuple(origin for origin in self._bound if origin not in chosen))
        digests = digests_of(rendered.wire.sections, ())
        return rendered, self._log.valid(self._bound, rendered, digests)

    def shrink(self, chosen: set[str]) -> tuple[Rendered, set[str]]:
        """Return the rendering without what is not valid of `chosen`, and what is valid behind it."""
        rendered, valid = self.render(chosen)
        while not chosen <= valid:
            chosen &= valid
            rendered, valid = self.render(chosen)
        return rendered, valid

    def grow(self, best: tuple[Rendered, set[str]]) -> Rendered:
        """Return the rendering with what it can take besides, such as a piece of a compaction that was made again."""
        tried: set[str] = set()
        while True:
            rendered, valid = best
            more = next((origin for origin in rendered.withheld if origin in valid - tried), None)
            if more is None:
                return rendered
            tried.add(more)
            chosen = {*self._bound}.difference(rendered.withheld) | {more}
            found = self.render(chosen)
            best = found if chosen <= found[1] else best


class _SentLog:
    """The requests to a model that a log records as sent, and all answers. It grows with the log."""

    def __init__(self, provider: str, model: str) -> None:
        self.provider = provider
        self.model = model
        self._cursor = LogCursor()
        self._clear()

    def _clear(self) -> None:
        self._open: list[Answer] = []
        self._attempts: dict[str, _Attempt] = {}
        self._ends: dict[str, str] = {}  # the ids of the ends of attempts, by their answers
        self._before: dict[str, tuple[Answer, ...]] = {}  # the answers of the same attempt before reasoning, if any
        self._in_force: tuple[str, str] | None = None
        self._messages: list[str] = []
        self._last = Digests()
        self._is_last = False  # `_last` has the messages that are not copied from `_messages` yet
        self._prefixes_of_whole, self._prefixes_of_reduced, self._prefixes_of_last = (_Prefixes() for _ in range(3))

    def update(self, entries: Sequence[AnyEntry]) -> None:
        """Read the entries that were added, or all where earlier ones have changed."""
        added, only_adds = self._cursor.advance(entries)
        if not only_adds:
            self._clear()
        for entry in added:
            self._read(entry)

    def attempt_of(self, origin: str) -> _Attempt:
        """Return the attempt that brought an answer; one without an end where the log does not say."""
        return self._attempts.get(origin, _Attempt(answers=(), end=None))

    def valid(self, origins: Collection[str], rendered: Rendered, digests: Digests) -> set[str]:
        """Return those of `origins` that nothing has changed before in a request, whose hashes are `digests`."""
        prefixes = self._prefixes_of_reduced if rendered.withheld else self._prefixes_of_whole
        sent_alike, ends = prefixes.find(digests), self._ends
        found = {origin for origin in origins if ends.get(origin, "") in sent_alike}
        behind = {origin: self._before[origin] for origin in found if origin in self._before}
        if behind:
            wanted = {answer.id for answers in behind.values() for answer in answers}
            shown = {event.origin: event for event in rendered.thread.events if event.origin in wanted}
            found -= {
                origin
                for origin, answers in behind.items()
                if not all(_is_unchanged(answer, shown.get(answer.id)) for answer in answers)
            }
        return found

    def last_valid(self, origins: Collection[str]) -> set[str]:
        """Return those of `origins` that nothing had changed before in the last request to the model."""
        self._keep_last()
        sent_alike, ends = self._prefixes_of_last.find(self._last), self._ends
        return {origin for origin in origins if ends.get(origin, "") in sent_alike}

    def _read(self, entry: AnyEntry) -> None:
        match entry:
            case ChatResponse() | ToolCallRequest():
                self._open.append(entry)
            case CycleEnd():
                self._close(entry)
                self._end(entry)
            case TurnStart() | ToolCallResponse():
                self._close(None)
            case RequestContext():
                self._in_force = (entry.provider, entry.model)
            case _:
                pass

    def _close(self, end: CycleEnd | None) -> None:
        attempt = _Attempt(answers=tuple(self._open), end=end)
        for number, answer in enumerate(self._open):
            self._attempts[answer.id] = attempt
            self._ends[answer.id] = "" if end is None else end.id
            self._before.pop(answer.id, None)
            if number and isinstance(answer, ChatResponse) and answer.reasoning is not None:
                self._before[answer.id] = attempt.answers[:number]
        self._open.clear()

    def _end(self, end: CycleEnd) -> None:
        is_asked = self._in_force == (self.provider, self.model)
        if not is_asked:
            self._keep_last()
        del self._messages[end.digests.kept :]
        self._messages += end.digests.messages
        if is_asked:
            self._last, self._is_last = end.digests, True
        for prefixes in (self._prefixes_of_whole, self._prefixes_of_reduced, self._prefixes_of_last):
            prefixes.add(end)

    def _keep_last(self) -> None:
        if self._is_last:
            messages = tuple(self._messages)
            self._last, self._is_last = msgspec.structs.replace(self._last, kept=0, messages=messages), False


class _Prefixes:
    """Finds the requests that a request begins with among those of a log that grows.

    Each says how many messages it shares with the one before, so every hash is compared once. While the request only
    gets longer, earlier ones are not compared again.
    """

    def __init__(self) -> None:
        self._ends: list[CycleEnd] = []
        self._begin(Digests())

    def _begin(self, target: Digests) -> None:
        self._target = target
        self._found: set[str] = set()
        self._compared = self._count = self._common = 0
        self._is_whole, self._is_limited = True, False

    def add(self, end: CycleEnd) -> None:
        """Add the next request that was sent."""
        self._ends.append(end)

    def find(self, target: Digests) -> Collection[str]:
        """Return the ids of the `cycle_end`s whose requests `target` begins with."""
        before, known = self._target, self._target.messages
        is_same = _beside(before) == _beside(target) and target.messages[: len(known)] == known
        if not is_same or (self._is_limited and len(target.messages) > len(known)):
            self._begin(target)
        self._target = target
        for end in self._ends[self._compared :]:
            self._compare(end, target)
        self._compared = len(self._ends)
        return self._found

    def _compare(self, end: CycleEnd, target: Digests) -> None:
        digests, kept = end.digests, end.digests.kept
        # A fork may lack the request that this one counts from: nothing is known until a request counts from zero.
        self._is_whole = kept == 0 or (self._is_whole and kept <= self._count)
        self._common = min(self._common, kept)
        if self._common == kept:
            self._common += count_unchanged(digests.messages, target.messages[kept : kept + len(digests.messages)], ne)
        self._count = kept + len(digests.messages)
        self._is_limited |= self._common == len(target.messages) < self._count
        is_prefix = self._common == self._count > 0 and _beside(digests) == _beside(target)
        if self._is_whole and is_prefix:
            self._found.add(end.id)


def _beside(digests: Digests) -> tuple[str, str, str]:
    return digests.system, digests.tools, digests.settings


def _is_unchanged(answer: Answer, event: ViewEvent | None) -> bool:
    """Return whether an answer is shown as the model gave it; blank messages never are, and providers take none."""
    match answer, event:
        case ToolCallRequest(), ToolCall():
            return event.arguments == answer.arguments
        case ChatResponse(message=str(text)), None:
            return is_blank(text)
        case ChatResponse(message=str(text)), AssistantText():
            return event.text == text
        case _:
            return event is not None
