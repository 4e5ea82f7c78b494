"""Tables on a terminal and in a pipe, and numbers with units."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
