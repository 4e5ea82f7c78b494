"""Selection: which pieces of a transcript give way so that it fits, with the least loss. Pure, and of any host."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """Content that can be shown shorter. It frees `freed` tokens.

    `rank` is that of its pass: those of a lower rank give way first. Among equals, what loses less gives way first by
    `loss`, then what comes earlier by `position`.
    """

    key: str
    freed: int
    rank: int
    loss: int = 0
    position: int = 0


def least_loss(candidates: Iterable[Candidate], need: int) -> frozenset[str]:
    """Return the keys of what gives way to free `need` tokens, as little as that takes; all where it is not enough.

    What was chosen early and is not needed in the end, because a larger piece came after it, stays after all, the
    most valuable first.
    """
    chosen: list[Candidate] = []
    freed = 0
    for one in sorted(candidates, key=_worth):
        if freed >= need:
            break
        if one.freed > 0:
            chosen.append(one)
            freed += one.freed
    for one in reversed(chosen.copy()):
        if freed - one.freed >= need:
            chosen.remove(one)
            freed -= one.freed
    return frozenset(one.key for one in chosen)


def _worth(one: Candidate) -> tuple[int, int, int]:
    return one.rank, one.loss, one.position
