"""Markers in shortened text, with the handle of the original, and the pages in which it is recalled."""

from __future__ import annotations

import hashlib
import re
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import Protocol

import msgspec

SHORTEST = 8
"""Digits of a handle, unless two contents of one conversation begin alike."""


class Artifacts(Protocol):
    """A host's storage for the originals of removed content."""

    def handle(self, sha256: str) -> str:
        """Return the handle of the content with this checksum; nothing is stored yet."""
        ...

    def keep(self, content: str) -> str:
        """Store `content`, if it is not there already, and return its handle."""
        ...

    def recall(self, handle: str) -> str | None:
        """Return the exact content kept under `handle`; None if there is none."""
        ...


def checksum_of(content: str | bytes) -> str:
    """Return the sha256 of raw content in hexadecimal digits; of text, of its UTF-8.

    Half of a surrogate pair, which JSON can spell and UTF-8 cannot, counts as the three bytes that it would have.
    """
    raw = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    return hashlib.sha256(raw).hexdigest()


def assign_handles(checksums: Iterable[str]) -> dict[str, str]:
    """Return the checksum for each handle of a conversation whose contents were first met in this order.

    Each handle is the shortest beginning that no earlier one shares; so later contents change no handle.
    """
    assigner = HandleAssigner()
    return {assigner.add(checksum): checksum for checksum in checksums}


class HandleAssigner:
    """Gives each checksum its handle in the order in which they come; see `assign_handles`."""

    def __init__(self) -> None:
        self.handles: MutableMapping[str, str] = {}
        self._alike: MutableMapping[str, tuple[str, ...]] = {}

    def add(self, checksum: str) -> str:
        """Return the handle of `checksum`, which it keeps."""
        known = self.handles.get(checksum)
        if known is not None:
            return known
        others = self._alike.get(checksum[:SHORTEST], ())
        self._alike[checksum[:SHORTEST]] = (*others, checksum)
        handle = self.handles[checksum] = _shortest(checksum, others)
        return handle

    def fork(self) -> HandleAssigner:
        """Return the same handles; checksums that are added to the fork are not added here."""
        found = HandleAssigner()
        found.handles, found._alike = ChainMap({}, self.handles), ChainMap({}, self._alike)
        return found


def look_up(handle: str, assigned: Mapping[str, str]) -> str | None:
    """Return the checksum that `handle` names: as assigned, or as the beginning of only one, in upper or lower case.

    None if it names no checksum, or several.
    """
    wanted = handle.lower()
    if wanted in assigned:
        return assigned[wanted]
    if len(wanted) < SHORTEST:
        return None
    found = [checksum for checksum in assigned.values() if checksum.startswith(wanted)]
    return found[0] if len(found) == 1 else None


def _shortest(checksum: str, others: Iterable[str]) -> str:
    length = SHORTEST
    for other in others:
        while other.startswith(checksum[:length]):
            length += 1
    return checksum[:length]


_NONCE = re.compile(r"[0-9A-Za-z_-]{4,64}")
_ESCAPED = re.compile(r"\\+u([0-9a-fA-F]{4})")
_FRAME = len("[[cut:::+]]")
_DIGITS_OF_A_COUNT = 9
_HEAD_SHARE = 4
"""Of what is kept, the end gets one part in so many: how a command or a file ends is worth a little."""


class Cutter(msgspec.Struct, frozen=True):
    """With what is cut: the nonce of the conversation, and where originals go.

    `known` remembers what is left of texts without their secrets, so that none is looked through twice.
    """

    nonce: str
    artifacts: Artifacts
    known: dict[str, str] = msgspec.field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        """Refuse a nonce that JSON would escape or that text has by chance.

        Raises:
            ValueError: it is not 4 to 64 letters, digits, `-` and `_`.
        """
        if _NONCE.fullmatch(self.nonce) is None:
            raise ValueError(f"a nonce is 4 to 64 letters, digits, '-' and '_', not {self.nonce!r}")


def marker(nonce: str, handle: str, omitted: int) -> str:
    """Return the marker for `omitted` characters of the text that `handle` recalls. ASCII, never escaped in JSON."""
    return f"[[cut:{nonce}:{handle}:+{omitted}]]"


def shortest_limit(nonce: str) -> int:
    """Return the least limit to which a text can be cut: a marker with a long handle has to fit."""
    return _FRAME + len(nonce) + 2 * SHORTEST + _DIGITS_OF_A_COUNT


def bounded(text: str, limit: int, cutter: Cutter) -> str:
    """Return `text` in at most `limit` characters: itself if it fits, else its beginning and end, and a marker between.

    If the limit is too small for a marker, the text gets as long as one. The original is kept.
    """
    limit = max(limit, shortest_limit(cutter.nonce))
    if len(text) <= limit:
        return text
    handle = cutter.artifacts.keep(text)
    stand_in = marker(cutter.nonce, handle, len(text) - limit)
    # The count is of what the marker itself displaces, too, and may gain a digit by that.
    while (longer := marker(cutter.nonce, handle, len(text) - limit + len(stand_in))) != stand_in:
        stand_in = longer
    kept = limit - len(stand_in)
    if kept < 0:
        return text
    tail = kept // _HEAD_SHARE
    return text[: kept - tail] + stand_in + text[len(text) - tail :]


def contains_marker(text: str, nonce: str) -> bool:
    """Return whether `text` contains a marker of this conversation, or the rest of one: its nonce.

    It is for the raw arguments of a new call, JSON or not, before it runs. Letters that JSON escapes count.
    """
    return any(nonce in spelling for spelling in _spellings(text))


def marked_handles(text: str, nonce: str) -> tuple[str, ...]:
    """Return the handles in the markers in `text`, each once, in order: they have to be recalled first."""
    pattern = re.compile(rf"\[\[cut:{re.escape(nonce)}:([0-9a-f]{{{SHORTEST},64}}):")
    return tuple(dict.fromkeys(handle for spelling in _spellings(text) for handle in pattern.findall(spelling)))


def _spellings(text: str) -> Iterator[str]:
    yield text
    if "\\u" in text:
        yield _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


PAGE_BYTES = 16 * 1024

_CONTINUATION = 0b1000_0000, 0b1100_0000
"""Of a byte of UTF-8 that begins no character: what its highest two bits are, and where they are."""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes from `offset` on; the next page begins at `next_offset`, None behind the last one."""

    offset: int
    data: bytes
    next_offset: int | None


def page_of_bytes(data: bytes, offset: int, *, most: int = PAGE_BYTES) -> Page:
    """Return at most `most` bytes from `offset` on, which is at most the length of `data`.

    A page ends at the end of a line, or inside a line that is longer than a page; never inside a character.
    """
    return _page(data, offset, min(offset + most, len(data)))


def page_of_text(data: bytes, offset: int, *, lines: int | None = None, most: int = PAGE_BYTES) -> Page:
    """Return at most `most` bytes of UTF-8, and at most `lines` lines, from the character that contains byte `offset`.

    A page ends at the end of a line, or inside a line that is longer than a page; never inside a character.
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
