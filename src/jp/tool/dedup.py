"""Which resource was delivered before, unchanged (RFD 067). Pure; asked by whoever is about to record a delivery.

What was delivered is identified by its URI and the sha256 of its raw content. `duplicate_of` names the entry that
delivered it first within the window, in full: an entry that was itself marked refers to an earlier one, and that one
is what a person is told about. Whether a model is sent a reference is not decided here but by the projection, which
knows which copies are visible. Resources that repeat inside one entry are not marked: its id is not known yet, and the
projection sees that they repeat.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from jp.conversation.entries import AnyEntry, ChatRequest, Event, ToolCallResponse
from jp.conversation.resource import Block, Resource, ResourceBlock, checksum, size_in_bytes
from jp.conversation.turns import turns_of

Identity = tuple[str, str]
"""URI and sha256 of the raw content."""


def mark_resources(
    resources: Iterable[Resource],
    entries: Iterable[AnyEntry],
    *,
    turn: int,
    enabled: bool,
    min_bytes: int,
    lookback_turns: int,
) -> tuple[Resource, ...]:
    """`resources` that turn `turn` is about to record with a request, those delivered before with `duplicate_of`.

    `entries` is the stream as it is stored, without what was reverted; `turn` counts as `turns_of` does. Only what
    has more than `min_bytes` bytes is marked, and only where the first delivery is at most `lookback_turns` back.
    """
    listed = tuple(resources)
    wanted = {_identity(resource) for resource in listed if enabled and size_in_bytes(resource) > min_bytes}
    first = _first_deliveries(wanted, entries, since=turn - lookback_turns)
    if not first:
        return listed
    return tuple(
        replace(resource, duplicate_of=first[identity]) if (identity := _identity(resource)) in first else resource
        for resource in listed
    )


def mark_blocks(
    blocks: Iterable[Block],
    entries: Iterable[AnyEntry],
    *,
    turn: int,
    enabled: bool,
    min_bytes: int,
    lookback_turns: int,
) -> tuple[Block, ...]:
    """`blocks` that turn `turn` is about to record as a tool's response; see `mark_resources`."""
    listed = tuple(blocks)
    marked = iter(
        mark_resources(
            (block.resource for block in listed if isinstance(block, ResourceBlock)),
            entries,
            turn=turn,
            enabled=enabled,
            min_bytes=min_bytes,
            lookback_turns=lookback_turns,
        )
    )
    return tuple(
        replace(block, resource=next(marked)) if isinstance(block, ResourceBlock) else block for block in listed
    )


def _identity(resource: Resource) -> Identity:
    return resource.uri, checksum(resource)


def _first_deliveries(wanted: set[Identity], entries: Iterable[AnyEntry], *, since: int) -> dict[Identity, str]:
    """For each identity that is wanted, the first entry of turn `since` or later that delivered it in full."""
    if not wanted:
        return {}
    uris = {uri for uri, _ in wanted}
    first: dict[Identity, str] = {}
    delivered: set[tuple[Identity, str | None]] = set()
    for turn, entry, resource in _deliveries(entries):
        # Most deliveries are of other resources: those are not hashed.
        identity = _identity(resource) if resource.uri in uris else None
        if identity is None or identity not in wanted:
            continue
        # A fork may lack what a mark refers to; there the marked copy is the first.
        is_full = (identity, resource.duplicate_of) not in delivered
        delivered.add((identity, entry))
        if is_full and turn >= since:
            first.setdefault(identity, entry)
    return first


def _deliveries(entries: Iterable[AnyEntry]) -> Iterator[tuple[int, str, Resource]]:
    """Every resource of a stream, with the number of its turn and the id of its entry."""
    for turn in turns_of(entries):
        for entry in turn.entries:
            for resource in _resources_of(entry):
                yield turn.number, entry.id, resource


def _resources_of(entry: Event) -> Iterator[Resource]:
    match entry:
        case ChatRequest(resources=resources):
            yield from resources
        case ToolCallResponse(content=blocks):
            yield from (block.resource for block in blocks if isinstance(block, ResourceBlock))
        case _:
            pass
