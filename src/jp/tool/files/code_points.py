"""Sets of characters by their code points, as Unicode's tables have them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

Range = tuple[int, int]
"""From the first code point to the last."""

HIGHEST = 0x10FFFF

# The property White_Space.
_WHITE_SPACE: tuple[Range, ...] = (
    (0x09, 0x0D),
    (0x20, 0x20),
    (0x85, 0x85),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
)

# Of a word though their category says nothing of it: Join_Control, and letters in circles and squares (Alphabetic).
_WORDS_BESIDES: tuple[Range, ...] = (
    (0x200C, 0x200D),
    (0x24B6, 0x24E9),
    (0x1F130, 0x1F149),
    (0x1F150, 0x1F169),
    (0x1F170, 0x1F189),
)
_WORD_CATEGORIES = frozenset({"Ll", "Lm", "Lo", "Lt", "Lu", "Mc", "Me", "Mn", "Nd", "Nl", "Pc"})
_WITH_WORDS: tuple[Range, ...] = ((0, 0x323AF), (0xE0100, 0xE01EF))
"""Outside of these, no character is of a word."""


def forms(code: int) -> tuple[int, ...]:
    """A character with its other cases, as far as they are single characters, sorted."""
    char = chr(code)
    return tuple(sorted({code, *(ord(form) for form in (char.lower(), char.upper()) if len(form) == 1)}))


def white_space() -> tuple[Range, ...]:
    """What Unicode calls white space."""
    return _WHITE_SPACE


@cache
def word_characters() -> tuple[Range, ...]:
    """What words consist of: Unicode's letters, marks, digits, connectors and joiners (UTS #18, Annex C)."""
    from unicodedata import category

    codes = (code for start, end in _WITH_WORDS for code in range(start, end + 1))
    besides = {code for start, end in _WORDS_BESIDES for code in range(start, end + 1)}
    return _runs(code for code in codes if category(chr(code)) in _WORD_CATEGORIES or code in besides)


def complement(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """Every character that is in none of the ranges, which are sorted. Halves of characters are in neither."""
    found: list[Range] = []
    start = 0
    for first, last in (*ranges, (HIGHEST + 1, HIGHEST + 1)):
        if first > start:
            found += _without_halves(start, first - 1)
        start = last + 1
    return tuple(found)


_HALVES = (0xD800, 0xDFFF)


def _without_halves(start: int, end: int) -> tuple[Range, ...]:
    below, above = (start, min(end, _HALVES[0] - 1)), (max(start, _HALVES[1] + 1), end)
    return tuple(part for part in (below, above) if part[0] <= part[1])


def _runs(codes: Iterable[int]) -> tuple[Range, ...]:
    found: list[Range] = []
    for code in codes:
        if found and found[-1][1] == code - 1:
            found[-1] = (found[-1][0], code)
        else:
            found.append((code, code))
    return tuple(found)
