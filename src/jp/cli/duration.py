"""Durations as people write them: `30s`, `5m`, `1h30m`, `2d`, `250ms`."""

from __future__ import annotations

import re

from jp.errors import UsageError

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_PIECE = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhdw])")


def parse_duration(text: str, *, option: str) -> float:
    """Seconds. A bare number is seconds, too.

    Raises:
        UsageError: `text` is no duration; it names `option`.
    """
    plain = text.strip().lower()
    if re.fullmatch(r"\d+(\.\d+)?", plain):
        return float(plain)
    if not re.fullmatch(rf"(?:{_PIECE.pattern})+", plain):
        raise UsageError(f"{option} cannot be {text!r}", hint="use a duration such as 30s, 5m, 1h30m or 2d")
    return sum(float(number) * _UNITS[unit] for number, unit in _PIECE.findall(plain))
