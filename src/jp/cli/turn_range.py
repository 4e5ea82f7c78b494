"""Turns as the command line names them: `3`, `-1`, `2..5`, `2..`, `..-2`. They count from 0; -1 is the last."""

from __future__ import annotations

from jp.conversation.forking import TurnRange
from jp.errors import UsageError


def parse_turns(text: str, count: int, *, option: str) -> TurnRange:
    """The turns that `text` names of `count` turns. A range may reach beyond the last.

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
    """The number of the turn that `text` names of `count` turns.

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
