from __future__ import annotations

from itertools import chain, pairwise

from hypothesis import given
from hypothesis import strategies as st

import streams
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    Compaction,
    CycleEnd,
    ToolCallRequest,
    ToolCallResponse,
)
from jp.conversation.turns import Cycle, Turn, cycles_of, divide, turns_of

logs = streams.any_streams()

CYCLE_ENTRIES = (ChatRequest, ChatResponse, ToolCallRequest, CycleEnd, ToolCallResponse)


def entries_of(cycle: Cycle) -> list[AnyEntry]:
    entries: list[AnyEntry] = [*cycle.requests]
    for attempt in cycle.attempts:
        entries += attempt.answers
        entries += [attempt.end] if attempt.end else []
    return [*entries, *cycle.responses]


@given(logs)
def test_every_event_belongs_to_one_turn_in_order(entries: tuple[AnyEntry, ...]) -> None:
    turns = turns_of(entries)

    in_turns = [entry for turn in turns for entry in turn.entries if isinstance(entry, CYCLE_ENTRIES)]
    assert in_turns == [entry for entry in entries if isinstance(entry, CYCLE_ENTRIES)]
    assert [turn.number for turn in turns] == list(range(len(turns)))


@given(logs, st.data())
def test_turns_keep_their_numbers_while_a_log_grows(entries: tuple[AnyEntry, ...], data: st.DataObject) -> None:
    shorter = turns_of(entries[: data.draw(st.integers(0, len(entries)))])
    longer = turns_of(entries)

    whole = shorter[:-1]
    assert whole == longer[: len(whole)]
    assert len(shorter) <= len(longer)


@given(logs)
def test_every_entry_of_a_turn_belongs_to_one_cycle_in_order(entries: tuple[AnyEntry, ...]) -> None:
    for turn in turns_of(entries):
        cycles = cycles_of(turn)

        relevant = [entry for entry in turn.entries if isinstance(entry, CYCLE_ENTRIES)]
        assert list(chain.from_iterable(map(entries_of, cycles))) == relevant
        assert [cycle.number for cycle in cycles] == list(range(len(cycles)))
        assert all(one.start < other.start for one, other in pairwise(cycles))


@given(logs, st.data())
def test_cycles_stay_where_they_are_while_a_turn_grows(entries: tuple[AnyEntry, ...], data: st.DataObject) -> None:
    for turn in turns_of(entries):
        count = data.draw(st.integers(0, len(turn.entries)))
        shorter = cycles_of(Turn(number=0, id="", entries=turn.entries[:count]))
        longer = cycles_of(turn)

        whole = shorter[:-1]
        assert whole == longer[: len(whole)]
        assert [cycle.start for cycle in longer if cycle.start < count] == [cycle.start for cycle in shorter]


@given(logs)
def test_a_compaction_stands_after_the_turns_and_events_before_it(entries: tuple[AnyEntry, ...]) -> None:
    positions = [position for position, entry in enumerate(entries) if isinstance(entry, Compaction)]

    for position, placement in zip(positions, divide(entries).placements, strict=True):
        before = turns_of(entries[:position])
        assert placement.compaction is entries[position]
        assert placement.turn == len(before) - 1
        assert placement.events == (len(before[-1].entries) if before else 0)
