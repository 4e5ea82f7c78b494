"""Edits of a text and regular expressions, which are stopped when they take too long. Pure."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from jp.tool.files.territory import FileAccessError

if TYPE_CHECKING:
    from regex import Pattern

_PLACES_SHOWN = 5
_REFERENCE = re.compile(r"\$(?:(?P<dollar>\$)|\{(?P<braced>\w+)\}|(?P<bare>\w+))")


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """A replacement. `number` counts the edits of a call from 1."""

    number: int
    old: str
    new: str
    replace_all: bool = False

    def fail(self, why: str) -> FileAccessError:
        """Return what is wrong with it, in words for the model; nothing has been changed."""
        return FileAccessError(f"pattern {self.number}: {why}. Nothing was changed.")


class Match(msgspec.Struct, frozen=True):
    """A match of an expression: from `start` to before `end`, with the text of each group by number and name."""

    start: int
    end: int
    groups: Mapping[str, str | None]


def replaced_exactly(text: str, edit: Edit) -> tuple[str, int]:
    """`text` with the edit, and how often it applied.

    Raises:
        FileAccessError: `old` is not there, or more than once where only one is meant.
    """
    if not edit.old:
        raise edit.fail("'old' is empty")
    if edit.old == edit.new:
        raise edit.fail("'old' and 'new' are the same")
    count = text.count(edit.old)
    if count == 0:
        raise edit.fail(f"'old' is not in the file{_near(text, edit.old)}")
    if count > 1 and not edit.replace_all:
        places = _places(text, _found(text, edit.old))
        raise edit.fail(
            f"'old' is in the file {count} times, at {places}; make it longer, or say replace_all where all are meant"
        )
    return text.replace(edit.old, edit.new), count


def replaced_matches(text: str, edit: Edit, matches: Sequence[Match]) -> tuple[str, int]:
    """`text` with what matches the expression of the edit replaced, and how often.

    Raises:
        FileAccessError: nothing matches, more than one where only one is meant, or `new` refers to no group.
    """
    if not matches:
        raise edit.fail("the expression 'old' matches nothing in the file")
    if len(matches) > 1 and not edit.replace_all:
        places = _places(text, [match.start for match in matches])
        raise edit.fail(
            f"the expression 'old' matches {len(matches)} times, at {places}; "
            "make it narrower, or say replace_all where all are meant"
        )
    pieces: list[str] = []
    done = 0
    for match in matches:
        pieces += (text[done : match.start], _filled(edit, match.groups))
        done = match.end
    return "".join([*pieces, text[done:]]), len(matches)


def _filled(edit: Edit, groups: Mapping[str, str | None]) -> str:
    def fill(found: re.Match[str]) -> str:
        if found["dollar"]:
            return "$"
        name = found["braced"] or found["bare"]
        if name not in groups:
            raise edit.fail(f"'new' refers to ${{{name}}}, but 'old' has no such group; a dollar sign is written '$$'")
        return groups[name] or ""

    return _REFERENCE.sub(fill, edit.new)


def _found(text: str, old: str) -> list[int]:
    starts: list[int] = []
    start = text.find(old)
    while start >= 0:
        starts.append(start)
        start = text.find(old, start + len(old))
    return starts


def _places(text: str, starts: Sequence[int]) -> str:
    shown = dict.fromkeys(str(text.count("\n", 0, start) + 1) for start in starts[:_PLACES_SHOWN])
    more = " and more" if len(starts) > _PLACES_SHOWN else ""
    return f"line {', '.join(shown)}{more}" if len(shown) == 1 and not more else f"lines {', '.join(shown)}{more}"


def _near(text: str, old: str) -> str:
    """Return where the file has `old` but for white space at the ends of its lines."""
    wanted = [line.strip() for line in old.strip("\n").split("\n")]
    if not any(wanted):
        return ""
    lines = [line.strip() for line in text.split("\n")]
    for index, line in enumerate(lines):
        if line == wanted[0] and lines[index : index + len(wanted)] == wanted:
            return f"; line {index + 1} begins what differs from it in white space only"
    return ""


SECONDS = 20.0
"""Most seconds for one text."""

MOST_MATCHES = 20_000
"""Most matches of the expression of an edit."""

_LONGEST = 2_000
_MOST_EXPANDED = 1_000_000
"""Most characters of an expression times its counts: it is compiled with its repetitions written out."""

_SECS_WHOLE = 0.1
_LONGEST_LINE = 1_000_000
"""A line is searched up to here: on longer text, the time limit of `regex` is exceeded several times over."""

_ESCAPE_OR_BRACE = re.compile(
    r"(?P<escape>\\[pPN]\{[^{}]*\}|\\.)|\{(?P<count>(?P<least>\d+)(?:,\d*)?\}|,\d+\})?", re.DOTALL
)
_SEES_OTHER_LINES = re.compile(r"\((?:\*|\?(?!:|P?<\w|i\)))|[*+?}]\+|\\[AZzGK]")
"""Look-around, flags, atomic groups and anchors: whether they match depends on what is around a line."""


def compiled(pattern: str, *, by_line: bool = True, longest: int = _LONGEST) -> Pattern[str]:
    """Compile an expression of Python, with `^` and `$` at the ends of lines unless `by_line` is False.

    Braces that are no count are text, as in `re`: in `regex` they would allow errors (`{e<=1}`).

    Raises:
        ValueError: it is malformed, too long, or repeats too much.
    """
    import regex

    if len(pattern) > longest:
        raise ValueError(f"it has more than {longest:,} characters")
    expanded = len(pattern)

    def with_plain_braces(found: re.Match[str]) -> str:
        nonlocal expanded
        expanded *= max(1, int((found["least"] or "1")[:9]))
        return found[0] if found["escape"] or found["count"] else r"\{"

    expression = _ESCAPE_OR_BRACE.sub(with_plain_braces, pattern)
    if expanded > _MOST_EXPANDED:
        raise ValueError("it repeats too much")
    try:
        return regex.compile(expression, regex.MULTILINE if by_line else 0)
    except (regex.error, OverflowError, RecursionError) as error:
        raise ValueError(str(error)) from None


class LineMatcher:
    """Finds the lines of a text that match an expression, each line on its own."""

    def __init__(self, pattern: str) -> None:
        """Compile `pattern`.

        Raises:
            FileAccessError: it is empty or malformed, or spans lines.
        """
        if not pattern:
            raise FileAccessError("'pattern' is empty")
        outside_of_sets = re.sub(r"\\[^n]|\[[^\]]*\]", "", pattern)
        if "\n" in outside_of_sets or "\\n" in outside_of_sets:
            raise FileAccessError("'pattern' cannot be searched for: a line has no line feed")
        try:
            self._expression = compiled(pattern)
        except ValueError as error:
            raise FileAccessError(f"'pattern' cannot be searched for: {error}") from None
        self._can_skip = _SEES_OTHER_LINES.search(pattern) is None

    def lines(self, lines: Sequence[str], *, seconds: float = SECONDS) -> list[int]:
        """Return the numbers of the lines that match, counted from 1.

        Raises:
            FileAccessError: it takes more than `seconds`.
        """
        if self._can_skip and not self._may_match("\n".join(lines)):
            return []
        end = time.monotonic() + seconds
        try:
            return [number for number, line in enumerate(lines, 1) if self._matches(line, end)]
        except (TimeoutError, MemoryError) as error:
            raise _stopped(error, seconds) from None

    def _may_match(self, text: str) -> bool:
        """Return whether any line could match: one search of a text is faster than one of each line."""
        if len(text) > _LONGEST_LINE:
            return True
        try:
            return self._expression.search(text, timeout=_SECS_WHOLE, concurrent=True) is not None
        except (TimeoutError, MemoryError):
            return True

    def _matches(self, line: str, end: float) -> bool:
        found = self._expression.search(line, endpos=_LONGEST_LINE, timeout=_left(end), concurrent=True)
        return found is not None


def matches_of(edit: Edit, text: str, *, seconds: float = SECONDS) -> list[Match]:
    """Return the matches of `old` as an expression of Python in which `^` and `$` are the ends of lines.

    Raises:
        FileAccessError: it is malformed, matches too often, or takes more than `seconds`.
    """
    try:
        expression = compiled(edit.old)
    except ValueError as error:
        raise edit.fail(f"the expression 'old' is malformed: {error}") from None
    found: list[Match] = []
    end = time.monotonic() + seconds
    try:
        for match in expression.finditer(text, timeout=seconds, concurrent=True):
            _left(end)
            if len(found) == MOST_MATCHES:
                raise edit.fail(f"the expression 'old' matches more than {MOST_MATCHES:,} times")
            numbered = {str(number): match[number] for number in range(expression.groups + 1)}
            found.append(Match(match.start(), match.end(), {**numbered, **match.groupdict()}))
    except (TimeoutError, MemoryError) as error:
        raise _stopped(error, seconds) from None
    return found


def _left(end: float) -> float:
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _stopped(error: TimeoutError | MemoryError, seconds: float) -> FileAccessError:
    cost = f"longer than {seconds:g} seconds" if isinstance(error, TimeoutError) else "too much memory"
    return FileAccessError(f"the expression took {cost}, so it was stopped; make it simpler")
