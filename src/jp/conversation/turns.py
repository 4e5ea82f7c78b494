"""Turns, cycles and attempts, the one numbering of a stream (0-based, inclusive), what reverts undo, and repairs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
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
    Usage,
)
from jp.conversation.resource import INTERRUPTED_CONTENT, NOT_STARTED_CONTENT
from jp.remedies import ChangeConversation, phrase

Answer = ChatResponse | ToolCallRequest
"""The entries that a model produces."""


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """The events from one `turn_start` to the next. `id` is its `turn_start`'s, empty where events stand before any."""

    number: int
    id: str
    entries: tuple[Event, ...]


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """The position of a compaction: after the first `events` entries of turn `turn`, which is -1 before any turn."""

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
    """The requests (in a later cycle mostly none), every attempt at an answer, and the responses of tools.

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
    """Return the turns of a stream. A `turn_start` opens one only if the current one already has other events."""
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


def turns_text(first: int, last: int) -> str:
    """Return `turn 3`, or `turns 3 to 5`."""
    return f"turn {first}" if first == last else f"turns {first} to {last}"


def turns_of(entries: Iterable[AnyEntry]) -> list[Turn]:
    """Return the turns of a stream, those that were reverted too."""
    return divide(entries).turns


class TurnCounter:
    """Numbers the turns of a stream entry by entry, as `divide` does. Turns with an id in `undone` are not counted."""

    def __init__(self, undone: Collection[str] = ()) -> None:
        self.count = 0
        self._undone = undone
        self._has_turn = self._is_lone = self._is_counted = False

    def add(self, entry: AnyEntry) -> int | None:
        """Return the number of the turn that `entry` belongs to; None if it is in no turn that counts."""
        if isinstance(entry, TurnStart):
            # A turn that has nothing but its start is replaced by the next one.
            self.count -= 1 if self._is_lone and self._is_counted else 0
            self._begin(entry.id)
            self._is_lone = True
        elif isinstance(entry, Event):
            if not self._has_turn:
                self._begin("")
            self._is_lone = False
        else:
            return None
        return self.count - 1 if self._is_counted else None

    def _begin(self, identity: str) -> None:
        self._has_turn, self._is_counted = True, identity not in self._undone
        self.count += 1 if self._is_counted else 0


class _CycleBuilder:
    """Collects one cycle."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.requests: list[ChatRequest] = []
        self.attempts: list[Attempt] = []
        self.answers: list[Answer] = []
        self.responses: list[ToolCallResponse] = []

    def takes_request(self) -> bool:
        """Return whether nothing was answered yet."""
        return not (self.attempts or self.answers or self.responses)

    def takes_answer(self) -> bool:
        """Return whether an answer, or the end of an attempt, still belongs to this cycle."""
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
    """Return the cycles of a turn.

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
    """Return whether `text` is empty or white space: nothing that a provider accepts as a message."""
    return not text or text.isspace()


def undone(entries: Sequence[AnyEntry]) -> frozenset[str]:
    """Return the ids of entries that do not count: turns (by their `turn_start`), compactions, config deltas, reverts.

    A revert concerns what stands before it in the log, and counts only where no later revert that counts names it.
    So the newest one always counts, and undoing a revert restores what it named. An entry without an id
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


def open_ends(entries: Sequence[AnyEntry]) -> tuple[str, ...]:
    """Return the ids of the last entry and of the ends of other open branches."""
    found: dict[str, None] = {}
    for position, entry in enumerate(entries):
        if isinstance(entry, TurnStart) and entry.after:
            branch = branch_of(entries, position, entry)
            if branch is not None:
                found[entries[branch[0] - 1].id] = None
            for name in entry.after:
                found.pop(name, None)
    last = next((entry.id for entry in reversed(entries) if entry.id), "")
    return tuple(filter(None, (*found, last)))


def next_after(entries: Sequence[AnyEntry]) -> tuple[str, ...]:
    """Return the ids that the start of the next turn names: all open ends, and what changed since the last event."""
    changes: list[str] = []
    for entry in reversed(entries):
        changes.append(entry.id)
        if entry.id and not _is_change(entry):
            break
    return tuple(filter(None, dict.fromkeys((*open_ends(entries)[:-1], *reversed(changes)))))


def branch_of(entries: Sequence[AnyEntry], position: int, start: TurnStart) -> tuple[int, int] | None:
    """Return where the branch of the turn at `position` begins, and the position of the entry that it follows.

    None where no turns of another branch are between. Changes that the turn names are its branch's.
    """
    begin = position
    named = {"", *start.after}
    while begin and entries[begin - 1].id in named and (not entries[begin - 1].id or _is_change(entries[begin - 1])):
        begin -= 1
    if not begin or entries[begin - 1].id in start.after:
        return None
    for above in range(begin - 1, -1, -1):
        if entries[above].id in start.after:
            has_turns = any(isinstance(entry, TurnStart) for entry in entries[above + 1 : begin])
            return (begin, above) if has_turns else None
    return None


