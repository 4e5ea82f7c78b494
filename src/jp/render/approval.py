"""Pages of the text that a person consents to, which may be longer than the screen. Pure.

Each row begins with a gutter: `│` where a line begins, `┆` where it continues. So no row can pass for a line, and what
is on the screen can be decoded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

import msgspec

from jp.conversation.entries import JsonObject
from jp.render.sanitize import escape, escape_line, tokens
from jp.render.tables import count_text

Fragment = tuple[str, str]
"""A style and a text, as prompt_toolkit takes them."""

LINE, CONTINUED = "│ ", "┆ "
_GUTTER_WIDTH = 3  # the bars are wide where East Asian text is
_LEAST_WIDTH = 2
_PLAIN_NAME = re.compile("[A-Za-z0-9_-]+")
_HEADS = ("--- ", "+++ ", "diff ")
_STYLES = {"+": "ansigreen", "-": "ansired", "@": "ansicyan"}


class Sheet(msgspec.Struct, frozen=True, kw_only=True):
    """A text of escaped characters and line feeds, which begins on a page of its own."""

    text: str

    @property
    def is_diff(self) -> bool:
        """True if the lines are a unified diff."""
        return self.text.startswith("--- ") and "\n@@ " in self.text


class Position(msgspec.Struct, frozen=True):
    """The beginning of a page: the number of a sheet, and of a character in it."""

    sheet: int = 0
    offset: int = 0


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A part that is shown at once. `after` is None for the last one."""

    rows: tuple[tuple[Fragment, ...], ...]
    after: Position | None
    omitted: str


def argument_lines(arguments: JsonObject) -> str:
    """Return arguments as lines: `name: JSON`, or `name:` and a text of several lines, indented."""
    return "\n".join(_member(name, value) for name, value in arguments.items())


def is_plain_name(name: str) -> bool:
    """Return whether an argument's name is shown as it is, without quotes."""
    return _PLAIN_NAME.fullmatch(name) is not None


def page_of(sheets: Sequence[Sheet], start: Position, *, width: int, rows: int, key: str) -> Page:
    """Return what fits into `rows` of `width` columns; `key` is what shows the rest."""
    sheet = sheets[start.sheet]
    drawn: list[tuple[Fragment, ...]] = []
    offset = start.offset
    while len(drawn) < max(1, rows) and offset <= len(sheet.text):
        row, offset = _row(sheet, offset, max(_LEAST_WIDTH, width - _GUTTER_WIDTH))
        drawn.append(row)
    after = Position(start.sheet, offset) if offset <= len(sheet.text) else Position(start.sheet + 1)
    if after.sheet == len(sheets):
        after = None
    return Page(rows=tuple(drawn), after=after, omitted=_hidden_text(sheets, start, after, key))


def wrapped(text: str, width: int) -> Iterator[str]:
    """Yield the rows of `text`, none of which is wider than `width`; between words where there are any."""
    for line in text.split("\n"):
        start = 0
        while start == 0 or start < len(line):
            end = _fitting(line, start, len(line), max(_LEAST_WIDTH, width))
            if end < len(line) and (space := line.rfind(" ", start + width // 2, end)) > start:
                end = space + 1
            yield line[start:end]
            start = max(end, 1)


def columns(text: str) -> int:
    """Return how many columns a terminal takes for `text` at most: terminals differ in what is wide."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _member(name: str, value: object) -> str:
    shown = name if is_plain_name(name) else escape_line(json.dumps(name, ensure_ascii=False))
    if isinstance(value, str) and "\n" in value:
        return "\n".join([f"{shown}:", *(f"  {line}" if line else "" for line in escape(value).split("\n"))])
    return f"{shown}: {value_text(value)}"


def value_text(value: object) -> str:
    """Return a value as escaped JSON in one line."""
    return escape_line(json.dumps(value, ensure_ascii=False))


def _row(sheet: Sheet, start: int, width: int) -> tuple[tuple[Fragment, ...], int]:
    """Return the row that begins with the character `start`, and with which character the next one begins."""
    text = sheet.text
    begin = text.rfind("\n", 0, start) + 1
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
    stop = _fitting(text, start, end, width)
    if stop < end and text[start:stop].strip(" "):
        stop = start + len(text[start:stop].rstrip(" "))  # a space is not seen at the end of a row
    line = text[begin : begin + 5]
    style = _style(line) if sheet.is_diff else ""
    fragments = [(f"{style} reverse" if is_token else style, part) for part, is_token in tokens(text[start:stop])]
    gutter = ("", LINE if start == begin else CONTINUED)
    return (gutter, *fragments), stop + 1 if stop == end else stop


def _style(line: str) -> str:
    return "bold" if line.startswith(_HEADS) else _STYLES.get(line[:1], "")


def _fitting(text: str, start: int, end: int, width: int) -> int:
    """Return the end of as much as fits into `width`, and of one character at least."""
    stop = min(end, start + width)
    if not (part := text[start:stop]).isascii():
        used = 0
        for index, char in enumerate(part):
            used += _columns(char)
            if used > width:
                return start + max(1, index)
    return stop


@lru_cache(maxsize=4096)
def _columns(char: str) -> int:
    from unicodedata import category, east_asian_width

    is_wide = not char.isascii() and (east_asian_width(char) in "AFW" or category(char) == "So")
    return 2 if is_wide else 1


def _hidden_text(sheets: Sequence[Sheet], start: Position, after: Position | None, key: str) -> str:
    """Return how much is not on the page, and how to see it; nothing where all is."""
    below = _amount(sheets, after, Position(len(sheets))) if after else ""
    above = _amount(sheets, Position(), start) if start != Position() else ""
    if below and above:
        return f"not on the screen: {below} below, {above} above; {key} goes on"
    if below:
        return f"not on the screen: {below}; {key} shows more"
    return f"not on the screen: {above} above; {key} starts again" if above else ""


def _amount(sheets: Sequence[Sheet], start: Position, stop: Position) -> str:
    """Return how many lines, the first or last in part, and characters there are between two places."""
    parts: list[str] = []
    for number, sheet in enumerate(sheets):
        first = start.offset if number == start.sheet else 0
        last = stop.offset if number == stop.sheet else len(sheet.text) + 1
        if start.sheet <= number <= stop.sheet and first < last:
            parts.append(sheet.text[first:last].removesuffix("\n") if number == stop.sheet else sheet.text[first:])
    characters = sum(len(part) - part.count("\n") for part in parts)
    lines = sum(part.count("\n") + 1 for part in parts)
    return f"{count_text(lines, 'line')}, {count_text(characters, 'character')}"
