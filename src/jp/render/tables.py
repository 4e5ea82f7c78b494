"""Aligned columns of plain text, and the width of text in terminal cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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


def text_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, width: int | None = None, right: frozenset[int] = frozenset()
) -> str:
    """Return `rows` below `head`; empty where there are none.

    Every cell is one line without control characters. Where `width` is given and a row is wider, its last column gives
    way first, down to 8 cells; without it nothing is cut, as scripts want it. `right` are the columns that are aligned
    to the right.
    """
    if not rows:
        return ""
    from jp.render.sanitize import one_line

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
