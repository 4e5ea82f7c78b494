"""Turns, cycles and attempts: the one numbering of a stream (0-based, inclusive)."""

from __future__ import annotations

from collections.abc import Iterable
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
    """A stream by turns, and the compactions that stand between their entries, in the log's order."""

    turns: list[Turn]
    placements: list[Placement]


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


def divide(entries: Iterable[AnyEntry]) -> Division:
    """The turns of a stream. A `turn_start` opens one only where the current one already holds something else."""
    turns: list[Turn] = []
    placements: list[Placement] = []
    held: list[Event] = []
    identity = ""

    def close() -> None:
        if held:
            turns.append(Turn(number=len(turns), id=identity, entries=tuple(held)))
            held.clear()

    for entry in entries:
        if isinstance(entry, Compaction):
            turn = len(turns) if held else len(turns) - 1
            placements.append(Placement(compaction=entry, turn=turn, events=len(held)))
        elif isinstance(entry, TurnStart):
            if len(held) == 1 and isinstance(held[0], TurnStart):
                held.clear()
            close()
            identity = entry.id
            held.append(entry)
        elif not isinstance(entry, (Header, ConfigDelta, Revert, Unknown)):
            held.append(entry)
    close()
    return Division(turns=turns, placements=placements)


def turns_of(entries: Iterable[AnyEntry]) -> list[Turn]:
    """The turns of a stream, those that were reverted too."""
    return divide(entries).turns


CycleEntry = ChatRequest | Answer | CycleEnd | ToolCallResponse


class _CycleBuilder:
    """Collects one cycle."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.requests: list[ChatRequest] = []
        self.attempts: list[Attempt] = []
        self.answers: list[Answer] = []
        self.responses: list[ToolCallResponse] = []

    def takes(self, entry: CycleEntry) -> bool:
        """Whether `entry` still belongs to this cycle."""
        match entry:
            case ChatRequest():
                return not (self.attempts or self.answers or self.responses)
            case ToolCallResponse():
                return True
            case _:
                end = self.attempts[-1].end if self.attempts and not self.answers else None
                return not self.responses and (end is None or end.finish == "error")

    def add(self, entry: CycleEntry) -> None:
        match entry:
            case ChatRequest():
                self.requests.append(entry)
            case ChatResponse() | ToolCallRequest():
                self.answers.append(entry)
            case CycleEnd():
                self._end_attempt(entry)
            case ToolCallResponse():
                if self.answers:
                    self._end_attempt(None)
                self.responses.append(entry)
            case _:
                assert_never(entry)

    def build(self, number: int) -> Cycle:
        if self.answers:
            self._end_attempt(None)
        return Cycle(
            number=number,
            start=self.start,
            requests=tuple(self.requests),
            attempts=tuple(self.attempts),
            responses=tuple(self.responses),
        )

    def _end_attempt(self, end: CycleEnd | None) -> None:
        self.attempts.append(Attempt(answers=tuple(self.answers), end=end))
        self.answers.clear()


def cycles_of(turn: Turn) -> list[Cycle]:
    """The cycles of a turn.

    An attempt that ended in `error` is followed by another in the same cycle. Logs that know no `cycle_end` (the
    original's) are cut where an answer follows a tool's response.
    """
    builders: list[_CycleBuilder] = []
    for position, entry in enumerate(turn.entries):
        if isinstance(entry, (TurnStart, RequestContext, InquiryRequest, InquiryResponse)):
            continue
        if not builders or not builders[-1].takes(entry):
            builders.append(_CycleBuilder(position))
        builders[-1].add(entry)
    return [builder.build(number) for number, builder in enumerate(builders)]


def is_blank(text: str) -> bool:
    """Whether `text` is empty or white space: nothing that a provider accepts as a message."""
    return not text or text.isspace()


def is_abandoned(attempts: tuple[Attempt, ...], index: int) -> bool:
    """Whether an attempt failed, showed no message text, and was followed by another.

    A failed attempt whose text had been shown was continued, not started over: its text counts.
    """
    attempt = attempts[index]
    failed = attempt.end is not None and attempt.end.finish == "error"
    shown = any(isinstance(answer, ChatResponse) and not is_blank(answer.message or "") for answer in attempt.answers)
    return failed and not shown and index + 1 < len(attempts)
