"""Atomic groups, which a cut never splits, and the places between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from jp.context.types import Message


class Group(msgspec.Struct, frozen=True, gc=False):
    """The messages from `start` up to, not including, `end`.

    `stray` are tools' messages without a call before them. `pending` is a round some of whose calls still run.
    """

    start: int
    end: int
    kind: Literal["message", "round", "stray"]
    pending: bool = False


class GroupIndex(msgspec.Struct, frozen=True):
    """The groups of a transcript, in order; `group_of[i]` is the number of the group that holds message `i`."""

    groups: tuple[Group, ...]
    group_of: tuple[int, ...]


def index_groups(messages: Sequence[Message]) -> GroupIndex:
    """The groups of `messages`, in one walk.

    Of several rounds marked as pending only the last round of all counts: calls before it run no longer.
    """
    groups: list[Group] = []
    group_of: list[int] = []
    last_round = _last_round(messages)
    is_result = [message.role == "tool" for message in messages]
    start, count = 0, len(messages)
    while start < count:
        first = messages[start]
        is_round = opens_round(first)
        end = start + 1
        if is_round or is_result[start]:
            while end < count and is_result[end]:
                end += 1
        kind = "round" if is_round else "stray" if is_result[start] else "message"
        group_of += [len(groups)] * (end - start)
        groups.append(Group(start, end, kind, start == last_round and first.meta.pending))
        start = end
    return GroupIndex(tuple(groups), tuple(group_of))


def opens_round(message: Message) -> bool:
    """Whether `message` is an assistant's that calls tools."""
    return message.role == "assistant" and bool(message.calls)


def leading_systems(messages: Sequence[Message]) -> int:
    """How many system messages come first; each is a group, so this is a number of groups as well."""
    return next((at for at, message in enumerate(messages) if message.role != "system"), len(messages))


def pending_group(index: GroupIndex) -> int | None:
    """The number of the group whose calls still run."""
    return next((number for number in range(len(index.groups) - 1, -1, -1) if index.groups[number].pending), None)


def _last_round(messages: Sequence[Message]) -> int:
    return next((position for position in range(len(messages) - 1, -1, -1) if opens_round(messages[position])), -1)


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
