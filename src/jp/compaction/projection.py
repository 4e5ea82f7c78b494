"""The projection: a stream as a model is shown it. A pure function of the log."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import msgspec

from jp.compaction.attempts import rejected_in
from jp.compaction.deliveries import Span, deliveries_in
from jp.compaction.overlays import Coverage, coverages
from jp.compaction.references import settled
from jp.compaction.stand_ins import StandIns
from jp.compaction.superseding import superseded_notes
from jp.compaction.turn_view import Responses, TurnView
from jp.compaction.view import Kept, Origin, ProjectedTurn, Projection, Summarised
from jp.compaction.winners import Policies, Winners
from jp.compaction.wording import summary_heading
from jp.conversation.entries import AnyEntry
from jp.conversation.reverts import undone
from jp.conversation.thread import AssistantText, UserResource, UserText, ViewEvent
from jp.conversation.turns import Cycle, cycles_of, divide

VERSION = 3
"""Of what views show. It grows whenever the same log, compacted or not, would give another one."""


class _Draft:
    """A view as it grows, before references between resources are settled."""

    def __init__(self) -> None:
        self.events: list[ViewEvent] = []
        self.spans: list[Span] = []
        self.origins: list[tuple[Origin, int]] = []
        self._summary: tuple[Coverage, int, int] | None = None

    def summarise(self, coverage: Coverage, turn: int) -> None:
        """Leave `turn` to a summary. It is shown once for every unbroken run of turns."""
        if self._summary is None or self._summary[0] is not coverage:
            self.end_run()
            self._summary = (coverage, turn, turn)
        else:
            self._summary = (coverage, self._summary[1], turn)

    def keep(self, turn: int) -> None:
        """What is shown next is of `turn`."""
        self.end_run()
        origin = Kept(turn)
        if not self.origins or self.origins[-1][0] != origin:
            self.origins.append((origin, len(self.events)))

    def show(self, events: Sequence[ViewEvent], cycle: tuple[int, int], policies: Policies) -> None:
        """Show the events of a cycle of the turn that is kept."""
        self.spans.append(Span(start=len(self.events), point=cycle, superseded=policies.superseded))
        self.events += events

    def end_run(self) -> None:
        """Show the summary whose run is over, where there is one."""
        if self._summary is None:
            return
        (coverage, first, last), self._summary = self._summary, None
        identity = coverage.compaction.id
        origin = Summarised(from_turn=first, to_turn=last, compaction=identity)
        self.origins.append((origin, len(self.events)))
        heading = summary_heading(first, last)
        self.events += (
            UserText(text=heading, turn=first, origin=identity, synthetic=True),
            AssistantText(text=coverage.summary, turn=first, origin=identity, synthetic=True),
        )

    def settle(self) -> Settlement:
        """What becomes of the events where some of them depend on others."""
        self.end_run()
        spoken = (number for number, event in enumerate(self.events) if isinstance(event, (UserText, UserResource)))
        first = next(spoken, len(self.events))
        deliveries = [delivery for delivery in deliveries_in(self.events, self.spans) if delivery.position >= first]
        notes = superseded_notes(deliveries)
        return Settlement(
            first=first,
            before=self.events,
            after=settled(self.events, deliveries, notes),
            superseded=frozenset((deliveries[number].position, deliveries[number].block) for number in notes),
        )

    def finish(self) -> Projection:
        """The view, which begins with the user's words: providers accept no other beginning."""
        settlement = self.settle()
        events = settlement.after
        ends = [start for _, start in self.origins[1:]] + [len(events)]
        return Projection(
            turns=tuple(
                ProjectedTurn(origin=origin, events=tuple(events[max(start, settlement.first) : end]))
                for (origin, start), end in zip(self.origins, ends, strict=False)
            )
        )


class Settlement(msgspec.Struct, frozen=True, kw_only=True):
    """The events of a view as each would stand alone, and as they stand together; from `first` on they are shown.

    `superseded` are the snapshots, by position and block, for which a note stands because there is a newer one.
    """

    first: int
    before: list[ViewEvent]
    after: list[ViewEvent]
    superseded: frozenset[tuple[int, int]]


def settlement_of(entries: Sequence[AnyEntry], stand_ins: StandIns) -> Settlement:
    """How the events of the view of a stream are settled. See `project`."""
    return _drafted(entries, stand_ins, continuing=False).settle()


def project(entries: Sequence[AnyEntry], stand_ins: StandIns, *, continuing: bool = False) -> Projection:
    """What a model is shown of a stream, with its compactions applied.

    Contents stay as the log stores them. `continuing`: the last turn is about to be asked again, so a message that
    was cut at its end is followed by the request to go on with it, as it will be once the answer is in the log, and
    an answer without a call is followed by the demand for one.
    """
    return _drafted(entries, stand_ins, continuing=continuing).finish()


def _drafted(entries: Sequence[AnyEntry], stand_ins: StandIns, *, continuing: bool) -> _Draft:
    division = divide(entries)
    gone = undone(entries)
    responses = Responses(division.responses)
    rejected = rejected_in(entries)

    @cache
    def cycles_at(number: int) -> list[Cycle]:
        return cycles_of(division.turns[number])

    winners = Winners(coverages(division, gone, cycles_at))
    draft = _Draft()
    lines = stand_ins.of(entries)
    for turn in division.turns:
        if turn.id in gone:
            continue
        view = TurnView(turn.number, responses, lines, rejected)
        summary = winners.summary_of(turn.number)
        if summary is None:
            _add_cycles(draft, view, cycles_at(turn.number), winners)
        else:
            draft.summarise(summary, turn.number)
        if continuing and turn is division.turns[-1]:
            draft.events += view.continuation()
    return draft


def _add_cycles(draft: _Draft, view: TurnView, cycles: Sequence[Cycle], winners: Winners) -> None:
    """Show a turn cycle by cycle: a summary may end inside it."""
    if not cycles:
        draft.keep(view.number)
    for cycle in cycles:
        place = (view.number, cycle.number)
        policies = winners.at(place)
        if policies.summary is None:
            draft.keep(view.number)
            draft.show(view.cycle(cycle, policies), place, policies)
        else:
            draft.summarise(policies.summary, view.number)
