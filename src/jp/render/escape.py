"""The one form in which text is shown to a person who consents to it: nothing is invisible, and nothing is deleted.

A character that cannot be seen, or passes for another one, becomes `⟨U+202E⟩`, a run of it `⟨U+202E*12⟩`; a few have
names (`⟨ESC⟩`, `⟨space*100⟩`). The brackets themselves are escaped, too, so that the text can be decoded exactly.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import lru_cache

MOST_SPACES = 32
"""A longer run of spaces is counted, and so is one at the end of a line."""

_MOST_NEWLINES = 3
_MOST_KINDS = 3_000
_MOST_MARKS = 2
_NAMES = {" ": "space", "\n": "newline", "\t": "tab", "\r": "CR", "\x1b": "ESC", "\x07": "BEL", "\x08": "BS"}
_BRACKETS = "⟨⟩\u2329\u232a\u3008\u3009"  # the last two pairs look like the first
_BLANK = "\u2800\u1160\u115f\u3164\uffa0\ufffc"
_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""What Unicode lets a terminal leave out (Default_Ignorable_Code_Point), tags and variation selectors among it."""

_CONFUSABLE = ("CYRILLIC ", "GREEK ", "ARMENIAN ", "CHEROKEE ", "COPTIC ", "LISU ", "GEORGIAN ")
_SEEN_AS_OTHER = frozenset({"", "<font>", "<compat>", "<narrow>", "<small>", "<noBreak>"})
_WORD = re.compile(r"[^\W_]+")
_ASCII_LETTER = re.compile("[A-Za-z]")
_RUN = re.compile(r"[!-~]+|(.)\1*", re.DOTALL)
_TOKEN = re.compile(r"⟨[^⟩]*(?:⟩|\Z)|\A[^⟨⟩]*⟩")


def escape(text: str, *, is_line: bool = False) -> str:
    """Return `text` with only printable characters and line feeds; with `is_line`, without line feeds."""
    return "".join(_pieces(text, is_line=is_line))


def escape_line(text: str) -> str:
    """Return `text` as one line of printable characters."""
    is_plain = text.isascii() and text.isprintable() and "  " not in text and not text.endswith(" ")
    return text if is_plain else escape(text, is_line=True)


def printable(text: str) -> str:
    """Return text that is composed of escaped text and jp's own words with every other character escaped."""
    return "".join(char if char.isprintable() or char == "\n" else _token(char, 1) for char in text)


def tokens(line: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a row of escaped text, each with whether it is a token, or the rest of one."""
    end = 0
    for found in _TOKEN.finditer(line):
        if found.start() > end:
            yield line[end : found.start()], False
        yield found[0], True
        end = found.end()
    if end < len(line):
        yield line[end:], False


def _pieces(text: str, *, is_line: bool) -> Iterator[str]:
    confused = () if text.isascii() else _confused(text)
    marks = _MOST_MARKS  # of the letter before; where there is none, a mark has nothing to stand on
    for run in _runs_of(text).finditer(text):
        char, count = run[1], len(run[0])
        if char is None:
            yield run[0]
            marks = 0 if run[0][-1].isalpha() else _MOST_MARKS
        elif char == "\n" and not is_line:
            yield "\n" * count if count <= _MOST_NEWLINES else f"\n{_token(char, count - 2)}\n"
        elif char == " ":
            is_trailing = run.end() == len(text) or text[run.end()] == "\n"
            yield _token(char, count) if is_trailing or count > MOST_SPACES else run[0]
            marks = _MOST_MARKS
        elif _is_mark(char):
            marks += count
            yield run[0] if marks <= _MOST_MARKS and not _is_hidden(char) else _token(char, count)
        elif run.start() in confused or _is_hidden(char):
            yield _token(char, count)
            marks = _MOST_MARKS
        else:
            yield run[0]
            marks = 0 if char.isalpha() else _MOST_MARKS


def _runs_of(text: str) -> re.Pattern[str]:
    """Return what finds stretches of plain characters, and runs of any other one: long texts have few kinds."""
    if text.isascii() or len(kinds := set(text)) > _MOST_KINDS:
        return _RUN
    plain = "".join(char for char in kinds if not char.isascii() and _is_plain(char))
    return re.compile(rf"[!-~{re.escape(plain)}]+|(.)\1*", re.DOTALL)


def _is_plain(char: str) -> bool:
    return not (_is_hidden(char) or _is_mark(char) or _is_confusable(char))


def _token(char: str, count: int) -> str:
    name = _NAMES.get(char) or f"U+{ord(char):04X}"
    return f"⟨{name}⟩" if count == 1 else f"⟨{name}*{count}⟩"


@lru_cache(maxsize=4096)
def _is_hidden(char: str) -> bool:
    """Return whether a terminal may show nothing for a character, or what is shown for another one."""
    if not char.isprintable() or char in _BRACKETS or char in _BLANK or _IGNORABLE.match(char):
        return True
    from unicodedata import category, decomposition, normalize

    if category(char) == "Me":
        return True
    other = normalize("NFKC", char)
    kind = decomposition(char).partition(" ")[0]
    is_seen_as_other = (kind if kind.startswith("<") else "") in _SEEN_AS_OTHER
    return not char.isascii() and len(other) == 1 and other.isascii() and is_seen_as_other


@lru_cache(maxsize=4096)
def _is_mark(char: str) -> bool:
    from unicodedata import category

    return category(char) in {"Mn", "Mc", "Me"}


def _confused(text: str) -> Collection[int]:
    """Return where letters of a script that looks like Latin are in one word with Latin letters."""
    return {
        word.start() + index
        for word in _WORD.finditer(text)
        if not word[0].isascii() and _ASCII_LETTER.search(word[0])
        for index, char in enumerate(word[0])
        if _is_confusable(char)
    }


@lru_cache(maxsize=4096)
def _is_confusable(char: str) -> bool:
    from unicodedata import name

    return not char.isascii() and name(char, "").startswith(_CONFUSABLE)
