"""The blocks of a Markdown text as they are met, top down: what a parser says and a layout shows."""

from __future__ import annotations

import msgspec

from jp.render.lines import Alignment


class EnterQuote(msgspec.Struct, frozen=True):
    """A block quote begins."""


class EnterItem(msgspec.Struct, frozen=True):
    """A list item begins; `number` is None for a bullet, `kind` the bullet or what follows the number."""

    kind: str
    number: int | None


class Leave(msgspec.Struct, frozen=True):
    """The innermost quote or item ends."""


class Heading(msgspec.Struct, frozen=True):
    """A heading."""

    level: int
    text: str


class Text(msgspec.Struct, frozen=True):
    """The first or the next segment of a paragraph's source."""

    text: str


class ParagraphEnd(msgspec.Struct, frozen=True):
    """The paragraph is complete."""


class CodeStart(msgspec.Struct, frozen=True):
    """Code begins; indented code has no `fence`."""

    fence: str
    info: str


class CodeLine(msgspec.Struct, frozen=True):
    """A line of code."""

    text: str


class CodeEnd(msgspec.Struct, frozen=True):
    """The code is complete; `fence` is that of its start."""

    fence: str


class Verbatim(msgspec.Struct, frozen=True):
    """A line that is shown as it stands: HTML, displayed mathematics, a definition."""

    text: str


class TableStart(msgspec.Struct, frozen=True):
    """A table begins."""

    head: tuple[str, ...]
    alignments: tuple[Alignment | None, ...]


class TableRow(msgspec.Struct, frozen=True):
    """A row of the table; it may have more or fewer cells than the head."""

    cells: tuple[str, ...]


class TableEnd(msgspec.Struct, frozen=True):
    """The table is complete."""


class Rule(msgspec.Struct, frozen=True):
    """A thematic break."""


class Blank(msgspec.Struct, frozen=True):
    """A blank line between blocks."""


BlockEvent = (
    EnterQuote
    | EnterItem
    | Leave
    | Heading
    | Text
    | ParagraphEnd
    | CodeStart
    | CodeLine
    | CodeEnd
    | Verbatim
    | TableStart
    | TableRow
    | TableEnd
    | Rule
    | Blank
)
