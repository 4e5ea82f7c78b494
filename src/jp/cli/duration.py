"""Durations as people write them: `30s`, `5m`, `1h30m`, `2d`, `250ms`."""

from __future__ import annotations

import re

from jp.errors import UsageError

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_PIECE = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhdw])")
_PIECES = re.compile(rf"(?:{_PIECE.pattern})+")
_NUMBER = re.compile(r"\d+(\.\d+)?")


def is_duration(text: str) -> bool:
    """Return whether `parse_duration` takes `text`."""
    plain = text.strip().lower()
    return _NUMBER.fullmatch(plain) is not None or _PIECES.fullmatch(plain) is not None


def parse_duration(text: str, *, option: str) -> float:
    """Seconds. A bare number is seconds, too.

    Raises:
        UsageError: `text` is no duration; it names `option`.
    """
    plain = text.strip().lower()
    if _NUMBER.fullmatch(plain):
        return float(plain)
    if not is_duration(plain):
        raise UsageError(f"{option} cannot be {text!r}", hint="use a duration such as 30s, 5m, 1h30m or 2d")
    return sum(float(number) * _UNITS[unit] for number, unit in _PIECE.findall(plain))
