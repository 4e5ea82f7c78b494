"""What a search found, as text for a model. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

import msgspec

MOST_SHOWN = 200
"""So many matching lines are shown."""

MOST_COUNTED = 5_000
"""A search ends where it has found more."""

MOST_LINES = 600
"""Beyond so many lines, matches are shown without their context."""

LONGEST = 400
"""So many characters of a line are shown."""


class SearchedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file's text, each line with a line feed at its end, and how many lines there are."""

    shown: str
    text: str
    lines: int

    @classmethod
    def of(cls, shown: str, raw: str) -> SearchedFile:
        """The file whose content is `raw`: byte order mark and carriage returns at line ends are not searched."""
        text = raw.removeprefix("\ufeff")
        if text and not text.endswith("\n"):
            text += "\n"
        text = text.replace("\r\n", "\n")
        return cls(shown=shown, text=text, lines=text.count("\n"))


class _Found(msgspec.Struct, frozen=True, kw_only=True):
    """The lines of a file, by number which of them match, and those of these that are shown. Numbers count from 1."""

    shown: str
    lines: list[str]
    matching: frozenset[int]
    numbers: list[int]


class SearchReport:
    """What is found, gathered."""

    def __init__(self, *, context: int) -> None:
        self._context = context
        self._found: list[_Found] = []
        self._left_out = 0
        self._shown = 0
        self.count = 0
        """How many lines match."""

    def leave_out(self) -> None:
        """Count a file that is too large, not UTF-8 or not readable."""
        self._left_out += 1

    def add(self, files: Sequence[SearchedFile], numbers: Sequence[int]) -> None:
        """Take in which lines match. `numbers` count through all of the files from 1, and are sorted."""
        ends = list(accumulate(file.lines for file in files))
        by_file: dict[int, list[int]] = {}
        for number in numbers:
            index = bisect_right(ends, number - 1)
            by_file.setdefault(index, []).append(number - (ends[index] - files[index].lines))
        for index, found in by_file.items():
            self._add(files[index], found)

    def _add(self, file: SearchedFile, numbers: list[int]) -> None:
        self.count += len(numbers)
        some = numbers[: MOST_SHOWN - self._shown]
        if some:
            self._shown += len(some)
            lines = file.text.split("\n")
            self._found.append(_Found(shown=file.shown, lines=lines[:-1], matching=frozenset(numbers), numbers=some))

    def text(self) -> str:
        """All of it."""
        return "\n".join([*self._lines(), *self._notes()])

    def _lines(self) -> list[str]:
        groups = [group for found in self._found for group in _groups(found, self._context)]
        if self._context == 0:
            return [line for group in groups for line in group]
        if sum(map(len, groups)) > MOST_LINES:
            return [line for found in self._found for group in _groups(found, 0) for line in group]
        return [line for index, group in enumerate(groups) for line in (["--", *group] if index else group)]

    def _notes(self) -> Iterator[str]:
        if self.count == 0:
            yield "No matches found."
        if self.count > self._shown:
            more = "more than " if self.count > MOST_COUNTED else ""
            count = MOST_COUNTED if more else self.count
            yield f"… the first {self._shown} of {more}{count:,} matching lines; narrow the pattern or the paths"
        if self._is_without_context:
            yield "… shown without context, because there is much of it"
        if self._left_out:
            yield f"… {self._left_out:,} files were not searched: too large, not UTF-8, or not readable"

    @property
    def _is_without_context(self) -> bool:
        return sum(len(group) for found in self._found for group in _groups(found, self._context)) > MOST_LINES


def _groups(found: _Found, context: int) -> Iterator[list[str]]:
    """The matching lines, of which there is one at least, with those around them, adjoining ones together."""
    group: list[str] = []
    last = 0
    for number in found.numbers:
        start = max(1, number - context)
        if group and start > last + 1:
            yield group
            group = []
        stop = min(len(found.lines), number + context)
        for line in range(max(start, last + 1), stop + 1):
            sign = ":" if line in found.matching else "-"
            group.append(f"{found.shown}{sign}{line}{sign}{_cut(found.lines[line - 1])}")
        last = stop
    yield group


def _cut(line: str) -> str:
    more = len(line) - LONGEST
    return line if more <= 0 else f"{line[:LONGEST]} [… {more:,} more characters]"
