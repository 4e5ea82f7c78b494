"""What a line of Markdown begins: the recognisers of CommonMark 0.31 and of GitHub's tables, each for one line.

A `body` is a line without its containers' markers and without its leading white space.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

LOOK_AHEAD = 80
"""Within how many characters of a line it shows that the line may head a table, or defines a reference.

A longer line is shown while it is still coming, so what it is has to be known by then.
"""

CODE_INDENT = 4
_DEEPEST_HEADING = 6
_MARKER_ROOM = 5

Alignment = Literal["left", "center", "right"]

_BEGINS_BLOCKS = frozenset("#<[|~$\\=-+>:")
"""What may begin a line that is no running text, containers and fences aside."""

_RULE = re.compile(r"(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})\Z")
_SETEXT = re.compile(r"(?:(=+)|-+)[ \t]*\Z")
_BULLET = re.compile(r"[-+*](?=[ \t]|\Z)")
_NUMBER = re.compile(r"(\d{1,9})([.)])(?=[ \t]|\Z)", re.ASCII)
_DEFINITION = re.compile(r"\[[^\]\s][^\]]*\]:(?:[ \t]|\Z)")
_DELIMITER_ROW = re.compile(r"(?:-(?![ \t])|[|:])[|: \t-]+\Z")
_DELIMITER_CELL = re.compile(r":?-+:?\Z")
_PIPE = re.compile(r"(?<!\\)\|")

_HTML_NAMES = (
    "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt"
    "|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|main|menu"
    "|menuitem|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|title|tr"
    "|track|ul"
)
_ATTRIBUTE = r"""(?:\s+[A-Za-z_:][\w.:-]*(?:\s*=\s*(?:[^\s"'=<>`]+|'[^']*'|"[^"]*"))?)"""
_HTML_STARTS: tuple[tuple[re.Pattern[str], re.Pattern[str] | None], ...] = (
    (
        re.compile(r"<(?:script|pre|style|textarea)(?:[\s>]|\Z)", re.IGNORECASE),
        re.compile(r"</(?:script|pre|style|textarea)>", re.IGNORECASE),
    ),
    (re.compile(r"<!--"), re.compile(r"-->")),
    (re.compile(r"<\?"), re.compile(r"\?>")),
    (re.compile(r"<![A-Za-z]"), re.compile(r">")),
    (re.compile(r"<!\[CDATA\["), re.compile(r"\]\]>")),
    (re.compile(rf"</?(?:{_HTML_NAMES})(?:\s|/?>|\Z)", re.IGNORECASE), None),
)
_HTML_TAG_ALONE = re.compile(rf"(?:<[A-Za-z][A-Za-z0-9-]*{_ATTRIBUTE}*\s*/?>|</[A-Za-z][A-Za-z0-9-]*\s*>)\s*\Z")
_LONGEST_TAG = 1000
"""Beyond this, a line that is one tag is not recognised: attributes are matched with backtracking."""

_MATH_STARTS: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...] = (
    (re.compile(r"\$\$"), re.compile(r"\$\$[ \t]*\Z")),
    (re.compile(r"\\\["), re.compile(r"\\\][ \t]*\Z")),
    (re.compile(r"\\begin\{"), re.compile(r"\\end\{[^}]*\}[ \t]*\Z")),
)


class Rest(msgspec.Struct, frozen=True):
    """What is left of a line: `indent` columns of white space from `column` on, then `body`.

    `lead` is that white space as it was written, empty where a part of it was taken.
    """

    indent: int
    body: str
    column: int = 0
    lead: str = ""

    @property
    def text(self) -> str:
        """The line; tabs that a part was taken of are spaces."""
        return (self.lead or " " * self.indent) + self.body

    def after(self, size: int) -> Rest:
        """What follows `size` characters of the body."""
        return measure(self.body[size:], self.column + self.indent + size)

    def dedent(self, columns: int) -> Rest:
        """The same with `columns` of its white space taken off, or all of it."""
        taken = min(columns, self.indent)
        return Rest(self.indent - taken, self.body, self.column + taken) if taken else self


class Marker(msgspec.Struct, frozen=True):
    """A list item's marker. `number` is None for a bullet; `kind` is what items of one list have in common."""

    kind: str
    number: int | None
    size: int


def measure(text: str, column: int = 0) -> Rest:
    """`text`, which begins at `column`, with its leading white space in columns; tabs reach to multiples of 4."""
    body = text.lstrip(" \t")
    lead = text[: len(text) - len(body)]
    if "\t" not in lead:
        return Rest(len(lead), body, column)
    end = column
    for character in lead:
        end += 4 - end % 4 if character == "\t" else 1
    return Rest(end - column, body, column, lead)


def is_rule(body: str) -> bool:
    """Whether a line is a thematic break."""
    return body[:1] in {"*", "-", "_"} and _RULE.match(body) is not None


def heading(body: str) -> tuple[int, str] | None:
    """The level and text of an ATX heading."""
    after = body.lstrip("#")
    level = len(body) - len(after)
    if not 0 < level <= _DEEPEST_HEADING or after[:1] not in {"", " ", "\t"}:
        return None
    text = after.strip(" \t")
    closed = text.rstrip("#")
    if closed[-1:] in {"", " ", "\t"}:
        text = closed.rstrip(" \t")
    return level, text


def setext_level(body: str) -> int:
    """The level of the heading that this line makes of the paragraph before it, 0 for none."""
    found = _SETEXT.match(body) if body[:1] in {"=", "-"} else None
    if found is None:
        return 0
    return 1 if found[1] else 2


def fence(body: str) -> tuple[str, str] | None:
    """The fence that opens here, and its info string."""
    if not body.startswith(("```", "~~~")):
        return None
    after = body.lstrip(body[0])
    if body[0] == "`" and "`" in after:
        return None
    return body[: len(body) - len(after)], after.strip(" \t")


def closes_fence(opening: str, rest: Rest) -> bool:
    """Whether the fence that began with `opening` ends here."""
    bare = rest.body.rstrip(" \t")
    return rest.indent < CODE_INDENT and len(bare) >= len(opening) and bare == opening[0] * len(bare)


def marker(body: str) -> Marker | None:
    """The list item that begins here."""
    if body[:1] in {"-", "+", "*"}:
        return Marker(body[0], None, 1) if _BULLET.match(body) else None
    found = _NUMBER.match(body) if body[:1].isdigit() else None
    return Marker(found[2], int(found[1]), found.end()) if found else None


def content_indent(after: Rest) -> int:
    """How many columns lie between a marker and its item's content, given what follows the marker."""
    return after.indent if after.body and 0 < after.indent < _MARKER_ROOM else 1


def html_end(body: str, *, interrupts: bool) -> tuple[bool, re.Pattern[str] | None]:
    """Whether HTML begins here, and what ends it; None is a blank line.

    `interrupts`: a paragraph is open, which a tag that stands alone does not end.
    """
    if not body.startswith("<"):
        return False, None
    for start, end in _HTML_STARTS:
        if start.match(body):
            return True, end
    return not interrupts and len(body) <= _LONGEST_TAG and _HTML_TAG_ALONE.match(body) is not None, None


def math_end(body: str) -> re.Pattern[str] | None:
    """What ends the displayed mathematics that begins here."""
    if body[:1] in {"$", "\\"}:
        for start, end in _MATH_STARTS:
            if start.match(body):
                return end
    return None


def is_definition(body: str) -> bool:
    """Whether a line defines a link reference or a footnote."""
    return body.startswith("[") and _DEFINITION.match(body[:LOOK_AHEAD]) is not None


def may_head_table(body: str) -> bool:
    """Whether a line becomes a table's head if a delimiter row follows."""
    return "|" in body[:LOOK_AHEAD]


def alignments(body: str) -> list[Alignment | None] | None:
    """The columns that a delimiter row declares; None where a line is none."""
    if _DELIMITER_ROW.match(body) is None:
        return None
    columns: list[Alignment | None] = []
    for cell in cells(body):
        if _DELIMITER_CELL.match(cell) is None:
            return None
        left, right = cell.startswith(":"), cell.endswith(":")
        columns.append("center" if left and right else "left" if left else "right" if right else None)
    return columns or None


def cells(body: str) -> list[str]:
    """The cells of a table's row, trimmed; an escaped pipe is a pipe."""
    parts = [cell.strip().replace("\\|", "|") for cell in _PIPE.split(body.strip())]
    if parts and not parts[0] and body.lstrip().startswith("|"):
        parts = parts[1:]
    if parts and not parts[-1] and body.rstrip().endswith("|"):
        parts = parts[:-1]
    return parts


def is_running_text(body: str) -> bool:
    """Whether a line that begins so is running text, unless it turns out to head a table."""
    if body[:1] in _BEGINS_BLOCKS or body.startswith("```") or may_head_table(body):
        return False
    return bool(body.strip("*_ \t"))
