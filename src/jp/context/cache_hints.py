"""Prompt caches: which blocks to mark, and what in a prefix changes each time."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Literal, get_args

import msgspec

Section = Literal["tools", "system", "messages"]
"""The parts of a request in the order in which caches read them."""

Reason = Literal["static_prefix", "newest", "previous_request", "attachment", "tools", "lookback"]
"""The reason for a mark: the end of the prefix of every request, of this request, of the previous request, of the
newest attachment, of the tools alone (they outlive a change of the system prompt), or a place near the end to look back
to.
"""

MOST = 4
LOOKBACK = 18
"""Caches look back twenty blocks; two are left for what an adapter adds."""


class Piece(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A block as a cache reads it.

    `is_answer`: it belongs to a message of the model. `carries`: it can be marked, unlike thinking, empty text and
    calls that still run. `is_volatile`: the next request will not have it at this place. `is_attached`: it is the end
    of an attachment.
    """

    section: Section
    is_answer: bool = False
    carries: bool = True
    is_volatile: bool = False
    is_attached: bool = False


class CacheHint(msgspec.Struct, frozen=True, kw_only=True):
    """A mark on the piece at `position`, and why."""

    position: int
    reason: Reason


def place_hints(pieces: Sequence[Piece]) -> tuple[CacheHint, ...]:
    """Return the places to mark, at most four, in order.

    `pieces` are all blocks of a request: tools, system prompt, messages. Nothing is marked from the first volatile one
    on, since no later request could read it. If there are more places than marks, the end of the static prefix, the
    newest place and the end of the previous request come first.
    """
    end = next((at for at, piece in enumerate(pieces) if piece.is_volatile), len(pieces))
    chosen: dict[int, Reason] = {}
    for position, reason in _wanted(pieces[:end]):
        if len(chosen) < MOST:
            chosen.setdefault(position, reason)
    return tuple(CacheHint(position=position, reason=chosen[position]) for position in sorted(chosen))


def count_markable(messages: Iterable[tuple[bool, int]]) -> int:
    """Return how many of the last messages a mark can be in, attachments apart: `place_hints` needs no others.

    Args:
        messages: The last one first: whether it is the model's, and its number of pieces.
    """
    pieces, newest, has_answer = 0, None, False
    for count, (is_answer, size) in enumerate(messages, 1):
        newest = size if newest is None else newest
        pieces += size
        if has_answer and not is_answer and pieces > LOOKBACK + newest + size:
            return count
        has_answer = has_answer or (is_answer and count > 1)
    return sys.maxsize


def _wanted(pieces: Sequence[Piece]) -> Iterator[tuple[int, Reason]]:
    """Yield every place that is worth a mark, the most important ones first."""
    start = next((at for at, piece in enumerate(pieces) if piece.section == "messages"), len(pieces))
    static = _last_carrier(pieces, 0, start)
    newest = _last_carrier(pieces, start, len(pieces))
    previous = None if newest is None else _end_of_request_before(pieces, start, newest)
    attached = next((at for at in range(len(pieces) - 1, start - 1, -1) if _holds_attachment(pieces[at])), None)
    system = next((at for at in range(start) if pieces[at].section == "system"), 0)
    found: list[tuple[int | None, Reason]] = [
        (static, "static_prefix"),
        (newest, "newest"),
        (previous, "previous_request"),
        (attached, "attachment"),
        (_last_carrier(pieces, 0, system), "tools"),
    ]
    if newest is not None and newest - (start if previous is None else previous) > LOOKBACK:
        near = (at for at in range(newest - LOOKBACK, newest) if pieces[at].carries)
        found.append((next(near, None), "lookback"))
    for position, reason in found:
        if position is not None:
            yield position, reason


def _end_of_request_before(pieces: Sequence[Piece], start: int, newest: int) -> int | None:
    """Return the last place before the answer at or before `newest`: the request for that answer was marked there."""
    answer = next((at for at in range(newest, start - 1, -1) if pieces[at].is_answer), start)
    asked = (at for at in range(answer - 1, start - 1, -1) if pieces[at].carries and not pieces[at].is_answer)
    return next(asked, None)


