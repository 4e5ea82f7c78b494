"""The view: what a model is shown of a stream, and where each part of it comes from."""

from __future__ import annotations

from itertools import chain

import msgspec

from jp.conversation.thread import ViewEvent


class Kept(msgspec.Struct, frozen=True, tag=True):
    """A turn of the stream, under its number in the stream."""

    number: int


class Summarised(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A summary that stands for turns `from_turn` to `to_turn` (0-based, inclusive).

    They are an unbroken run of the turns that it covers. `compaction` is the id of the overlay that it comes from.
    """

    from_turn: int
    to_turn: int
    compaction: str


Origin = Kept | Summarised


class ProjectedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn as the model sees it; without events where nothing of it is shown."""

    origin: Origin
    events: tuple[ViewEvent, ...]


class Projection(msgspec.Struct, frozen=True, kw_only=True):
    """What a model is shown of a stream, in order."""

    turns: tuple[ProjectedTurn, ...]

    @property
    def events(self) -> tuple[ViewEvent, ...]:
        """Everything, flat."""
        return tuple(chain.from_iterable(turn.events for turn in self.turns))
