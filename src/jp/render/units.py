"""Sizes, durations, counts and amounts of money as text."""

from __future__ import annotations

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
