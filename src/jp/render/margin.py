"""What stands around the lines of a Markdown text: the bars of quotes, the markers of items, indents, blank lines."""

from __future__ import annotations

from jp.render.tables import cell_width
from jp.render.theme import Look
from jp.render.wrap import paint

NARROWEST = 12
"""Text is at least this wide, however deep it stands."""

DIM = "2"


class _Level:
    """A quote or an item; `marker` stands before its first line, empty once that was written."""

    def __init__(self, prefix: str, width: int, *, marker: str = "") -> None:
        self.prefix = prefix
        self.width = width
        self.marker = marker
        self.is_item = bool(marker)


class Margin:
    """Writes lines within the quotes and items that are open.

    A blank line stands where the text has some, and around blocks that are spaced, unless those are within a list.
    """

    def __init__(self, look: Look) -> None:
        self._quote = f"{paint([('│' if look.unicode else '|', DIM if look.colour else '')])} "
        self._bullet = "•" if look.unicode else "-"
        self._levels: list[_Level] = []
        self._lines: list[str] = []
        self._floor = 0  # the fewest levels that were open since the last line
        self._is_empty = True
        self._wants_gap = False
        self._was_spaced = False

    @property
    def next_prefix(self) -> str:
        """What the next line will have before its text, with blanks for what is drawn there."""
        return "".join(level.marker or " " * level.width for level in self._levels)

    def enter_quote(self) -> None:
        """A quote begins."""
        self._space()
        self._levels.append(_Level(self._quote, cell_width("| ")))

    def enter_item(self, number: int | None, kind: str) -> None:
        """An item begins; `number` is None for a bullet, else `kind` is what follows it."""
        marker = f"{self._bullet} " if number is None else f"{number}{kind} "
        width = cell_width(marker)
        self._levels.append(_Level(" " * width, width, marker=marker))

    def leave(self) -> None:
        """The innermost quote or item ends; an item without any line gets one."""
        if self._levels[-1].marker:
            self.begin_block()
            self.write("")
        level = self._levels.pop()
        self._floor = min(self._floor, len(self._levels))
        if not level.is_item:
            self._space()

    def blank(self) -> None:
        """The text has a blank line here."""
        if not (self._levels and self._levels[-1].marker):
            self._wants_gap = True

    def begin_block(self, *, is_spaced: bool = False) -> None:
        """Another block begins."""
        if is_spaced:
            self._space()
        if self._wants_gap and not self._is_empty:
            self._lines.append("".join(level.prefix for level in self._levels[: self._floor]).rstrip(" ") + "\n")
        self._wants_gap = False
        if is_spaced:
            self._space()

    def write(self, text: str) -> None:
        """Write a line."""
        prefix = ""
        for level in self._levels:
            prefix += level.marker or level.prefix
            level.marker = ""
        self._lines.append((f"{prefix}{text}" if text else prefix.rstrip(" ")) + "\n")
        self._floor = len(self._levels)
        self._is_empty = False

    def width_within(self, width: int) -> int:
        """How much of `width` is left for text."""
        return max(width - sum(level.width for level in self._levels), min(NARROWEST, width))

    def take(self) -> str:
        """The lines that were written since."""
        lines, self._lines = self._lines, []
        return "".join(lines)

    def _space(self) -> None:
        if not any(level.is_item for level in self._levels):
            self._wants_gap = True
