"""Markdown's tables in a given width: columns as wide as their cells, wrapped cells where that is too much.

The first rows decide how wide the columns are; the rows after them are shown as they come.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from jp.render.inline import HARD_BREAK, Inline
from jp.render.lines import Alignment
from jp.render.tables import cell_width
from jp.render.theme import Look
from jp.render.wrap import Line, Run, Wrapper, line_width, paint

SAMPLE = 40
"""So many rows are awaited before the first is shown."""

_UNBROKEN = (16, 6)
"""Words up to this wide are not cut to fit into their column; the second counts where the first takes too much."""

_NARROWEST = 3
_SEPARATOR_WIDTH = 3
_HEAD_STYLE, _LINE_STYLE = "1", "2"

Cell = list[Run]


class Grid:
    """Lays out one table in `width` cells."""

    def __init__(
        self, head: Sequence[str], alignments: Sequence[Alignment | None], *, inline: Inline, look: Look, width: int
    ) -> None:
        self._inline = inline
        self._line_style = _LINE_STYLE if look.colour else ""
        self._bar, self._dash, self._cross = ("│", "─", "┼") if look.unicode else ("|", "-", "+")
        self._alignments = alignments
        self._width = width
        self._head = [inline.runs(cell, _HEAD_STYLE) for cell in head]
        self._sample: list[list[Cell]] = []
        self._widths: list[int] = []
        self._is_started = self._is_ruled = self._is_first = False

    def add(self, cells: Sequence[str]) -> list[str]:
        """Add a row, and take the lines that can be shown. What the row has beyond the head goes into its last cell."""
        last = len(self._head) - 1
        kept = [*cells[:last], " | ".join(cells[last:])]
        row = [self._inline.runs(cell) for cell in kept]
        row += [[] for _ in range(len(self._head) - len(row))]
        if self._is_started:
            return self._row(row)
        self._sample.append(row)
        return self._start(is_whole=False) if len(self._sample) == SAMPLE else []

    def finish(self) -> list[str]:
        """The lines that were not shown yet."""
        return [] if self._is_started else self._start(is_whole=True)

    def _start(self, *, is_whole: bool) -> list[str]:
        """Decide on the widths; while more may come, the last column takes what is left."""
        self._is_started = self._is_first = True
        columns = list(zip(self._head, *self._sample, strict=True))
        natural = [max(map(_natural_width, column)) for column in columns]
        longest = [max(map(_longest_word, column)) for column in columns]
        available = self._width - _SEPARATOR_WIDTH * (len(columns) - 1)
        for most in _UNBROKEN:
            self._widths = self._widths or fit_columns(natural, _bounded(longest, most), available)
        if self._widths and not is_whole:
            self._widths[-1] += available - sum(self._widths)
        self._is_ruled = any(width < wanted for width, wanted in zip(self._widths, natural, strict=False))
        lines: list[str] = []
        if self._widths:
            lines = self._join(self._head)
        for row in self._sample:
            lines += self._row(row)
        if self._widths and self._is_first:
            lines.append(self._rule())
        return lines

    def _row(self, row: list[Cell]) -> list[str]:
        is_first, self._is_first = self._is_first, False
        if not self._widths:
            return ([] if is_first else [""]) + self._record(row)
        rule = [self._rule()] if is_first or self._is_ruled else []
        return rule + self._join(row)

    def _rule(self) -> str:
        cross = f"{self._dash}{self._cross}{self._dash}"
        return paint([(cross.join(self._dash * width for width in self._widths), self._line_style)])

    def _join(self, row: list[Cell]) -> list[str]:
        """A row's lines, its cells side by side."""
        wrapped = [_wrap(cell, width) for cell, width in zip(row, self._widths, strict=True)]
        separator: Run = (f" {self._bar} ", self._line_style)
        lines: list[str] = []
        for pieces in zip_longest(*wrapped, fillvalue=list[Run]()):
            line: Line = []
            for piece, width, alignment in zip(pieces, self._widths, self._alignments, strict=True):
                line += ([separator] if line else []) + _align(piece, width, alignment)
            lines.append(paint(line).rstrip(" "))
        return lines

    def _record(self, row: list[Cell]) -> list[str]:
        """A row's lines, its cells one below the other, each after its column's head."""
        return [
            paint(line)
            for head, cell in zip(self._head, row, strict=True)
            for line in _wrap([*head, (": ", ""), *cell], self._width)
        ]


def fit_columns(natural: Sequence[int], least: Sequence[int], available: int) -> list[int]:
    """Widths of columns that fill `available` cells at most; nothing where `least` is too much already.

    Where there is not enough for all, the widest columns give way first, none below its `least`.
    """
    if sum(natural) <= available:
        return [max(width, 1) for width in natural]
    if sum(map(min, natural, least)) > available:
        return []
    low, high = 0, available
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if sum(_capped(natural, least, middle)) <= available else (low, middle - 1)
    widths = _capped(natural, least, low)
    spare = available - sum(widths)
    for index, size in enumerate(natural):
        if spare and size > widths[index]:
            widths[index] += 1
            spare -= 1
    return widths


def _bounded(sizes: Sequence[int], most: int) -> list[int]:
    return [min(max(size, _NARROWEST), most) for size in sizes]


def _capped(natural: Sequence[int], least: Sequence[int], cap: int) -> list[int]:
    return [max(min(size, cap), min(size, bound), 1) for size, bound in zip(natural, least, strict=True)]


def _natural_width(cell: Cell) -> int:
    return sum(cell_width(text) for text, _ in cell)


def _longest_word(cell: Cell) -> int:
    return max((cell_width(word) for text, _ in cell for word in text.split()), default=0)


def _wrap(cell: Cell, width: int) -> list[Line]:
    wrapper = Wrapper(width, break_words=True)
    for text, style in cell:
        if text == HARD_BREAK:
            wrapper.newline()
        else:
            wrapper.add(text, style)
    return wrapper.finish() or [[]]


def _align(line: Line, width: int, alignment: Alignment | None) -> Line:
    fill = width - line_width(line)
    match alignment:
        case "right":
            before = fill
        case "center":
            before = fill // 2
        case _:
            before = 0
    return [(" " * before, ""), *line, (" " * (fill - before), "")]
