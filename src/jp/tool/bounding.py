"""Bounds: of a tool's large result the model gets the beginning and the end, and what tells of errors between them.

The whole stays in the log; a marker stands for each part that was left out and says by which handle it is recalled.
Offsets and sizes count bytes of UTF-8, as those of a page that is recalled do. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, Protocol, runtime_checkable

import msgspec

from jp.context.markers import marker

BOUND = 16 * 1024
"""Bytes of a result that a model is shown, unless the tool sets `max_bytes`."""

LARGEST_MEDIA = 3_500 * 1024
"""Pictures and sounds of more bytes are not shown: in base64 they come near to 5 MB, and larger ones are refused."""

_TAIL_SHARE = 3
_WINDOW_SHARE = 16
"""Of the room, the end gets one part in so many, and each place that tells of an error, too."""

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
        """That it is one."""
        ...


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """By what the whole of a text is recalled: the nonce of its conversation, and its handle."""

    nonce: str
    handle: str


def bounded(text: str, limit: int, address: Address, *, keeps_errors: bool) -> str | None:
    """`text` in at most `limit` bytes, or in those of a marker where that is more; None where it need not be cut.

    Besides its beginning and its end, with `keeps_errors` what seems to tell of an error first and last, and of a
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
    """Return what stands for a picture or the like of `size` bytes that is too large to be shown."""
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
    """`size` bytes around `place`, most of them behind it: whole lines, where they are short."""
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
    """Return the marker for what was left out from `start` to `end`; on a line of its own, where lines end there."""
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
