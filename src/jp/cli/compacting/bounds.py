"""Bounds and amounts as people write them: `5`, `-3`, `5h`, `last`; `3`, `2h`, `20k`."""

from __future__ import annotations

import re

import msgspec

from jp.cli.duration import parse_duration
from jp.compaction.ranges import (
    Ago,
    AtTurn,
    BeforeLast,
    Bound,
    Keep,
    KeepFor,
    KeepTokens,
    KeepTurns,
    SinceCompaction,
)
from jp.errors import ConfigurationError, UsageError

_TOKENS = re.compile(r"([0-9]+(?:\.[0-9]+)?)k(?: ?tokens)?|([0-9]+) ?tokens")
_PERCENT = re.compile(r"[0-9]+(?:\.[0-9]+)? ?%")
_WHOLE = 100


def parse_bound(text: str, *, option: str) -> Bound:
    """A bound of a range of turns. Numbers are turns, from 0 on; negative ones count back from the last.

    Raises:
        UsageError: it is none; it names `option`.
    """
    plain = text.strip()
    if plain == "last":
        return SinceCompaction()
    number = plain.removeprefix("-")
    if number.isascii() and number.isdecimal():
        return BeforeLast(int(number)) if plain.startswith("-") else AtTurn(int(plain))
    try:
        return Ago(_seconds(plain, option))
    except UsageError:
        hint = (
            "a bound is the number of a turn (0 is the first), -3 (three turns before the last one), 5h (five hours "
            f"ago){', or last (what follows the last compaction)' if option == '--from' else ''}; to name a "
            "conversation by its title, write it before the options"
        )
        raise UsageError(f"{option} cannot be {text!r}", hint=hint) from None


def parse_turn_bounds(text: str, *, option: str) -> tuple[Bound, Bound]:
    """`3`, `2..5`, `2..`, `..-2`: from one turn to another.

    Raises:
        UsageError: it is none; it names `option`.
    """
    first, dots, last = text.partition("..")
    start: Bound = AtTurn(0) if dots and not first else _turn(first, text, option)
    if not dots:
        return start, start
    return start, BeforeLast(0) if not last else _turn(last, text, option)


def parse_keep(value: int | str, *, option: str) -> Keep:
    """How much stays as it is: turns, the turns of a duration, or those worth so many tokens.

    Raises:
        UsageError: it is none of these; it names `option`.
    """
    if isinstance(value, int):
        return KeepTurns(value)
    plain = value.strip().lower()
    if plain.isascii() and plain.isdecimal():
        return KeepTurns(int(plain))
    tokens = _TOKENS.fullmatch(plain)
    if tokens is not None:
        return KeepTokens(round(float(tokens[1]) * 1000) if tokens[1] else int(tokens[2]))
    try:
        return KeepFor(_seconds(plain, option))
    except UsageError:
        hint = "write a number of turns, a duration such as 2h, or tokens such as 20k"
        raise UsageError(f"{option} cannot be {value!r}", hint=hint) from None


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """Target size of a view: a number of tokens, or a percentage of its present size."""

    tokens: int = 0
    percent: float = 0.0

    def of(self, now: int) -> int:
        """Return the tokens, where the view has `now`."""
        return self.tokens or int(now * self.percent / 100)


def parse_budget(value: int | str, *, option: str) -> Budget:
    """Return what a budget says: `40k`, `40000`, `25%`.

    Raises:
        UsageError: it is none; it names `option`.
    """
    plain = str(value).strip().lower()
    tokens = _TOKENS.fullmatch(plain)
    found = Budget()
    if tokens is not None:
        found = Budget(tokens=round(float(tokens[1]) * 1000) if tokens[1] else int(tokens[2]))
    elif plain.isascii() and plain.isdecimal():
        found = Budget(tokens=int(plain))
    elif _PERCENT.fullmatch(plain) and float(plain.rstrip(" %")) < _WHOLE:
        found = Budget(percent=float(plain.rstrip(" %")))
    if not (found.tokens or found.percent):
        hint = "a budget is a number of tokens, such as 40k or 40000, or a share of what there is, such as 25%"
        raise UsageError(f"{option} cannot be {str(value)!r}", hint=hint)
    return found


def configured_budget(value: int | str, *, key: str) -> Budget:
    """Return the same from the configuration.

    Raises:
        ConfigurationError: it is none; it names `key`.
    """
    try:
        return parse_budget(value, option=key)
    except UsageError as error:
        raise ConfigurationError(error.message, hint=error.hint) from None


def configured_keep(value: int | str, *, key: str) -> Keep:
    """The same from the configuration.

    Raises:
        ConfigurationError: it is none; it names `key`.
    """
    try:
        return parse_keep(value, option=key)
    except UsageError as error:
        raise ConfigurationError(error.message, hint=error.hint) from None


def _seconds(text: str, option: str) -> float:
    """A duration, which has to have a unit: without one a number is turns."""
    if text[-1:].isdigit():
        raise UsageError(f"{option} cannot be {text!r}", hint="a duration has a unit, such as 90s")
    return parse_duration(text, option=option)


def _turn(number: str, text: str, option: str) -> Bound:
    """A turn of a range of turns, in which -1 is the last one as in all of them."""
    digits = number.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()) or number == "-0":
        hint = f"write N, A..B, A.. or ..B, such as {option} 2..5; -1 is the last turn"
        raise UsageError(f"{option} cannot be {text!r}", hint=hint)
    return BeforeLast(int(digits) - 1) if number.startswith("-") else AtTurn(int(number))
