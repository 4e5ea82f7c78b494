"""Wrapping a text as it comes, word by word, where nothing but its lines' breaks may change."""

from __future__ import annotations

import re

from jp.render.cells import cell_width, clusters

_PIECE = re.compile(r"\n|[ \t]+|[^ \t\n]+")
_TAB = "    "
_LONGEST_WORD = 4096
_WIDE = 2


class Flow:
    """Breaks lines at spaces so that they take at most `width` cells; every line begins with `prefix`.

    A word is given out as soon as it is whole, so that a reader sees the text grow. Indents, runs of spaces and blank
    lines stay, but for the spaces at which a line was broken. A word that is wider stands on its own line, whole.
    """

    def __init__(self, width: int, *, prefix: str = "") -> None:
        self._prefix = prefix
        self.fit(width)
        self._column = 0
        self._gap = ""
        self._word = ""  # may go on
        self._is_begun = False  # the line has its prefix

    def fit(self, width: int) -> None:
        """Break lines at another width from here on."""
        self._width = max(width - cell_width(self._prefix), 1)

    def feed(self, text: str) -> str:
        """Add to the text, and take what is final of it."""
        pieces = _PIECE.findall(self._word + text)
        self._word = ""
        if pieces and not pieces[-1].isspace() and len(pieces[-1]) < _LONGEST_WORD:
            self._word = pieces.pop()
        return "".join(map(self._piece, pieces))

    def finish(self) -> str:
        """Take the rest. What is fed next is another text."""
        rest = self._piece(self._word) if self._word else ""
        self._word = self._gap = ""
        self._column, self._is_begun = 0, False
        return rest

    def _piece(self, piece: str) -> str:
        if piece == "\n":
            return self._end_line()
        if piece.isspace():
            self._gap += piece.replace("\t", _TAB)
            return ""
        return "".join(self._place(word, cells) for word, cells in _words(piece))

    def _place(self, word: str, cells: int) -> str:
        broken = ""
        if self._column and self._column + len(self._gap) + cells > self._width:
            broken = self._end_line()
        lead = "" if self._is_begun else self._prefix
        shown = f"{broken}{lead}{self._gap}{word}"
        self._column += len(self._gap) + cells
        self._gap = ""
        self._is_begun = True
        return shown

    def _end_line(self) -> str:
        lead = "" if self._is_begun else self._prefix.rstrip()
        self._column, self._gap, self._is_begun = 0, "", False
        return f"{lead}\n"


def _words(text: str) -> list[tuple[str, int]]:
    """The parts of `text` between which a line may be broken, with their widths: wide characters stand alone."""
    if text.isascii():
        return [(text, len(text))]
    words: list[tuple[str, int]] = []
    for cluster, cells in clusters(text):
        if words and cells < _WIDE and words[-1][1] != _WIDE:
            word, width = words[-1]
            words[-1] = (word + cluster, width + cells)
        else:
            words.append((cluster, cells))
    return words
