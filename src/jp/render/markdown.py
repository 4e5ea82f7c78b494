"""Markdown on a terminal while it streams: every line is written once, when nothing can change it any more.

The source of the blocks that are still open is kept and parsed again with each line: a long list, quote, table or
code block stays linear because what was shown is dropped, and only a synthetic line is left of it (`jp.render.blocks`).
Running text is shown as soon as a line of it is full. The output depends on the text alone, not on the pieces in which
it came.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from io import StringIO
from itertools import groupby, zip_longest

from msgspec.structs import replace
from rich import box
from rich.color import ColorSystem
from rich.console import Console, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from jp.render.blocks import (
    SEGMENT,
    BlockParser,
    Container,
    Flow,
    InlineParser,
    Leaf,
    Segmenter,
    expand_marker_tabs,
    opening_lines,
    wrap,
)
from jp.render.highlight import Highlighter
from jp.render.sanitize import Sanitizer, hyperlink, one_line
from jp.render.tables import cell_width
from jp.render.theme import Look, Measure, styled

LOOK_AHEAD = 80
"""After so many characters it is known what a line is: the rest of running text is shown while it comes."""

_NOT_TEXT = "#<[|~$\\=-+:"
"""First characters of lines that are no running text, or that only the whole line tells apart from it."""

_MAY_BECOME_MARKER = re.compile(r"\d{1,9}[.)]?\Z")
_DEFINITION = re.compile(r"\[[^\]\s][^\]]*\]:(?:[ \t]|\Z)")
_SPACED = ("heading", "fence", "code_block", "table", "hr")
_STREAMED = ("paragraph", "fence", "code_block", "html_block", "math_block", "table")
_ROWS = 40
"""So many rows of a table are laid out together; longer tables repeat their head."""

_HEADING = "bold magenta"
_NARROWEST = 12
_NARROWEST_COLUMN = 5
_SEPARATOR = 3
_MOST_BLANKS = 8
_LONGEST_PREVIEW = 2000
_CODE_INDENT = "    "


class MarkdownStream:
    """Renders texts one after the other, each in any number of pieces.

    With `measure`, lines are as wide as the terminal is when they are laid out.
    """

    def __init__(self, look: Look, measure: Measure | None = None) -> None:
        self._look = look
        self._measure = measure
        self._parser = BlockParser()
        self._inline = InlineParser(look)
        self._start()

    def _start(self) -> None:
        self._layout = _Layout(self._look, self._inline)
        self._sanitizer = Sanitizer()
        self._held: list[str] = []
        self._size = 0
        self._line = ""  # the beginning of a line that may still become anything
        self._was_tried = False  # that beginning is long enough, and is no running text
        self._in_line = False  # running text of which the line feed is still to come
        self._path: tuple[Container, ...] = ()
        self._leaf: Leaf | None = None  # shown in part
        self._pending: list[str] = []  # source of which nothing was shown

    def feed(self, text: str) -> str:
        """Add to the text, and return the lines that are final: whole ones, or nothing."""
        self._held.append(text)
        self._size += len(text)
        if self._size < SEGMENT and "\n" not in text:
            return ""
        self._read_held()
        return self._layout.take()

    def preview(self) -> str:
        """Return the line that is coming and is not final; empty where there is none."""
        rest = "\n".join([*self._pending, f"{self._line}{''.join(self._held)}"])
        return self._layout.preview(rest, separator="" if self._in_line else "\n")

    def settle(self) -> str:
        """Return what is held back of running text, although it may go on."""
        self._read_held()
        if self._line and not self._in_line and not _MAY_BECOME_MARKER.match(self._line.strip()):
            self._begin_line(self._line)
        if not self._in_line:
            self._read(force=True)
        self._layout.flush_text()
        return self._layout.take()

    def finish(self) -> str:
        """Return the rest. What is fed next is another text."""
        self._read_held(is_last=True)
        if self._line:
            self._add_line(self._line)
        self._read(is_last=True)
        self._layout.end_leaf()
        shown = self._layout.take()
        self._start()
        return shown

    def _read_held(self, *, is_last: bool = False) -> None:
        if self._measure is not None:
            self._layout.fit(self._measure())
        text = self._sanitizer.feed("".join(self._held))
        if is_last:
            text += self._sanitizer.finish()
        self._held.clear()
        self._size = 0
        *lines, last = text.split("\n")
        for line in lines:
            self._extend(line)
            self._end_line()
        self._extend(last)

    def _extend(self, text: str) -> None:
        """Read more of a line."""
        if self._in_line:
            self._layout.add_text(text)
            return
        self._line += text
        if not self._was_tried and len(self._line) >= LOOK_AHEAD:
            self._was_tried = True
            self._begin_line(self._line)

    def _end_line(self) -> None:
        if not self._in_line:
            self._add_line(self._line)
        self._line, self._was_tried, self._in_line = "", False, False

    def _begin_line(self, line: str) -> None:
        """Show the beginning of a line as running text, if it is certain that it is some."""
        beginning, rest = line[:LOOK_AHEAD], line[LOOK_AHEAD:]
        if self._leaf is not None and self._leaf.kind != "paragraph":
            return
        source = [*self._head(), *self._pending, expand_marker_tabs(beginning)]
        leaf = self._parse(source)[-1:]
        if not leaf or leaf[0].kind != "paragraph" or leaf[0].end != len(source):
            return
        body = leaf[0].content.rpartition("\n")[2]
        if "|" in body or body[:1] in _NOT_TEXT or not any(map(str.isalnum, body)):
            return
        self._add_line(beginning, force=True)
        self._line, self._in_line = "", True
        self._layout.add_text(rest)

    def _add_line(self, line: str, *, force: bool = False) -> None:
        if self._leaf is None or self._leaf.kind != "fence":
            line = expand_marker_tabs(line)
            blanks = self._pending[-_MOST_BLANKS:]
            if len(blanks) == _MOST_BLANKS and not line.strip(" >") and not any(old.strip(" >") for old in blanks):
                return
        self._pending.append(line)
        self._read(force=force)

    def _head(self) -> list[str]:
        """Return the lines that open what is open."""
        lines = opening_lines(self._path)
        indent = "".join(container.indent for container in self._path)
        return lines if self._leaf is None else [*lines, *(indent + line for line in self._leaf.context())]

    def _parse(self, source: Sequence[str]) -> list[Leaf]:
        """Return the leaves of source that begins with `_head`, the first of which is the one that is shown in part."""
        is_shown = self._leaf is not None and self._leaf.kind == "paragraph"
        return self._parser.parse(source, self._path, underlines=not is_shown)

    def _read(self, *, is_last: bool = False, force: bool = False) -> None:
        """Show what is final of the source that is held; with `force`, of running text all."""
        head = self._head()
        source = [*head, *self._pending]
        leaves = self._parse(source) if self._pending else []
        if is_last or not leaves:
            end = None
        else:
            end = leaves[-1]
            is_over = end.kind == "html_block" and self._is_over(end, source)
            end.is_closed |= is_over or end.kind not in _STREAMED
            end.is_closed |= end.end < len(source) and end.kind != "code_block"
        path, partial, position = self._path, self._leaf, len(head)
        held = 0
        for leaf in leaves:
            is_continued = partial is not None and leaf is leaves[0]
            if not is_continued:
                if leaf is end and not self._is_ready(leaf, force=force):
                    break
                self._layout.begin_leaf(leaf, has_gap=leaf.start > position)
            is_open = leaf is end and not leaf.is_closed
            held = self._show(leaf, source, is_continued=is_continued, is_open=is_open and not force)
            if not is_open:
                self._layout.end_leaf()
            path, partial, position = leaf.path, leaf if is_open else None, leaf.end
        self._path, self._leaf = path, partial
        self._pending = source[position - held :]

    @staticmethod
    def _is_ready(leaf: Leaf, *, force: bool) -> bool:
        """Return whether the last leaf can be shown: nothing that comes can turn it into something else."""
        if leaf.kind != "paragraph" or leaf.is_closed or force:
            return leaf.kind != "empty"
        lines = leaf.content.split("\n")
        shown = lines[:-1] if "|" in lines[-1] else lines
        return sum(map(len, shown)) >= SEGMENT

    def _is_over(self, html: Leaf, source: Sequence[str]) -> bool:
        """Return whether no more lines can belong to the HTML."""
        indent = "".join(container.indent for container in html.path)
        return self._parse([*source, f"{indent}x"])[-1].kind != "html_block"

    def _show(self, leaf: Leaf, source: Sequence[str], *, is_continued: bool, is_open: bool) -> int:
        """Show what is new of a leaf, and return how many of its lines are held back."""
        if leaf.kind != "paragraph":
            self._layout.show(leaf, is_continued=is_continued)
            return 0
        lines = leaf.content.split("\n")
        if leaf.end == len(source):  # markdown-it takes the blanks away, but more of the line may come
            last = source[-1]
            lines[-1] += last[len(last.rstrip()) :]
        held = int(is_open and "|" in lines[-1] and len(lines) > int(is_continued))
        for number, line in enumerate(lines[: len(lines) - held]):
            if is_continued and number == 0:
                continue
            separator = "" if number == 0 else "  \n" if _DEFINITION.match(line) else "\n"
            self._layout.add_text(separator + line)
        return held


class _Level:
    """A container that is shown: what its lines begin with, and what its first line does."""

    def __init__(self, container: Container, look: Look) -> None:
        self.container = container
        bullet = "•" if look.unicode else "-"
        self.first = f"{container.marker or bullet} " if container.is_item else ""
        bar = "│" if look.unicode else "|"
        self.width = cell_width(self.first) if container.is_item else cell_width("| ")
        self.prefix = " " * self.width if container.is_item else f"{styled(bar, '2' if look.color else '')} "


class _Layout:
    """Lays out leaves as lines, within the bars of quotes and the markers of items."""

    def __init__(self, look: Look, inline: InlineParser) -> None:
        self._look = look
        self._inline = inline
        self._colors = (ColorSystem.TRUECOLOR if look.truecolor else ColorSystem.EIGHT_BIT) if look.color else None
        self._console = Console(file=StringIO(), force_terminal=True, width=look.width)
        self._levels: list[_Level] = []
        self._lines: list[str] = []
        self._leaf: Leaf | None = None
        self._is_empty = True
        self._wants_gap = False
        self._segmenter = Segmenter(inline)
        self._flow = Flow(self._console)
        self._highlighter = Highlighter("", look)
        self._rows: list[list[str]] = []  # of the open table, not shown yet
        self._has_head = False

    def fit(self, width: int) -> None:
        """Lay out for another width of the terminal from here on."""
        if width != self._look.width:
            self._look = replace(self._look, width=width)

    def take(self) -> str:
        """Return the lines that were not taken yet."""
        lines, self._lines = self._lines, []
        return "".join(lines)

    def preview(self, rest: str, *, separator: str) -> str:
        """Return the line that is under way, if `rest` follows."""
        held = self._flow.held + self._segmenter.held
        text = one_line((held + (separator if held else "") + rest)[:_LONGEST_PREVIEW])
        prefix = "".join(level.first or " " * level.width for level in self._levels) if self._leaf else ""
        return prefix + text if text else ""

    def begin_leaf(self, leaf: Leaf, *, has_gap: bool) -> None:
        """Open a leaf and its containers; `has_gap` says that blank lines come before it in the source."""
        before = [level.container for level in self._levels]
        shared = 0
        while shared < min(len(before), len(leaf.path)) and before[shared] is leaf.path[shared]:
            shared += 1
        changed = [(before, index) for index in range(shared, len(before))]
        changed += [(list(leaf.path), index) for index in range(shared, len(leaf.path))]
        is_quote = any(
            not path[index].is_item and not any(container.is_item for container in path[:index])
            for path, index in changed
        )
        is_spaced = leaf.kind in _SPACED and not any(container.is_item for container in leaf.path)
        gap = has_gap or self._wants_gap or is_quote or is_spaced
        if gap and not self._is_empty:
            self._lines.append("".join(level.prefix for level in self._levels[:shared]).rstrip(" ") + "\n")
        self._wants_gap = is_spaced
        self._levels = self._levels[:shared] + [_Level(container, self._look) for container in leaf.path[shared:]]
        self._leaf = leaf
        self._has_head = False
        if leaf.kind in {"fence", "code_block"}:
            self._highlighter = Highlighter(leaf.info, self._look)
        if leaf.kind == "fence":
            self._write_dim(leaf.markup + leaf.info)

    def end_leaf(self) -> None:
        """Close the leaf that is open."""
        leaf = self._leaf
        if leaf is None:
            return
        if leaf.kind == "paragraph":
            self.flush_text()
        elif leaf.kind == "fence":
            self._write_dim(leaf.markup)
        elif leaf.kind == "table":
            self._flush_rows(is_last=True)
        self._leaf = None

    def add_text(self, source: str) -> None:
        """Add to the open paragraph."""
        for segment in self._segmenter.feed(source):
            self._write_all(self._flow.feed(self._inline.parse(segment), self._text_width()))

    def flush_text(self) -> None:
        """Show all of the open paragraph."""
        rest = self._segmenter.rest().rstrip()
        if rest:
            self._write_all(self._flow.feed(self._inline.parse(rest), self._text_width()))
        self._write_all(self._flow.finish(self._text_width()))

    def show(self, leaf: Leaf, *, is_continued: bool) -> None:
        """Show what is new of a leaf that is no paragraph; of a continued one, the first line is known."""
        lines = leaf.lines[int(is_continued and leaf.kind != "fence") :]
        match leaf.kind:
            case "heading":
                text = self._inline.parse(f"{'#' * leaf.level} {leaf.content}", _HEADING)
                self._write_all(wrap(text, self._text_width(), self._console))
            case "hr":
                self._write_dim(("─" if self._look.unicode else "-") * self._text_width())
            case "fence":
                self._write_all([self._highlighter.line(line) for line in lines])
            case "table":
                self._rows += leaf.rows[1:]
                self._flush_rows()
            case "empty":
                self._write("")
            case _:
                indent = _CODE_INDENT if leaf.kind == "code_block" else ""
                for line in lines:
                    self._write(f"{indent}{line}" if line else "")

    def _flush_rows(self, *, is_last: bool = False) -> None:
        if self._leaf is None:
            return
        while len(self._rows) >= _ROWS or (is_last and self._rows) or (is_last and not self._has_head):
            self._write_rows(self._leaf, self._rows[:_ROWS])
            del self._rows[:_ROWS]
            self._has_head = True

    def _write_rows(self, table: Leaf, rows: list[list[str]]) -> None:
        head = [self._inline.parse(cell, "bold") for cell in table.rows[0]]
        cells = [[self._inline.parse(cell) for cell in row] for row in rows]
        width = self._within(self._look.width)
        if width < len(head) * (_NARROWEST_COLUMN + _SEPARATOR):
            self._write_records(head, cells)
            return
        natural = [max(cell.cell_len for cell in column) for column in zip(head, *cells, strict=True)]
        grid = Table(
            box=box.SQUARE if self._look.unicode else box.ASCII2,
            show_edge=False,
            pad_edge=False,
            show_lines=sum(natural) + _SEPARATOR * (len(natural) - 1) > width,
            border_style="dim",
            header_style="",
        )
        for name, alignment in zip(head, table.alignments, strict=True):
            grid.add_column(name, justify=alignment, overflow="fold")
        for row in cells:
            grid.add_row(*row)
        self._write_all(self._render(grid, width))

    def _write_records(self, head: list[Text], rows: list[list[Text]]) -> None:
        """Show a table that is too wide with its cells one below the other."""
        for number, row in enumerate(rows or [[]]):
            if number:
                self._write("")
            for name, cell in zip_longest(head, row, fillvalue=Text()):
                record = Text.assemble(name, ": ", cell) if row else name
                self._write_all(wrap(record, self._within(self._look.width), self._console))

    def _render(self, renderable: RenderableType, width: int) -> list[Text]:
        options = self._console.options.update(width=width)
        lines = self._console.render_lines(renderable, options, pad=False)
        return [Text.assemble(*((part.text, part.style or "") for part in line)) for line in lines]

    def _within(self, width: int) -> int:
        return max(width - sum(level.width for level in self._levels), min(_NARROWEST, width))

    def _text_width(self) -> int:
        return self._within(self._look.text_width)

    def _write_dim(self, text: str) -> None:
        if text:
            self._write(styled(text, "2" if self._look.color else ""))

    def _write_all(self, lines: Sequence[Text]) -> None:
        for line in lines:
            line.rstrip()
            self._write(self._paint(line.render(self._console, end="")))

    def _paint(self, segments: Iterable[Segment]) -> str:
        """Return segments in their styles. A link is one sequence, without the id that rich draws by lot."""
        painted: list[str] = []
        for target, parts in groupby(segments, lambda part: part.style.link if part.style else None):
            text = "".join(
                part.style.update_link(None).render(part.text, color_system=self._colors) if part.style else part.text
                for part in parts
            )
            painted.append(text if target is None else hyperlink(text, target))
        return "".join(painted)

    def _write(self, text: str) -> None:
        prefix = ""
        for level in self._levels:
            prefix += level.first or level.prefix
            level.first = ""
        self._lines.append((f"{prefix}{text}" if text else prefix.rstrip(" ")) + "\n")
        self._is_empty = False


def render_markdown(text: str, look: Look) -> str:
    """Return the lines of a whole text."""
    stream = MarkdownStream(look)
    return stream.feed(text) + stream.finish()
