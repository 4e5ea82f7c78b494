"""Branches of a conversation that git merged line by line: turns of several sides, one after the other in a log. Pure.

A turn names the ends of the branches that it follows, as a commit names its parents. Where the end that it follows has
other turns behind it in the log, another branch begins; a branch is open as long as no turn names its end. A turn that
names nothing follows what stands before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from jp.conversation.entries import AnyEntry, TurnStart
from jp.conversation.forking import turn_numbers
from jp.conversation.turns import branch_of, open_ends, undone


class Branch(msgspec.Struct, frozen=True, kw_only=True):
    """An open branch.

    Args:
        end: the id of its last entry.
        turns: the numbers of the turns that no other open branch has, as `turns_of` counts them.
        starts: the ids of their first entries.
        positions: of all entries that it has in the log, in order; other branches may share some.
    """

    end: str
    turns: tuple[int, ...]
    starts: tuple[str, ...]
    positions: tuple[int, ...]


class _Segment(msgspec.Struct, frozen=True):
    """Entries of the log from `start` to before `stop`, behind those up to `parent` (-1: none)."""

    start: int
    stop: int
    parent: int


def open_branches(entries: Sequence[AnyEntry]) -> list[Branch]:
    """Return the branches that no turn has joined yet, in the order of the log; none if there is only one.

    A branch whose own turns are all undone does not count.
    """
    names = open_ends(entries)
    if len(names) < 2:  # noqa: PLR2004 - one end is no branch
        return []
    segments = list(_segments(entries))
    by_end = {name: list(_positions(entries, segments, name)) for name in names}
    gone, numbers = undone(entries), turn_numbers(entries)
    found: list[Branch] = []
    for name, positions in by_end.items():
        others = {position for other, held in by_end.items() if other != name for position in held}
        own = [
            position
            for position in positions
            if position not in others and isinstance(entries[position], TurnStart) and entries[position].id not in gone
        ]
        if own:
            turns, starts = tuple(numbers[position] for position in own), tuple(entries[at].id for at in own)
            found.append(Branch(end=name, turns=turns, starts=starts, positions=tuple(positions)))
    return found if len(found) > 1 else []


def _segments(entries: Sequence[AnyEntry]) -> Iterator[_Segment]:
    start, parent = 0, -1
    for position, entry in enumerate(entries):
        if isinstance(entry, TurnStart) and entry.after:
            branch = branch_of(entries, position, entry)
            if branch is not None:
                begin, above = branch
                yield _Segment(start, begin, parent)
                start, parent = begin, above
    yield _Segment(start, len(entries), parent)


def _positions(entries: Sequence[AnyEntry], segments: Sequence[_Segment], end: str) -> list[int]:
    """Return the positions of the entries of the branch with this end, in order."""
    found: list[int] = []
    stop = next(position for position, entry in enumerate(entries) if entry.id == end) + 1
    while stop > 0:
        segment = next(segment for segment in segments if segment.start < stop <= segment.stop)
        found = [*range(segment.start, stop), *found]
        stop = segment.parent + 1
    return found
