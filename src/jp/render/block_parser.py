"""Markdown's block structure, line by line (CommonMark 0.31 and GitHub's tables): each line is read once.

What a parser that sees the whole text decides later is decided here when it has to be shown:

- a line that underlines a paragraph makes it a heading only while nothing of the paragraph was given out;
- a line heads a table only if it has a pipe among its first `LOOK_AHEAD` characters;
- link references are not resolved: their definitions are given out as they stand.
"""

from __future__ import annotations

import re
from typing import assert_never

from jp.render import lines
from jp.render.blocks import (
    Blank,
    BlockEvent,
    CodeEnd,
    CodeLine,
    CodeStart,
    EnterItem,
    EnterQuote,
    Heading,
    Leave,
    ParagraphEnd,
    Rule,
    TableEnd,
    TableRow,
    TableStart,
    Text,
    Verbatim,
)
from jp.render.cuts import Cutter
from jp.render.lines import CODE_INDENT, Rest

_DEEPEST = 24
"""Containers nested deeper are text: nobody can read them, and each costs every line that follows."""


class _Quote:
    """An open block quote."""


class _Item:
    """An open list item, whose content is `offset` columns in. `is_empty` while only its marker was there."""

    def __init__(self, kind: str, number: int | None, offset: int, *, is_empty: bool) -> None:
        self.kind = kind
        self.number = number
        self.offset = offset
        self.is_empty = is_empty


class _Paragraph:
    """An open paragraph. `held` is its last line where that may head a table."""

    def __init__(self) -> None:
        self.cutter = Cutter()
        self.held = ""
        self.has_text = False
        self.is_shown = False


class _Fence:
    def __init__(self, opening: str, indent: int) -> None:
        self.opening = opening
        self.indent = indent


class _IndentedCode:
    """`blanks` are lines that belong to it only if more code follows."""

    def __init__(self) -> None:
        self.blanks: list[str] = []


class _Verbatim:
    """Lines as they stand, up to the one in which `end` is found, or up to a blank line."""

    def __init__(self, end: re.Pattern[str] | None, *, spans_blanks: bool) -> None:
        self.end = end
        self.spans_blanks = spans_blanks


class _Table:
    """An open table."""


