"""The baseline type, and functions that several baselines share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from context.rounds import index_groups
from jp.context.budget import estimate_message
from jp.context.summary_source import is_real_user
from jp.context.types import Message, Transcript


class Scheme(Protocol):
    """A way to make room, for one session: what it keeps between two compactions is its own."""

    def compact(self, messages: Transcript, target: int) -> Transcript:
        """`messages` in about `target` tokens."""
        ...

    def recallable(self, messages: Transcript) -> Iterator[str]:
        """Each text that a reader of `messages` could ask for by something that stands in them."""
        ...


class Named(NamedTuple):
    """A scheme under its name in tables; `make` makes one for a new session."""

    name: str
    make: Callable[[], Scheme]


def trimmed(messages: Transcript, target: int) -> Transcript:
    """System messages, summaries, and the newest groups, as many as fit into `target` tokens; at least the last one."""
    groups = index_groups(messages).groups
    fixed = [at for at, row in enumerate(messages) if row.role == "system" or row.meta.kind == "summary"]
    left = target - sum(estimate_message(messages[at]) for at in fixed)
    kept: set[int] = set(fixed)
    for group in reversed(groups):
        members = [at for at in range(group.start, group.end) if at not in kept]
        left -= sum(estimate_message(messages[at]) for at in members)
        if left < 0 and group is not groups[-1]:
            break
        kept.update(members)
    return tuple(row for at, row in enumerate(messages) if at in kept)


def newest_request(messages: Transcript) -> Message | None:
    """What the person said last."""
    return next((row for row in reversed(messages) if is_real_user(row)), None)
