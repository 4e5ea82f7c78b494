"""What stands on a terminal after all that was written to it: rows of characters, those scrolled away included."""

from __future__ import annotations

import re
from unicodedata import category, east_asian_width

_SEQUENCE = re.compile(
    r"\x1b\[([0-9;?]*)([A-Za-z])|\x1b[=>]|\x1b\](?:8;;[!-~]*|9;[^\x00-\x1f]*|777;[^\x00-\x1f]*)\x1b\\"
)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-9;?]*|\][^\x00-\x1f]*\x1b?)?")
_PLAIN = re.compile("[ -~]+")
_WITHOUT_EFFECT = frozenset("hlm")


class Screen:
    """A terminal that knows what jp uses. Whatever else steers it is an error: it came from somebody else."""

    def __init__(self, columns: int, rows: int = 24) -> None:
        self._columns, self._rows = columns, rows
        self._unread = ""
        self._lines: list[list[str]] = [[]]
        self._row = self._column = 0

    @property
    def lines(self) -> list[str]:
        """All rows, without spaces at their ends."""
        return _joined(self._lines)

    @property
    def text(self) -> str:
        """All rows, as one text."""
        return "\n".join(self.lines)

    @property
    def visible(self) -> list[str]:
        """The rows on the screen."""
        return _joined(self._lines[self._top :])

    @property
    def _top(self) -> int:
        return max(0, len(self._lines) - self._rows)

    def feed(self, text: str) -> Screen:
        """Show more. A sequence whose end did not come is kept for the next time."""
        text = self._unread + text
        self._unread = ""
        position = 0
        while position < len(text):
            if found := _PLAIN.match(text, position):
                self._put_plain(found[0])
                position = found.end()
            elif found := _SEQUENCE.match(text, position):
                self._steer(found[1] or "", found[2] or "h")
                position = found.end()
            elif _UNFINISHED.fullmatch(text, position):
                self._unread = text[position:]
                break
            else:
                self._show(text[position])
                position += 1
        return self

    def _steer(self, parameters: str, final: str) -> None:
        count = int(parameters or 1) if parameters.isdigit() or not parameters else 0
        match final:
            case "A":
                self._row = max(self._top, self._row - count)
            case "B":
                self._row = min(len(self._lines) - 1, self._row + count)
            case "C":
                self._column = min(self._columns - 1, self._column + count)
            case "D":
                self._column = max(0, self._column - count)
            case "K":
                del self._lines[self._row][self._column :]
            case "J":
                del self._lines[self._row][self._column :]
                del self._lines[self._row + 1 :]
            case _:
                assert final in _WITHOUT_EFFECT, f"ESC [ {parameters} {final}"

    def _show(self, char: str) -> None:
        match char:
            case "\n":  # the device writes a carriage return with it
                self._column = 0
                self._down()
            case "\r":
                self._column = 0
            case "\x08":
                self._column = max(0, self._column - 1)
            case _:
                assert char.isprintable(), f"U+{ord(char):04X} reached the terminal"
                self._put(char)

    def _down(self) -> None:
        self._row += 1
        if self._row == len(self._lines):
            self._lines.append([])

    def _put_plain(self, text: str) -> None:
        """Put what is one cell a character."""
        while text:
            if self._column >= self._columns:
                self._column = 0
                self._down()
            part, text = text[: self._columns - self._column], text[self._columns - self._column :]
            line = self._lines[self._row]
            line.extend(" " * (self._column - len(line)))
            line[self._column : self._column + len(part)] = part
            self._column += len(part)

    def _put(self, char: str) -> None:
        width = 0 if category(char) == "Mn" else 2 if east_asian_width(char) in "FW" else 1
        line = self._lines[self._row]
        if not width and self._column and line:
            line[min(self._column, len(line)) - 1] += char
            return
        if self._column + width > self._columns:
            self._column = 0
            self._down()
            line = self._lines[self._row]
        line.extend(" " * (self._column + width - len(line)))
        line[self._column : self._column + width] = [char, ""][:width]
        self._column += width


def _joined(lines: list[list[str]]) -> list[str]:
    return ["".join(line).rstrip() for line in lines]
