"""Points in time as people read them."""

from __future__ import annotations

_UNITS = ((60, "s"), (3600, "min"), (86_400, "h"), (86_400 * 30, "d"), (86_400 * 365, "mo"))


def ago(seconds: float) -> str:
    """How long ago, in one unit: `12 s`, `3 h`, `2 y`."""
    size = 1.0
    for limit, unit in _UNITS:
        if seconds < limit:
            return f"{max(0, int(seconds // size))} {unit}"
        size = limit
    return f"{int(seconds // size)} y"
