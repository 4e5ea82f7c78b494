"""Whether a number is a multiple of another, as both are written: 19.99 is one of 0.01. Pure."""

from __future__ import annotations

import math
from decimal import Decimal

Number = int | float


def is_multiple(value: Number, step: Number) -> bool:
    """Whether `value` is a whole number of times `step`, which is not 0, by their shortest decimal notations."""
    if any(isinstance(number, float) and not math.isfinite(number) for number in (value, step)):
        return value == 0
    digits, exponent = _decimal(value)
    unit, unit_exponent = _decimal(step)
    lowest = min(exponent, unit_exponent)
    return digits * 10 ** (exponent - lowest) % (unit * 10 ** (unit_exponent - lowest)) == 0


def _decimal(number: Number) -> tuple[int, int]:
    """Digits and exponent of a number; the exponent of a float has three digits at most."""
    if isinstance(number, int):
        return number, 0
    sign, digits, exponent = Decimal(repr(number)).as_tuple()
    whole = int("".join(map(str, digits)))
    return -whole if sign else whole, int(exponent)