class BlockParser:
    """Reads lines without their line feeds and says what they are."""

    def __init__(self) -> None:
        self._containers: list[_Quote | _Item] = []
        self._leaf: _Paragraph | _Fence | _IndentedCode | _Verbatim | _Table | None = None
        self._events: list[BlockEvent] = []

    @property
    def held(self) -> str:
        """What of the open paragraph was not given out."""
        leaf = self._leaf
        return leaf.cutter.held + leaf.held if isinstance(leaf, _Paragraph) else ""

    def line(self, text: str) -> list[BlockEvent]:
        """Read a line."""
        depth, rest = self._match(lines.measure(text))
        is_inside = depth == len(self._containers)
        if not rest.body:
            self._read_blank(depth, rest)
        elif not (is_inside and self._continue_leaf(rest)):
            self._open(depth, rest)
        return self._take()

    def begin(self, text: str, *, is_certain: bool = True) -> list[BlockEvent] | None:
        """Read the beginning of a line that is still coming; None where it is not known yet what the line is.

        The rest of the line goes to `more`. Unless `is_certain` is asked for, a short line is taken for running text
        where it looks like that.
        """
        if self._leaf is not None and not isinstance(self._leaf, _Paragraph):
            return None
        depth, rest = self._match(lines.measure(text))
        for _ in range(depth, _DEEPEST + 1):
            if rest.indent >= CODE_INDENT:
                return None
            found = None if lines.is_rule(rest.body) else lines.marker(rest.body)
            size = found.size if found else int(rest.body.startswith(">"))
            if not size:
                is_known = not is_certain or len(rest.body) >= lines.LOOK_AHEAD
                return self.line(text) if is_known and lines.is_running_text(rest.body) else None
            after = rest.after(size)
            rest = after.dedent(lines.content_indent(after))
        return None

    def more(self, text: str) -> list[BlockEvent]:
        """Read more of the line that `begin` has begun."""
        if isinstance(self._leaf, _Paragraph):
            self._add_text(self._leaf, text)
        return self._take()

    def settle(self) -> list[BlockEvent]:
        """Give out what there is of an open paragraph, which stays open."""
        if isinstance(self._leaf, _Paragraph):
            self._give_out(self._leaf, self._leaf.cutter.rest())
        return self._take()

    def finish(self) -> list[BlockEvent]:
        """Close whatever is open."""
        self._close_to(0)
        return self._take()

    def _take(self) -> list[BlockEvent]:
        events, self._events = self._events, []
        return events

    def _match(self, rest: Rest) -> tuple[int, Rest]:
        """How many of the open containers a line belongs to, and what is left of it then."""
        for depth, container in enumerate(self._containers):
            if isinstance(container, _Quote):
                if rest.indent >= CODE_INDENT or not rest.body.startswith(">"):
                    return depth, rest
                rest = rest.after(1).dedent(1)
            elif container.is_empty if not rest.body else rest.indent < container.offset:
                return depth, rest
            else:
                container.is_empty = False
                rest = rest.dedent(container.offset)
        return len(self._containers), rest

    def _read_blank(self, depth: int, rest: Rest) -> None:
        if depth == len(self._containers):
            match self._leaf:
                case _Fence():
                    self._events.append(CodeLine(rest.dedent(self._leaf.indent).text))
                    return
                case _IndentedCode():
                    self._leaf.blanks.append(rest.dedent(CODE_INDENT).text)
                    return
                case _Verbatim() if self._leaf.spans_blanks:
                    self._events.append(Verbatim(rest.text))
                    return
                case _:
                    pass
        self._close_to(depth)
        self._events.append(Blank())

    def _continue_leaf(self, rest: Rest) -> bool:
        """Give a line to the open leaf; whether it belongs there."""
        match self._leaf:
            case None:
                return False
            case _Paragraph():
                return rest.indent < CODE_INDENT and self._turn_paragraph(self._leaf, rest.body)
            case _Fence():
                return self._continue_fence(self._leaf, rest)
            case _IndentedCode():
                return self._continue_code(self._leaf, rest)
            case _Verbatim(end=end):
                self._events.append(Verbatim(rest.text))
                if end is not None and end.search(rest.body):
                    self._leaf = None
                return True
            case _Table():
                return self._continue_table(rest)
            case _:
                assert_never(self._leaf)

    def _turn_paragraph(self, paragraph: _Paragraph, body: str) -> bool:
        """Make a table or a heading of the open paragraph, where this line says so."""
        columns = lines.alignments(body) if paragraph.held else None
        if columns is not None and len(columns) == len(head := lines.cells(paragraph.held)):
            paragraph.held = ""
            self._close_leaf()
            self._events.append(TableStart(tuple(head), tuple(columns)))
            self._leaf = _Table()
            return True
        level = lines.setext_level(body)
        if level:
            self._release(paragraph)
        if not level or paragraph.is_shown:
            return False
        self._events.append(Heading(level, paragraph.cutter.rest().strip()))
        self._leaf = None
        return True

    def _continue_fence(self, fence: _Fence, rest: Rest) -> bool:
        if lines.closes_fence(fence.opening, rest):
            self._close_leaf()
        else:
            self._events.append(CodeLine(rest.dedent(fence.indent).text))
        return True

    def _continue_code(self, code: _IndentedCode, rest: Rest) -> bool:
        if rest.indent < CODE_INDENT:
            return False
        self._events += [CodeLine(blank) for blank in code.blanks]
        code.blanks.clear()
        self._events.append(CodeLine(rest.dedent(CODE_INDENT).text))
        return True

    def _continue_table(self, rest: Rest) -> bool:
        if rest.indent >= CODE_INDENT or self._opens_block(rest.body):
            return False
        self._events.append(TableRow(tuple(lines.cells(rest.body))))
        return True

    def _open(self, depth: int, rest: Rest) -> None:
        """Open what a line begins: containers, then a leaf; or go on with the open paragraph."""
        interrupts = isinstance(self._leaf, _Paragraph) and depth == len(self._containers)
        while (inner := self._open_container(depth, rest, interrupts=interrupts)) is not None:
            depth, rest, interrupts = len(self._containers), inner, False
            if not rest.body:
                return
        if isinstance(self._leaf, _Paragraph) and (rest.indent >= CODE_INDENT or not self._opens_leaf(rest.body)):
            self._add_line(self._leaf, rest.body)
            return
        self._close_to(depth)
        self._open_leaf(rest)

    def _open_container(self, depth: int, rest: Rest, *, interrupts: bool) -> Rest | None:
        """Open the quote or item that begins here, and return what follows its marker; None where none begins."""
        if rest.indent >= CODE_INDENT or depth >= _DEEPEST or lines.is_rule(rest.body):
            return None
        if rest.body.startswith(">"):
            self._close_to(depth)
            self._containers.append(_Quote())
            self._events.append(EnterQuote())
            return rest.after(1).dedent(1)
        found = lines.marker(rest.body)
        if found is None:
            return None
        after = rest.after(found.size)
        if interrupts and (not after.body or found.number not in {None, 1}):
            return None
        number = self._number(depth, found)
        self._close_to(depth)
        indent = lines.content_indent(after)
        offset = rest.indent + found.size + indent
        self._containers.append(_Item(found.kind, number, offset, is_empty=not after.body))
        self._events.append(EnterItem(found.kind, number))
        return after.dedent(indent)

    def _number(self, depth: int, found: lines.Marker) -> int | None:
        """The number of an item: one more than that of the item before it in its list."""
        before = self._containers[depth] if depth < len(self._containers) else None
        if isinstance(before, _Item) and before.kind == found.kind and before.number is not None:
            return before.number + 1
        return found.number

    def _opens_block(self, body: str) -> bool:
        return body.startswith(">") or lines.marker(body) is not None or self._opens_leaf(body)

    @staticmethod
    def _opens_leaf(body: str) -> bool:
        """Whether a leaf begins here that ends a paragraph."""
        return (
            lines.heading(body) is not None
            or lines.fence(body) is not None
            or lines.is_rule(body)
            or lines.html_end(body, interrupts=True)[0]
            or lines.math_end(body) is not None
        )

    def _open_leaf(self, rest: Rest) -> None:
        body = rest.body
        if rest.indent >= CODE_INDENT:
            self._leaf = _IndentedCode()
            self._events += [CodeStart("", ""), CodeLine(rest.dedent(CODE_INDENT).text)]
        elif found := lines.heading(body):
            self._events.append(Heading(*found))
        elif found := lines.fence(body):
            self._leaf = _Fence(found[0], rest.indent)
            self._events.append(CodeStart(*found))
        elif lines.is_rule(body):
            self._events.append(Rule())
        elif not self._open_verbatim(rest):
            self._leaf = _Paragraph()
            self._add_line(self._leaf, body)

    def _open_verbatim(self, rest: Rest) -> bool:
        body = rest.body
        is_html, end = lines.html_end(body, interrupts=False)
        formula_end = lines.math_end(body)
        if not is_html and formula_end is None and not lines.is_definition(body):
            return False
        self._events.append(Verbatim(rest.text))
        if is_html and (end is None or end.search(body) is None):
            self._leaf = _Verbatim(end, spans_blanks=end is not None)
        elif formula_end is not None and formula_end.search(body, 2) is None:
            self._leaf = _Verbatim(formula_end, spans_blanks=False)
        return True

    def _add_line(self, paragraph: _Paragraph, body: str) -> None:
        self._release(paragraph)
        if lines.may_head_table(body):
            paragraph.held = body
        else:
            self._add_text(paragraph, f"\n{body}" if paragraph.has_text else body)

    def _release(self, paragraph: _Paragraph) -> None:
        """What was held heads no table: it is text."""
        held, paragraph.held = paragraph.held, ""
        if held:
            self._add_text(paragraph, f"\n{held}" if paragraph.has_text else held)

    def _add_text(self, paragraph: _Paragraph, text: str) -> None:
        paragraph.has_text = True
        for segment in paragraph.cutter.feed(text):
            self._give_out(paragraph, segment)

    def _give_out(self, paragraph: _Paragraph, segment: str) -> None:
        if segment:
            paragraph.is_shown = True
            self._events.append(Text(segment))

    def _close_to(self, depth: int) -> None:
        """Close the leaf, and all containers from `depth` on."""
        self._close_leaf()
        while len(self._containers) > depth:
            self._containers.pop()
            self._events.append(Leave())

    def _close_leaf(self) -> None:
        leaf, self._leaf = self._leaf, None
        match leaf:
            case _Paragraph():
                self._release(leaf)
                self._give_out(leaf, leaf.cutter.rest().rstrip())
                if leaf.is_shown:
                    self._events.append(ParagraphEnd())
            case _Fence():
                self._events.append(CodeEnd(leaf.opening))
            case _IndentedCode():
                self._events.append(CodeEnd(""))
                if leaf.blanks:
                    self._events.append(Blank())
            case _Table():
                self._events.append(TableEnd())
            case _Verbatim() | None:
                pass
            case _:
                assert_never(leaf)
