"""Which copy of a resource a model can read: the newest that a view shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from jp.compaction.projection import project
from jp.compaction.stand_ins import StandIns
from jp.compaction.wording import attachment_place, result_place
from jp.conversation.entries import AnyEntry
from jp.conversation.resource import Resource, ResourceBlock
from jp.conversation.thread import ToolResult, UserResource, ViewEvent


class VisibleCopy(msgspec.Struct, frozen=True, kw_only=True):
    """A copy of a resource in a view, as it is shown there: the entry that delivered it, and where that stands."""

    resource: Resource
    entry: str
    place: str


def newest_copy(uri: str, entries: Sequence[AnyEntry], stand_ins: StandIns) -> VisibleCopy | None:
    """The newest copy of `uri` in the view of `entries`; what only refers to an older one is none."""
    newest = None
    for event in project(entries, stand_ins).events:
        for copy in _copies_in(event):
            if copy.resource.uri == uri:
                newest = copy
    return newest


def _copies_in(event: ViewEvent) -> Iterator[VisibleCopy]:
    match event:
        case UserResource(resource=resource, origin=origin, turn=turn):
            yield VisibleCopy(resource=resource, entry=origin, place=attachment_place(turn))
        case ToolResult(content=content, origin=origin, turn=turn, call_id=call_id):
            for block in content:
                if isinstance(block, ResourceBlock):
                    yield VisibleCopy(resource=block.resource, entry=origin, place=result_place(turn, call_id))
        case _:
            pass
