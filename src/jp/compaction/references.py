"""References: how snapshots of resources that depend on others are shown in a view (RFD 067)."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import ChainMap
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import assert_never

import msgspec
from msgspec.structs import replace

from jp.compaction.overlays import Coverage, Point
from jp.compaction.status_lines import attachment_place, reference, result_place, shown_size, superseded
from jp.conversation.resource import Block, Carrier, Resource, ResourceBlock, TextBlock, checksum, formatted_of
from jp.conversation.thread import NamedCall, ReferenceBlock, ToolResult, UserResource, UserText, ViewEvent


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
    def at(self) -> Place:
        """Its position and block."""
        return self.position, self.block

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
        """Its place in the view, in words for a model."""
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
    """Yield the snapshots in a view, in order. `spans` are in order, too."""
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


_MARKED = r"\[\[cut:[0-9A-Za-z_-]{4,64}:([0-9a-f]{8,64}):\+[0-9]+\]\]"


def cut_handle(carrier: Carrier) -> str | None:
    """Return the handle of the whole content of `carrier` if a model is shown parts of it; else None.

    Text that only looks like a marker names other content.
    """
    formatted = formatted_of(carrier)
    if formatted is None:
        return None
    marked: list[str] = re.findall(_MARKED, formatted)
    sha256 = checksum(carrier) if marked else ""
    return next((handle for handle in marked if sha256.startswith(handle)), None)


def superseded_notes(deliveries: Sequence[Delivery]) -> dict[Place, Note]:
    """Return the notes that replace superseded snapshots, by the place of the snapshot.

    A snapshot is superseded by the newest copy of its URI that the compaction had seen, so a later delivery changes
    nothing. A copy that only refers to an older one, or is a diff against it, supersedes what came before that one. A
    note that is not shorter than the snapshot is not made.
    """
    by_uri: dict[str, list[Delivery]] = {}
    for delivery in deliveries:
        by_uri.setdefault(delivery.resource.uri, []).append(delivery)
    notes: dict[Place, Note] = {}
    for group in by_uri.values():
        if len(group) > 1 and any(delivery.span.superseded is not None for delivery in group):
            notes.update((group[index].at, note) for index, note in _notes(group).items())
    return notes


def _notes(group: Sequence[Delivery]) -> dict[int, Note]:
    roots = _roots(group)
    points = [delivery.span.point for delivery in group]
    newest: dict[int, int] = {}
    notes: dict[int, Note] = {}
    for index in reversed(range(len(group))):
        delivery = group[index]
        coverage = delivery.span.superseded
        if coverage is None:
            continue
        seen = bisect_left(points, coverage.seen)
        anchor = roots[seen - 1] if seen else index
        if anchor <= index:
            continue
        newest[index] = newest.get(anchor, anchor)
        newer = group[newest[index]]
        note = superseded(delivery.resource.uri, checksum(delivery.resource), newer.place)
        if len(note.encode()) < shown_size(delivery.resource):
            notes[index] = Note(text=note, named=newer.named)
        else:
            del newest[index]
    return notes


def _roots(group: Sequence[Delivery]) -> list[int]:
    """Return for each copy of one URI the copy that is needed in full to read it: itself, or one before it."""
    roots: list[int] = []
    latest: dict[str, int] = {}
    for index, delivery in enumerate(group):
        resource = delivery.resource
        root = index
        if resource.formatted_against is not None:
            root = roots[latest[resource.formatted_against]] if resource.formatted_against in latest else index
        elif index and resource.duplicate_of is not None and checksum(resource) == checksum(group[index - 1].resource):
            root = roots[index - 1]
        roots.append(root)
        latest[delivery.event.origin] = index
    return roots


Place = tuple[int, int]
"""The place of a snapshot in a view: the position of its event, and its block."""

Replacement = Note | Resource
"""A replacement for a snapshot: a text, or the snapshot in another form."""


class CopyReader:
    """Reads a view from its beginning, and knows which copies can be read so far."""

    def __init__(self) -> None:
        self._copies: MutableMapping[tuple[str, str, str | None], Delivery] = {}
        self._newest: MutableMapping[str, str] = {}
        self._readable: MutableMapping[tuple[str, str], bool] = {}

    def fork(self) -> CopyReader:
        """Return a reader that goes on from here; what it reads stays unknown to this one."""
        found = CopyReader()
        found._copies = ChainMap({}, self._copies)
        found._newest = ChainMap({}, self._newest)
        found._readable = ChainMap({}, self._readable)
        return found

    def take(self, delivery: Delivery) -> Replacement:
        """Return the form that a snapshot needs at this place."""
        resource = delivery.resource
        base = resource.formatted_against
        is_diff = base is not None and (base, resource.uri) in self._readable
        whole = resource if base is None else replace(resource, formatted=None, formatted_against=None)
        self._readable[delivery.event.origin, resource.uri] = True
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
        """Return the newest copy that contains all that a reader would get from another one in this form."""
        forms = (self._copies.get((uri, sha256, form)) for form in dict.fromkeys((None, formatted)))
        found = [copy for copy in forms if copy is not None]
        return max(found, key=lambda copy: copy.at, default=None)


def settle(
    events: Sequence[ViewEvent],
    start: int,
    deliveries: Sequence[Delivery],
    notes: Mapping[Place, Note],
    reader: CopyReader,
) -> list[ViewEvent]:
    """Return `events` from `start` on, with every snapshot in a form that a reader of this view can use.

    A snapshot marked as a duplicate becomes a reference if a full copy, or one that was cut in the same way, is earlier
    in this view, and is itself the copy otherwise. A diff stays one if its base is earlier in this view, and becomes
    the full content otherwise.

    Args:
        events: The whole view.
        start: Position of the first event to return.
        deliveries: The snapshots in these events, in order.
        notes: Notes that replace superseded snapshots.
        reader: Has read the events before `start`.
    """
    result = list(events[start:])
    changed: dict[int, tuple[Delivery, dict[int, Replacement]]] = {}
    for delivery in deliveries:
        shown = notes.get(delivery.at) or reader.take(delivery)
        if shown is not delivery.resource:
            changed.setdefault(delivery.position, (delivery, {}))[1][delivery.block] = shown
    for position, (delivery, blocks) in changed.items():
        result[position - start] = _changed(delivery.event, blocks)
    return result


def _changed(event: UserResource | ToolResult, blocks: Mapping[int, Replacement]) -> ViewEvent:
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


def _block(shown: Replacement) -> Block:
    if isinstance(shown, Resource):
        return ResourceBlock(resource=shown)
    return TextBlock(text=shown.text) if shown.named is None else ReferenceBlock(text=shown.text, named=shown.named)


def _changed_resource(event: UserResource, shown: Replacement) -> ViewEvent:
    if isinstance(shown, Resource):
        return replace(event, resource=shown)
    return UserText(text=shown.text, turn=event.turn, origin=event.origin, synthetic=True, named=shown.named)
