"""Turns, cycles and attempts, the one numbering of a stream (0-based, inclusive), and what reverts undo."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never

import msgspec

from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    Compaction,
    ConfigDelta,
    CycleEnd,
    Event,
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

Answer = ChatResponse | ToolCallRequest
"""What a model produces."""


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """The events from one `turn_start` to the next. `id` is its `turn_start`'s, empty where events stand before any."""

    number: int
    id: str
    entries: tuple[Event, ...]


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """Where a compaction stands: after the first `events` entries of turn `turn`, which is -1 before any turn."""

    compaction: Compaction
    turn: int
    events: int


class Division(msgspec.Struct, frozen=True, kw_only=True):
    """A stream by turns; besides, in the log's order, its compactions and where they stand, and all responses."""

    turns: list[Turn]
    placements: list[Placement]
    responses: list[ToolCallResponse]


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One request that was sent and what came; `end` is None where the writer died or still writes."""

    answers: tuple[Answer, ...]
    end: CycleEnd | None


class Cycle(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked (in a later cycle mostly nothing), every attempt at an answer, and what the tools responded.

    `start` is the position of its first entry in its turn.
    """

    number: int
    start: int
    requests: tuple[ChatRequest, ...]
    attempts: tuple[Attempt, ...]
    responses: tuple[ToolCallResponse, ...]


class _Divider:
    """Collects turns."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.placements: list[Placement] = []
        self.responses: list[ToolCallResponse] = []
        self.held: list[Event] = []
        self._identity = ""

    def start(self, entry: TurnStart) -> None:
        """Begin a turn, unless the current one holds nothing but its own start."""
        if len(self.held) == 1 and isinstance(self.held[0], TurnStart):
            self.held.clear()
        self.close()
        self._identity = entry.id
        self.held.append(entry)

    def close(self) -> None:
        if self.held:
            self.turns.append(Turn(number=len(self.turns), id=self._identity, entries=tuple(self.held)))
            self.held.clear()

    def place(self, compaction: Compaction) -> None:
        turn = len(self.turns) if self.held else len(self.turns) - 1
        self.placements.append(Placement(compaction=compaction, turn=turn, events=len(self.held)))


def divide(entries: Iterable[AnyEntry]) -> Division:
    """The turns of a stream. A `turn_start` opens one only where the current one already holds something else."""
    divider = _Divider()
    # The frequent ones first: a struct class is slow to say that something is no instance of it.
    for entry in entries:
        match entry:
            case ChatResponse() | ToolCallRequest():
                divider.held.append(entry)
            case ToolCallResponse():
                divider.held.append(entry)
                divider.responses.append(entry)
            case CycleEnd() | ChatRequest() | RequestContext() | InquiryRequest() | InquiryResponse():
                divider.held.append(entry)
            case TurnStart():
                divider.start(entry)
            case Compaction():
                divider.place(entry)
            case Header() | ConfigDelta() | Revert() | Unknown():
                pass
            case _:
                assert_never(entry)
    divider.close()
    return Division(turns=divider.turns, placements=divider.placements, responses=divider.responses)


def turns_of(entries: Iterable[AnyEntry]) -> list[Turn]:
    """The turns of a stream, those that were reverted too."""
    return divide(entries).turns


class _CycleBuilder:
    """Collects one cycle."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.requests: list[ChatRequest] = []
        self.attempts: list[Attempt] = []
        self.answers: list[Answer] = []
        self.responses: list[ToolCallResponse] = []

    def takes_request(self) -> bool:
        """Whether nothing was answered yet."""
        return not (self.attempts or self.answers or self.responses)

    def takes_answer(self) -> bool:
        """Whether an answer, or the end of an attempt, still belongs to this cycle."""
        if self.answers:
            return True
        end = self.attempts[-1].end if self.attempts else None
        return not self.responses and (end is None or end.finish == "error")

    def end_attempt(self, end: CycleEnd | None) -> None:
        self.attempts.append(Attempt(answers=tuple(self.answers), end=end))
        self.answers.clear()

    def respond(self, response: ToolCallResponse) -> None:
        if self.answers:
            self.end_attempt(None)
        self.responses.append(response)

    def build(self, number: int) -> Cycle:
        if self.answers:
            self.end_attempt(None)
        return Cycle(
            number=number,
            start=self.start,
            requests=tuple(self.requests),
            attempts=tuple(self.attempts),
            responses=tuple(self.responses),
        )


