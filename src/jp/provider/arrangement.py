"""The events of a thread in the order in which every provider takes them: each call answered, at once. Pure.

Everything is decided by what comes before it, so that a longer thread begins with what a shorter one begins with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from jp.conversation.resource import INTERRUPTED_CONTENT, Block
from jp.conversation.thread import (
    AssistantData,
    AssistantReasoning,
    AssistantText,
    NamedCall,
    ReferenceBlock,
    ToolCall,
    ToolResult,
    UserResource,
    UserText,
    ViewEvent,
)

_LONGEST_NAME = 128

NOT_SHOWN = "[Earlier messages are not shown.]"
"""What a conversation that begins with the assistant begins with, for providers who want the user to speak first."""


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
    """A call's arguments; what the model sent in place of an object is told as one."""
    return call.arguments if isinstance(call.arguments, dict) else {"invalid_json": call.arguments}


def request_of(event: UserText | UserResource) -> tuple[str, int]:
    """Which request of the user an event belongs to."""
    return event.origin, event.turn


def newest_request(events: Sequence[ViewEvent]) -> tuple[str, int]:
    """The request that is to be answered. What jp says on the user's behalf is none."""
    for event in reversed(events):
        if isinstance(event, UserResource) or (isinstance(event, UserText) and not event.synthetic):
            return request_of(event)
    return "", -1


def plain_id(call_id: str, number: int = 1) -> str:
    """An id of the characters that every provider takes: ASCII letters, digits, `_` and `-`.

    A `number` of more than 1 says that as many calls before it had this id, less one.
    """
    return (_plain(call_id) or "call") + ("" if number == 1 else f"_{number}")


def plain_name(name: str) -> str:
    """A tool's name that every provider takes, of whatever name a log holds: such a tool need not be there any more."""
    plain = _plain(name) or "tool"
    return (plain if plain[0].isalpha() or plain[0] == "_" else f"_{plain}")[:_LONGEST_NAME]


def _plain(text: str) -> str:
    return "".join(c if c in "_-" or (c.isascii() and c.isalnum()) else "_" for c in text)


def arranged(events: Sequence[ViewEvent], *, valid_id: Callable[[str, int], str] = plain_id) -> Iterator[Arranged]:
    """The events in wire order.

    The resources of a request stand before its text: what is asked comes after what it is about. Every call is
    answered before the user speaks again, in the order of the calls; a result without a call is not there. `valid_id`
    makes of the id that a model gave one that the provider takes, another one for every number: where ids repeat, they
    are numbered.
    """
    results: dict[str, list[ToolResult]] = {}
    for event in events:
        if isinstance(event, ToolResult):
            results.setdefault(event.call, []).append(event)
    ids = _CallIds(valid_id)
    # A note about a superseded snapshot names a call that comes later.
    wire_ids = [ids.take(event.call_id) for event in events if isinstance(event, ToolCall)]
    by_call = dict(zip((event.origin for event in events if isinstance(event, ToolCall)), wire_ids, strict=True))
    upcoming = iter(wire_ids)
    pending: list[Called] = []
    for event in _ordered(events):
        if isinstance(event, (UserText, UserResource, ToolResult)):
            yield from _answers(pending, results, by_call)
            pending.clear()
        if isinstance(event, ToolCall):
            pending.append(Called(wire_id=next(upcoming), call=_named(event)))
            yield pending[-1]
        elif isinstance(event, UserText) and event.named is not None:
            yield msgspec.structs.replace(event, text=_renamed(event.text, event.named, by_call))
        elif not isinstance(event, ToolResult):
            yield event
    yield from _answers(pending, results, by_call)


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