def _is_change(entry: AnyEntry) -> bool:
    return isinstance(entry, ConfigDelta | Compaction | Revert | Unknown)


Undoable = TurnStart | Compaction | ConfigDelta


def newest_undoable(entries: Sequence[AnyEntry]) -> tuple[Undoable, ...]:
    """Return the entries that an undo concerns, in the log's order; empty if there is nothing to undo."""
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
    """Return the undo that a redo takes back; None where there is none, or something new was done since."""
    gone = undone(entries)
    reverts = {entry.id for entry in entries if isinstance(entry, Revert)}
    for entry in reversed(entries):
        if isinstance(entry, Undoable) and entry.id not in gone:
            return None
        if isinstance(entry, Revert) and entry.id and entry.id not in gone and not reverts.issuperset(entry.entries):
            return entry
    return None


def named_by(revert: Revert, entries: Sequence[AnyEntry]) -> tuple[Undoable, ...]:
    """Return the entries that `revert` undid, in the log's order."""
    wanted = set(revert.entries)
    return tuple(entry for entry in entries if isinstance(entry, Undoable) and entry.id in wanted)


def _is_made_with(entry: Undoable, newest: Compaction) -> bool:
    return isinstance(entry, Compaction) and entry.at == newest.at


_NOTHING = Usage()


