"""Shorter arguments of a call: long strings in JSON are cut, and every other byte stays.

The text is spliced and never written anew, so keys, their order and repetition, spaces, escapes and the spelling of
numbers are those that the model sent, and what parsed before parses after.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate

import msgspec

from jp.context.json_lexer import string_values
from jp.context.markers import Cutter, plan_cut, shortest_limit

MAX_LEAF = 400

_ESCAPE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.")
"""What spells one code point in more than one character."""

_LONGEST_SPELLING = len(r"\ud83d\ude00")
_LONGEST_PLAIN_SPELLING = len(r"\n")
_NO_BACKSLASH = re.compile(r"[^\\]")
"""After this, escapes are read as they are meant; the rest of one that began before it is plain text."""

_SEARCHED = 200


class LeafCut(msgspec.Struct, frozen=True, kw_only=True):
    """A string that was cut. `start` is where it began in the text before; `handle` recalls its whole value."""

    start: int
    handle: str
    omitted: int


class Shrunk(msgspec.Struct, frozen=True, kw_only=True):
    """`text` is the very object that came in where nothing was cut."""

    text: str
    changed: bool = False
    cuts: tuple[LeafCut, ...] = ()


def shrink_json_string_leaves(
    text: str, cutter: Cutter, *, max_leaf: int = MAX_LEAF, max_total: int | None = None
) -> Shrunk:
    """`text` with its strings cut to `max_leaf` characters, and so that all of them together have `max_total`.

    Only strings that are values, never names of members; a string that holds JSON is a string like any other. A string
    is never cut below what a marker takes, whatever the limits say. What is not JSON, as RFC 8259 has it, comes back
    as it is. Never longer; doing it again changes nothing.
    """
    floor = shortest_limit(cutter.nonce)
    limit = max(max_leaf, floor)
    if len(text) <= min(limit, limit if max_total is None else max_total):
        return Shrunk(text=text)
    if max_total is None and not _may_be_long(text, limit):
        return Shrunk(text=text)
    leaves = string_values(text, limit if max_total is None else 0)
    if not leaves:
        return Shrunk(text=text)
    if max_total is not None:
        limit = max(_fitting([_length(text, *leaf) for leaf in leaves], limit, max_total), floor)
    return _splice(text, leaves, limit, cutter)


def _splice(text: str, leaves: Sequence[tuple[int, int]], limit: int, cutter: Cutter) -> Shrunk:
    pieces: list[str] = []
    cuts: list[LeafCut] = []
    position = 0
    for start, end in leaves:
        value = _decoded(text, start, end) if end - start - 2 > limit else ""
        cut = plan_cut(value, limit, cutter)
        if cut is None:
            continue
        handle = cutter.artifacts.keep(value)
        inside = text[start + 1 : end - 1]
        head, tail = _spelled(inside, cut.head), _spelled_from_end(inside, cut.tail)
        pieces += [text[position : start + 1], inside[:head], cut.marker, inside[tail:]]
        cuts.append(LeafCut(start=start, handle=handle, omitted=cut.length - cut.head - cut.tail))
        position = end - 1
    if not cuts:
        return Shrunk(text=text)
    return Shrunk(text="".join((*pieces, text[position:])), changed=True, cuts=tuple(cuts))


def _may_be_long(text: str, limit: int) -> bool:
    """Whether `text`, if it is JSON, can have a string of more than `limit` characters: a look that costs little."""
    quotes_apart = text.replace(r"\\", "__").replace(r"\"", "__").split('"')
    return max(map(len, quotes_apart)) > limit


def _fitting(lengths: Sequence[int], limit: int, max_total: int) -> int:
    """The longest that strings of these `lengths` may be, at most `limit`, to have `max_total` characters together.

    What the shortest ones leave is shared by the others; that is most where no string is longer than its share.
    """
    if sum(min(length, limit) for length in lengths) <= max_total:
        return limit
    left = max(max_total, 0)
    *shorter, _ = accumulate(sorted(lengths), initial=0)
    shares = (max(left - taken, 0) // (len(lengths) - done) for done, taken in enumerate(shorter))
    return min(max(shares), limit)


def _decoded(text: str, start: int, end: int) -> str:
    if "\\" not in text[start:end]:
        return text[start + 1 : end - 1]
    import json

    value: str = json.loads(text[start:end])
    return value


def _length(text: str, start: int, end: int) -> int:
    """Characters of the value that the literal stands for."""
    if text.find("\\", start, end) < 0:
        return end - start - 2
    return len(_decoded(text, start, end))


def _spelled(inside: str, count: int) -> int:
    """How many characters of the literal spell the first `count` of its value."""
    position = 0
    left = count
    for escape in _ESCAPE.finditer(inside):
        plain = escape.start() - position
        if left <= plain:
            break
        left -= plain + 1
        position = escape.end()
    return position + left


def _spelled_from_end(inside: str, count: int) -> int:
    """Where the spelling of the last `count` characters of the value begins; only the end of the literal is read."""
    near = max(len(inside) - count * _LONGEST_SPELLING, 0)
    if inside.find("\\u", near) < 0:
        near = max(len(inside) - count * _LONGEST_PLAIN_SPELLING, 0)
    readable = _NO_BACKSLASH.search(inside, max(near - _SEARCHED, 0), near)
    start = readable.end() if readable else 0
    end = inside[start:]
    escapes = _ESCAPE.findall(end)
    length = len(end) - sum(map(len, escapes)) + len(escapes)
    return start + _spelled(end, length - count)
