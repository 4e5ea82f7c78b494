"""References: how snapshots that depend on others stand in a view (RFD 067)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from msgspec.structs import replace

from jp.compaction.cut_forms import cut_handle
from jp.compaction.deliveries import Delivery, Note
from jp.compaction.wording import reference
from jp.conversation.resource import Block, Resource, ResourceBlock, TextBlock, checksum
from jp.conversation.thread import ReferenceBlock, ToolResult, UserResource, UserText, ViewEvent

Shown = Note | Resource
"""What stands in place of a snapshot: words, or the snapshot in another form."""


class _Reader:
    """What can be read in the part of a view that was passed. `repeated` are the URIs that references may be about."""

    def __init__(self, repeated: frozenset[str]) -> None:
        self._repeated = repeated
        self._copies: dict[tuple[str, str, str | None], Delivery] = {}
        self._newest: dict[str, str] = {}
        self._readable: set[tuple[str, str]] = set()

    def take(self, delivery: Delivery) -> Shown:
        """How a snapshot has to stand here."""
        resource = delivery.resource
        base = resource.formatted_against
        is_diff = base is not None and (base, resource.uri) in self._readable
        whole = resource if base is None else replace(resource, formatted=None, formatted_against=None)
        self._readable.add((delivery.event.origin, resource.uri))
        if resource.uri not in self._repeated:
            return resource if is_diff else whole
        sha256 = checksum(resource)
        has_changed = self._newest.get(resource.uri, sha256) != sha256
        self._newest[resource.uri] = sha256
        copy = self._copy_of(resource.uri, sha256, whole.formatted)
        if copy is not None and resource.duplicate_of is not None:
            handle = cut_handle(copy.resource)
            text = reference(resource.uri, sha256, copy.place, handle=handle, has_changed=has_changed)
            return Note(text=text, named=copy.named)
        if is_diff:
            return resource
        self._copies[resource.uri, sha256, whole.formatted] = delivery
        return whole

    def _copy_of(self, uri: str, sha256: str, formatted: str | None) -> Delivery | None:
        """The newest copy with all that a reader would have of another one in this form."""
        forms = (self._copies.get((uri, sha256, form)) for form in dict.fromkeys((None, formatted)))
        found = [copy for copy in forms if copy is not None]
        return max(found, key=_order, default=None)


def _order(delivery: Delivery) -> tuple[int, int]:
    return delivery.position, delivery.block


def settled(events: Sequence[ViewEvent], deliveries: Sequence[Delivery], notes: Mapping[int, Note]) -> list[ViewEvent]:
    """`events` with every snapshot in the form in which a reader of this view can use it.

    `notes` stand for deliveries by their position. A snapshot marked as a duplicate becomes a reference where a full
    copy, or one that was cut in the same way, stands earlier in this view, and is itself the copy otherwise. A diff
    stays one where its base can be read earlier in this view, and becomes the full content otherwise.
    """
    repeated = frozenset(one.resource.uri for one in deliveries if one.resource.duplicate_of is not None)
    reader = _Reader(repeated)
    result = list(events)
    changed: dict[int, tuple[Delivery, dict[int, Shown]]] = {}
    for number, delivery in enumerate(deliveries):
        note = notes.get(number)
        shown = reader.take(delivery) if note is None else note
        if shown is not delivery.resource:
            changed.setdefault(delivery.position, (delivery, {}))[1][delivery.block] = shown
    for position, (delivery, blocks) in changed.items():
        result[position] = _changed(delivery.event, blocks)
    return result


def _changed(event: UserResource | ToolResult, blocks: Mapping[int, Shown]) -> ViewEvent:
    match event:
        case UserResource():
            return _changed_resource(event, blocks[0])
        case ToolResult():
            content = list(event.content)
            for number, shown in blocks.items():
                content[number] = _block(shown)
            return replace(event, content=tuple(content))
        case _:
            assert_never(event)


def _block(shown: Shown) -> Block:
    if isinstance(shown, Resource):
        return ResourceBlock(resource=shown)
    return TextBlock(text=shown.text) if shown.named is None else ReferenceBlock(text=shown.text, named=shown.named)


def _changed_resource(event: UserResource, shown: Shown) -> ViewEvent:
    if isinstance(shown, Resource):
        return replace(event, resource=shown)
    return UserText(text=shown.text, turn=event.turn, origin=event.origin, synthetic=True, named=shown.named)
