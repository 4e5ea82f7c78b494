"""Where a provider is told to keep its work: hints beside a request, never an edit of what it says.

A cache finds an entry by the bytes up to a marked place, and from a marked place it looks back only so many blocks. So
what is marked is where an earlier request was marked, and what a later request can look back to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

Section = Literal["tools", "system", "messages"]
"""The parts of a request in the order in which caches read them."""

Ttl = Literal["short", "long"]

Reason = Literal["static_prefix", "newest", "previous_request", "attachment", "tools", "lookback"]
"""Why a place is marked: the end of what every request begins with, of this request, of the one before it, of what was
attached last, of the tools alone (they outlive a change of the system prompt), or one near the end to look back to.
"""

MOST = 4
LOOKBACK = 18
"""Caches look back twenty blocks; two are left for what an adapter adds."""


class Piece(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a cache reads as one block.

    `is_answer` says that it stands in a message of the model. `carries`: a mark may stand on it, which it may not on
    thinking, on what is empty, and on calls that still run. `is_volatile`: the next request will not have it there.
    `is_attached` is the end of something that a person attached.
    """

    section: Section
    tokens: int = 0
    is_answer: bool = False
    carries: bool = True
    is_volatile: bool = False
    is_attached: bool = False


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider's cache is like. `minimum` is how many tokens a prefix needs to be kept at all.

    `static` and `tail` say for how long to keep the prefix that never changes, and the rest.
    """

    most: int = MOST
    lookback: int = LOOKBACK
    minimum: int = 0
    static: Ttl = "short"
    tail: Ttl = "short"


class CacheHint(msgspec.Struct, frozen=True, kw_only=True):
    """A mark on the piece at `position`, for how long what ends there is to be kept, and why."""

    position: int
    ttl: Ttl
    reason: Reason


_COMMON = Limits()


def place_hints(pieces: Sequence[Piece], limits: Limits = _COMMON) -> tuple[CacheHint, ...]:
    """The places to mark, at most `limits.most`, in their order.

    `pieces` are all blocks of a request: tools, system prompt, messages. Nothing is marked from the first volatile one
    on, for nobody could read it again. Where more is worth a mark than there are marks, the end of the static prefix,
    the newest place and the end of the request before come first.
    """
    end = next((at for at, piece in enumerate(pieces) if piece.is_volatile), len(pieces))
    long_enough = _first_of(pieces, limits.minimum)
    chosen: dict[int, Reason] = {}
    for position, reason in _wanted(pieces[:end], limits.lookback):
        if len(chosen) < limits.most and position >= long_enough:
            chosen.setdefault(position, reason)
    # Providers refuse an entry that is kept longer behind one that is kept shorter.
    static: Ttl = "long" if "long" in {limits.static, limits.tail} else "short"
    return tuple(
        CacheHint(
            position=position,
            ttl=limits.tail if pieces[position].section == "messages" else static,
            reason=chosen[position],
        )
        for position in sorted(chosen)
    )


def _wanted(pieces: Sequence[Piece], lookback: int) -> Iterator[tuple[int, Reason]]:
    """Every place that is worth a mark, the most important ones first."""
    start = next((at for at, piece in enumerate(pieces) if piece.section == "messages"), len(pieces))
    static = _last_carrier(pieces, 0, start)
    newest = _last_carrier(pieces, start, len(pieces))
    previous = None if newest is None else _end_of_request_before(pieces, start, newest)
    attached = next((at for at in range(len(pieces) - 1, start - 1, -1) if _holds_attachment(pieces[at])), None)
    system = next((at for at in range(start) if pieces[at].section == "system"), 0)
    found: list[tuple[int | None, Reason]] = [
        (static, "static_prefix"),
        (newest, "newest"),
        (previous, "previous_request"),
        (attached, "attachment"),
        (_last_carrier(pieces, 0, system), "tools"),
    ]
    if newest is not None and newest - (start if previous is None else previous) > lookback:
        near = (at for at in range(newest - lookback, newest) if pieces[at].carries)
        found.append((next(near, None), "lookback"))
    for position, reason in found:
        if position is not None:
            yield position, reason


def _end_of_request_before(pieces: Sequence[Piece], start: int, newest: int) -> int | None:
    """The last place before the answer at or before `newest`: there the request for that answer was marked."""
    answer = next((at for at in range(newest, start - 1, -1) if pieces[at].is_answer), start)
    asked = (at for at in range(answer - 1, start - 1, -1) if pieces[at].carries and not pieces[at].is_answer)
    return next(asked, None)


def _holds_attachment(piece: Piece) -> bool:
    return piece.is_attached and piece.carries


def _last_carrier(pieces: Sequence[Piece], start: int, end: int) -> int | None:
    return next((at for at in range(end - 1, start - 1, -1) if pieces[at].carries), None)


def _first_of(pieces: Sequence[Piece], minimum: int) -> int:
    """The first position with at least `minimum` tokens up to its end."""
    tokens = 0
    for position, piece in enumerate(pieces):
        tokens += piece.tokens
        if tokens >= minimum:
            return position
    return len(pieces)