class _TurnBuilder:
    """Collects the cycles of a turn. Each method gives the cycle to which an entry at a position belongs."""

    def __init__(self) -> None:
        self.cycles: list[_CycleBuilder] = []

    def to_request(self, position: int) -> _CycleBuilder:
        return self.cycles[-1] if self.cycles and self.cycles[-1].takes_request() else self._new(position)

    def to_answer(self, position: int) -> _CycleBuilder:
        return self.cycles[-1] if self.cycles and self.cycles[-1].takes_answer() else self._new(position)

    def to_respond(self, position: int) -> _CycleBuilder:
        return self.cycles[-1] if self.cycles else self._new(position)

    def _new(self, position: int) -> _CycleBuilder:
        cycle = _CycleBuilder(position)
        self.cycles.append(cycle)
        return cycle


def cycles_of(turn: Turn) -> list[Cycle]:
    """The cycles of a turn.

    An attempt that ended in `error` is followed by another in the same cycle. Logs that know no `cycle_end` (the
    original's) are cut where an answer follows a tool's response.
    """
    builder = _TurnBuilder()
    for position, entry in enumerate(turn.entries):
        match entry:
            case ChatResponse() | ToolCallRequest():
                builder.to_answer(position).answers.append(entry)
            case ToolCallResponse():
                builder.to_respond(position).respond(entry)
            case CycleEnd():
                builder.to_answer(position).end_attempt(entry)
            case ChatRequest():
                builder.to_request(position).requests.append(entry)
            case TurnStart() | RequestContext() | InquiryRequest() | InquiryResponse():
                pass
            case _:
                assert_never(entry)
    return [cycle.build(number) for number, cycle in enumerate(builder.cycles)]


def is_blank(text: str) -> bool:
    """Whether `text` is empty or white space: nothing that a provider accepts as a message."""
    return not text or text.isspace()


def undone(entries: Sequence[AnyEntry]) -> frozenset[str]:
    """The ids of entries that do not count: turns (by their `turn_start`), compactions, config deltas, reverts.

    A revert concerns what stands before it in the log, and counts only where no later revert that counts names it.
    So the newest one always counts, and whoever undoes a revert restores what it named. An entry without an id
    cannot be named.
    """
    named: set[str] = set()
    found: set[str] = set()
    for entry in reversed(entries):
        if entry.id in named:
            found.add(entry.id)
        elif isinstance(entry, Revert):
            named.update(entry.entries)
            named.discard("")
    return frozenset(found)


Undoable = TurnStart | Compaction | ConfigDelta


def newest_undoable(entries: Sequence[AnyEntry]) -> tuple[Undoable, ...]:
    """What an undo concerns, in the log's order; empty where there is nothing left to undo."""
    gone = undone(entries)
    standing = [entry for entry in entries if isinstance(entry, Undoable) and entry.id and entry.id not in gone]
    if not standing:
        return ()
    newest = standing[-1]
    if not isinstance(newest, Compaction) or not newest.at:
        return (newest,)
    first = len(standing) - 1
    while first and _is_made_with(standing[first - 1], newest):
        first -= 1
    return tuple(standing[first:])


def newest_undo(entries: Sequence[AnyEntry]) -> Revert | None:
    """The undo that a redo takes back; None where there is none, or something new was done since."""
    gone = undone(entries)
    reverts = {entry.id for entry in entries if isinstance(entry, Revert)}
    for entry in reversed(entries):
        if isinstance(entry, Undoable) and entry.id not in gone:
            return None
        if isinstance(entry, Revert) and entry.id and entry.id not in gone and not reverts.issuperset(entry.entries):
            return entry
    return None


def named_by(revert: Revert, entries: Sequence[AnyEntry]) -> tuple[Undoable, ...]:
    """What `revert` undid, in the log's order."""
    wanted = set(revert.entries)
    return tuple(entry for entry in entries if isinstance(entry, Undoable) and entry.id in wanted)


def _is_made_with(entry: Undoable, newest: Compaction) -> bool:
    return isinstance(entry, Compaction) and entry.at == newest.at