class RequestUsage(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt, in a cycle of a turn (both from 0).

    `end` is None where nothing says how it ended: its writer died, or it is the original's. `asked_at` is the `at` of
    the entry before the answer, so about when it was sent. `answered` says that any of an answer came.
    """

    turn: int
    cycle: int
    end: CycleEnd | None
    context: RequestContext | None
    asked_at: str = ""
    answered: bool = False

    @property
    def usage(self) -> Usage | None:
        """Its tokens, None where nobody reported any though there were some.

        An attempt that failed before anything came took none.
        """
        if self.end is None:
            return None
        is_known = self.end.usage != _NOTHING or (self.end.finish == "error" and not self.answered)
        return self.end.usage if is_known else None

    @property
    def model(self) -> tuple[str, str]:
        """Its provider and model, empty where nothing says which."""
        return ("", "") if self.context is None else (self.context.provider, self.context.model)

    @property
    def cache(self) -> str:
        """Return the requested lifetime of the prompt cache: `off`, `short` or `long`."""
        return "short" if self.context is None else self.context.parameters.get("cache", "short")


class TurnUsage(msgspec.Struct, frozen=True, kw_only=True):
    """A turn and its requests, in their order. `inquiries` are a model's answers to what tools asked."""

    number: int
    is_undone: bool
    requests: tuple[RequestUsage, ...]
    inquiries: tuple[InquiryResponse, ...] = ()


def prompt_tokens(usage: Usage) -> int:
    """Return the tokens of the prompt, with those of the cache."""
    return usage.input + usage.cache_read + usage.cache_write


def usage_by_turn(entries: Sequence[AnyEntry], context: RequestContext | None = None) -> list[TurnUsage]:
    """Return the turns of a stream, those that were undone too. `context` is the one in force before `entries`."""
    gone = undone(entries)
    reader = _Reader(context)
    return [
        TurnUsage(
            number=turn.number,
            is_undone=turn.id in gone,
            requests=tuple(reader.read(turn)),
            inquiries=tuple(
                entry for entry in turn.entries if isinstance(entry, InquiryResponse) and entry.model is not None
            ),
        )
        for turn in turns_of(entries)
    ]


def reported_usage(entries: Sequence[AnyEntry]) -> dict[tuple[int, int, int], Usage]:
    """Return the reported usage of each request by its turn, cycle (both from 0) and attempt (from 1)."""
    return {
        (request.turn, request.cycle, request.end.attempt): request.usage
        for turn in usage_by_turn(entries)
        for request in turn.requests
        if request.end is not None and request.usage is not None
    }


class _Reader:
    """Reads turns in their order. What holds besides the stream outlives a turn."""

    def __init__(self, context: RequestContext | None) -> None:
        self._context = context
        self._at = ""  # of the newest entry that is no answer
        self._cycle = -1
        self._answered = False

    def read(self, turn: Turn) -> Iterator[RequestUsage]:
        """Yield the requests of the next turn."""
        self._cycle, self._answered = -1, False
        for entry in turn.entries:
            match entry:
                case ChatResponse() | ToolCallRequest():
                    self._answered = True
                case CycleEnd():
                    yield self._request(turn, entry)
                    self._at = entry.at
                case _:
                    if self._answered:
                        yield self._request(turn, None)
                    self._context = entry if isinstance(entry, RequestContext) else self._context
                    self._at = entry.at
        if self._answered:
            yield self._request(turn, None)

    def _request(self, turn: Turn, end: CycleEnd | None) -> RequestUsage:
        if end is None or end.attempt == 1 or self._cycle < 0:
            self._cycle += 1
        answered, self._answered = self._answered, False
        return RequestUsage(
            turn=turn.number,
            cycle=self._cycle,
            end=end,
            context=self._context,
            asked_at=self._at,
            answered=answered,
        )


class Repair(msgspec.Struct, frozen=True, kw_only=True):
    """Entries to append, in order, and notices for the user."""

    entries: tuple[ToolCallResponse, ...] = ()
    notices: tuple[str, ...] = ()


class _Answer(msgspec.Struct, frozen=True):
    request: str = ""


_answer_decoder = msgspec.json.Decoder(_Answer)


def repair(entries: Sequence[AnyEntry]) -> Repair:
    """Return the responses that are missing because the last writer of a stream died.

    A call without a response gets one that reports an error: that its effects are unknown, or where its attempt has no
    end in the log, or was stopped, that it did not run. Calls of attempts that failed or were refused were never run
    and are not projected, so they need none. A last turn that stopped before its end gets a notice only.
    """
    answered = set(_answered(entries))
    turns = turns_of(entries)
    cycles = [(turn, cycle) for turn in turns for cycle in cycles_of(turn)]
    recorded = _turns_with_ends(turns)
    unknown: list[ToolCallRequest] = []
    responses: list[ToolCallResponse] = []
    waiting: list[ToolCallRequest] = []
    for turn, attempt in ((turn, attempt) for turn, cycle in cycles for attempt in cycle.attempts):
        may_have_run = attempt.end.finish != "cancelled" if attempt.end else turn.number not in recorded
        for call in (call for call in _calls(attempt) if call.id not in answered):
            (unknown if may_have_run else waiting).append(call)
            content = INTERRUPTED_CONTENT if may_have_run else NOT_STARTED_CONTENT
            responses.append(ToolCallResponse(request=call.id, content=content, is_error=True))
    notices: list[str] = []
    if unknown:
        notices.append(
            f"the last run stopped during tool calls ({_names(unknown)}): "
            "the model is told that their effects are unknown"
        )
    if waiting:
        notices.append(
            f"the last run stopped before tool calls ({_names(waiting)}) were run: the model is told that they were not"
        )
    if not responses and cycles and turns[-1].id not in undone(entries):
        notices += _unfinished(cycles[-1][1], entries)
    return Repair(entries=tuple(responses), notices=tuple(notices))


def _unfinished(last: Cycle, entries: Iterable[AnyEntry]) -> Iterator[str]:
    """Yield notices about a stream whose last cycle does not end a turn, and in which every call has its response."""
    if last.requests and not last.attempts:
        told = "the last turn ended before an answer came: its request stays (`"
        yield phrase(told, ChangeConversation("undo"), "` takes it back)")
    elif _is_unfinished(last) and any(isinstance(entry, RequestContext) for entry in entries):
        # Without a record of any request it is no log of jp's own, and ends are recorded in none of those.
        yield "the last turn was not finished: its answer is kept as far as it came"


def _is_unfinished(last: Cycle) -> bool:
    """Return whether an attempt has no end, or no request followed what tools responded.

    Responses with the content of an interruption were written when the turn was stopped or repaired.
    """
    if last.responses:
        stopped = (INTERRUPTED_CONTENT, NOT_STARTED_CONTENT)
        return all(response.content not in stopped for response in last.responses)
    return any(attempt.end is None for attempt in last.attempts[-1:])


def _answered(entries: Iterable[AnyEntry]) -> Iterator[str]:
    for entry in entries:
        match entry:
            case ToolCallResponse(request=request):
                yield request
            case Unknown(type="tool_call_response", raw=raw):
                # A newer version's response, with a block that this one does not know, is a response too.
                yield _request_in(raw)
            case _:
                pass


def _request_in(raw: bytes) -> str:
    try:
        return _answer_decoder.decode(raw).request
    except msgspec.DecodeError:
        return ""


def _calls(attempt: Attempt) -> Iterator[ToolCallRequest]:
    if attempt.end is None or attempt.end.finish not in {"error", "refused"}:
        yield from (answer for answer in attempt.answers if isinstance(answer, ToolCallRequest))


def _turns_with_ends(turns: Iterable[Turn]) -> frozenset[int]:
    """Return the numbers of the turns in which jp records the end of each attempt before a tool runs.

    Turns before the first record of a request are an original's, which knows no such ends.
    """
    is_own = False
    found: set[int] = set()
    for turn in turns:
        is_own = is_own or any(isinstance(entry, RequestContext) for entry in turn.entries)
        if is_own:
            found.add(turn.number)
    return frozenset(found)


def _names(calls: Iterable[ToolCallRequest]) -> str:
    return ", ".join(sorted({repr(call.name) for call in calls}))
