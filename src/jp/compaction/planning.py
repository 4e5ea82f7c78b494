"""Planning: which overlays a wish comes to, and what each of them would free. Pure; nothing is written.

Everything is resolved against the stream as it is given, so that all overlays of one plan mean the same turns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec.structs import replace

from jp.compaction.fact_lines import overrides_for, tool_policy
from jp.compaction.large_items import LargeItem, largest_freed
from jp.compaction.log_contents import message_text
from jp.compaction.overlays import (
    NEWEST_CYCLES,
    UNCOVERED_CYCLES,
    Policy,
    Range,
    RangeRequest,
    StreamShape,
    TurnFacts,
    resolve,
    turns_covered,
    union_with_summaries,
)
from jp.compaction.projection import LogParts, Projection, project_parts
from jp.compaction.status_lines import StatusFormatter, content_size
from jp.compaction.transcript import ViewTranscript, estimate_view, transcript_of
from jp.config.entries import ToolConfig
from jp.config.model import ProfileConfig
from jp.context.budget import estimate_messages, items_of
from jp.conversation.entries import (
    LEAST_OBSERVED,
    AnyEntry,
    Compaction,
    Facts,
    SummaryPolicy,
    ToolCallPolicy,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
)
from jp.conversation.thread import LogCursor, carriers_in
from jp.conversation.turns import Cycle, Placement, cycles_of, is_blank

if TYPE_CHECKING:
    from jp.compaction.summaries import TextLoader

Source = Literal["manual", "auto"]

_REMEMBERED = 4
"""Number of the newest views that are cached: planning looks at the same ones again."""


class PolicyRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The requested policy for each type of content; types that are not named are unchanged."""

    reasoning: bool = False
    tools: ToolCallPolicy | None = None
    resources: bool = False
    summary: bool = False

    @property
    def mechanical(self) -> tuple[Policy, ...]:
        """The types for which no model is asked."""
        wanted: tuple[tuple[Policy, bool], ...] = (
            ("reasoning", self.reasoning),
            ("tools", self.tools is not None),
            ("resources", self.resources),
        )
        return tuple(policy for policy, is_wanted in wanted if is_wanted)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The overlays of a compaction, complete but for their ids, and the turns to summarize."""

    overlays: tuple[Compaction, ...] = ()
    summary: Range | None = None


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of overlays on the view, in estimated tokens.

    `untouched` tokens precede the first message that changes: a cache of them stays valid. That message is in turn
    `changed_from`, None if nothing changes. `largest` are the items that free most.
    """

    before: int
    after: int
    untouched: int
    changed_from: int | None = None
    largest: tuple[LargeItem, ...] = ()

    @property
    def freed(self) -> int:
        """Tokens that the view loses."""
        return self.before - self.after


def requested_policies(profile: ProfileConfig) -> PolicyRequest:
    """Return the policies that a profile requests."""
    return PolicyRequest(
        reasoning=profile.reasoning is not None,
        tools=None if profile.tool_calls is None else tool_policy(profile.tool_calls),
        resources=profile.resources is not None,
        summary=profile.summary.policy is not None,
    )


def with_unwritten_summary(overlay: Compaction) -> Compaction:
    """Return `overlay` with the shortest summary there can be, for estimates before the real one is written."""
    return replace(overlay, summary=SummaryPolicy(text="."))


class _OverlaidView:
    """The view of a log with overlays at its end. What is asked of it is kept."""

    def __init__(self, log: LogParts, overlays: Sequence[Compaction], status_formatter: StatusFormatter) -> None:
        self.overlays = overlays
        self._log = log.with_overlays(overlays)
        self._status_formatter = status_formatter

    @cached_property
    def _projection(self) -> Projection:
        return project_parts(self._log, self._status_formatter)

    @cached_property
    def transcript(self) -> ViewTranscript:
        """It as messages."""
        return transcript_of(self._projection, self._log.entries)

    @cached_property
    def tokens(self) -> int:
        """Its tokens, estimated."""
        return estimate_view(self._projection)


