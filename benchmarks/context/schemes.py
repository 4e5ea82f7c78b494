"""What a way to make room is, and ours: the passes of `jp.context` in a chain, without a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from context.sessions import RULES
from context.store import Store
from jp.context.anchors import is_real_user
from jp.context.budget import estimate_message
from jp.context.compress import compressing
from jp.context.failure_policy import Circumstances, PolicyState
from jp.context.groups import index_groups
from jp.context.markers import Cutter
from jp.context.summarizing import summary_limit
from jp.context.summary_asking import Setup, Terms
from jp.context.summary_request import Asking
from jp.context.types import Message, Transcript

NONCE = "b3nchm4rk"
_FENCE = "a1B2c3D4e5F6a7B8"
_TODAY = "2026-11-21"
_WINDOW_OF_TARGET = 4
"""A target is a quarter of the window for which it is a target."""


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


class OurPasses:
    """`jp.context`: digests, cut arguments, exact tail, and the summary that is made without a model."""

    def __init__(self) -> None:
        self.store = Store()

    def compact(self, messages: Transcript, target: int) -> Transcript:
        """As a host would, to which no model is at hand."""
        terms = Terms(
            window=target * _WINDOW_OF_TARGET,
            limit=summary_limit(target * _WINDOW_OF_TARGET),
            may_fall_back=True,
            has_provider=False,
        )
        setup = Setup(terms=terms, asking=Asking(fence=_FENCE, today=_TODAY), cutter=Cutter(NONCE, self.store))
        at = Circumstances(now=0.0, configuration="", used=0)
        steps = compressing(messages, target, setup, RULES, policy=PolicyState(), at=at)
        try:
            next(steps)
        except StopIteration as end:
            return end.value.messages
        raise RuntimeError("a model was asked")

    def recallable(self, messages: Transcript) -> Iterator[str]:
        """What the handles recall that stand in `messages`."""
        yield from recalled_from(messages, self.store)


def recalled_from(messages: Transcript, store: Store) -> Iterator[str]:
    """The texts in `store` whose handles stand in `messages`."""
    from context.gold import places_of

    words = {word for place in places_of(messages) for word in handles_in(place.text)}
    for handle in sorted(words & store.kept.keys()):
        yield store.kept[handle]


def handles_in(text: str) -> Iterator[str]:
    """Every word of sixteen hexadecimal digits in `text`."""
    import re

    for found in re.finditer(r"(?<![0-9a-f])[0-9a-f]{16}(?![0-9a-f])", text):
        yield found[0]


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
