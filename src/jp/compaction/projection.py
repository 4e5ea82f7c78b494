"""Project the log onto the view that a provider gets (RFD 064). Pure.

A view grows with its log: everything up to the last cycle is final, and only that cycle is projected again. What can
change more than that, such as an overlay or a revert, projects the whole log again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from jp.compaction.overlays import Coverage, Policies, Winners, coverages
from jp.compaction.references import CopyReader, Delivery, Note, Place, Span, deliveries_in, settle, superseded_notes
from jp.compaction.status_lines import (
    StatusFormatter,
    attachment_place,
    result_place,
    summary_heading,
    work_heading,
)
from jp.compaction.turn_view import Responses, TurnView, rejected_in
from jp.conversation.entries import AnyEntry, Compaction, CycleEnd, Event, Revert, ToolCallResponse, TurnStart
from jp.conversation.resource import Resource, ResourceBlock
from jp.conversation.thread import AssistantText, LogCursor, ToolResult, UserResource, UserText, ViewEvent
from jp.conversation.turns import Cycle, Placement, Turn, cycles_of, divide, undone

VERSION = 3
"""Version of the projection. It changes whenever the same log, compacted or not, would give another view."""


class TurnOrigin(msgspec.Struct, frozen=True, tag=True):
    """A turn of the stream, under its number in the stream."""

    number: int


class SummaryOrigin(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A summary that replaces turns `from_turn` to `to_turn` (0-based, inclusive).

    They are an unbroken run of the turns that it covers. `compaction` is the id of its overlay.
    """

    from_turn: int
    to_turn: int
    compaction: str


Origin = TurnOrigin | SummaryOrigin


class ProjectedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn as the model sees it; without events where nothing of it is shown."""

    origin: Origin
    events: tuple[ViewEvent, ...]


class Projection(msgspec.Struct, frozen=True, kw_only=True):
    """A stream as a model sees it, in order. Each origin has the position of its first event."""

    events: tuple[ViewEvent, ...]
    origins: tuple[tuple[Origin, int], ...]

    @property
    def turns(self) -> tuple[ProjectedTurn, ...]:
        """The events of each origin."""
        ends = [start for _, start in self.origins[1:]] + [len(self.events)]
        return tuple(
            ProjectedTurn(origin=origin, events=self.events[start:end])
            for (origin, start), end in zip(self.origins, ends, strict=False)
        )


class _Draft:
    """A view as it grows, before references between resources are resolved."""

    def __init__(self) -> None:
        self.events: list[ViewEvent] = []
        self.spans: list[Span] = []
        self.origins: list[tuple[Origin, int]] = []
        self._summary: tuple[Coverage, int, int] | None = None
        self._work: Coverage | None = None

    def fork(self) -> _Draft:
        """Return the same draft; what is added to the fork is not added here."""
        found = copy(self)
        found.events, found.spans, found.origins = list(self.events), list(self.spans), list(self.origins)
        return found

    def add_cycle(self, view: TurnView, cycle: Cycle, policies: Policies) -> None:
        """Show a cycle of a turn: a summary may end before it, or cover finished cycles such as this one."""
        summary = policies.summary
        if self._work is not None and summary is not self._work:
            self._add_work(self._work, view.number)
        place = (view.number, cycle.number)
        if summary is None:
            self.keep(view.number)
            self._show(view.cycle(cycle, policies), place, policies)
        elif summary.inside:
            self.keep(view.number)
            self._show(view.requests(cycle), place, policies)
            self._work = summary  # it never covers the newest cycle, so another one follows
        else:
            self.summarise(summary, view.number)

    def summarise(self, coverage: Coverage, turn: int) -> None:
        """Leave `turn` to a summary. It is shown once for every unbroken run of turns."""
        if self._summary is None or self._summary[0] is not coverage:
            self.end_run()
            self._summary = (coverage, turn, turn)
        else:
            self._summary = (coverage, self._summary[1], turn)

    def keep(self, turn: int) -> None:
        """Begin the events of `turn`."""
        self.end_run()
        origin = TurnOrigin(turn)
        if not self.origins or self.origins[-1][0] != origin:
            self.origins.append((origin, len(self.events)))

    def end_run(self) -> None:
        """Show the summary of a run of turns at its end."""
        if self._summary is None:
            return
        (coverage, first, last), self._summary = self._summary, None
        identity = coverage.compaction.id
        origin = SummaryOrigin(from_turn=first, to_turn=last, compaction=identity)
        self.origins.append((origin, len(self.events)))
        heading = summary_heading(first, last)
        self.events += (
            UserText(text=heading, turn=first, origin=identity, synthetic=True),
            AssistantText(text=coverage.summary, turn=first, origin=identity, synthetic=True),
        )

    def _add_work(self, coverage: Coverage, turn: int) -> None:
        """Show the summary of finished cycles after the requests of their turn.

        It is a message to the model: an assistant's own words cannot be between a request and signed reasoning.
        """
        self._work = None
        text = f"{work_heading()}\n\n{coverage.summary}"
        self.keep(turn)
        self.events.append(UserText(text=text, turn=turn, origin=coverage.compaction.id, synthetic=True))

    def _show(self, events: Sequence[ViewEvent], cycle: tuple[int, int], policies: Policies) -> None:
        self.spans.append(Span(start=len(self.events), point=cycle, superseded=policies.superseded))
        self.events += events


class Settlement(msgspec.Struct, frozen=True, kw_only=True):
    """The events of a view, each on its own and with references resolved; those from `first` on are shown.

    `superseded` are the snapshots, by position and block, that a note replaces because there is a newer one.
    """

    first: int
    before: list[ViewEvent]
    after: list[ViewEvent]
    superseded: frozenset[tuple[int, int]]


def settlement_of(entries: Sequence[AnyEntry], status_formatter: StatusFormatter) -> Settlement:
    """Return the events of a stream's view before and after references are resolved. See `project`."""
    return _View(LogParts(entries), status_formatter).settlement()


