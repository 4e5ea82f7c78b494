"""Rows of text in columns."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from jp.cli.options import GlobalOptions
from jp.render.cells import cell_width
from jp.render.sanitise import sanitise

_GAP = "  "


def table(options: GlobalOptions, rows: Sequence[Sequence[str]]) -> str:
    """`rows` with their columns aligned; columns that are empty everywhere are left out.

    On a terminal a row is cut at its width; elsewhere nothing is.
    """
    plain = [[sanitise(cell).replace("\n", " ") for cell in row] for row in rows]
    kept = [column for column in zip(*plain, strict=True) if any(column)]
    widths = [max(map(cell_width, column)) for column in kept]
    lines = [
        _GAP.join(cell + " " * (width - cell_width(cell)) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in zip(*kept, strict=True)
    ]
    return "\n".join(lines if options.format == "text" else [_cut(line, _width(options)) for line in lines])


def _width(options: GlobalOptions) -> int:
    from jp.render.theme import columns_of, display_width

    return display_width(options.width, os.environ, columns=columns_of(sys.stdout))


def _cut(line: str, width: int) -> str:
    if cell_width(line) <= width:
        return line
    cut = line[:width]
    while cell_width(cut) > width - 1:
        cut = cut[:-1]
    return f"{cut}…"
