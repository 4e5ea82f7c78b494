"""Deliveries: where a view shows snapshots of resources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

import msgspec

from jp.compaction.overlays import Coverage, Point
from jp.compaction.wording import attachment_place, result_place
from jp.conversation.resource import Resource, ResourceBlock
from jp.conversation.thread import NamedCall, ToolResult, UserResource, ViewEvent


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """The events of a view from `start` on that come from the cycle at `point`; `superseded` as in `Policies`."""

    start: int
    point: Point
    superseded: Coverage | None


class Delivery(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A snapshot in a view: in block `block` of the event at `position`."""

    resource: Resource
    event: UserResource | ToolResult
    position: int
    block: int
    span: Span

    @property
    def named(self) -> NamedCall | None:
        """The call that `place` names."""
        match self.event:
            case UserResource():
                return None
            case ToolResult(call=call, call_id=call_id):
                return NamedCall(call=call, call_id=call_id)
            case _:
                assert_never(self.event)

    @property
    def place(self) -> str:
        """Where it stands, in words for a model."""
        match self.event:
            case UserResource(turn=turn):
                return attachment_place(turn)
            case ToolResult(turn=turn, call_id=call_id):
                return result_place(turn, call_id)
            case _:
                assert_never(self.event)


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """Words in place of a snapshot, and the call that they name."""

    text: str
    named: NamedCall | None


def deliveries_in(events: Sequence[ViewEvent], spans: Sequence[Span]) -> Iterator[Delivery]:
    """The snapshots in a view, in order. `spans` are in order, too."""
    ends = [span.start for span in spans[1:]] + [len(events)]
    for span, end in zip(spans, ends, strict=False):
        for position in range(span.start, end):
            event = events[position]
            if isinstance(event, UserResource):
                yield Delivery(resource=event.resource, event=event, position=position, block=0, span=span)
            elif isinstance(event, ToolResult):
                yield from _in_result(event, position, span)


def _in_result(event: ToolResult, position: int, span: Span) -> Iterator[Delivery]:
    for number, block in enumerate(event.content):
        if isinstance(block, ResourceBlock):
            yield Delivery(resource=block.resource, event=event, position=position, block=number, span=span)
