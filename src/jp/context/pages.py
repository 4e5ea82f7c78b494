"""Long content a page at a time: what is recalled need not come at once. Pages in their order are the content."""

from __future__ import annotations

import msgspec

PAGE_BYTES = 16 * 1024

_CONTINUATION = 0b1000_0000, 0b1100_0000
"""Of a byte of UTF-8 that begins no character: what its highest two bits are, and where they are."""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes from `offset` on; the next page begins at `next_offset`, None behind the last one."""

    offset: int
    data: bytes
    next_offset: int | None


def page_of_bytes(data: bytes, offset: int, *, most: int = PAGE_BYTES) -> Page:
    """At most `most` bytes from `offset` on, which is at most the length of `data`."""
    return _page(data, offset, min(offset + most, len(data)))


def page_of_text(data: bytes, offset: int, *, lines: int | None = None, most: int = PAGE_BYTES) -> Page:
    """At most `most` bytes of UTF-8, and at most so many `lines`, from the character on in which byte `offset` stands.

    It ends with a line, and inside of one only where that is longer than a page; never inside a character.
    """
    start = _begin_of_character(data, offset)
    end = min(start + max(most, 4), len(data))
    if end < len(data):
        end = (data.rfind(b"\n", start, end) + 1) or _begin_of_character(data, end)
    position = start
    for _ in range(lines or 0):
        position = (data.find(b"\n", position, end) + 1) or end
    return _page(data, start, position if lines else end)


def _page(data: bytes, start: int, end: int) -> Page:
    return Page(offset=start, data=data[start:end], next_offset=end if end < len(data) else None)


def _begin_of_character(data: bytes, position: int) -> int:
    value, mask = _CONTINUATION
    first = max(position - 3, 0)
    while first < position < len(data) and data[position] & mask == value:
        position -= 1
    return position
