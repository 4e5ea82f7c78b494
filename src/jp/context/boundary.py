"""Where a cut may be: between groups. Both ways take one look at the index, however long the transcript is."""

from __future__ import annotations

from jp.context.groups import GroupIndex


def align_back(index: GroupIndex, position: int) -> int:
    """The last place for a cut that is not after `position`: the beginning of the group that holds it."""
    return start_of(index, group_at(index, position))


def align_forward(index: GroupIndex, position: int) -> int:
    """The first place for a cut that is not before `position`."""
    number = group_at(index, position)
    start = start_of(index, number)
    return start if position <= start else start_of(index, number + 1)


def group_at(index: GroupIndex, position: int) -> int:
    """The number of the group that holds message `position`; behind the last message, the number of groups."""
    position = max(position, 0)
    return index.group_of[position] if position < len(index.group_of) else len(index.groups)


def start_of(index: GroupIndex, group: int) -> int:
    """Where group number `group` begins; behind the last group, the number of messages."""
    return index.groups[group].start if group < len(index.groups) else len(index.group_of)
