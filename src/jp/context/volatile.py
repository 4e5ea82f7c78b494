"""What in the unchanging beginning of a request looks as if it changed: each time it does, the cache misses.

These are warnings and decide nothing. A sample shows the shape of what was found and none of its letters or digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, get_args

import msgspec

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

_VOLATILE = re.compile(
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
    rf"|(?P<counter>\b(?:{_COUNTED})(?: (?:count|left|number|remaining|so far|used))?(?: ?[#:=]| no\.) ?\d[\d,]{{0,15}}"
    rf"|\b\d[\d,]{{0,15}} (?:{_COUNTED}) (?:left|remaining|so far|used)\b"
    rf"|\b(?:{_COUNTED}) \d{{1,9}} (?:of|/) \d{{1,9}}\b)",
    re.IGNORECASE,
)

_LETTER = re.compile(r"[^\W\d_]")
_DIGIT = re.compile(r"\d")
_LONGEST_SAMPLE = 40


def find_volatile(parts: Sequence[str]) -> tuple[Volatile, ...]:
    """What may change in `parts` of a prefix (its system prompt, its tools), in their order.

    A part has at most one entry of a kind. What lies in another one, such as the time in a path, counts once.
    """
    return tuple(found for number, text in enumerate(parts) for found in _in_part(number, text))


def redacted(text: str) -> str:
    """The shape of `text`: letters as `a`, digits as `0`, the rest as it stands; cut where it is long."""
    shape = _DIGIT.sub("0", _LETTER.sub("a", text[:_LONGEST_SAMPLE]))
    return f"{shape}…" if len(text) > _LONGEST_SAMPLE else shape


def _in_part(number: int, text: str) -> Iterator[Volatile]:
    found: dict[str, list[re.Match[str]]] = {}
    for match in _VOLATILE.finditer(text):
        found.setdefault(match.lastgroup or "", []).append(match)
    for kind in _KINDS:
        matches = found.get(kind, ())
        if matches:
            first = matches[0]
            yield Volatile(
                part=number, kind=kind, count=len(matches), first=first.start(), sample=redacted(first.group())
            )
