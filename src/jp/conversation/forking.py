"""Forking: the entries of a range of turns as a stream of their own. Pure.

What is copied keeps its id and its place. What names something that stays behind names nothing any more, or the first
copy of the same content.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from jp.conversation.entries import (
    AnyEntry,
    ChatResponse,
    Compaction,
    ConfigDelta,
    CycleEnd,
    Header,
    InquiryRequest,
    InquiryResponse,
    RequestContext,
    Revert,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
    Unknown,
)
from jp.conversation.resource import Carrier, Resource, checksum
from jp.conversation.thread import carriers_in, map_carriers
from jp.conversation.turns import repair, undone

C = TypeVar("C", bound=Carrier)


class TurnRange(msgspec.Struct, frozen=True, kw_only=True):
    """Turns `first` to `last` (0-based, inclusive)."""

    first: int
    last: int

    def __contains__(self, turn: object) -> bool:
        return isinstance(turn, int) and self.first <= turn <= self.last


class Extract(msgspec.Struct, frozen=True, kw_only=True):
    """The entries of a fork, without a header. Those that close what was left open have no id yet.

    `before` are the deltas in force where the range starts: they belong into the fork's base configuration.
    """

    entries: tuple[AnyEntry, ...]
    before: tuple[ConfigDelta, ...]


def turn_numbers(entries: Iterable[AnyEntry]) -> list[int]:
    """Return the number of each entry's turn, as `turns_of` numbers them; -1 before any.

    What is no event counts to the turn before it.
    """
    numbers: list[int] = []
    number, is_bare = -1, False
    for entry in entries:
        if isinstance(entry, TurnStart):
            number, is_bare = number if is_bare else number + 1, True
        elif not isinstance(entry, Header | ConfigDelta | Compaction | Revert | Unknown):
            number, is_bare = max(number, 0), False
        numbers.append(number)
    return numbers


def extract(entries: Sequence[AnyEntry], turns: TurnRange, compactions: Sequence[Compaction | None]) -> Extract:
    """Copy the turns of a range as a reader sees them now.

    `compactions` are the stream's, in its order, as they are in the fork, None for those that stay behind. Reverts and
    compactions come along from wherever they stand, since they change how what is copied is read. A configuration
    delta that stands after the range comes along only where no later turn follows: otherwise it was made for that.
    """
    numbers = turn_numbers(entries)
    chosen = _with_rejections(list(_chosen(entries, numbers, turns, compactions)), entries)
    chosen = _without_dangling_references(chosen)
    if turns.first > 0:
        start = numbers.index(turns.first)
        chosen = _with_context(chosen, entries[:start])
        chosen = _with_whole_digests(chosen, entries)
    return Extract(
        entries=(*chosen, *repair(chosen).entries),
        before=_deltas_before(entries, numbers, turns.first) if turns.first > 0 else (),
    )


def _chosen(
    entries: Sequence[AnyEntry], numbers: Sequence[int], turns: TurnRange, compactions: Sequence[Compaction | None]
) -> Iterator[AnyEntry]:
    overlays = iter(compactions)
    end = _end_of(entries, numbers, turns.last)
    for position, (entry, number) in enumerate(zip(entries, numbers, strict=True)):
        if isinstance(entry, Compaction):
            overlay = next(overlays)
            if overlay is not None:
                yield overlay
        elif isinstance(entry, Revert) or (max(number, 0) in turns and _belongs(entry, position, end)):
            yield entry


def _belongs(entry: AnyEntry, position: int, end: int) -> bool:
    """Return whether an entry in the range belongs to it."""
    return not isinstance(entry, Header) and (position < end or not isinstance(entry, ConfigDelta))


def _end_of(entries: Sequence[AnyEntry], numbers: Sequence[int], last: int) -> int:
    """Return the position at which the turn `last` ends: after its last event, or with the stream."""
    if numbers[-1] <= last:
        return len(entries)
    end = numbers.index(last + 1)
    while isinstance(entries[end - 1], ConfigDelta | Compaction | Revert | Unknown):
        end -= 1
    return end


def _deltas_before(entries: Sequence[AnyEntry], numbers: Sequence[int], first: int) -> tuple[ConfigDelta, ...]:
    gone = undone(entries)
    return tuple(
        entry
        for entry, number in zip(entries, numbers, strict=True)
        if isinstance(entry, ConfigDelta) and number < first and entry.id not in gone
    )


def _with_context(chosen: list[AnyEntry], before: Sequence[AnyEntry]) -> list[AnyEntry]:
    """Add the `request_context` in force at the start, unless the entries have one before any answer."""
    in_force = next((entry for entry in reversed(before) if isinstance(entry, RequestContext)), None)
    for entry in chosen:
        if isinstance(entry, ChatResponse | ToolCallRequest | CycleEnd):
            break
        if isinstance(entry, RequestContext):
            return chosen
    return chosen if in_force is None else [chosen[0], in_force, *chosen[1:]]


def _with_whole_digests(chosen: list[AnyEntry], entries: Sequence[AnyEntry]) -> list[AnyEntry]:
    """Write out the digests of the first attempt, because the entries that they continue are not copied."""
    first, end = next(((at, entry) for at, entry in enumerate(chosen) if isinstance(entry, CycleEnd)), (0, None))
    if end is None:
        return chosen
    messages: tuple[str, ...] = ()
    position = next(at for at, entry in enumerate(entries) if entry.id == end.id)
    for entry in entries[: position + 1]:
        if isinstance(entry, CycleEnd):
            messages = messages[: entry.digests.kept] + entry.digests.messages
    return [
        *chosen[:first],
        replace(end, digests=replace(end.digests, kept=0, messages=messages)),
        *chosen[first + 1 :],
    ]


def _with_rejections(chosen: list[AnyEntry], entries: Sequence[AnyEntry]) -> list[AnyEntry]:
    """Add the rejections that turns which are not copied recorded to the last end of an attempt."""
    known = {entry.id for entry in chosen if isinstance(entry, ChatResponse | ToolCallRequest)}
    said = {identity for entry in chosen if isinstance(entry, CycleEnd) for identity in entry.rejected}
    everything = [identity for entry in entries if isinstance(entry, CycleEnd) for identity in entry.rejected]
    missing = tuple(dict.fromkeys(identity for identity in everything if identity in known - said))
    ends = [(position, entry) for position, entry in enumerate(chosen) if isinstance(entry, CycleEnd)]
    if not (missing and ends):
        return chosen
    position, end = ends[-1]
    return [*chosen[:position], replace(end, rejected=(*end.rejected, *missing)), *chosen[position + 1 :]]


def _without_dangling_references(chosen: list[AnyEntry]) -> list[AnyEntry]:
    """Remove references to entries that are not copied."""
    known = {entry.id for entry in chosen if entry.id and not isinstance(entry, Revert)}
    kept: list[AnyEntry] = []
    for entry in chosen:
        match entry:
            case Revert(entries=named):
                inside = tuple(identity for identity in named if identity in known)
                if inside:
                    kept.append(entry if inside == named else replace(entry, entries=inside))
                    known.add(entry.id)
            case CycleEnd(rejected=rejected) if not known.issuperset(rejected):
                kept.append(replace(entry, rejected=tuple(identity for identity in rejected if identity in known)))
            case ToolCallResponse(request=request) | InquiryRequest(request=request) | InquiryResponse(request=request):
                if request in known:
                    kept.append(entry)
                else:
                    known.discard(entry.id)
            case _:
                kept.append(entry)
    return _with_own_originals(kept, known)


def _with_own_originals(entries: list[AnyEntry], known: Container[str]) -> list[AnyEntry]:
    """Make resources refer to copies among the entries only."""
    originals = _Originals(known)
    if all(originals.are_known(entry) for entry in entries):
        return entries
    settled: list[AnyEntry] = []
    for entry in entries:
        settled.append(map_carriers(entry, originals.settle))
        originals.note(entry)
    return settled


class _Originals:
    """The first deliveries of content by the entries that are `known`."""

    def __init__(self, known: Container[str]) -> None:
        self._known = known
        self._first: dict[tuple[str, str], str] = {}

    def are_known(self, entry: AnyEntry) -> bool:
        """Return whether the resources of `entry` refer to known entries only."""
        return all(
            reference is None or reference in self._known
            for resource in carriers_in(entry)
            if isinstance(resource, Resource)
            for reference in (resource.duplicate_of, resource.formatted_against)
        )

    def settle(self, carrier: C, /) -> C:
        """Return the carrier with references to known entries only, in full where a diff has lost its base."""
        if not isinstance(carrier, Resource):
            return carrier
        if carrier.duplicate_of is not None and carrier.duplicate_of not in self._known:
            carrier = replace(carrier, duplicate_of=self._first.get((carrier.uri, checksum(carrier))))
        if carrier.formatted_against is not None and carrier.formatted_against not in self._known:
            carrier = replace(carrier, formatted=None, formatted_against=None)
        return carrier

    def note(self, entry: AnyEntry) -> None:
        """Remember what `entry` delivers."""
        for resource in carriers_in(entry):
            if isinstance(resource, Resource):
                self._first.setdefault((resource.uri, checksum(resource)), entry.id)
