"""Greedy wrapping of styled text that comes in pieces: a line is final as soon as the next one has begun."""

from __future__ import annotations

import re
from unicodedata import category

from jp.render.tables import cell_width, clusters

Run = tuple[str, str]
"""Text, and the parameters of the SGR sequence that styles it; empty for none."""

Line = list[Run]

_BLANKS = re.compile(r"[ \t\n]+")
_CLOSING = frozenset({"Pe", "Pf", "Po"})
_OPENING = frozenset({"Ps", "Pi"})
_WIDE = 2
_LONGEST_WORD = 4096
"""A word beyond this is cut: nobody copies it, and to look for its end again and again would take too long."""


def paint(line: Line) -> str:
    """`line` with its styles as SGR sequences, each closed."""
    return "".join(f"\x1b[{style}m{text}\x1b[0m" if style else text for text, style in line)


def line_width(line: Line) -> int:
    """The cells that `line` takes."""
    return sum(cell_width(text) for text, _ in line)


class Wrapper:
    """Wraps to `width` cells. Runs of white space become one space; a line begins and ends without any.

    A word that is wider stands on its own line, whole, so that it can be copied; with `break_words` it is cut. Between
    wide characters a line may end anywhere, but not so that punctuation begins the next one.
    """

    def __init__(self, width: int, *, break_words: bool = False) -> None:
        self._width = max(width, 1)
        self._break_words = break_words
        self._text = ""
        self._spans: list[tuple[int, str]] = []  # where each style ends
        self._lines: list[Line] = []

    @property
    def held(self) -> str:
        """The text of the line that is not final yet."""
        return self._text

    def fit(self, width: int) -> None:
        """Wrap to another width from here on."""
        self._width = max(width, 1)

    def add(self, text: str, style: str = "") -> None:
        """Add a run."""
        if "  " in text or "\n" in text or "\t" in text:
            text = _BLANKS.sub(" ", text)
        if text[:1] == " " and (not self._text or self._text[-1] == " "):
            text = text[1:]
        if not text:
            return
        self._text += text
        if self._spans and self._spans[-1][1] == style:
            self._spans.pop()
        self._spans.append((len(self._text), style))
        while (found := self._break()) is not None:
            self._emit(*found)

    def newline(self) -> None:
        """End the line here."""
        self._emit(len(self._text), len(self._text))

    def take(self) -> list[Line]:
        """The lines that are final and were not taken yet."""
        lines, self._lines = self._lines, []
        return lines

    def finish(self) -> list[Line]:
        """All lines that were not taken yet, with the last one. The wrapper is as new then."""
        if self._text:
            self.newline()
        return self.take()

    def _break(self) -> tuple[int, int] | None:
        """Where the line ends and the next one begins; None where all fits, or more has to come to decide it."""
        if not self._text.isascii():
            found = self._wide_break()
        else:
            found = self._narrow_break() if len(self._text) > self._width else None
        if found is None and len(self._text) > _LONGEST_WORD:
            return _LONGEST_WORD, _LONGEST_WORD
        return found

    def _narrow_break(self) -> tuple[int, int] | None:
        """The same where all characters are one cell wide and there are too many."""
        cut = self._text.rfind(" ", 0, self._width + 1)
        if cut > 0:
            return cut, cut + 1
        if self._break_words:
            return self._width, self._width
        cut = self._text.find(" ", self._width + 1)
        return None if cut < 0 else (cut, cut + 1)

    def _wide_break(self) -> tuple[int, int] | None:
        """The same for any characters."""
        used = index = 0
        best: tuple[int, int] | None = None
        last = ("", 0)
        for cluster, size in clusters(self._text):
            is_beyond = used + size > self._width
            if cluster == " ":
                best = (index, index + 1) if index else best
            elif index and (_may_part(last, (cluster, size)) or (self._break_words and is_beyond and best is None)):
                best = (index, index)
            if is_beyond and best:
                return best
            used, index, last = used + size, index + len(cluster), (cluster, size)
        return None

    def _emit(self, end: int, start: int) -> None:
        line: Line = []
        rest: list[tuple[int, str]] = []
        begin = 0
        for stop, style in self._spans:
            if begin < end:
                line.append((self._text[begin : min(stop, end)], style))
            if stop > start:
                rest.append((stop - start, style))
            begin = stop
        if line and line[-1][0].endswith(" "):
            line[-1] = (line[-1][0][:-1], line[-1][1])
        self._lines.append(line)
        self._text, self._spans = self._text[start:], rest


def _may_part(left: tuple[str, int], right: tuple[str, int]) -> bool:
    """Whether a line may end between these clusters of these widths, no space being there.

    One of them has to be wide; closing punctuation does not begin a line, opening punctuation does not end one.
    """
    is_wide = _WIDE in (left[1], right[1])
    return is_wide and category(left[0][0]) not in _OPENING and category(right[0][0]) not in _CLOSING
