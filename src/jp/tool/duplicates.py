"""Mark resources that a log has delivered before, so that they are shown as references (RFD 067). Pure.

An index of the deliveries by URI and content grows with its log. Only resources of a URI that was asked for are hashed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from jp.conversation.entries import AnyEntry, ChatRequest, Revert, ToolCallResponse
from jp.conversation.resource import Block, Resource, ResourceBlock, checksum, size_in_bytes
from jp.conversation.thread import LogCursor
from jp.conversation.turns import TurnCounter, undone


class _Copies:
    """The deliveries of one URI, in order, each with its turn and its entry."""

    def __init__(self) -> None:
        self.added: list[tuple[int, str, Resource]] = []
        self._known: set[tuple[str, str]] = set()
        self._full: dict[str, list[tuple[int, str]]] = {}

    def first(self, sha256: str, *, since: int) -> str | None:
        """Return the first entry of turn `since` or later that delivered this content in full."""
        for turn, entry, resource in self.added:
            identity = checksum(resource)
            # A fork may lack what a mark refers to; there the marked copy is the first.
            if resource.duplicate_of is None or (identity, resource.duplicate_of) not in self._known:
                self._full.setdefault(identity, []).append((turn, entry))
            self._known.add((identity, entry))
        self.added.clear()
        full = self._full.get(sha256, ())
        position = bisect_left(full, since, key=lambda delivery: delivery[0])
        return full[position][1] if position < len(full) else None


class DeliveryIndex:
    """The resources that a log has delivered. Turns that were undone are not there, and not counted."""

    def __init__(self, entries: Sequence[AnyEntry] = ()) -> None:
        self._cursor = LogCursor()
        self._counter = TurnCounter()
        self._copies: dict[str, _Copies] = {}
        self.update(entries)

    @property
    def turns(self) -> int:
        """The number of turns that were not undone."""
        return self._counter.count

    def update(self, entries: Sequence[AnyEntry]) -> None:
        """Read the entries that were added to the log; all of them after a revert, and if earlier ones have changed.

        Args:
            entries: The log. See `LogCursor.advance` on passing the same list again.
        """
        added, only_adds = self._cursor.advance(entries)
        if not only_adds or any(isinstance(entry, Revert) for entry in added):
            self._counter, self._copies = TurnCounter(undone(entries)), {}
            added = entries
        for entry in added:
            self._add(entry)

    def first(self, resource: Resource, *, since: int) -> str | None:
        """Return the first entry of turn `since` or later that delivered the same content in full."""
        copies = self._copies.get(resource.uri)
        return None if copies is None else copies.first(checksum(resource), since=since)

    def _add(self, entry: AnyEntry) -> None:
        turn = self._counter.add(entry)
        if turn is None:
            return
        for resource in _resources_of(entry):
            self._copies.setdefault(resource.uri, _Copies()).added.append((turn, entry.id, resource))


def _resources_of(entry: AnyEntry) -> Iterator[Resource]:
    match entry:
        case ChatRequest(resources=resources):
            yield from resources
        case ToolCallResponse(content=blocks):
            yield from (block.resource for block in blocks if isinstance(block, ResourceBlock))
        case _:
            pass


def mark_resources(
    resources: Iterable[Resource],
    deliveries: DeliveryIndex,
    *,
    turn: int,
    enabled: bool,
    min_bytes: int,
    lookback_turns: int,
) -> tuple[Resource, ...]:
    """Return the `resources` that turn `turn` records with a request, those delivered before with `duplicate_of`.

    `turn` counts as the index does. Only what has more than `min_bytes` bytes is marked, and only where the first
    delivery is at most `lookback_turns` back.
    """

    def marked(resource: Resource) -> Resource:
        if not enabled or size_in_bytes(resource) <= min_bytes:
            return resource
        first = deliveries.first(resource, since=turn - lookback_turns)
        return resource if first is None else replace(resource, duplicate_of=first)

    return tuple(map(marked, resources))


def mark_blocks(
    blocks: Iterable[Block],
    deliveries: DeliveryIndex,
    *,
    turn: int,
    enabled: bool,
    min_bytes: int,
    lookback_turns: int,
) -> tuple[Block, ...]:
    """Return the `blocks` that turn `turn` records as a tool's response; see `mark_resources`."""
    listed = tuple(blocks)
    marked = iter(
        mark_resources(
            (block.resource for block in listed if isinstance(block, ResourceBlock)),
            deliveries,
            turn=turn,
            enabled=enabled,
            min_bytes=min_bytes,
            lookback_turns=lookback_turns,
        )
    )
    return tuple(
        replace(block, resource=next(marked)) if isinstance(block, ResourceBlock) else block for block in listed
    )
