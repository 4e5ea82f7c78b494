"""Tables of commands: aligned columns of plain text."""

from __future__ import annotations

from collections.abc import Sequence

from jp.render.cells import cell_width, pad, truncate
from jp.render.sanitise import one_line

_GAP = "  "
_NARROWEST = 8


def text_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, width: int | None = None, right: frozenset[int] = frozenset()
) -> str:
    """`rows` below `head`, or nothing where there are none.

    Every cell is one line without control characters. Where `width` is given and a row is wider, its last column gives
    way first, down to 8 cells; without it nothing is cut, as scripts want it. `right` are the columns that are aligned
    to the right.
    """
    if not rows:
        return ""
    cells = [[one_line(cell) for cell in row] for row in (head, *rows)]
    widths = [max(cell_width(row[column]) for row in cells) for column in range(len(head))]
    if width is not None:
        taken = sum(widths[:-1]) + len(_GAP) * (len(widths) - 1)
        widths[-1] = min(widths[-1], max(width - taken, _NARROWEST))
    return "".join(f"{_row(row, widths, right, width)}\n" for row in cells)


def _row(row: Sequence[str], widths: Sequence[int], right: frozenset[int], width: int | None) -> str:
    padded = [
        pad(truncate(cell, size), size, right=column in right)
        for column, (cell, size) in enumerate(zip(row, widths, strict=True))
    ]
    line = _GAP.join(padded).rstrip()
    return line if width is None else truncate(line, width)
