"""Frames around texts of others, `<attachment uri="…">` and `</attachment>`, which no text inside can close. Pure.

A text that holds what reads as a tag of a frame gets tags with a mark, which does not occur in it; all others get plain
ones, so that what is sent of them never depends on what else is sent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

Tag = Literal["attachment", "resource"]

# Compiled where they are used: most requests need none of them.
_TAG = r"(?i)<[\s/]*(?:attachment|resource)"
_MARK_DIGITS = 16
_BREAKS = "[\x00-\x1f\x7f-\x9f\u2028\u2029]"
_ESCAPES = (("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"))


def mark_of(texts: Sequence[str]) -> str:
    """Return what the tags around `texts` carry: nothing, or a mark that occurs in none of them.

    It is made of the texts alone, so that they are framed alike in every request.
    """
    if not any(re.search(_TAG, text) for text in texts):
        return ""
    from hashlib import sha256

    digest = sha256()
    for text in texts:
        digest.update(text.encode("utf-8", "surrogatepass") + b"\xff")
    digits = digest.hexdigest()
    marks = (digits[start : start + _MARK_DIGITS] for start in range(len(digits) - _MARK_DIGITS))
    # That a text holds its own checksum, or a part of it, takes longer to bring about than anybody has.
    return f"-{next(mark for mark in marks if not any(mark in text.lower() for text in texts))}"


def framed(tag: Tag, attributes: Mapping[str, str | None], text: str, mark: str) -> str:
    """Return `text` between tags; attributes without a value are not there, and no value can leave its quotes."""
    named = "".join(f' {name}="{escaped(value)}"' for name, value in attributes.items() if value)
    return f"<{tag}{mark}{named}>\n{text}\n</{tag}{mark}>"


def escaped(value: str) -> str:
    """Return `value` as it stands between the quotes of an attribute."""
    for character, entity in _ESCAPES:
        value = value.replace(character, entity)
    return re.sub(_BREAKS, lambda match: f"&#{ord(match[0])};", value)


def in_one_line(name: str) -> str:
    """Return a name as it stands in a line of jp's own words: it neither ends the line nor reads as a tag."""
    shown = re.sub(_BREAKS, lambda match: match[0].encode("unicode_escape").decode(), name)
    return re.sub(_TAG, lambda match: f"&lt;{match[0][1:]}", shown)
