"""Blocks of Markdown to lines of a terminal. Every line is written once, as soon as nothing can change it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from msgspec.structs import replace

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
from jp.render.grid import Grid
from jp.render.highlight import Highlighter
from jp.render.inline import HARD_BREAK, Inline
from jp.render.margin import DIM, Margin
from jp.render.sanitize import one_line
from jp.render.theme import Look
from jp.render.wrap import Line, Run, Wrapper, paint

_HEADING_STYLE = "1;35"
_CODE_INDENT = "    "
_LONGEST_PREVIEW = 2000


class Layout:
    """Lays out the blocks of one text."""

    def __init__(self, look: Look, inline: Inline) -> None:
        self._look = look
        self._inline = inline
        self._margin = Margin(look)
        self._wrapper: Wrapper | None = None
        self._grid: Grid | None = None
        self._highlighter: Highlighter | None = None
        self._is_fenced = False

    def fit(self, width: int) -> None:
        """Lay out for another width of the terminal from the next line on; a table that is under way keeps its own."""
        if width == self._look.width:
            return
        self._look = replace(self._look, width=width)
        if self._wrapper is not None:
            self._wrapper.fit(self._margin.width_within(self._look.text_width))

    def show(self, events: Iterable[BlockEvent]) -> str:
        """The lines of `events` that can be shown."""
        for event in events:
            match event:
                case Text() | ParagraphEnd():
                    self._show_text(event)
                case CodeStart() | CodeLine() | CodeEnd():
                    self._show_code(event)
                case Heading() | Rule() | Verbatim():
                    self._show_line(event)
                case TableStart() | TableRow() | TableEnd():
                    self._show_table(event)
                case EnterQuote() | EnterItem() | Leave() | Blank():
                    self._move(event)
                case _:
                    assert_never(event)
        return self._margin.take()

    def settle(self) -> str:
        """The line of the open paragraph that is not full yet."""
        if self._wrapper is not None:
            self._write(self._wrapper.finish())
        return self._margin.take()

    def preview(self, rest: str) -> str:
        """The line that is under way, as well as it is known, if `rest` is what follows."""
        held = self._wrapper.held if self._wrapper else ""
        text = one_line((held + rest)[:_LONGEST_PREVIEW])
        return self._margin.next_prefix + text if text else ""

    def _move(self, event: EnterQuote | EnterItem | Leave | Blank) -> None:
        match event:
            case EnterQuote():
                self._margin.enter_quote()
            case EnterItem(kind=kind, number=number):
                self._margin.enter_item(number, kind)
            case Leave():
                self._margin.leave()
            case Blank():
                self._margin.blank()
            case _:
                assert_never(event)

    def _show_text(self, event: Text | ParagraphEnd) -> None:
        if isinstance(event, ParagraphEnd):
            self._end_paragraph()
            return
        if self._wrapper is None:
            self._margin.begin_block()
            self._wrapper = self._new_wrapper()
        _add(self._wrapper, self._inline.runs(event.text))
        self._write(self._wrapper.take())

    def _end_paragraph(self) -> None:
        if self._wrapper is not None:
            self._write(self._wrapper.finish())
            self._wrapper = None

    def _show_code(self, event: CodeStart | CodeLine | CodeEnd) -> None:
        match event:
            case CodeStart(fence=fence, info=info):
                self._margin.begin_block(is_spaced=True)
                self._highlighter = Highlighter(info, self._look)
                self._is_fenced = bool(fence)
                self._write_dim(fence + info)
            case CodeLine(text=text):
                shown = self._highlighter.line(text) if self._highlighter else text
                self._margin.write(shown if self._is_fenced or not shown else f"{_CODE_INDENT}{shown}")
            case CodeEnd(fence=fence):
                self._highlighter = None
                self._write_dim(fence)
            case _:
                assert_never(event)

    def _show_line(self, event: Heading | Rule | Verbatim) -> None:
        self._margin.begin_block(is_spaced=not isinstance(event, Verbatim))
        match event:
            case Heading(level=level, text=text):
                style = _HEADING_STYLE if self._look.colour else ""
                wrapper = self._new_wrapper()
                _add(wrapper, [(f"{'#' * level} ", style), *self._inline.runs(text, style)])
                self._write(wrapper.finish())
            case Rule():
                self._write_dim(("─" if self._look.unicode else "-") * self._margin.width_within(self._look.text_width))
            case Verbatim(text=text):
                self._margin.write(text)
            case _:
                assert_never(event)

    def _show_table(self, event: TableStart | TableRow | TableEnd) -> None:
        lines: list[str] = []
        if isinstance(event, TableStart):
            self._margin.begin_block(is_spaced=True)
            width = self._margin.width_within(self._look.width)
            self._grid = Grid(event.head, event.alignments, inline=self._inline, look=self._look, width=width)
        elif self._grid is not None:
            lines = self._grid.add(event.cells) if isinstance(event, TableRow) else self._grid.finish()
        for line in lines:
            self._margin.write(line)

    def _new_wrapper(self) -> Wrapper:
        return Wrapper(self._margin.width_within(self._look.text_width))

    def _write(self, lines: Iterable[Line]) -> None:
        for line in lines:
            self._margin.write(paint(line))

    def _write_dim(self, text: str) -> None:
        if text:
            self._margin.write(paint([(text, DIM if self._look.colour else "")]))


def _add(wrapper: Wrapper, runs: Iterable[Run]) -> None:
    for text, style in runs:
        if text == HARD_BREAK:
            wrapper.newline()
        else:
            wrapper.add(text, style)