class ResultObserver:
    """Observes results that were recorded without evidence. What was observed of an entry is kept as its log grows."""

    def __init__(self, load: TextLoader) -> None:
        self._load = load
        self._cursor = LogCursor()
        self._clear()

    def _clear(self) -> None:
        self._names: list[tuple[ToolCallResponse, tuple[str, ...]]] = []
        self._facts: dict[int, Facts] = {}
        self._counts = Counter[str]()
        self._said: set[str] = set()

    def observe(self, entries: Sequence[AnyEntry]) -> dict[str, Facts]:
        """Return the facts of responses, with evidence from their contents, if they have more than was recorded.

        An identifier that is in several responses, and in no message, is evidence of the first that has room for it.
        """
        from jp.context.evidence import with_identifiers

        added, only_adds = self._cursor.advance(entries)
        if not only_adds:
            self._clear()
        for entry in added:
            self._read(entry)
        shared = {name for name, count in self._counts.items() if count > 1 and name not in self._said}
        observed: dict[str, Facts] = {}
        for number, (response, names) in enumerate(self._names):
            if number not in self._facts:
                continue
            facts = self._facts[number]
            if not shared.isdisjoint(names):
                wanted = [name for name in names if name in shared]
                lines, told = with_identifiers(facts.evidence or (), wanted, self._text_of(response))
                facts = replace(facts, evidence=lines or None)
                shared -= told
            if facts != (response.facts or Facts()):
                observed[response.id] = facts
        return observed

    def _read(self, entry: AnyEntry) -> None:
        from jp.context.evidence import identifiers

        self._said.update(identifiers(message_text(entry)))
        if not isinstance(entry, ToolCallResponse) or not entry.id:
            return
        text = self._text_of(entry)
        names = identifiers(text)
        self._counts.update(names)
        if content_size(entry.content) >= LEAST_OBSERVED:
            recorded = entry.facts or Facts()
            self._facts[len(self._names)] = _observed(entry, text) if recorded.evidence is None else recorded
        self._names.append((entry, names))

    def _text_of(self, response: ToolCallResponse) -> str:
        return "\n".join(filter(None, map(self._load, carriers_in(response))))


