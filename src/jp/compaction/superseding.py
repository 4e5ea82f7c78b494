"""Superseded snapshots: older copies of what was delivered anew, where a compaction asks to leave them out."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from jp.compaction.deliveries import Delivery, Note
from jp.compaction.stripping import shown_size
from jp.compaction.wording import superseded
from jp.conversation.resource import checksum


def superseded_notes(deliveries: Sequence[Delivery]) -> dict[int, Note]:
    """The notes that stand for superseded snapshots, by position in `deliveries`.

    A snapshot is superseded by the newest copy of its URI that the compaction had seen; so one that is delivered
    later changes nothing. A copy that only refers to an older one, or is a diff against it, supersedes what came
    before that one. A note that is not shorter than the snapshot is not made.
    """
    by_uri: dict[str, list[int]] = {}
    for position, delivery in enumerate(deliveries):
        by_uri.setdefault(delivery.resource.uri, []).append(position)
    notes: dict[int, Note] = {}
    for positions in by_uri.values():
        group = [deliveries[position] for position in positions]
        if len(group) > 1 and any(delivery.span.superseded is not None for delivery in group):
            notes.update((positions[index], note) for index, note in _notes(group).items())
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
    """For each copy of one URI the copy that it needs in full to be read: itself, or one before it."""
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
