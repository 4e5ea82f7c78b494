"""The largest items of a view, and what references, bounds and diffs saved. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from itertools import accumulate, pairwise

import msgspec
from msgspec.structs import replace

from jp.compaction.log_contents import Leaf, contents_in, handles_of
from jp.compaction.projection import Settlement, settlement_of
from jp.compaction.status_lines import StatusFormatter
from jp.compaction.transcript import Record, ViewTranscript
from jp.context.budget import Item, ItemKind, items_of, largest_items
from jp.conversation.entries import AnyEntry, Compaction, CycleEnd, Revert, ToolCallRequest
from jp.conversation.resource import (
    BinaryContent,
    Block,
    Carrier,
    Resource,
    ResourceBlock,
    ResourceLink,
    StoredContent,
    TextBlock,
    checksum,
    content_of,
    formatted_of,
    size_in_bytes,
)
from jp.conversation.thread import ToolCall, ToolResult, UserResource, UserText, ViewEvent

LARGEST = 10
"""Number of large items that a report lists."""


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
    """Yield the largest of `items`, which belong to `transcript`, the transcript of a view of `entries`.

    `ratio` is the number of real tokens for each estimated one.
    """
    namer = _Namer(transcript, entries)
    for item in largest_items(items, LARGEST):
        yield namer.named(item, ratio)


def largest_freed(before: ViewTranscript, after: ViewTranscript, entries: Sequence[AnyEntry]) -> Iterator[LargeItem]:
    """Yield the items that free most when the view `after` replaces `before`; `tokens` are those freed.

    Both are views of the same stream, `entries`, with other compactions.
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
    """Return the carrier of the content that a record describes, None unless it has a handle."""
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
    """Return the checksum of a content, or of the longest string in a call's arguments; empty if there is neither.

    The handle of a string that was cut is that of the whole string.
    """
    if carrier is not None:
        return checksum(carrier)
    call = calls.get(record.event.origin)
    if call is None or not isinstance(record.event, ToolCall):
        return ""
    leaves = ((len(leaf.text), sha256) for sha256, leaf in contents_in(call) if isinstance(leaf, Leaf))
    return max(leaves, default=(0, ""))[1]


class Saved(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of text that were not sent, by cause; `recalled` are the bytes sent to bring some of it back.

    A reference counts as the content that it replaces would have been sent, cut or whole.
    """

    references: int = 0
    bounds: int = 0
    diffs: int = 0
    recalled: int = 0

    def __add__(self, other: Saved) -> Saved:
        """Return the sum."""
        return Saved(
            references=self.references + other.references,
            bounds=self.bounds + other.bounds,
            diffs=self.diffs + other.diffs,
            recalled=self.recalled + other.recalled,
        )

    @property
    def omitted(self) -> int:
        """Bytes that were not sent, for any cause."""
        return self.references + self.bounds + self.diffs

    @property
    def total(self) -> int:
        """Bytes that were not sent, less those recalled."""
        return self.omitted - self.recalled


class Savings(msgspec.Struct, frozen=True, kw_only=True):
    """Savings of one request with the present log (`each`), and of all requests that were sent (`sent`).

    `requests` counts the requests from which something was removed.
    """

    each: Saved = Saved()
    sent: Saved = Saved()
    requests: int = 0


def savings_of(entries: Sequence[AnyEntry], status_formatter: StatusFormatter, *, recall: str) -> Savings:
    """Return the savings of a stream; `recall` is the name of the tool with which a model recalls content."""
    positions = {entry.id: position for position, entry in enumerate(entries)}
    overlays = [number for number, entry in enumerate(entries) if isinstance(entry, (Compaction, Revert))]
    each, sent, requests = Saved(), Saved(), 0
    for start, end in pairwise([0, *overlays, len(entries)]):
        sendings = [number for number in range(start, end) if isinstance(entries[number], CycleEnd)]
        if not sendings and end < len(entries):
            continue
        found = list(_saved_in(settlement_of(entries[:end], status_formatter), recall))
        found.sort(key=lambda one: positions.get(one[0], 0))
        until = [positions.get(origin, 0) for origin, _ in found]
        sums = list(accumulate((saved for _, saved in found), initial=Saved()))
        of_requests = [sums[bisect_left(until, sending)] for sending in sendings]
        sent = sum(of_requests, sent)
        requests += sum(saved.omitted > 0 for saved in of_requests)
        each = sums[-1]
    return Savings(each=each, sent=sent, requests=requests)


def _saved_in(settlement: Settlement, recall: str) -> Iterator[tuple[str, Saved]]:
    """Yield each saving in the view, with the id of its entry."""
    for position in range(settlement.first, len(settlement.after)):
        before, after = settlement.before[position], settlement.after[position]
        if isinstance(after, ToolResult) and after.name == recall:
            yield after.origin, Saved(recalled=sum(map(_shown_size, after.content)))
            continue
        for number, (original, form) in enumerate(_forms(before, after)):
            if (position, number) not in settlement.superseded:
                yield after.origin, _saved(original, form)


def _forms(before: ViewEvent, after: ViewEvent) -> Iterator[tuple[Carrier, Carrier | str]]:
    """Yield each content of an event with the form in which the view shows it."""
    match before, after:
        case UserResource(resource=resource), UserResource(resource=shown):
            yield resource, shown
        case UserResource(resource=resource), UserText(text=text):
            yield resource, text
        case ToolResult(content=blocks), ToolResult(content=forms):
            for block, form in zip(blocks, forms, strict=True):
                match block, form:
                    case ResourceBlock(resource=resource), ResourceBlock(resource=shown):
                        yield resource, shown
                    case ResourceBlock(resource=resource), TextBlock(text=text):
                        yield resource, text or ""
                    case TextBlock(), TextBlock():
                        yield block, form
                    case _:
                        yield TextBlock(text=""), ""
        case _:
            pass


def _saved(original: Carrier, form: Carrier | str) -> Saved:
    if not _is_text(original):
        return Saved()
    if isinstance(form, str):
        full = size_in_bytes(original) if _is_diff(original) else _size(original)
        return Saved(references=full - len(form.encode()))
    omitted = size_in_bytes(form) - _size(form)
    return Saved(diffs=omitted) if _is_diff(form) else Saved(bounds=omitted)


def _is_diff(carrier: Carrier) -> bool:
    return isinstance(carrier, Resource) and carrier.formatted_against is not None


def _is_text(carrier: Carrier) -> bool:
    match content_of(carrier):
        case BinaryContent() | StoredContent(chars=None):
            return False
        case _:
            return True


def _size(carrier: Carrier) -> int:
    formatted = formatted_of(carrier)
    return size_in_bytes(carrier) if formatted is None else len(formatted.encode())


def _shown_size(block: Block) -> int:
    return _size(block) if isinstance(block, TextBlock) else 0