class Planner:
    """Plans for one stream, which is projected once.

    `transcript` is the view as it is now, `items` are those in it, and `tokens` theirs together, estimated. `tools` is
    `conversation.tools`, `now` in seconds since 1970. `observer` looks at results that were recorded without
    evidence; without it their digests have none.
    """

    def __init__(
        self,
        entries: Sequence[AnyEntry],
        status_formatter: StatusFormatter,
        tools: Mapping[str, ToolConfig],
        *,
        now: float,
        source: Source = "manual",
        observer: ResultObserver | None = None,
    ) -> None:
        self.entries = entries
        self._tools = tools
        self._observer = observer
        self._source: Source = source
        self.status_formatter = status_formatter
        self._observed: dict[str, Facts] | None = None  # by the id of a response
        self._views: tuple[_OverlaidView, ...] = ()
        self.now = now
        self._parts = LogParts(entries)
        self._division = self._parts.division
        self._undone = self._parts.undone
        self.transcript = _OverlaidView(self._parts, (), status_formatter).transcript
        self.items = tuple(items_of(self.transcript.messages))
        self.tokens = sum(item.tokens for item in self.items)
        self._placements = [
            placement for placement in self._division.placements if placement.compaction.id not in self._undone
        ]
        self._numbers = {turn.id: turn.number for turn in self._division.turns if turn.id}
        self.shape = self._shape()

    def plan(self, wish: PolicyRequest, bounds: RangeRequest) -> Plan:
        """Return the overlays for `wish` within `bounds`.

        Overlays that would not shrink the whole view are dropped. Turns that are to be summarized get no other policy.
        """
        summary = self.summary_range(bounds) if wish.summary else None
        ranges: dict[Range, list[Policy]] = {}
        for policy in wish.mechanical:
            found = resolve(bounds, self.shape, policy, now=self.now)
            if found is not None and not (summary and summary.first <= found.first and found.last <= summary.last):
                ranges.setdefault(found, []).append(policy)
        drafts = (self.overlay(found, policies, wish) for found, policies in ranges.items())
        return Plan(overlays=self.shrinking(drafts), summary=summary)

    def with_inside(self, overlays: Sequence[Compaction], wish: PolicyRequest) -> tuple[Compaction, ...]:
        """Return `overlays`, and one that strips old results of the last, unfinished turn if that frees more.

        Its requests and its reasoning stay: providers check what they signed.
        """
        found = self.finished_cycles()
        if found is None or wish.tools is None:
            return tuple(overlays)
        inside = replace(
            self.bare(found),
            tool_calls=ToolCallPolicy(policy="digest", response=True),
            facts=self._facts_of(found),
            tool_overrides=overrides_for(self._called(found), self._tools),
        )
        return self.shrinking((*overlays, inside))

    def finished_cycles(self, *, keep: int = UNCOVERED_CYCLES) -> Range | None:
        """Return the cycles of the last turn without its newest `keep`, at least one; None where none are left.

        What follows the last results, such as an attempt that failed, is their answer and no cycle of its own.
        """
        turns = self._division.turns
        if not turns or turns[-1].id in self._undone:
            return None
        last = next((cycle.number for cycle in reversed(cycles_of(turns[-1])) if _calls(cycle)), 0)
        to_cycle = last - max(keep, NEWEST_CYCLES)
        number = turns[-1].number
        return Range(first=number, last=number, to_cycle=to_cycle) if to_cycle >= 0 else None

    def effect(self, overlays: Sequence[Compaction]) -> Effect:
        """Return the effect of adding `overlays` to the stream."""
        after = self.view(overlays)
        same = _common(self.transcript, after)
        before = self.transcript
        is_changed = same < len(before.messages)
        return Effect(
            before=self.tokens,
            after=self.size(overlays),
            untouched=estimate_messages(after.messages[:same]),
            changed_from=before.records[before.messages[same].origin].event.turn if is_changed else None,
            largest=tuple(largest_freed(before, after, self.entries)) if overlays else (),
        )

    def is_summarized(self, found: Range) -> bool:
        """Return whether a summary already covers exactly the turns of `found`, all of them as they are now."""
        turns = self._division.turns[found.first : found.last + 1]
        end = (found.last, len(turns[-1].entries))
        is_summarized = False
        for placement in self._placements:
            first, last = _covered(placement, self._numbers)
            if _has_summary(placement) and first <= found.last and last >= found.first:
                saw_all = (placement.turn, placement.events) >= end
                is_summarized = saw_all and (first, last) == (found.first, found.last)
        return is_summarized and not any(turn.id in self._undone for turn in turns)

    def bare(self, found: Range) -> Compaction:
        """Return an overlay over `found` without any policy."""
        identities = {turn.number: turn.id for turn in self._division.turns}
        return Compaction(
            from_turn=found.first,
            to_turn=found.last,
            from_id=identities.get(found.first) or None,
            to_id=identities.get(found.last) or None,
            to_cycle=found.to_cycle,
            source=self._source,
        )

    def view(self, overlays: Sequence[Compaction] = ()) -> ViewTranscript:
        """Return what the stream would show with `overlays` at its end."""
        return self._overlaid(overlays).transcript if overlays else self.transcript

    def size(self, overlays: Sequence[Compaction]) -> int:
        """Return the tokens of the view with `overlays` at its end, estimated."""
        return self._overlaid(overlays).tokens if overlays else self.tokens

    def _overlaid(self, overlays: Sequence[Compaction]) -> _OverlaidView:
        wanted = tuple(overlays)
        found = next((view for view in self._views if view.overlays == wanted), None)
        if found is None:
            found = _OverlaidView(self._parts, wanted, self.status_formatter)
            self._views = (found, *self._views[: _REMEMBERED - 1])
        return found

    def overlay(self, found: Range, policies: Sequence[Policy], wish: PolicyRequest) -> Compaction:
        """Return an overlay over `found` with what `wish` says of these types."""
        tools = wish.tools if "tools" in policies else None
        is_kept = tools is not None and tools.policy != "omit"
        return replace(
            self.bare(found),
            reasoning="strip" if "reasoning" in policies else None,
            tool_calls=tools,
            tool_overrides=overrides_for(self._called(found), self._tools) if is_kept else {},
            facts=self._facts_of(found) if tools is not None and tools.policy == "digest" else {},
            resources="superseded" if "resources" in policies else None,
        )

    def _facts_of(self, found: Range) -> dict[str, Facts]:
        """Return what responses say that were recorded without evidence, by the ids of their entries."""
        if self._observer is None:
            return {}
        if self._observed is None:
            self._observed = self._observer.observe(self.entries)
        turns = self._division.turns[found.first : found.last + 1]
        ids = (entry.id for turn in turns for entry in turn.entries)
        return {identity: self._observed[identity] for identity in ids if identity in self._observed}

    def _called(self, found: Range) -> set[str]:
        """Return the names of the tools called in these turns."""
        turns = self._division.turns[found.first : found.last + 1]
        return {entry.name for turn in turns for entry in turn.entries if isinstance(entry, ToolCallRequest)}

    def shrinking(self, drafts: Iterable[Compaction]) -> tuple[Compaction, ...]:
        """Return those that make the view smaller, each after those before it."""
        kept: tuple[Compaction, ...] = ()
        tokens = self.tokens
        for draft in drafts:
            after = self.size((*kept, draft))
            if after < tokens:
                kept, tokens = (*kept, draft), after
        return kept

    def summary_range(self, bounds: RangeRequest) -> Range | None:
        """Return the turns that a summary would cover."""
        found = resolve(bounds, self.shape, "summary", now=self.now)
        if found is None:
            return None
        covered = [_covered(placement, self._numbers) for placement in self._placements if _has_summary(placement)]
        summaries = [Range(first=first, last=last) for first, last in covered if first <= last]
        return union_with_summaries(found, summaries)

    def _shape(self) -> StreamShape:
        tokens: dict[int, int] = {}
        for item in self.items:
            number = self.transcript.records[self.transcript.messages[item.message].origin].event.turn
            tokens[number] = tokens.get(number, 0) + item.tokens
        turns = tuple(
            TurnFacts(number=turn.number, id=turn.id, began=_began(turn.entries), tokens=tokens.get(turn.number, 0))
            for turn in self._division.turns
            if turn.id not in self._undone
        )
        return StreamShape(turns=turns, covered=_covered_by_policy(self._placements, self._numbers))


