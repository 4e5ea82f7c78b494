"""The events of a thread in the order in which every provider takes them: each call answered, at once. Pure.

Everything is decided by what comes before it, so that a longer thread begins with what a shorter one begins with.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import is_
from typing import Generic, Protocol, Self, TypeVar

import msgspec

from jp.conversation.resource import INTERRUPTED_CONTENT, Block
from jp.conversation.thread import (
    AssistantData,
    AssistantReasoning,
    AssistantText,
    NamedCall,
    ReferenceBlock,
    Thread,
    ToolCall,
    ToolResult,
    UserResource,
    UserText,
    ViewEvent,
)

_LONGEST_NAME = 128

NOT_SHOWN = "[Earlier messages are not shown.]"
"""First message of a conversation that begins with the assistant, for providers that require the user first."""


class Called(msgspec.Struct, frozen=True, kw_only=True):
    """A call under an id that no other call of the request has."""

    wire_id: str
    call: ToolCall


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a call; of one that has none, that it was interrupted."""

    wire_id: str
    call: ToolCall
    content: tuple[Block, ...]
    is_error: bool


Arranged = UserText | UserResource | AssistantText | AssistantReasoning | AssistantData | Called | Answered


def thought(text: str) -> str:
    """Return reasoning as text, for servers that are set to be given it so."""
    return f"<think>\n{text}\n</think>\n\n"


def arguments_of(call: ToolCall) -> dict[str, object]:
    """Return a call's arguments; a value that is not an object is wrapped in one."""
    return call.arguments if isinstance(call.arguments, dict) else {"invalid_json": call.arguments}


def request_of(event: UserText | UserResource) -> tuple[str, int]:
    """Return the request of the user that an event belongs to."""
    return event.origin, event.turn


def newest_request(events: Sequence[ViewEvent]) -> tuple[str, int]:
    """Return the request to be answered; messages of jp on the user's behalf do not count."""
    for event in reversed(events):
        if isinstance(event, UserResource) or (isinstance(event, UserText) and not event.synthetic):
            return request_of(event)
    return "", -1


def plain_id(call_id: str, number: int = 1) -> str:
    """Return an id of characters that every provider accepts: ASCII letters, digits, `_` and `-`.

    A `number` greater than 1 means that `number - 1` earlier calls had this id.
    """
    return (_plain(call_id) or "call") + ("" if number == 1 else f"_{number}")


def plain_name(name: str) -> str:
    """Return a tool name that every provider accepts, for any name in a log: such a tool may no longer exist."""
    plain = _plain(name) or "tool"
    return (plain if plain[0].isalpha() or plain[0] == "_" else f"_{plain}")[:_LONGEST_NAME]


def _plain(text: str) -> str:
    return "".join(c if c in "_-" or (c.isascii() and c.isalnum()) else "_" for c in text)


def arranged(events: Sequence[ViewEvent], *, valid_id: Callable[[str, int], str] = plain_id) -> Iterator[Arranged]:
    """Yield the events in wire order.

    The resources of a request stand before its text: what is asked comes after what it is about. Every call is
    answered before the user speaks again, in the order of the calls; a result without a call is dropped. `valid_id`
    makes of the id that a model gave one that the provider takes, another one for every number: ids that repeat are
    numbered.
    """
    wire_ids, names = _wire_ids(events, _CallIds(valid_id))
    return _in_order(events, _results_in(events), wire_ids, names)


class _Builder(Protocol):
    def add(self, event: Arranged, /) -> None: ...

    def fork(self) -> Self: ...


B = TypeVar("B", bound=_Builder)


class GrowingMessages(Generic[B]):
    """Builds the messages of a thread that grows: only events that were added are built.

    The messages up to the last answer that followed a tool's result are final. A thread with other settings, or whose
    final events are other objects, is built from its beginning. The result is what a new builder would give.
    """

    def __init__(self, valid_id: Callable[[str, int], str] = plain_id) -> None:
        self._valid_id = valid_id
        self._builder: B | None = None
        self._base: tuple[Thread, tuple[str, int]] | None = None
        self._events: tuple[ViewEvent, ...] = ()
        self._ids = _CallIds(valid_id)
        self._names: dict[str, str] = {}

    def build(self, thread: Thread, create: Callable[[], B]) -> B:
        """Return a builder of its own to which all events of `thread` were added. `create` makes an empty one."""
        base = (msgspec.structs.replace(thread, events=()), newest_request(thread.events))
        builder, events = self._builder, thread.events[len(self._events) :]
        self._builder = None  # an event that cannot be built leaves nothing behind
        if builder is None or base != self._base or not self._goes_on(thread.events, events):
            builder, events = create(), thread.events
            self._events, self._ids, self._names = (), _CallIds(self._valid_id), {}
        final = _final_part(events)
        results = _results_in(events)
        first, names = _wire_ids(events[:final], self._ids)
        self._names.update(names)
        second, names = _wire_ids(events[final:], self._ids.fork())
        names = ChainMap(names, self._names)
        for event in _in_order(events[:final], results, first, names):
            builder.add(event)
        self._builder, self._base, self._events = builder, base, self._events + events[:final]
        last = builder.fork()
        for event in _in_order(events[final:], results, second, names):
            last.add(event)
        return last

    def _goes_on(self, events: Sequence[ViewEvent], added: Sequence[ViewEvent]) -> bool:
        """Return whether `events` begin with those that are final, and nothing that was added belongs to one."""
        if len(events) < len(self._events) or not all(map(is_, self._events, events)):
            return False
        calls = {event.origin for event in added if isinstance(event, ToolCall)}
        return calls.issuperset([event.call for event in added if isinstance(event, ToolResult)])


