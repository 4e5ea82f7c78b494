from __future__ import annotations

import re
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import streams
from jp.compaction.fact_lines import StatusLineFormatter
from jp.compaction.overlays import ForkedStream, forked_stream
from jp.compaction.projection import ProjectedTurn, TurnOrigin, project
from jp.conversation.entries import (
    AnyEntry,
    Compaction,
    ConfigDelta,
    Header,
    InquiryRequest,
    InquiryResponse,
    Revert,
    ToolCallResponse,
    Unknown,
)
from jp.conversation.forking import TurnRange, turn_numbers
from jp.conversation.resource import Resource, ResourceBlock
from jp.conversation.thread import ToolResult, UserResource, UserText, ViewEvent, carriers_in
from jp.conversation.turns import divide, repair, turns_of

STAND_INS = StatusLineFormatter()
REFERENCE = re.compile(r"The content of (\S+) is identical to ")


@st.composite
def forks(draw: st.DrawFn, source: st.SearchStrategy[tuple[AnyEntry, ...]]) -> tuple[tuple[AnyEntry, ...], TurnRange]:
    """A stream with turns, and a range of them."""
    entries = draw(source.filter(lambda entries: bool(turns_of(entries))))
    last = draw(st.integers(0, len(turns_of(entries)) - 1))
    return entries, TurnRange(first=draw(st.integers(0, last)), last=last)


def whole(entries: Sequence[AnyEntry]) -> TurnRange:
    return TurnRange(first=0, last=len(turns_of(entries)) - 1)


def stamped(forked: ForkedStream) -> list[AnyEntry]:
    """The log of a fork as a writer stamps it."""
    header = Header(id="h", format=1, created_at=streams.AT, nonce=streams.NONCE)  # which markers in views carry
    return [header, *map(named, forked.entries)]


def named(entry: AnyEntry) -> AnyEntry:
    return (
        replace(entry, id=f"after-{entry.request}") if isinstance(entry, ToolCallResponse) and not entry.id else entry
    )


def repaired(entries: Sequence[AnyEntry]) -> tuple[AnyEntry, ...]:
    """A log as its next writer leaves it."""
    return (*entries, *map(named, repair(entries).entries))


def references(entry: AnyEntry) -> list[str]:
    """The ids of entries that `entry` names."""
    match entry:
        case ToolCallResponse(request=request) | InquiryRequest(request=request) | InquiryResponse(request=request):
            found = [request]
        case Revert(entries=named):
            found = list(named)
        case Compaction(from_id=first, to_id=last):
            found = [identity for identity in (first, last) if identity is not None]
        case _:
            found = []
    resources = [carrier for carrier in carriers_in(entry) if isinstance(carrier, Resource)]
    found += [resource.duplicate_of for resource in resources if resource.duplicate_of is not None]
    return found + [resource.formatted_against for resource in resources if resource.formatted_against is not None]


@given(streams.streams())
def test_a_fork_of_everything_shows_what_its_source_shows(entries: tuple[AnyEntry, ...]) -> None:
    fork = stamped(forked_stream(entries, whole(entries)))

    assert project(fork, STAND_INS, continuing=True) == project(repaired(entries), STAND_INS, continuing=True)


@given(forks(streams.streams()))
def test_a_fork_up_to_a_turn_shows_what_was_shown_then(fork: tuple[tuple[AnyEntry, ...], TurnRange]) -> None:
    entries, turns = fork
    numbers = turn_numbers(entries)
    then = [entry for entry, number in zip(entries, numbers, strict=True) if number <= turns.last]
    forked = forked_stream(then, TurnRange(first=0, last=turns.last))

    assert project(stamped(forked), STAND_INS) == project(repaired(then), STAND_INS)


