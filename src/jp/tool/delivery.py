"""Delivery: a tool's result as it is recorded and shown to a model (RFD 067), bounded in size. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, Protocol, assert_never, runtime_checkable

import msgspec
from msgspec.structs import asdict, replace

from jp.config.entries import ToolConfig
from jp.config.model import DeduplicationConfig
from jp.context.markers import marker
from jp.conversation.entries import LEAST_OBSERVED, AnyEntry, Facts, ToolCallResponse
from jp.conversation.resource import (
    AudioBlock,
    BinaryContent,
    Block,
    ImageBlock,
    Resource,
    ResourceBlock,
    ResourceLink,
    TextBlock,
    checksum,
    content_of,
    formatted_of,
    framed,
    in_one_line,
    mark_of,
    size_in_bytes,
)
from jp.tool.base import ConfiguredTool, ToolOutput
from jp.tool.duplicates import DeliveryIndex, mark_blocks

BOUND = 16 * 1024
"""Bytes of a result that a model is shown, unless the tool sets `max_bytes`."""

LARGEST_MEDIA = 3_500 * 1024
"""Pictures and sounds of more bytes are not shown: in base64 they come near to 5 MB, and larger ones are refused."""

_TAIL_SHARE = 3
_WINDOW_SHARE = 16
"""The share (one part in so many) of the room for the end, and for each place that reports an error."""

_SMALLEST_WINDOW = 120
_BEFORE = 4
"""Of a window around an error, one part in so many stands before it."""

_NEWLINE_NEAR = 4
"""A cut is moved to the end of a line that is at most one part in so many of the piece away."""

_WRONG = (
    b"error:",
    b"error[",
    b" error ",
    b"exception:",
    b"panicked at",
    b"fatal",
    b"assertion failed",
    b"segmentation fault",
)
"""Words that report an error."""

_FAILED = re.compile(
    rb"^(?:failed |[ \t]*--- fail: |not ok |[ \t]*\xe2\x9c\x95 |[ \t]*\xe2\x9c\x97 |[ \t]*\xc3\x97 |fail[:! \t])",
    re.MULTILINE,
)
_HINTS_OF_FAILED = (b"fail", b"not ok", b"\xe2\x9c\x95", b"\xe2\x9c\x97", b"\xc3\x97")
_SUSPICIOUS = (b"traceback", b"panic", b"failed", b"failure", b"exception", b"denied", b"not found", b"no such")
"""Words that may report an error."""

_CONTINUES = range(0x80, 0xC0)
"""The bytes that continue a character of UTF-8."""


@runtime_checkable
class InPages(Protocol):
    """A tool that gives its results in pages that fit into its bound: they are never cut."""

    @property
    def in_pages(self) -> Literal[True]:
        """Return True."""
        ...


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """By what the whole of a text is recalled: the nonce of its conversation, and its handle."""

    nonce: str
    handle: str


def bounded(text: str, limit: int, address: Address, *, keeps_errors: bool) -> str | None:
    """Return `text` truncated to `limit` bytes, or to a marker if that is longer; None if it need not be cut.

    It keeps the beginning and the end, and with `keeps_errors` the first and the last report of an error, and of a
    failed test.
    """
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= limit:
        return None
    pieces = _around(data, max(limit - _room_for_gap(data, address), 0))
    if keeps_errors:
        places = _error_places(data.lower(), pieces)
        if places:
            pieces = _with_windows(data, limit, address, places)
    shown = "".join(_written(data, pieces, address))
    return shown if len(shown.encode("utf-8", "surrogatepass")) < len(data) else None


def media_note(mime_type: str | None, size: int, address: Address) -> str:
    """Return the marker for a picture or the like of `size` bytes that is too large to be shown."""
    return f"{marker(address.nonce, address.handle, size)} {mime_type or 'binary content'}, too large to be shown"


def shares(sizes: Sequence[int], limit: int) -> int:
    """Return how many bytes each of several results gets at most, so that together they have `limit`.

    What the small ones leave is shared by the others.
    """
    left = limit
    for done, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - done)
        if size > share:
            return share
        left -= size
    return limit


Piece = tuple[int, int]
"""From where to where a part of a text is shown."""


def _around(data: bytes, room: int) -> list[Piece]:
    """Return the beginning and the end of `data`, of `room` bytes together."""
    tail = room // _TAIL_SHARE
    head = room - tail
    return [(0, _cut_before(data, head, head)), (_cut_after(data, len(data) - tail, tail), len(data))]


def _error_places(lowered: bytes, pieces: Sequence[Piece]) -> list[int]:
    """Return where `lowered` reports errors, outside of its beginning and end: each once, the most telling first."""
    (_, start), (end, _) = pieces
    places = _outermost(lowered, _WRONG, start, end)
    if any(lowered.find(hint, start, end) >= 0 for hint in _HINTS_OF_FAILED):
        failed = _FAILED.search(lowered, start, end)
        places += [] if failed is None else [failed.start()]
    places += _outermost(lowered, _SUSPICIOUS, start, end)
    return list(dict.fromkeys(places))


def _outermost(lowered: bytes, words: Sequence[bytes], start: int, end: int) -> list[int]:
    """Return where the first and the last of `words` stand."""
    firsts = [place for word in words if (place := lowered.find(word, start, end)) >= 0]
    lasts = [place for word in words if (place := lowered.rfind(word, start, end)) >= 0]
    return [min(firsts), max(lasts)] if firsts else []


def _with_windows(data: bytes, limit: int, address: Address, places: Sequence[int]) -> list[Piece]:
    """Return the beginning and the end of `data`, shortened by windows around the first of `places` that fit."""
    size = max(limit // _WINDOW_SHARE, _SMALLEST_WINDOW)
    gap = _room_for_gap(data, address)
    count = min(len(places), limit // 2 // (size + gap))
    pieces = _around(data, max(limit - gap - count * (size + gap), 0))
    return _merged([*pieces, *(_window(data, place, size) for place in places[:count])])


def _window(data: bytes, place: int, size: int) -> Piece:
    """Return `size` bytes around `place`, most of them behind it: whole lines, where they are short."""
    line = data.rfind(b"\n", 0, place) + 1
    start = max(line, place - size // _BEFORE)
    return _cut_after(data, start, 0), _cut_before(data, min(start + size, len(data)), size)


def _merged(pieces: Iterable[Piece]) -> list[Piece]:
    merged: list[Piece] = []
    for start, end in sorted(pieces):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _written(data: bytes, pieces: Sequence[Piece], address: Address) -> Iterator[str]:
    position = 0
    for start, end in pieces:
        if start > position:
            yield _gap(data, position, start, address)
        yield data[start:end].decode("utf-8", "surrogatepass")
        position = end


def _gap(data: bytes, start: int, end: int, address: Address) -> str:
    """Return the marker for the omitted text from `start` to `end`; on a line of its own if lines end there."""
    omitted = len(data[start:end].decode("utf-8", "surrogatepass"))
    before = "" if data[:start].endswith(b"\n") or not start else "\n"
    after = "" if end == len(data) else "\n"
    return f"{before}{marker(address.nonce, address.handle, omitted)} from offset {start}{after}"


def _room_for_gap(data: bytes, address: Address) -> int:
    return len(f"\n{marker(address.nonce, address.handle, len(data))} from offset {len(data)}\n")


def _cut_before(data: bytes, position: int, size: int) -> int:
    """Return where a piece of `size` bytes ends: at `position`, or with the last line before it."""
    line = data.rfind(b"\n", max(position - size // _NEWLINE_NEAR, 0), position) + 1
    return line or _begin_of_character(data, position)


def _cut_after(data: bytes, position: int, size: int) -> int:
    """Return where a piece of `size` bytes begins: at `position`, or with the first line behind it."""
    if position == 0 or data[position - 1 : position] == b"\n":
        return position
    line = data.find(b"\n", position, position + size // _NEWLINE_NEAR) + 1
    if line:
        return line
    while position < len(data) and data[position] in _CONTINUES:
        position += 1
    return position


def _begin_of_character(data: bytes, position: int) -> int:
    while 0 < position < len(data) and data[position] in _CONTINUES:
        position -= 1
    return position


MOST_BLOCKS = 64
"""A result of more blocks is bounded as one text: each of them would take a marker."""

_READ = frozenset({"read", "list", "search", "json", "web"})
"""Kinds of results in which the word `error` says nothing of how the call went."""


class Addresses(Protocol):
    """Handles of content that a view of a log does not show. Appending to the log changes no handle."""

    def nonce(self, entries: Sequence[AnyEntry]) -> str:
        """Return what the markers in views of this log carry."""
        ...

    def handles(self, entries: Sequence[AnyEntry], added: AnyEntry) -> Mapping[str, str]:
        """Return the handle for each checksum in a log to which an entry is added."""
        ...


class OrdinaryDelivery:
    """The way that every result of one log goes, whatever tool it is of. See `jp.tool.base.Delivery`."""

    def __init__(self, deduplication: DeduplicationConfig, addresses: Addresses) -> None:
        self._deduplication = deduplication
        self._addresses = addresses
        self._deliveries = DeliveryIndex()

    def __call__(self, configured: ConfiguredTool, output: ToolOutput, entries: Sequence[AnyEntry]) -> ToolOutput:
        """Return `output` within its bound, with marks, and with the kind that the configuration says."""
        settings = configured.settings
        content = tuple(map(_storable, output.content))
        known = replace(output, content=content, facts=_with_kind(_holdable(output.facts), settings))
        known = replace(known, facts=_with_evidence(known))
        fitting = known if isinstance(configured.tool, InPages) else self._bounded(known, settings, entries)
        return self._marked(fitting, settings, entries)

    def _bounded(self, output: ToolOutput, settings: ToolConfig, entries: Sequence[AnyEntry]) -> ToolOutput:
        limit = settings.max_bytes or BOUND
        sizes = [_shown_size(block) for block in output.content]
        if sum(sizes) <= limit and not any(map(_is_oversized, output.content)):
            return output
        content = _gathered(output.content) if len(output.content) > MOST_BLOCKS else output.content
        kind = "" if output.facts is None else output.facts.kind
        bounds = _Bounds(
            limit=shares([_shown_size(block) for block in content], limit),
            handles=self._addresses.handles(entries, ToolCallResponse(request="", content=content)),
            nonce=self._addresses.nonce(entries),
            keeps_errors=output.is_error or kind not in _READ,
        )
        return replace(output, content=tuple(map(bounds.block, content)))

    def _marked(self, output: ToolOutput, settings: ToolConfig, entries: Sequence[AnyEntry]) -> ToolOutput:
        if not any(isinstance(block, ResourceBlock) for block in output.content):
            return output
        deduplication = self._deduplication
        self._deliveries.update(entries)
        marked = mark_blocks(
            output.content,
            self._deliveries,
            turn=self._deliveries.turns - 1,
            enabled=deduplication.enabled and settings.deduplicate is not False,
            min_bytes=deduplication.min_bytes,
            lookback_turns=deduplication.lookback_turns,
        )
        return replace(output, content=marked)


class _Bounds:
    """Bounds block after block of one result to `limit` bytes each."""

    def __init__(self, *, limit: int, handles: Mapping[str, str], nonce: str, keeps_errors: bool) -> None:
        self._limit = limit
        self._handles = handles
        self._nonce = nonce
        self._keeps_errors = keeps_errors

    def block(self, block: Block) -> Block:
        match block:
            case TextBlock():
                return self._text(block)
            case ResourceBlock(resource=resource):
                return replace(block, resource=self._resource(resource))
            case ImageBlock() | AudioBlock():
                is_shown = block.formatted is None and size_in_bytes(block) > LARGEST_MEDIA
                return replace(block, formatted=self._note(block, block.mime_type)) if is_shown else block
            case ResourceLink():
                return block
            case _:
                assert_never(block)

    def _text(self, block: TextBlock) -> TextBlock:
        formatted = self._cut(block, _text_of(block), self._limit)
        return block if formatted is None else replace(block, formatted=formatted)

    def _resource(self, resource: Resource) -> Resource:
        if _is_binary(resource) and resource.formatted is None:
            if size_in_bytes(resource) <= LARGEST_MEDIA:
                return resource
            return replace(resource, formatted=self._note(resource, resource.mime_type))
        text = _text_of(resource)
        limit = self._limit - _envelope(resource, text) + _bytes(text)
        formatted = self._cut(resource, text, limit)
        if formatted is None:
            return resource
        if resource.formatted_against is not None:  # a diff of which a part is missing says nothing
            formatted = self._cut(resource, resource.text or "", limit)
        return replace(resource, formatted=formatted, formatted_against=None)

    def _cut(self, carrier: TextBlock | Resource, text: str, limit: int) -> str | None:
        return bounded(text, limit, self._address(carrier), keeps_errors=self._keeps_errors)

    def _note(self, carrier: Resource | ImageBlock | AudioBlock, mime_type: str | None) -> str:
        return media_note(mime_type, size_in_bytes(carrier), self._address(carrier))

    def _address(self, carrier: TextBlock | Resource | ImageBlock | AudioBlock) -> Address:
        return Address(nonce=self._nonce, handle=self._handles[checksum(carrier)])


def _with_kind(facts: Facts | None, settings: ToolConfig) -> Facts | None:
    """Return what the tool recorded; of what kind it is, the configuration knows better."""
    if settings.kind is None:
        return facts
    return Facts(kind=settings.kind) if facts is None else replace(facts, kind=settings.kind)


def _with_evidence(output: ToolOutput) -> Facts | None:
    """Return the facts with what the content says of the outcome, so that a digest need not read it."""
    facts = output.facts or Facts()
    blocks = (block.resource if isinstance(block, ResourceBlock) else block for block in output.content)
    texts = [block.text for block in blocks if isinstance(block, TextBlock | Resource) and block.text]
    if facts.evidence is not None or sum(map(len, texts)) < LEAST_OBSERVED:
        return output.facts
    from jp.context.evidence import observe

    found = observe("\n".join(texts), kind=facts.kind or "", is_error=output.is_error)
    exit_code = found.exit_code if facts.exit_code is None else facts.exit_code
    seen = replace(facts, exit_code=exit_code, evidence=found.lines or None)
    return output.facts if seen == facts else seen


def _holdable(facts: Facts | None) -> Facts | None:
    """Return `facts` as a log can hold them, as `_storable` a block."""
    if facts is None:
        return None
    texts = {name: value for name, value in asdict(facts).items() if isinstance(value, str) and not _is_storable(value)}
    return replace(facts, **{name: _without_surrogates(text) for name, text in texts.items()}) if texts else facts


def _storable(block: Block) -> Block:
    """Return `block` as a log can hold it: halves of surrogate pairs have no UTF-8."""
    match block:
        case TextBlock(text=str(text)):
            return block if _is_storable(text) else replace(block, text=_without_surrogates(text))
        case ResourceBlock(resource=Resource(text=str(text)) as resource):
            return (
                block
                if _is_storable(text)
                else replace(block, resource=replace(resource, text=_without_surrogates(text)))
            )
        case _:
            return block


def _is_storable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _without_surrogates(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _text_of(carrier: TextBlock | Resource) -> str:
    """Return the text that a model would be shown."""
    formatted = formatted_of(carrier)
    return (carrier.text or "") if formatted is None else formatted


def _is_binary(resource: Resource) -> bool:
    return isinstance(content_of(resource), BinaryContent)


def _is_oversized(block: Block) -> bool:
    """Return whether it is something other than text that is too large to be shown."""
    match block:
        case ResourceBlock(resource=resource):
            is_shown = _is_binary(resource) and resource.formatted is None
            return is_shown and size_in_bytes(resource) > LARGEST_MEDIA
        case ImageBlock() | AudioBlock():
            return block.formatted is None and size_in_bytes(block) > LARGEST_MEDIA
        case TextBlock() | ResourceLink():
            return False
        case _:
            assert_never(block)


def _shown_size(block: Block) -> int:
    """Return how many bytes of text a model is shown of `block`, with what names it."""
    match block:
        case TextBlock():
            return _bytes(_text_of(block))
        case ResourceBlock(resource=resource):
            is_text = resource.formatted is not None or not _is_binary(resource)
            return _envelope(resource, _text_of(resource) if is_text else "")
        case ImageBlock() | AudioBlock():
            return _bytes(block.formatted or "")
        case ResourceLink():
            return _bytes(_link_text(block))
        case _:
            assert_never(block)


def _envelope(resource: Resource, text: str) -> int:
    """Return how long a resource with this text is in its frame, and the line feed behind it."""
    return _bytes(framed("resource", {"uri": resource.uri}, text, mark_of((text,)))) + 1


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _gathered(content: Sequence[Block]) -> tuple[Block, ...]:
    """Return `content` with all that a model can read in one text in front, in the form in which it is shown."""
    texts: list[str] = []
    others: list[Block] = []
    mark = mark_of([_text_of(carrier) for block in content if (carrier := _textual(block)) is not None])
    for block in content:
        text = _readable(block, mark)
        if text is None:
            others.append(block)
        else:
            texts.append(text)
    return (TextBlock(text="\n".join(texts)), *others)


def _textual(block: Block) -> TextBlock | Resource | None:
    """Return what of `block` is read as a text that others wrote."""
    match block:
        case TextBlock():
            return block
        case ResourceBlock(resource=resource):
            return resource
        case ResourceLink() | ImageBlock() | AudioBlock():
            return None
        case _:
            assert_never(block)


def _readable(block: Block, mark: str) -> str | None:
    match block:
        case TextBlock():
            return _text_of(block)
        case ResourceBlock(resource=resource):
            if _is_binary(resource) and resource.formatted is None:
                return None
            return framed("resource", {"uri": resource.uri}, _text_of(resource), mark)
        case ResourceLink():
            return _link_text(block)
        case ImageBlock() | AudioBlock():
            return None
        case _:
            assert_never(block)


def _link_text(link: ResourceLink) -> str:
    return in_one_line(f"[resource {link.title or link.name or ''}: {link.uri}]")
