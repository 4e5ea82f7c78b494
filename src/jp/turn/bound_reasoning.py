"""Withhold reasoning that a vendor would drop or refuse, because something before it has changed.

Two vendors take a piece of reasoning back only where everything before it is what the model saw when it produced it:
system prompt, tools, messages (platform.claude.com, build-with-claude/preserved-thinking, and developers.openai.com,
guides/keep-prefix-unchanged, both looked up on 2026-11-22). The log has the hashes of every request that was sent, so
a piece is valid if those of the request that it answered are a prefix of the hashes of the request that is to be sent.
Whatever changed the prefix shows in them: a compaction, a revert, another system prompt, a new version of jp. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
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
    Thread,
    ToolCall,
    ViewEvent,
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
    wire = provider.render(thread)
    bound = _bound_reasoning(provider, thread, wire)
    if not bound:
        return Rendered(thread=thread, wire=wire)
    log = _SentLog(entries, provider.id, thread.model)
    selection = _Selection(provider, thread, bound, log)
    whole, kept = selection.render(bound)
    if len(kept) == len(bound):
        return whole
    # What was valid in the last request to this model mostly still is: what it withheld is not there to be seen.
    leading = next(number for number, origin in enumerate(bound) if origin not in kept)
    best = selection.shrink({*bound[:leading], *log.last_valid(bound)})
    return selection.grow(best)


class _Selection:
    """Renders a thread with some of its reasoning, and tells which of that is valid then."""

    def __init__(self, provider: Renders, thread: Thread, bound: Sequence[str], log: _SentLog) -> None:
        self._provider = provider
        self._thread = thread
        self._bound = bound
        self._log = log

    def render(self, chosen: Collection[str]) -> tuple[Rendered, set[str]]:
        """Render the thread with the pieces `chosen`; return all pieces that are valid behind what is rendered."""
        withheld = tuple(origin for origin in self._bound if origin not in chosen)
        shown = _without(self._thread, frozenset(withheld), self._log) if withheld else self._thread
        wire = self._provider.render(shown)
        valid = self._log.valid(self._bound, shown.events, digests_of(wire.sections, ()))
        return Rendered(thread=shown, wire=wire, withheld=withheld), valid

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


def _bound_reasoning(provider: Renders, thread: Thread, wire: WireRequest) -> list[str]:
    """Return the ids of the reasoning in `wire` that is checked, in order."""
    if not wire.prefix_bound:
        return []
    model, *reads = wire.prefix_bound
    return [
        event.origin
        for event in thread.events
        if isinstance(event, AssistantReasoning) and is_readable(event.metadata, provider.id, model, reads=reads)
    ]


def _without(thread: Thread, withheld: frozenset[str], log: _SentLog) -> Thread:
    """Return `thread` without reasoning; what was answered with it loses the ids by which providers tie the two."""
    untied = {answer.id for origin in withheld for answer in log.attempt_of(origin).answers}
    events: list[ViewEvent] = []
    for event in thread.events:
        if isinstance(event, AssistantReasoning):
            if event.origin not in withheld:
                events.append(event)
        elif isinstance(event, (AssistantText, AssistantData, ToolCall)) and event.origin in untied:
            events.append(msgspec.structs.replace(event, metadata=None))
        else:
            events.append(event)
    return msgspec.structs.replace(thread, events=tuple(events))


class _SentLog:
    """The requests that a log records as sent, and their answers."""

    def __init__(self, entries: Sequence[AnyEntry], provider: str, model: str) -> None:
        self._attempts: dict[str, _Attempt] = {}
        self._ends: list[CycleEnd] = []
        self._last = Digests()
        self._read(entries, (provider, model))

    def attempt_of(self, origin: str) -> _Attempt:
        """Return the attempt that brought an answer; one without an end where the log does not say."""
        return self._attempts.get(origin, _Attempt(answers=(), end=None))

    def valid(self, origins: Collection[str], events: Sequence[ViewEvent], now: Digests) -> set[str]:
        """Return those of `origins` that nothing has changed before, in a request of `events` with the hashes `now`."""
        sent_alike = self._prefixes_of(now)
        shown = {event.origin: event for event in events}
        return {origin for origin in origins if self._is_valid(origin, shown, sent_alike)}

    def last_valid(self, origins: Collection[str]) -> set[str]:
        """Return those of `origins` that nothing had changed before in the last request to the model."""
        sent_alike = self._prefixes_of(self._last)
        return {origin for origin in origins if self._end_of(origin) in sent_alike}

    def _read(self, entries: Sequence[AnyEntry], asked: tuple[str, str]) -> None:
        answers: list[Answer] = []
        in_force: tuple[str, str] | None = None
        messages: tuple[str, ...] = ()
        for entry in entries:
            match entry:
                case ChatResponse() | ToolCallRequest():
                    answers.append(entry)
                case CycleEnd():
                    self._close(answers, entry)
                    self._ends.append(entry)
                    messages = messages[: entry.digests.kept] + entry.digests.messages
                    if in_force == asked:
                        self._last = msgspec.structs.replace(entry.digests, kept=0, messages=messages)
                case TurnStart() | ToolCallResponse():
                    self._close(answers, None)
                case RequestContext():
                    in_force = (entry.provider, entry.model)
                case _:
                    pass

    def _close(self, answers: list[Answer], end: CycleEnd | None) -> None:
        attempt = _Attempt(answers=tuple(answers), end=end)
        self._attempts.update((answer.id, attempt) for answer in answers)
        answers.clear()

    def _end_of(self, origin: str) -> str:
        end = self.attempt_of(origin).end
        return "" if end is None else end.id

    def _is_valid(self, origin: str, shown: Mapping[str, ViewEvent], sent_alike: Collection[str]) -> bool:
        if self._end_of(origin) not in sent_alike:
            return False
        answers = self.attempt_of(origin).answers
        before = answers[: next(number for number, answer in enumerate(answers) if answer.id == origin)]
        return all(_is_unchanged(answer, shown.get(answer.id)) for answer in before)

    def _prefixes_of(self, target: Digests) -> set[str]:
        """Return the ids of the `cycle_end`s whose requests `target` begins with.

        Each says how many messages it shares with the one before, so every hash is compared once.
        """
        return set(_prefixes(self._ends, target))


def _prefixes(ends: Sequence[CycleEnd], target: Digests) -> Iterator[str]:
    count, common = 0, 0
    is_whole = True
    for end in ends:
        digests = end.digests
        kept = digests.kept
        # A fork may lack the request that this one counts from: nothing is known until a request counts from zero.
        is_whole = kept == 0 or (is_whole and kept <= count)
        common = min(common, kept)
        if common == kept:
            common += _common(digests.messages, target.messages[kept : kept + len(digests.messages)])
        count = kept + len(digests.messages)
        beside = (digests.system, digests.tools, digests.settings)
        if is_whole and count and common == count and beside == (target.system, target.tools, target.settings):
            yield end.id


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


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
