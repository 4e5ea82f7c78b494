"""The largest things in a view, or that leave one, and by which handle each can be recalled. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nlargest

import msgspec
from msgspec.structs import replace

from jp.compaction.log_contents import Leaf, contents_in, handles_of
from jp.compaction.transcript import Record, ViewTranscript
from jp.context.items import Item, ItemKind, items_of, largest_items
from jp.conversation.entries import AnyEntry, ToolCallRequest
from jp.conversation.resource import Carrier, Resource, ResourceBlock, ResourceLink, checksum
from jp.conversation.thread import ToolCall, ToolResult, UserResource

LARGEST = 10
"""How many of the largest items are told."""


class LargeItem(msgspec.Struct, frozen=True, kw_only=True):
    """One of the largest items. `handle` is None for what is no content of its own: what people and models say.

    `tokens` are held to what was reported, as in the breakdown. `tool` is the tool that was called, `source` the URI or
    path that it is of; both may be empty.
    """

    kind: ItemKind
    turn: int
    tokens: int
    estimated: int
    size: int
    handle: str | None
    tool: str
    source: str


def large_items(
    items: Iterable[Item], transcript: ViewTranscript, entries: Sequence[AnyEntry], *, ratio: float
) -> Iterator[LargeItem]:
    """The largest of `items`, which are those of `transcript`, which is of a view of `entries`.

    `ratio` is how many tokens there are for one that is estimated.
    """
    namer = _Namer(transcript, entries)
    for item in largest_items(items, LARGEST):
        yield namer.named(item, ratio)


def largest_freed(before: ViewTranscript, after: ViewTranscript, entries: Sequence[AnyEntry]) -> Iterator[LargeItem]:
    """What frees most where the view `after` stands in place of `before`: `tokens` are those that are freed.

    Both are of the same stream, `entries`, with other compactions.
    """
    left: dict[str, int] = {}
    for item in items_of(after.messages):
        origin = _origin_of(item, after)
        left[origin] = left.get(origin, 0) + item.tokens
    freed: list[tuple[int, Item]] = []
    for item in items_of(before.messages):
        gone = item.tokens - left.get(_origin_of(item, before), 0)
        if gone > 0:
            freed.append((gone, item))
    namer = _Namer(before, entries)
    for gone, item in nlargest(LARGEST, freed, key=lambda pair: pair[0]):
        yield replace(namer.named(item, 1.0), tokens=gone)


class _Namer:
    def __init__(self, transcript: ViewTranscript, entries: Sequence[AnyEntry]) -> None:
        self._transcript = transcript
        self._handles = handles_of(entries)
        self._calls = {entry.id: entry for entry in entries if isinstance(entry, ToolCallRequest)}

    def named(self, item: Item, ratio: float) -> LargeItem:
        record = self._transcript.records[_origin_of(item, self._transcript)]
        meta = self._transcript.messages[item.message].meta
        carrier = _carrier_of(record)
        sha256 = _checksum(record, carrier, self._calls) if meta.digested is None else meta.digested.sha256
        source = carrier.uri if isinstance(carrier, Resource) else ""
        return LargeItem(
            kind=item.kind,
            turn=record.event.turn,
            tokens=round(item.tokens * ratio),
            estimated=item.tokens,
            size=item.size,
            handle=self._handles.get(sha256),
            tool=item.tool,
            source=source or ("" if meta.facts is None else meta.facts.path or meta.facts.url),
        )


def _origin_of(item: Item, transcript: ViewTranscript) -> str:
    message = transcript.messages[item.message]
    if item.call is not None:
        return message.calls[item.call].origin
    if item.block is not None and not isinstance(message.content, str):
        return message.content[item.block].origin
    return message.origin


def _carrier_of(record: Record) -> Carrier | None:
    """What holds the content that a record is about, where it is content with a handle."""
    match record.event:
        case UserResource(resource=resource):
            return resource
        case ToolResult(content=content) if record.block is not None:
            block = content[record.block]
            if isinstance(block, ResourceBlock):
                return block.resource
            return None if isinstance(block, ResourceLink) else block
        case _:
            return None


def _checksum(record: Record, carrier: Carrier | None, calls: Mapping[str, ToolCallRequest]) -> str:
    """The checksum of a content, or of the longest string in a call's arguments; empty where there is neither.

    Where a string was cut, the handle is that of all of it.
    """
    if carrier is not None:
        return checksum(carrier)
    call = calls.get(record.event.origin)
    if call is None or not isinstance(record.event, ToolCall):
        return ""
    leaves = ((len(leaf.text), sha256) for sha256, leaf in contents_in(call) if isinstance(leaf, Leaf))
    return max(leaves, default=(0, ""))[1]