def _holds_attachment(piece: Piece) -> bool:
    return piece.is_attached and piece.carries


def _last_carrier(pieces: Sequence[Piece], start: int, end: int) -> int | None:
    return next((at for at in range(end - 1, start - 1, -1) if pieces[at].carries), None)


VolatileKind = Literal["timestamp", "uuid", "temporary_directory", "counter"]
_KINDS: tuple[VolatileKind, ...] = get_args(VolatileKind)


class Volatile(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of thing in one part of a prefix: how often, where first (in characters), and what shape that has."""

    part: int
    kind: VolatileKind
    count: int
    first: int
    sample: str


_MONTH = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_COUNTED = "attempts?|credits?|iterations?|messages?|requests?|tokens?|turns?"


@cache
def _volatile_pattern() -> re.Pattern[str]:
    """Return the pattern of texts that can change, compiled on use: requests are rendered without it."""
    return re.compile(
        # In this order where several would begin at one place; what lies inside of another one is not looked at again.
        r"(?P<uuid>\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b)"
        r"|(?P<temporary_directory>(?<![\w.])(?:/private)?/(?:tmp|var/tmp|var/folders|dev/shm|run/user)(?:/[\w.+-]+){1,16}"
        r"|\b[a-z]:\\(?:[\w.~ -]{1,64}\\){0,8}te?mp\\[\w.~-]+)"
        r"|(?P<timestamp>\b\d{4}-\d\d-\d\d[t ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:z\b|[+-]\d\d:?\d\d)?"
        rf"|\b\d{{1,2}} (?:{_MONTH})[a-z]{{0,6}} \d{{4}} \d\d:\d\d(?::\d\d)?"
        rf"|\b(?:{_MONTH})[a-z]{{0,6}} \d{{1,2}}(?:, \d{{4}})?,? (?:at )?\d{{1,2}}:\d\d"
        r"|\b(?:today|now|date|time)(?: is)?[:=]? {0,4}\d{4}-\d\d-\d\d\b"
        r"|\b\d\d:\d\d:\d\d\b"
        r"|\b1[6-9]\d{8}(?:\d{3})?\b)"  # since 1970, in seconds or milliseconds
        rf"|(?P<counter>\b(?:{_COUNTED})(?: (?:count|left|number|remaining|so far|used))?(?: ?[#:=]| no\.)"
        r" ?\d[\d,]{0,15}"
        rf"|\b\d[\d,]{{0,15}} (?:{_COUNTED}) (?:left|remaining|so far|used)\b"
        rf"|\b(?:{_COUNTED}) \d{{1,9}} (?:of|/) \d{{1,9}}\b)",
        re.IGNORECASE,
    )


_LETTER = re.compile(r"[^\W\d_]")
_DIGIT = re.compile(r"\d")
_LONGEST_SAMPLE = 40


def find_volatile(parts: Sequence[str]) -> tuple[Volatile, ...]:
    """Return the texts in `parts` of a prefix (its system prompt, its tools) that can change, in order.

    A part has at most one entry of a kind. A text inside of another one, such as the time in a path, counts once.
    """
    return tuple(found for number, text in enumerate(parts) for found in _in_part(number, text))


def redacted(text: str) -> str:
    """Return the shape of `text`: letters as `a`, digits as `0`, the rest unchanged; cut if it is long."""
    shape = _DIGIT.sub("0", _LETTER.sub("a", text[:_LONGEST_SAMPLE]))
    return f"{shape}…" if len(text) > _LONGEST_SAMPLE else shape


def _in_part(number: int, text: str) -> Iterator[Volatile]:
    found: dict[str, list[re.Match[str]]] = {}
    for match in _volatile_pattern().finditer(text):
        found.setdefault(match.lastgroup or "", []).append(match)
    for kind in _KINDS:
        matches = found.get(kind, ())
        if matches:
            first = matches[0]
            yield Volatile(
                part=number, kind=kind, count=len(matches), first=first.start(), sample=redacted(first.group())
            )
