"""Results as text: tables, facts and trees, drawn by rich on a terminal and plain elsewhere; numbers with units."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, assert_never

import msgspec

if TYPE_CHECKING:
    from rich.console import RenderableType

    from jp.render.theme import Look

_UNITS = ("KiB", "MiB", "GiB", "TiB")
_KIBI = 1024
_SECOND_MS = 1000
_MINUTE = 60
_LEAST_USD = 0.0001
_LARGE_USD = 100
_EXACT = 10_000
_THOUSAND = 1000
_ROUNDS_UP = 999.95


def size_text(size: int) -> str:
    """Return a size in bytes, such as `340 B` or `3.4 KiB`."""
    if size < _KIBI:
        return f"{size} B"
    amount, unit = size / _KIBI, _UNITS[0]
    for larger in _UNITS[1:]:
        if amount < _KIBI:
            break
        amount, unit = amount / _KIBI, larger
    return f"{amount:,.1f} {unit}"


def duration_text(milliseconds: int) -> str:
    """Return a duration, such as `15 ms`, `2.5 s` or `3 min 20 s`."""
    if milliseconds < _SECOND_MS:
        return f"{milliseconds} ms"
    seconds = milliseconds / _SECOND_MS
    return f"{seconds:.1f} s" if seconds < _MINUTE else elapsed_text(round(seconds))


def elapsed_text(seconds: int) -> str:
    """Return an elapsed time, such as `3 s` or `3 min 20 s`."""
    minutes, rest = divmod(seconds, _MINUTE)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def count_text(count: int, noun: str) -> str:
    """Return a count and its noun, such as `1 line` or `1,200 lines`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def money_text(usd: float) -> str:
    """Return an amount of USD, such as `$0.0123` or `$1,234.50`. What is very little is never shown as nothing."""
    if usd == 0:
        return "$0"
    if usd < _LEAST_USD / 2:
        return f"<${_LEAST_USD}"
    return f"${usd:,.4f}" if usd < _LARGE_USD else f"${usd:,.2f}"


def short_count(count: int) -> str:
    """Return a count in at most six characters, such as `9,999`, `12.3k` or `4.6M`."""
    if count < _EXACT:
        return f"{count:,}"
    amount, unit = count / _THOUSAND, "k"
    for larger in ("M", "G", "T"):
        if amount < _ROUNDS_UP:
            break
        amount, unit = amount / _THOUSAND, larger
    return f"{amount:,.1f}{unit}"


_JOINER = "\u200d"
_EMOJI_SELECTOR = "\ufe0f"
_ELLIPSIS = "…"


def cell_width(text: str) -> int:
    """Return the width of a line without control characters: East Asian and emoji characters take two cells."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def clusters(text: str) -> Iterator[tuple[str, int]]:
    """Yield the visible characters of `text` with their widths; marks and joined emoji belong to their base."""
    from rich.cells import cell_len, get_character_cell_size

    cluster, width = "", 0
    for character in text:
        size = get_character_cell_size(character)
        if cluster and (size == 0 or cluster.endswith(_JOINER)):
            cluster += character
            if character == _EMOJI_SELECTOR:
                width = max(width, cell_len(cluster[0] + character))
            continue
        if cluster:
            yield cluster, width
        cluster, width = character, size
    if cluster:
        yield cluster, width


def truncate(text: str, width: int) -> str:
    """Return `text`, cut to `width` cells with an ellipsis where it is wider."""
    if cell_width(text) <= width:
        return text
    if text.isascii() and width > 0:
        return f"{text[: width - 1]}{_ELLIPSIS}"
    kept, used = "", 0
    for cluster, size in clusters(text[: 4 * width]):
        if used + size > width - 1:
            break
        kept += cluster
        used += size
    return f"{kept}{_ELLIPSIS}" if width > 0 else ""


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Return `text` padded with spaces to `width` cells, on the left if it is aligned `right`."""
    fill = " " * (width - cell_width(text))
    return fill + text if right else text + fill


_GAP = "  "
_NARROWEST = 8

