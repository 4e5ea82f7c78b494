"""Overlays: which compactions are in force, and what each of them covers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence

import msgspec

from jp.conversation.entries import AnyEntry, Compaction
from jp.conversation.reverts import undone
from jp.conversation.turns import Cycle, Division, Placement, is_blank

UNCOVERED_CYCLES = 3
"""How many of the newest cycles an overlay that ends inside a turn leaves alone, counted where it stands."""

NEWEST_CYCLES = 1
"""A summary inside a turn never stands for its newest cycle, which is being answered."""

Point = tuple[int, int]
"""A place in a stream: a turn, and a cycle of it."""

CyclesAt = Callable[[int], Sequence[Cycle]]
"""The cycles of a turn, by its number."""


def compactions_in_force(entries: Sequence[AnyEntry]) -> list[Compaction]:
    """The compactions of a stream that were not undone, in the log's order."""
    gone = undone(entries)
    return [entry for entry in entries if isinstance(entry, Compaction) and entry.id not in gone]


class Coverage(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What a compaction covers: everything from `start` on and before `end`.

    `only_responses`: in this part it concerns the responses of tools and nothing else. `inside`: its summary is of
    cycles of one turn, whose requests stay. `seen` is where the compaction stands: what came later does not count.
    `summary` is the text that stands for what it covers, empty where it has none: a blank one would hide turns and
    say nothing.
    """

    compaction: Compaction
    summary: str = ""
    start: Point
    end: Point
    seen: Point
    only_responses: bool = False
    inside: bool = False


def coverages(division: Division, undone: frozenset[str], cycles_at: CyclesAt) -> list[Coverage]:
    """What the compactions in force cover, in the log's order.

    A compaction changes how what stands before it is read, so it never covers a turn or a cycle that began after it:
    what a request showed stays as it was while the stream grows.
    """
    numbers = {turn.id: turn.number for turn in division.turns if turn.id}
    found: list[Coverage] = []
    for placement in division.placements:
        if placement.compaction.id not in undone:
            found.extend(part for part in _parts(placement, numbers, cycles_at) if part.start < part.end)
    return found


def _parts(placement: Placement, numbers: Mapping[str, int], cycles_at: CyclesAt) -> list[Coverage]:
    compaction = placement.compaction
    first, last = turns_covered(placement, numbers)
    if last < first:
        return []
    start, seen = (first, 0), (placement.turn, _cycles_begun(placement, cycles_at))
    text = "" if compaction.summary is None else compaction.summary.text
    summary = "" if is_blank(text) else text
    if compaction.to_cycle is None:
        end = seen if last == placement.turn else (last + 1, 0)
        return [Coverage(compaction=compaction, summary=summary, start=start, end=end, seen=seen)]
    cycles = seen[1] if last == placement.turn else len(cycles_at(last))
    inside, end = (last, 0), (last, min(compaction.to_cycle + 1, cycles - UNCOVERED_CYCLES))
    parts = [
        Coverage(compaction=compaction, summary=summary, start=start, end=inside, seen=seen),
        Coverage(compaction=compaction, start=inside, end=end, seen=seen, only_responses=True),
    ]
    if summary and first == last:
        end = (last, min(compaction.to_cycle + 1, cycles - NEWEST_CYCLES))
        parts.append(Coverage(compaction=compaction, summary=summary, start=inside, end=end, seen=seen, inside=True))
    return parts


def turns_covered(placement: Placement, numbers: Mapping[str, int]) -> tuple[int, int]:
    """The turns that a compaction names: by id, or by number where an id is absent or names no turn of this stream."""
    compaction = placement.compaction
    first = numbers.get(compaction.from_id or "", compaction.from_turn)
    last = numbers.get(compaction.to_id or "", compaction.to_turn)
    return max(first, 0), min(last, placement.turn)


def _cycles_begun(placement: Placement, cycles_at: CyclesAt) -> int:
    """How many cycles of its turn had begun where the compaction stands."""
    return bisect_left(cycles_at(placement.turn), placement.events, key=lambda cycle: cycle.start)