def _observed(response: ToolCallResponse, text: str) -> Facts:
    """Return the facts of a response with evidence from its content."""
    from jp.context.evidence import observe

    recorded = response.facts or Facts()
    found = observe(text, kind=recorded.kind or "", is_error=response.is_error)
    exit_code = found.exit_code if recorded.exit_code is None else recorded.exit_code
    return replace(recorded, exit_code=exit_code, evidence=found.lines or None)


def _common(before: ViewTranscript, after: ViewTranscript) -> int:
    """Return the number of messages with which both begin."""
    pairs = zip(before.messages, after.messages, strict=False)
    shorter = min(len(before.messages), len(after.messages))
    return next((at for at, (one, other) in enumerate(pairs) if one != other), shorter)


def _began(entries: Sequence[AnyEntry]) -> float | None:
    first = entries[0] if entries else None
    if not isinstance(first, TurnStart) or not first.at:
        return None
    try:
        return datetime.fromisoformat(first.at).timestamp()
    except ValueError:
        return None


def _calls(cycle: Cycle) -> bool:
    """Return whether tools were called in `cycle`."""
    return any(isinstance(answer, ToolCallRequest) for attempt in cycle.attempts for answer in attempt.answers)


def _has_summary(placement: Placement) -> bool:
    summary = placement.compaction.summary
    return summary is not None and not is_blank(summary.text)


def _covered(placement: Placement, numbers: Mapping[str, int]) -> tuple[int, int]:
    """Return the turns that a compaction covers completely."""
    first, last = turns_covered(placement, numbers)
    return first, last if placement.compaction.to_cycle is None else last - 1


def _covered_by_policy(placements: Sequence[Placement], numbers: Mapping[str, int]) -> dict[Policy, int]:
    covered: dict[Policy, int] = {}
    for placement in placements:
        compaction = placement.compaction
        first, last = _covered(placement, numbers)
        if last < first:
            continue
        says: tuple[tuple[Policy, bool], ...] = (
            ("summary", _has_summary(placement)),
            ("reasoning", compaction.reasoning is not None),
            ("tools", compaction.tool_calls is not None),
            ("resources", compaction.resources is not None),
        )
        for policy, is_said in says:
            if is_said:
                covered[policy] = max(covered.get(policy, -1), last)
    return covered
