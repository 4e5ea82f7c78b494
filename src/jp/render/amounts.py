"""Sizes, times and counts as people read them."""

from __future__ import annotations

_UNITS = ("KiB", "MiB", "GiB", "TiB")
_KIBI = 1024
_SECOND_MS = 1000
_MINUTE = 60


def size_text(size: int) -> str:
    """A size in bytes, such as `340 B` or `3.4 KiB`."""
    if size < _KIBI:
        return f"{size} B"
    amount, unit = size / _KIBI, _UNITS[0]
    for larger in _UNITS[1:]:
        if amount < _KIBI:
            break
        amount, unit = amount / _KIBI, larger
    return f"{amount:,.1f} {unit}"


def duration_text(milliseconds: int) -> str:
    """A duration, such as `15 ms`, `2.5 s` or `3 min 20 s`."""
    if milliseconds < _SECOND_MS:
        return f"{milliseconds} ms"
    seconds = milliseconds / _SECOND_MS
    return f"{seconds:.1f} s" if seconds < _MINUTE else elapsed_text(round(seconds))


def elapsed_text(seconds: int) -> str:
    """How long something takes by now, such as `3 s` or `3 min 20 s`."""
    minutes, rest = divmod(seconds, _MINUTE)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def count_text(count: int, noun: str) -> str:
    """A count and its noun, such as `1 line` or `1,200 lines`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
