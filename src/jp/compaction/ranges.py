"""Ranges: from bounds, as a person or a profile gives them, to turns of a stream (RFD 064). Pure.

Bounds are resolved once, when an overlay is made, against the stream as it stands then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, assert_never

import msgspec

from jp.errors import UsageError

Policy = Literal["summary", "reasoning", "tools", "resources"]
"""A type of content that a compaction has an opinion on."""


class AtTurn(msgspec.Struct, frozen=True):
    """The turn with this number, which counts from 0."""

    number: int


class BeforeLast(msgspec.Struct, frozen=True):
    """So many turns before the last one."""

    turns: int


class Ago(msgspec.Struct, frozen=True):
    """So many seconds ago."""

    seconds: float


class SinceCompaction(msgspec.Struct, frozen=True):
    """The first turn that no compaction of the same type has covered, nor any before it: what RFD 064 calls `last`."""


Bound = AtTurn | BeforeLast | Ago | SinceCompaction


class KeepTurns(msgspec.Struct, frozen=True):
    """So many turns stay as they are."""

    turns: int


class KeepFor(msgspec.Struct, frozen=True):
    """The turns of so many seconds stay as they are."""

    seconds: float


class KeepTokens(msgspec.Struct, frozen=True):
    """Turns worth at most so many tokens stay as they are, and always one."""

    tokens: int


Keep = KeepTurns | KeepFor | KeepTokens


class RangeWish(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be compacted: from `start` to `end`, both included, without what is kept at either end.

    A missing bound is that of the conversation.
    """

    start: Bound | None = None
    end: Bound | None = None
    keep_first: Keep = KeepTurns(0)
    keep_last: Keep = KeepTurns(0)


class TurnFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One turn that was not undone. `began` is in seconds since 1970, None where it is not known."""

    number: int
    id: str
    began: float | None
    tokens: int


class StreamShape(msgspec.Struct, frozen=True, kw_only=True):
    """What resolving needs to know of a stream: its turns in order, and the last that each policy has covered."""

    turns: tuple[TurnFacts, ...]
    covered: Mapping[Policy, int] = {}


class Range(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Turns from `first` to `last`, both included (0-based).

    With `to_cycle` it is a part of one turn: its cycles up to that one (0-based, included), without its requests.
    """

    first: int
    last: int
    to_cycle: int | None = None


def resolve(wish: RangeWish, shape: StreamShape, policy: Policy, *, now: float) -> Range | None:
    """The turns that `wish` names for a policy, None where it names none. `now` is in seconds since 1970.

    Bounds beyond the last turn end there.
    """
    turns = shape.turns
    if not turns:
        return None
    first = _start(wish.start, shape, policy, now)
    last = _end(wish.end, turns, now)
    if first is None or last is None:
        return None
    kept_first = _kept(wish.keep_first, turns, _is_young_at_start(turns))
    kept_last = _kept(wish.keep_last, turns[::-1], lambda turn, seconds: (turn.began or now) >= now - seconds)
    inside = [turn.number for turn in turns[kept_first : len(turns) - kept_last] if first <= turn.number <= last]
    return Range(first=inside[0], last=inside[-1]) if inside else None


def union_with_summaries(found: Range, summaries: Sequence[Range]) -> Range:
    """`found`, grown to hold every summary's range that it touches, until none is touched that it does not hold.

    A summary of a part and another one of the rest would contradict each other (RFD 064).
    """
    while True:
        touched = [one for one in summaries if one.first <= found.last + 1 and one.last >= found.first - 1]
        grown = Range(
            first=min([found.first, *(one.first for one in touched)]),
            last=max([found.last, *(one.last for one in touched)]),
        )
        if grown == found:
            return found
        found = grown


def check_choice(start: Bound | None, end: Bound | None) -> None:
    """Refuse bounds that contradict each other whatever the stream is.

    Raises:
        UsageError: the end is `last`, or lies before the start.
    """
    if isinstance(end, SinceCompaction):
        raise UsageError("--to cannot be 'last'", hint="`last` is where to begin: --from last")
    if isinstance(start, AtTurn) and isinstance(end, AtTurn) and end.number < start.number:
        raise UsageError(
            f"the range is reversed: it begins with turn {start.number} and ends with turn {end.number}",
            hint="--from names the first turn, --to the last one",
        )


def _start(bound: Bound | None, shape: StreamShape, policy: Policy, now: float) -> int | None:
    match bound:
        case None:
            return shape.turns[0].number
        case AtTurn(number=number):
            return number
        case BeforeLast(turns=count):
            return shape.turns[max(len(shape.turns) - 1 - count, 0)].number
        case Ago(seconds=seconds):
            since = (turn.number for turn in shape.turns if turn.began is not None and turn.began >= now - seconds)
            return next(since, None)
        case SinceCompaction():
            return shape.covered.get(policy, -1) + 1
        case _:
            assert_never(bound)


def _end(bound: Bound | None, turns: Sequence[TurnFacts], now: float) -> int | None:
    match bound:
        case None | SinceCompaction():
            return turns[-1].number
        case AtTurn(number=number):
            return number
        case BeforeLast(turns=count):
            return turns[-1 - count].number if count < len(turns) else None
        case Ago(seconds=seconds):
            until = (turn.number for turn in reversed(turns) if turn.began is not None and turn.began <= now - seconds)
            return next(until, None)
        case _:
            assert_never(bound)


def _kept(keep: Keep, turns: Sequence[TurnFacts], is_young: Callable[[TurnFacts, float], bool]) -> int:
    """How many of `turns`, from the end that is kept on, stay as they are."""
    match keep:
        case KeepTurns(turns=count):
            return min(count, len(turns))
        case KeepFor(seconds=seconds):
            return next((at for at, turn in enumerate(turns) if not is_young(turn, seconds)), len(turns))
        case KeepTokens(tokens=tokens):
            return _worth(turns, tokens)
        case _:
            assert_never(keep)


def _worth(turns: Sequence[TurnFacts], tokens: int) -> int:
    if tokens <= 0:
        return 0
    left = tokens
    for count, turn in enumerate(turns):
        left -= turn.tokens
        if left < 0:
            return max(count, 1)
    return len(turns)


def _is_young_at_start(turns: Sequence[TurnFacts]) -> Callable[[TurnFacts, float], bool]:
    began = next((turn.began for turn in turns if turn.began is not None), 0.0)
    return lambda turn, seconds: (began if turn.began is None else turn.began) <= began + seconds