def project(entries: Sequence[AnyEntry], status_formatter: StatusFormatter, *, continuing: bool = False) -> Projection:
    """Return the view of a stream with its compactions applied.

    Contents stay as the log stores them. `continuing`: the last turn is about to be asked again, so a message that was
    cut at its end is followed by the request to continue it, as it will be once the answer is in the log, and an answer
    without a required call is followed by the request for one.
    """
    return _View(LogParts(entries), status_formatter).projection(continuing=continuing)


class LogParts:
    """The turns of a log, their cycles, and the entries that do not count: what is read before it is projected."""

    def __init__(self, entries: Sequence[AnyEntry]) -> None:
        self.entries = entries
        self.division = divide(entries)
        self.undone = undone(entries)
        self.rejected = rejected_in(entries)
        self._cycles: dict[int, list[Cycle]] = {}

    def cycles_at(self, number: int) -> list[Cycle]:
        """Return the cycles of turn `number`."""
        if number not in self._cycles:
            self._cycles[number] = cycles_of(self.division.turns[number])
        return self._cycles[number]

    def with_overlays(self, overlays: Sequence[Compaction]) -> LogParts:
        """Return the parts of the log with `overlays` at its end; its cycles are not divided again."""
        found, division = copy(self), self.division
        turn, events = len(division.turns) - 1, len(division.turns[-1].entries) if division.turns else 0
        added = [Placement(compaction=overlay, turn=turn, events=events) for overlay in overlays]
        found.entries = (*self.entries, *overlays)
        found.division = replace(division, placements=[*division.placements, *added])
        return found


def project_parts(parts: LogParts, status_formatter: StatusFormatter) -> Projection:
    """Return the view of a log; see `project`."""
    return _View(parts, status_formatter).projection(continuing=False)


class IncrementalView:
    """The view of one log, projected again and again while the log grows."""

    def __init__(self, status_formatter: StatusFormatter) -> None:
        self._status_formatter = status_formatter
        self._view: _View | None = None
        self._cursor = LogCursor()

    def project(self, entries: Sequence[AnyEntry], *, continuing: bool = False) -> Projection:
        """Return what `project` returns.

        Entries that were projected before must be the same objects. See `LogCursor.advance` on passing a list again.
        """
        added, only_adds = self._cursor.advance(entries)
        if self._view is None or not only_adds or not self._view.grow(added):
            self._view = _View(LogParts(entries), self._status_formatter)
        return self._view.projection(continuing=continuing)


