"""The beginning of a transcript that is never left out: system messages and, until the first summary, what followed."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from jp.context.anchors import is_real_user
from jp.context.groups import GroupIndex, leading_systems
from jp.context.types import Message

PROTECTED_GROUPS = 3


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """The messages before `end` are protected. `tokens` is what those after the system messages cost.

    `oversized` is the position of a request that would have been among them and is too
    large: its text is to be preserved in bounds (`jp.context.anchors.preserve`), once.
    """

    end: int
    tokens: int
    oversized: int | None = None


def protect_head(
    messages: Sequence[Message],
    index: GroupIndex,
    costs: Sequence[int],
    *,
    cap: int,
    groups: int = PROTECTED_GROUPS,
) -> Head:
    """The leading system messages and the first `groups` groups after them, as far as they cost at most `cap`.

    Once the transcript has a summary, only the system messages: the summary says what the beginning was about. That it
    has one is read off the transcript, so it holds after a restart. `costs` are those of the groups. Pending calls
    belong to the end of a transcript and are never in its head.
    """
    number = leading_systems(messages)
    allowed = 0 if any(message.meta.kind == "summary" for message in messages) else max(groups, 0)
    tokens = 0
    oversized = None
    for group in index.groups[number : number + allowed]:
        if group.pending:
            break
        if tokens + costs[number] > cap:
            oversized = group.start if is_real_user(messages[group.start]) else None
            break
        tokens += max(costs[number], 0)
        number += 1
    end = index.groups[number - 1].end if number else 0
    return Head(end=end, tokens=tokens, oversized=oversized)