Row = Sequence[str]


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """Rows below a head. Each cell is shown as one line without control characters.

    Args:
        right: The columns that are aligned to the right.
        keys: The columns that identify a row, colored on a terminal.
        narrow: A table of the same rows, for where this one does not fit.
        sections: Headings, each with the number of its rows; every section repeats the head.
        note: A line for a terminal that explains abbreviations.
    """

    head: Row
    rows: Sequence[Row]
    right: frozenset[int] = frozenset()
    keys: frozenset[int] = frozenset()
    narrow: Table | None = None
    sections: Sequence[tuple[str, int]] = ()
    note: str = ""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of a label, a value and perhaps a note. `widths` are those of all columns but the last in plain text."""

    title: str
    rows: Sequence[Row]
    widths: Sequence[int]


class Tree(msgspec.Struct, frozen=True, kw_only=True):
    """A label with branches below it. `plain` is the whole as plain text; branches need none."""

    label: str
    branches: Sequence[Tree] = ()
    plain: str = ""


class Colored(msgspec.Struct, frozen=True, kw_only=True):
    """Lines that the caller has colored or linked, and in which every other character is printable."""

    text: str


Part = str | Table | Facts | Tree | Colored
Result = str | Sequence[Part]
"""A text, or parts of it, each of which begins on a line of its own."""


def parts_of(result: Result) -> Sequence[Part]:
    """Return the parts that are not empty texts at the end; a text is one part."""
    return ([result] if result else []) if isinstance(result, str) else result


def plain_text(result: Result, *, width: int | None = None, is_shown: bool = False) -> str:
    """Return a result as plain text.

    Args:
        result: The text or its parts.
        width: Tables are cut to it; without it nothing is cut, as scripts want it.
        is_shown: Whether a terminal may show it, which nothing in it can steer then.
    """
    from jp.render.sanitize import sanitize

    texts = ((part, _plain(part, width)) for part in parts_of(result))
    return "\n".join(sanitize(text) if is_shown and not isinstance(part, Colored) else text for part, text in texts)


def _plain(part: Part, width: int | None) -> str:
    match part:
        case str():
            return part
        case Colored():
            return part.text
        case Table():
            return "\n".join(_table_lines(part, width))
        case Facts():
            return "\n".join(_plain_row(row, part.widths) for row in part.rows)
        case Tree():
            return part.plain
        case _:
            assert_never(part)


def _plain_row(row: Row, widths: Sequence[int]) -> str:
    padded = (pad(cell, width) for cell, width in zip(row, widths, strict=False))
    return "".join([*padded, *row[len(widths) :]]).rstrip()


def _table_lines(table: Table, width: int | None) -> list[str]:
    """Return a table in lines. In a smaller `width` it is the narrow one, whose last column gives way."""
    if not table.rows:
        return _sectioned(table, [], [])
    lines = _aligned(table, None)
    if width is not None and max(map(cell_width, lines)) > width:
        table = table.narrow or table
        lines = _aligned(table, width)
    return _sectioned(table, lines[:1], lines[1:])


def _aligned(table: Table, width: int | None) -> list[str]:
    from jp.render.sanitize import one_line

    cells = [[one_line(cell) for cell in row] for row in (table.head, *table.rows)]
    widths = [max(map(cell_width, column)) for column in zip(*cells, strict=True)]
    if width is not None:
        taken = sum(widths[:-1]) + len(_GAP) * (len(widths) - 1)
        widths[-1] = min(widths[-1], max(width - taken, _NARROWEST))
    return [_row(row, widths, table.right, width) for row in cells]


def _row(row: Row, widths: Sequence[int], right: frozenset[int], width: int | None) -> str:
    padded = [
        _cell(cell, size, right=column in right) for column, (cell, size) in enumerate(zip(row, widths, strict=True))
    ]
    line = _GAP.join(padded).rstrip()
    return line if width is None else truncate(line, width)


def _cell(cell: str, width: int, *, right: bool) -> str:
    if cell.isascii() and len(cell) <= width:
        return cell.rjust(width) if right else cell.ljust(width)
    return pad(truncate(cell, width), width, right=right)


def _sectioned(table: Table, head: Sequence[str], rows: Sequence[str]) -> list[str]:
    """Return the lines of a table; each section has its heading and the head above its rows."""
    if not table.sections:
        return [*head, *rows]
    lines: list[str] = []
    start = 0
    for heading, count in table.sections:
        gap = [""] if lines else []
        lines += [*gap, heading, *(head if count else ()), *rows[start : start + count]]
        start += count
    return lines


_LABEL_STYLE, _KEY_STYLE, _FRAME_STYLE = "bold", "cyan", "dim"


def draw(result: Result, look: Look) -> str:
    """Return a result as rich draws it for a terminal, which nothing in it can steer."""
    from io import StringIO

    from rich.console import Console

    from jp.render.sanitize import link_addresses, sanitize

    console = Console(
        file=StringIO(),
        force_terminal=True,
        color_system="standard" if look.color else None,
        width=look.width,
        legacy_windows=False,
        no_color=not look.color,
        highlight=False,
    )

    def drawn(renderable: RenderableType) -> list[str]:
        with console.capture() as captured:
            console.print(renderable)
        return [line.rstrip() for line in captured.get().splitlines()]

    lines: list[str] = []
    for part in parts_of(result):
        match part:
            case str():
                safe = sanitize(part)
                lines.append(link_addresses(safe) if look.links else safe)
            case Colored():
                lines.append(part.text)
            case Table():
                lines += _drawn_table(part, look, drawn)
            case Facts():
                lines += drawn(_rich_facts(part, look))
            case Tree():
                lines += drawn(_rich_tree(part, look))
            case _:
                assert_never(part)
    return "\n".join(lines)


def _drawn_table(table: Table, look: Look, drawn: Callable[[RenderableType], list[str]]) -> list[str]:
    if not table.rows:
        return _sectioned(table, [], [])
    fitted, hidden = _fitted(table, look.width)
    rows = drawn(_rich_table(fitted, look))
    above = len(rows) - len(fitted.rows)
    notes = [fitted.note] if fitted.note else []
    notes += [f"(no room for: {', '.join(hidden)})"] if hidden else []
    return [*_sectioned(fitted, rows[:above], rows[above:]), *notes]


def _fitted(table: Table, width: int) -> tuple[Table, Row]:
    """Return as much of a table as fits, and the heads of its last columns that do not."""
    columns = zip(table.head, *table.rows, strict=True)
    widths = [max(map(cell_width, column)) for column in columns]
    if sum(widths) + len(_GAP) * (len(widths) - 1) > width and table.narrow is not None:
        return _fitted(table.narrow, width)
    kept = len(widths)
    while kept > 1 and sum(widths[: kept - 1]) + len(_GAP) * (kept - 1) + min(widths[kept - 1], _NARROWEST) > width:
        kept -= 1
    fitted = msgspec.structs.replace(table, head=table.head[:kept], rows=[row[:kept] for row in table.rows])
    return fitted, table.head[kept:]


def _rich_table(table: Table, look: Look) -> RenderableType:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    from jp.render.sanitize import one_line

    grid = RichTable(
        box=box.SIMPLE_HEAD if look.unicode else None,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0) if look.unicode else (0, 2, 0, 0),
        border_style=_FRAME_STYLE,
        header_style=_LABEL_STYLE,
    )
    last = len(table.head) - 1
    for column, title in enumerate(table.head):
        grid.add_column(
            Text(one_line(title)),
            style=_KEY_STYLE if column in table.keys else None,
            justify="right" if column in table.right else "left",
            no_wrap=column != last,
            overflow="ellipsis",
        )
    for row in table.rows:
        grid.add_row(*(Text(one_line(cell), no_wrap=True, overflow="ellipsis") for cell in row))
    return grid


def _rich_facts(facts: Facts, look: Look) -> RenderableType:
    from rich import box
    from rich.panel import Panel
    from rich.table import Table as RichTable
    from rich.text import Text

    from jp.render.sanitize import one_line

    grid = RichTable.grid(padding=(0, 2, 0, 0))
    for style in (_LABEL_STYLE, None, _FRAME_STYLE)[: max(map(len, facts.rows), default=0)]:
        grid.add_column(style=style, overflow="fold")
    for row in facts.rows:
        grid.add_row(*(Text(one_line(cell)) for cell in row))
    return Panel(
        grid,
        title=Text(one_line(facts.title), style=_KEY_STYLE),
        title_align="left",
        box=box.ROUNDED if look.unicode else box.ASCII,
        border_style=_FRAME_STYLE,
        expand=False,
    )


def _rich_tree(tree: Tree, look: Look) -> RenderableType:
    from rich.text import Text
    from rich.tree import Tree as RichTree

    from jp.render.sanitize import one_line

    def grow(branches: Sequence[Tree], below: RichTree) -> None:
        for branch in branches:
            grow(branch.branches, below.add(Text(one_line(branch.label))))

    root = RichTree(Text(one_line(tree.label), style=_LABEL_STYLE), guide_style=_FRAME_STYLE)
    grow(tree.branches, root)
    return root
