"""Rounds of a transcript: an assistant's calls with their results, which no baseline separates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from msgspec.structs import replace

from jp.context.types import Message, Transcript


class Group(NamedTuple):
    """The messages from `start` up to, not including, `end`."""

    start: int
    end: int
    kind: Literal["message", "round"]


class GroupIndex(NamedTuple):
    """The groups of a transcript, in order; `group_of[i]` is the number of the group that holds message `i`."""

    groups: tuple[Group, ...]
    group_of: tuple[int, ...]


def index_groups(messages: Sequence[Message]) -> GroupIndex:
    """Return the groups of `messages`."""
    starts = [at for at, row in enumerate(messages) if row.role != "tool"]
    groups = tuple(
        Group(start, end, "round" if messages[start].calls else "message")
        for start, end in zip(starts, [*starts[1:], len(messages)], strict=True)
    )
    return GroupIndex(groups, tuple(at for at, group in enumerate(groups) for _ in range(group.start, group.end)))


def leading_systems(messages: Sequence[Message]) -> int:
    """Return how many system messages come first."""
    return next((at for at, row in enumerate(messages) if row.role != "system"), len(messages))


def align_back(index: GroupIndex, position: int) -> int:
    """Return the last place for a cut that is not after `position`."""
    if position >= len(index.group_of):
        return len(index.group_of)
    return index.groups[index.group_of[max(position, 0)]].start


def paired(messages: Sequence[Message]) -> Transcript:
    """Return `messages` without results of no call and calls without a result; ids that repeat are numbered."""
    return tuple(_paired(messages))


def _paired(messages: Sequence[Message]) -> Iterator[Message]:
    used: dict[str, int] = {}
    for at, row in enumerate(messages):
        if row.role == "tool":
            continue
        results = {result.call_id: result for result in _results_after(messages, at)}
        names: dict[str, str] = {}
        for call in row.calls:
            if call.id in results and call.id not in names:
                used[call.id] = used.get(call.id, 0) + 1
                names[call.id] = call.id if used[call.id] == 1 else f"{call.id}_{used[call.id]}"
        kept = {call.id: call for call in reversed(row.calls) if call.id in names}
        calls = tuple(replace(kept[old], id=new) for old, new in names.items())
        if calls or row.content or not row.calls:
            yield replace(row, calls=calls)
        yield from (replace(results[old], call_id=new) for old, new in names.items())


def _results_after(messages: Sequence[Message], at: int) -> Iterator[Message]:
    """Yield the results between a message and the next one that opens a round."""
    for row in messages[at + 1 :]:
        if row.calls:
            return
        if row.role == "tool":
            yield row