class _Step(NamedTuple):
    """A cycle of a turn, or a turn of which no cycle is shown; `rest` is the number of events from its first one on."""

    number: int
    identity: str
    cycle: Cycle | None
    rest: int


class _View:
    """The view of a log: a final part, and its last step, which can still grow."""

    def __init__(self, parts: LogParts, status_formatter: StatusFormatter) -> None:
        division, cycles_at = parts.division, parts.cycles_at
        self._entries = list(parts.entries)
        self._undone = parts.undone
        self._rejected = parts.rejected
        self._lines = status_formatter.of(parts.entries)
        self._responses = Responses(division.responses)
        self._named = {turn.id for turn in division.turns}
        for placement in division.placements:
            self._named |= {placement.compaction.from_id or "", placement.compaction.to_id or ""}

        self._winners = Winners(coverages(division, self._undone, cycles_at))
        self._draft = _Draft()
        self._turn = self._view_of(0)
        self._turns = len(division.turns)
        self._step: _Step | None = None
        self._start = 0  # the position of the last step's first entry
        self._first: int | None = None
        self._settled: list[ViewEvent] = []
        self._reader = CopyReader()
        self._notes: dict[Place, Note] = {}
        self._add(self._steps(division.turns, cycles_at))
        draft, _ = self._whole()
        self._notes = superseded_notes(self._deliveries(draft, 0))
        self._settle()

    def grow(self, new: Sequence[AnyEntry]) -> bool:
        """Add the new entries; return False if they can change more than the last step."""
        step = self._step
        if step is None:
            return False
        place = (step.number, 0 if step.cycle is None else step.cycle.number)
        if new and not (self._winners.at(place) == Policies() and all(map(self._grows_by, new))):
            return False
        self._entries += new
        division = divide(self._entries[self._start :])
        self._turns = step.number + len(division.turns)
        self._add(self._steps(division.turns, lambda number: cycles_of(division.turns[number]), step))
        self._settle()
        return True

    def _grows_by(self, entry: AnyEntry) -> bool:
        match entry:
            case Compaction() | Revert():
                return False
            case CycleEnd(rejected=rejected):
                return not rejected
            case TurnStart(id=identity):
                is_new = identity not in self._named
                self._named.add(identity)
                return is_new
            case ToolCallResponse():
                return self._responses.add(entry)
            case _:
                return True

    def projection(self, *, continuing: bool) -> Projection:
        """Return the view, which begins with the user's words: providers accept no other beginning."""
        draft, view = self._whole()
        if continuing and view.number == self._turns - 1:
            draft.events += view.continuation()
        first = self._first_shown(draft.events)
        return Projection(
            events=tuple(self._resolved(draft)[first:]),
            origins=tuple((origin, max(start - first, 0)) for origin, start in draft.origins)
            if first
            else tuple(draft.origins),
        )

    def settlement(self) -> Settlement:
        """Return the events before and after references are resolved."""
        draft, _ = self._whole()
        return Settlement(
            first=self._first_shown(draft.events),
            before=draft.events,
            after=self._resolved(draft),
            superseded=frozenset(self._notes),
        )

    def _steps(
        self, turns: Sequence[Turn], cycles_at: Callable[[int], Sequence[Cycle]], last: _Step | None = None
    ) -> Iterator[_Step]:
        """Yield the steps of `turns`, the first of which goes on with the turn of `last`."""
        after = sum(len(turn.entries) for turn in turns)
        for turn in turns:
            number, begun, identity, rest = turn.number, 0, turn.id, after
            after -= len(turn.entries)
            if last is not None:
                number += last.number
                if not turn.number and not isinstance(turn.entries[0], TurnStart):
                    begun, identity = 0 if last.cycle is None else last.cycle.number, last.identity
            if identity in self._undone:
                continue
            cycles = () if self._winners.summary_of(number) else cycles_at(turn.number)
            for cycle in cycles:
                numbered = replace(cycle, number=begun + cycle.number) if begun else cycle
                yield _Step(number, identity, numbered, rest - cycle.start)
            if not cycles:
                yield _Step(number, identity, None, rest)

    def _add(self, steps: Iterator[_Step]) -> None:
        """Add steps to the final part, apart from the last one."""
        self._step = None
        for step in steps:
            if self._step is not None:
                self._turn = self._at(self._step, self._draft)
            self._step = step
        if self._step is not None:
            self._start = self._position(self._step.rest)

    def _position(self, count: int) -> int:
        """Return the position in the log from which on it has `count` events of turns."""
        position, following = len(self._entries), None
        while count:
            position -= 1
            entry = self._entries[position]
            # A turn without any entry is none.
            if isinstance(entry, Event) and not (isinstance(entry, TurnStart) and isinstance(following, TurnStart)):
                following, count = entry, count - 1
        return position

    def _at(self, step: _Step, draft: _Draft, *, is_last: bool = False) -> TurnView:
        """Show a step in `draft`; return the view of its turn."""
        view = self._turn if self._turn.number == step.number else self._view_of(step.number)
        view = view.fork() if is_last else view
        summary = self._winners.summary_of(step.number)
        if summary is not None:
            draft.summarise(summary, step.number)
        elif step.cycle is None:
            draft.keep(step.number)
        else:
            draft.add_cycle(view, step.cycle, self._winners.at((step.number, step.cycle.number)))
        return view

    def _view_of(self, number: int) -> TurnView:
        return TurnView(number, self._responses, self._lines, self._rejected)

    def _whole(self) -> tuple[_Draft, TurnView]:
        """Return the draft with the last step, and the view of its turn."""
        draft = self._draft.fork()
        view = self._turn.fork() if self._step is None else self._at(self._step, draft, is_last=True)
        draft.end_run()
        return draft, view

    def _settle(self) -> None:
        """Resolve the references in what was added to the final part."""
        start = len(self._settled)
        found = self._deliveries(self._draft, start)
        self._settled += settle(self._draft.events, start, found, self._notes, self._reader)

    def _resolved(self, draft: _Draft) -> list[ViewEvent]:
        start = len(self._settled)
        found = self._deliveries(draft, start)
        return self._settled + settle(draft.events, start, found, self._notes, self._reader.fork())

    def _deliveries(self, draft: _Draft, start: int) -> list[Delivery]:
        """Return the snapshots that are shown in `draft` from position `start` on."""
        first = self._first_shown(draft.events)
        spans = draft.spans[bisect_left(draft.spans, start, key=lambda span: span.start) :]
        return [delivery for delivery in deliveries_in(draft.events, spans) if delivery.position >= first]

    def _first_shown(self, events: Sequence[ViewEvent]) -> int:
        """Return the position of the user's first words."""
        if self._first is not None:
            return self._first
        spoken = (number for number, event in enumerate(events) if isinstance(event, (UserText, UserResource)))
        found = next(spoken, len(events))
        self._first = found if found < len(self._draft.events) else None
        return found


class VisibleCopy(msgspec.Struct, frozen=True, kw_only=True):
    """A copy of a resource in a view, as it is shown there: the entry that delivered it, and its place in words."""

    resource: Resource
    entry: str
    place: str


def newest_copy(uri: str, entries: Sequence[AnyEntry], status_formatter: StatusFormatter) -> VisibleCopy | None:
    """Return the newest copy of `uri` in the view of `entries`; references to an older one do not count."""
    for event in reversed(project(entries, status_formatter).events):
        copies = [copy for copy in _copies_in(event) if copy.resource.uri == uri]
        if copies:
            return copies[-1]
    return None


def _copies_in(event: ViewEvent) -> Iterator[VisibleCopy]:
    match event:
        case UserResource(resource=resource, origin=origin, turn=turn):
            yield VisibleCopy(resource=resource, entry=origin, place=attachment_place(turn))
        case ToolResult(content=content, origin=origin, turn=turn, call_id=call_id):
            for block in content:
                if isinstance(block, ResourceBlock):
                    yield VisibleCopy(resource=block.resource, entry=origin, place=result_place(turn, call_id))
        case _:
            pass