@given(forks(streams.streams()))
def test_a_fork_shows_its_turns_as_the_source_shows_them_where_no_later_summary_or_copy_matters(
    fork: tuple[tuple[AnyEntry, ...], TurnRange],
) -> None:
    entries, turns = fork
    plain = repaired([
        replace(entry, summary=None, resources=None) if isinstance(entry, Compaction) else entry for entry in entries
    ])
    of_fork = project(stamped(forked_stream(plain, turns)), STAND_INS).turns
    of_source = project(plain, STAND_INS).turns

    shown = [turn for turn in of_fork if isinstance(turn.origin, TurnOrigin)]
    expected = [turn for turn in of_source if isinstance(turn.origin, TurnOrigin) and turn.origin.number in turns]
    assert numbers_of(shown, shift=turns.first) == numbers_of(expected)
    events = events_of(shown, plain, shift=turns.first)
    # What stands before the user's first words is not shown: no request may begin with an answer.
    everything = events_of(expected, plain)
    assert events == everything[len(everything) - len(events) :]


def numbers_of(turns: Sequence[ProjectedTurn], *, shift: int = 0) -> list[int]:
    return [turn.origin.number + shift for turn in turns if isinstance(turn.origin, TurnOrigin)]


def events_of(turns: Sequence[ProjectedTurn], entries: Sequence[AnyEntry], *, shift: int = 0) -> list[ViewEvent]:
    """The events of turns under the source's numbers, without resources: which of two copies is shown depends."""
    delivering = {
        entry.id
        for entry in entries
        if isinstance(entry, ToolCallResponse) and any(isinstance(block, ResourceBlock) for block in entry.content)
    }
    events: list[ViewEvent] = []
    for event in (replace(event, turn=event.turn + shift) for turn in turns for event in turn.events):
        if isinstance(event, UserResource):
            events.append(replace(event, resource=Resource(uri=event.resource.uri)))
        elif isinstance(event, ToolResult) and event.origin in delivering:
            events.append(replace(event, content=()))
        elif not (isinstance(event, UserText) and REFERENCE.match(event.text)):
            events.append(event)
        else:
            events.append(
                UserResource(resource=Resource(uri=event.text.split()[3]), turn=event.turn, origin=event.origin)
            )
    return events


@given(forks(streams.streams()))
def test_whatever_a_fork_names_is_in_it_and_no_id_stands_there_twice(
    fork: tuple[tuple[AnyEntry, ...], TurnRange],
) -> None:
    entries, turns = fork
    log = stamped(forked_stream(entries, turns))

    known = [entry.id for entry in log if not isinstance(entry, Unknown)]
    assert len(set(known)) == len(known)
    assert [name for entry in log for name in references(entry) if name not in known] == []


@given(forks(streams.any_streams()))
def test_a_fork_is_a_function_of_the_log_and_forking_it_again_changes_nothing(
    fork: tuple[tuple[AnyEntry, ...], TurnRange],
) -> None:
    entries, turns = fork
    forked = forked_stream(entries, turns)
    log = stamped(forked)

    assert forked_stream(entries, turns) == forked
    # What has lost its id cannot be referred to, and what has lost its turn may be a turn of its own or none.
    if turns_of(log) and all(entry.id for entry in (*entries, *turns_of(entries))):
        again = forked_stream(log, whole(log))
        assert stamped(again)[1:] == [entry for entry in log[1:] if entry in stamped(again)]
        assert project(stamped(again), STAND_INS) == project(log, STAND_INS)


@given(forks(streams.streams()))
def test_a_fork_has_the_turns_of_its_range_and_none_besides(fork: tuple[tuple[AnyEntry, ...], TurnRange]) -> None:
    entries, turns = fork
    forked = forked_stream(entries, turns)

    copied = [turn.id for turn in turns_of(stamped(forked))]
    assert copied == [turn.id for turn in turns_of(entries) if turn.number in turns]
    assert all(isinstance(entry, ConfigDelta) for entry in forked.before)


@given(streams.any_streams())
def test_entries_are_numbered_as_turns_are(entries: tuple[AnyEntry, ...]) -> None:
    numbers = turn_numbers(entries)

    expected = [(turn.number, entry) for turn in divide(entries).turns for entry in turn.entries]
    events = [pair for pair in zip(numbers, entries, strict=True) if pair in expected]
    assert [pair for pair in events if pair not in expected] == []
    assert {number for number, _ in expected} == {number for number in numbers if number >= 0}
