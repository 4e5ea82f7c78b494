"""Durations, times, money, turns and titles as people write and read them. Pure."""

from __future__ import annotations

import re

from jp.conversation.forking import TurnRange
from jp.conversation.turns import prompt_tokens
from jp.errors import UsageError
from jp.render.units import money_text
from jp.turn.usage import Spending

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


DEFAULT_LIFETIME = "1d"
"""The lifetime that `--tmp` means without a duration: enough to change one's mind on the next morning."""

_LONGEST_SECONDS = 100 * 365 * 86_400


def end_of_life(duration: str, *, option: str) -> str:
    """The moment that lies `duration` from now, as metadata have it.

    Raises:
        UsageError: it is no duration, or longer than a hundred years; it names `option`.
    """
    from jp.workspace.files import SYSTEM, timestamp

    seconds = parse_duration(duration, option=option)
    if seconds > _LONGEST_SECONDS:
        raise UsageError(f"{option} {duration} is longer than a hundred years", hint="such a conversation needs no end")
    return timestamp(SYSTEM.now() + int(seconds * 1000))


def parse_turns(text: str, count: int, *, option: str) -> TurnRange:
    """Return the turns that `text` names of `count` turns. A range may reach beyond the last.

    Raises:
        UsageError: `text` is no range, or there are no such turns; it names `option`.
    """
    first, dots, end = text.partition("..")
    try:
        start = int(first) if first or not dots else 0
        stop = (int(end) if end else -1) if dots else start
    except ValueError:
        message = f"{option} cannot be {text!r}"
        raise UsageError(message, hint=f"write N, A..B, A.. or ..B, such as {option} 2..5") from None
    start, stop = (number + count if number < 0 else number for number in (start, stop))
    if 0 <= stop < start < count:
        raise UsageError(
            f"{option} {text}: the range is reversed, it ends before it begins",
            hint=f"write {option} {stop}..{start}: from the first turn to the last one",
        )
    if not 0 <= start < count or stop < start:
        raise _missing(f"{option} {text}", count)
    return TurnRange(first=start, last=min(stop, count - 1))


def parse_turn(text: str, count: int, *, option: str) -> int:
    """Return the number of the turn that `text` names of `count` turns.

    Raises:
        UsageError: `text` is no number, or there is no such turn; it names `option`.
    """
    try:
        number = int(text)
    except ValueError:
        message = f"{option} cannot be {text!r}"
        raise UsageError(message, hint=f"write the number of a turn, such as {option}=3 or {option}=-2") from None
    found = number + count if number < 0 else number
    if not 0 <= found < count:
        raise _missing(f"{option}={text}", count)
    return found


def _missing(written: str, count: int) -> UsageError:
    numbers = f"they are 0 to {count - 1}" if count else "there are none"
    return UsageError(f"{written}: there is no such turn", hint=f"of this conversation's turns {numbers}")


_AGE_UNITS = ((60, "s"), (3600, "min"), (86_400, "h"), (86_400 * 30, "d"), (86_400 * 365, "mo"))


def ago(seconds: float) -> str:
    """Return the time that has passed, in one unit: `12 s`, `3 h`, `2 y`."""
    size = 1.0
    for limit, unit in _AGE_UNITS:
        if seconds < limit:
            return f"{max(0, int(seconds // size))} {unit}"
        size = limit
    return f"{int(seconds // size)} y"


def cost_text(spending: Spending) -> str:
    """Return the cost: `$0.0123`, `free`, `unknown`, or `at least $0.0123`."""
    if not spending.unpriced:
        used = prompt_tokens(spending.usage) + spending.usage.output + spending.untold
        return "free" if used and not spending.usd else money_text(spending.usd)
    least = money_text(spending.usd)
    return f"at least {least}" if spending.usd and not least.startswith("<") else "unknown"


def cost_sentence(spending: Spending) -> str:
    """The same, and how much of it is not known."""
    text = cost_text(spending)
    if not spending.unpriced or spending.unpriced == spending.cycles:
        return f"cost {text}" if text == "unknown" else text
    return f"{text}; what {spending.unpriced:,} of {spending.cycles:,} cycles cost is unknown"


def given_title(text: str, *, option: str = "--title") -> str:
    """The title that `text` is: in one line, without anything that steers a terminal.

    Raises:
        UsageError: it has no words; the message names `option`.
    """
    from jp.render.sanitize import one_line

    title = one_line(text)
    if not title:
        raise UsageError(f"{option}: a title has words in it", hint="`jp conversation edit --no-title` takes one away")
    return title
