"""How much work a page's markup is for those who make a tree of it, told without making one. Pure."""

from __future__ import annotations

import re

HEAVIEST = 20_000_000
"""In tenths of a microsecond, as measured: two seconds, and less than 300 MB."""

_OF_A_TAG = 200
_OF_AN_ATTRIBUTE = 60
_ATTRIBUTES_FREE = 8
"""So many are in the weight of their tag."""

_OF_A_RESTART = 8
"""A tag that does not end is read to the page's end, and then again from the next one on: a character costs this
part of a unit."""

_OF_A_GAP = 80
"""The parser takes a time for white space in a tag that grows with its square: divided by this."""

_TAG = re.compile(r"<[^>]*+")
_BETWEEN_ATTRIBUTES = " \n\t\r\f/"
_GAP = re.compile(r"\s{100,}+")


def is_heavy(html: str) -> bool:
    """Whether a page is too much for a tree."""
    weight = len(html) + _OF_A_TAG * html.count("<")
    if weight > HEAVIEST:
        return True
    for tag in _TAG.finditer(html):
        weight += _extra(tag[0])
        if weight > HEAVIEST:
            return True
    return False


def _extra(tag: str) -> int:
    """What a tag weighs above what every tag does."""
    attributes = sum(map(tag.count, _BETWEEN_ATTRIBUTES))
    restarts = tag.count("<") - 1
    return (
        _OF_AN_ATTRIBUTE * max(0, attributes - _ATTRIBUTES_FREE)
        + restarts * len(tag) // _OF_A_RESTART
        + sum((gap.end() - gap.start()) ** 2 for gap in _GAP.finditer(tag)) // _OF_A_GAP
    )
