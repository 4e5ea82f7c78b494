"""Single values of what a provider says of a model: each is of the form that it should have, or nothing. Pure."""

from __future__ import annotations

import math
from typing import cast

_MOST_TOKENS = 1_000_000_000
_MILLION = 1_000_000
_LONGEST_NAME = 200

Fields = dict[str, object]


def fields(value: object) -> Fields:
    """A JSON object; an empty one where it is something else."""
    return cast("Fields", value) if isinstance(value, dict) else {}


def items(value: object) -> list[object]:
    """A JSON array; an empty one where it is something else."""
    return cast("list[object]", value) if isinstance(value, list) else []


def text(value: object) -> str:
    """A text; an empty one where it is something else."""
    return value if isinstance(value, str) else ""


def texts(value: object) -> frozenset[str]:
    """The texts of an array."""
    return frozenset(item for item in items(value) if isinstance(item, str))


def name(value: object) -> str:
    """A model's name as a person could type it; an empty one where it is none.

    A name with `~` is none: OpenRouter calls by it what stands for another model from day to day.
    """
    found = text(value)
    is_plain = found.isprintable() and not any(character.isspace() or character == "~" for character in found)
    return found if is_plain and len(found) <= _LONGEST_NAME else ""


def tokens(*values: object) -> int | None:
    """The first of several values that is a count of tokens; zero says that a server does not know."""
    for value in values:
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= _MOST_TOKENS:
            return int(value)
    return None


def flag(value: object) -> bool | None:
    """A truth value."""
    return value if isinstance(value, bool) else None


def price(value: object) -> float | None:
    """A price for one token, also as a text, as one for a million; a negative one says that it varies."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except ValueError:
        return None
    return round(found * _MILLION, 6) if math.isfinite(found) and found >= 0 else None