def _final_part(events: Sequence[ViewEvent]) -> int:
    """Return the position after which only the last answer to tools' results, and what follows it, are."""
    for position in range(len(events) - 1, 0, -1):
        if isinstance(events[position - 1], ToolResult) and not isinstance(events[position], ToolResult):
            return position
    return 0


def _results_in(events: Iterable[ViewEvent]) -> dict[str, list[ToolResult]]:
    results: dict[str, list[ToolResult]] = {}
    for event in events:
        if isinstance(event, ToolResult):
            results.setdefault(event.call, []).append(event)
    return results


def _in_order(
    events: Sequence[ViewEvent],
    results: Mapping[str, list[ToolResult]],
    wire_ids: Iterable[str],
    names: Mapping[str, str],
) -> Iterator[Arranged]:
    upcoming = iter(wire_ids)
    pending: list[Called] = []
    for event in _ordered(events):
        if isinstance(event, (UserText, UserResource, ToolResult)):
            yield from _answers(pending, results, names)
            pending.clear()
        if isinstance(event, ToolCall):
            pending.append(Called(wire_id=next(upcoming), call=_named(event)))
            yield pending[-1]
        elif isinstance(event, UserText) and event.named is not None:
            yield msgspec.structs.replace(event, text=_renamed(event.text, event.named, names))
        elif not isinstance(event, ToolResult):
            yield event
    yield from _answers(pending, results, names)


def _named(call: ToolCall) -> ToolCall:
    name = plain_name(call.name)
    return call if name == call.name else msgspec.structs.replace(call, name=name)


def _renamed(text: str, named: NamedCall, wire_ids: Mapping[str, str]) -> str:
    """Return `text` with the id that a call has on the wire; a URI, which may look like one, stands before it."""
    before, found, after = text.rpartition(f"`{named.call_id}`")
    return f"{before}`{wire_ids[named.call]}`{after}" if found and named.call in wire_ids else text


def _content(blocks: Sequence[Block], wire_ids: Mapping[str, str]) -> tuple[Block, ...]:
    return tuple(
        msgspec.structs.replace(block, text=_renamed(block.text, block.named, wire_ids))
        if isinstance(block, ReferenceBlock) and block.text is not None
        else block
        for block in blocks
    )


def _answers(
    calls: Iterable[Called], results: Mapping[str, list[ToolResult]], wire_ids: Mapping[str, str]
) -> Iterator[Answered]:
    for called in calls:
        waiting = results.get(called.call.origin)
        result = waiting.pop(0) if waiting else None
        yield Answered(
            wire_id=called.wire_id,
            call=called.call,
            content=INTERRUPTED_CONTENT if result is None else _content(result.content, wire_ids),
            is_error=result is None or result.is_error,
        )


def _ordered(events: Iterable[ViewEvent]) -> Iterator[ViewEvent]:
    held: list[UserText] = []
    for event in events:
        is_request = isinstance(event, (UserText, UserResource))
        if held and not (is_request and request_of(event) == request_of(held[0])):
            yield from held
            held.clear()
        if isinstance(event, UserText):
            held.append(event)
        else:
            yield event
    yield from held


def _wire_ids(events: Iterable[ViewEvent], ids: _CallIds) -> tuple[list[str], dict[str, str]]:
    """Return the ids of the calls in order, and by their origins: a note can name a call that comes after it."""
    calls = [event for event in events if isinstance(event, ToolCall)]
    wire_ids = [ids.take(call.call_id) for call in calls]
    return wire_ids, dict(zip((call.origin for call in calls), wire_ids, strict=True))


class _CallIds:
    """Ids on the wire: the provider's own where they are valid and new."""

    def __init__(self, valid_id: Callable[[str, int], str]) -> None:
        self._valid_id = valid_id
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}

    def take(self, call_id: str) -> str:
        base = self._valid_id(call_id, 1)
        # Counting on from where the last one of this name ended: an id may repeat in every turn of a long stream.
        number = self._numbers.get(base, 0) + 1
        while (wire_id := self._valid_id(call_id, number)) in self._taken:
            number += 1
        self._numbers[base] = number
        self._taken.add(wire_id)
        return wire_id

    def fork(self) -> _CallIds:
        """Return the same ids; those taken from the fork are not taken here."""
        found = _CallIds(self._valid_id)
        found._taken, found._numbers = set(self._taken), dict(self._numbers)
        return found
