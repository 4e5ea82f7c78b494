"""Overlays on the log: which turns they cover, and how they change the view (RFD 064)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, assert_never

import msgspec
from msgspec.structs import replace

from jp.conversation.entries import AnyEntry, Compaction, ConfigDelta, Facts, ToolCallPolicy
from jp.conversation.forking import TurnRange, extract
from jp.conversation.turns import Cycle, Division, Placement, divide, is_blank, turns_text, undone
from jp.errors import UsageError
from jp.remedies import Option, UseOption, phrase

Policy = Literal["summary", "reasoning", "tools", "resources"]
"""A type of content that a compaction has an opinion on."""


class AtTurn(msgspec.Struct, frozen=True):
    """The turn with this number, which counts from 0."""

    number: int


class BeforeLast(msgspec.Struct, frozen=True):
    """So many turns before the last one."""

    turns: int


class Ago(msgspec.Struct, frozen=True):
    """So many seconds ago."""

    seconds: float


class SinceCompaction(msgspec.Struct, frozen=True):
    """The first turn that no compaction of the same type has covered, nor any before it: what RFD 064 calls `last`."""


Bound = AtTurn | BeforeLast | Ago | SinceCompaction


class KeepTurns(msgspec.Struct, frozen=True):
    """So many turns stay as they are."""

    turns: int


class KeepFor(msgspec.Struct, frozen=True):
    """The turns of so many seconds stay as they are."""

    seconds: float


class KeepTokens(msgspec.Struct, frozen=True):
    """Turns worth at most so many tokens stay as they are, and always one."""

    tokens: int


Keep = KeepTurns | KeepFor | KeepTokens


class RangeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The requested range of a compaction: from `start` to `end`, inclusive, without what is kept at either end.

    A missing bound is the first or last turn of the conversation.
    """

    start: Bound | None = None
    end: Bound | None = None
    keep_first: Keep = KeepTurns(0)
    keep_last: Keep = KeepTurns(0)


class TurnFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One turn that was not undone. `began` is in seconds since 1970, None where it is not known."""

    number: int
    id: str
    began: float | None
    tokens: int


class StreamShape(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of a stream that resolving needs: its turns in order, and the last turn that each policy covers."""

    turns: tuple[TurnFacts, ...]
    covered: Mapping[Policy, int] = {}


class Range(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Turns from `first` to `last`, both included (0-based).

    With `to_cycle` it is a part of one turn: its cycles up to that one (0-based, included), without its requests.
    """

    first: int
    last: int
    to_cycle: int | None = None


def resolve(wish: RangeRequest, shape: StreamShape, policy: Policy, *, now: float) -> Range | None:
    """Return the turns that `wish` names for a policy, None if there are none. `now` is in seconds since 1970.

    Bounds after the last turn are moved to it.
    """
    turns = shape.turns
    if not turns:
        return None
    first = _start(wish.start, shape, policy, now)
    last = _end(wish.end, turns, now)
    if first is None or last is None:
        return None
    kept_first = _kept(wish.keep_first, turns, _is_young_at_start(turns))
    kept_last = _kept(wish.keep_last, turns[::-1], lambda turn, seconds: (turn.began or now) >= now - seconds)
    inside = [turn.number for turn in turns[kept_first : len(turns) - kept_last] if first <= turn.number <= last]
    return Range(first=inside[0], last=inside[-1]) if inside else None


def union_with_summaries(found: Range, summaries: Sequence[Range]) -> Range:
    """Return `found`, grown until it contains every summary's range that it overlaps.

    A summary of a part beside a summary of the rest could contradict it (RFD 064).
    """
    while True:
        touched = [one for one in summaries if one.first <= found.last + 1 and one.last >= found.first - 1]
        grown = Range(
            first=min([found.first, *(one.first for one in touched)]),
            last=max([found.last, *(one.last for one in touched)]),
        )
        if grown == found:
            return found
        found = grown


def check_choice(start: Bound | None, end: Bound | None) -> None:
    """Refuse bounds that contradict each other whatever the stream is.

    Raises:
        UsageError: the end is `last`, or lies before the start.
    """
    if isinstance(end, SinceCompaction):
        hint = phrase("`last` is where to begin: ", UseOption(Option.START, "last"))
        raise UsageError(phrase(Option.END, " cannot be 'last'"), hint=hint)
    if isinstance(start, AtTurn) and isinstance(end, AtTurn) and end.number < start.number:
        raise UsageError(
            f"the range is reversed: it begins with turn {start.number} and ends with turn {end.number}",
            hint=phrase(Option.START, " names the first turn, ", Option.END, " the last one"),
        )


def _start(bound: Bound | None, shape: StreamShape, policy: Policy, now: float) -> int | None:
    match bound:
        case None:
            return shape.turns[0].number
        case AtTurn(number=number):
            return number
        case BeforeLast(turns=count):
            return shape.turns[max(len(shape.turns) - 1 - count, 0)].number
        case Ago(seconds=seconds):
            since = (turn.number for turn in shape.turns if turn.began is not None and turn.began >= now - seconds)
            return next(since, None)
        case SinceCompaction():
            return shape.covered.get(policy, -1) + 1
        case _:
            assert_never(bound)


def _end(bound: Bound | None, turns: Sequence[TurnFacts], now: float) -> int | None:
    match bound:
        case None | SinceCompaction():
            return turns[-1].number
        case AtTurn(number=number):
            return number
        case BeforeLast(turns=count):
            return turns[-1 - count].number if count < len(turns) else None
        case Ago(seconds=seconds):
            until = (turn.number for turn in reversed(turns) if turn.began is not None and turn.began <= now - seconds)
            return next(until, None)
        case _:
            assert_never(bound)


def _kept(keep: Keep, turns: Sequence[TurnFacts], is_young: Callable[[TurnFacts, float], bool]) -> int:
    """Return the number of `turns` to keep, counted from the end at which they are kept."""
    match keep:
        case KeepTurns(turns=count):
            return min(count, len(turns))
        case KeepFor(seconds=seconds):
            return next((at for at, turn in enumerate(turns) if not is_young(turn, seconds)), len(turns))
        case KeepTokens(tokens=tokens):
            return _worth(turns, tokens)
        case _:
            assert_never(keep)


def _worth(turns: Sequence[TurnFacts], tokens: int) -> int:
    if tokens <= 0:
        return 0
    left = tokens
    for count, turn in enumerate(turns):
        left -= turn.tokens
        if left < 0:
            return max(count, 1)
    return len(turns)


def _is_young_at_start(turns: Sequence[TurnFacts]) -> Callable[[TurnFacts, float], bool]:
    began = next((turn.began for turn in turns if turn.began is not None), 0.0)
    return lambda turn, seconds: (began if turn.began is None else turn.began) <= began + seconds


UNCOVERED_CYCLES = 3
"""Number of the newest cycles that an overlay inside a turn does not cover, counted at its position in the log."""

NEWEST_CYCLES = 1
"""A summary inside a turn never covers its newest cycle, which is still being answered."""

Point = tuple[int, int]
"""A place in a stream: a turn, and a cycle of it."""

CyclesAt = Callable[[int], Sequence[Cycle]]
"""The cycles of a turn, by its number."""


def compactions_in_force(entries: Sequence[AnyEntry]) -> list[Compaction]:
    """Return the compactions of a stream that were not undone, in the log's order."""
    gone = undone(entries)
    return [entry for entry in entries if isinstance(entry, Compaction) and entry.id not in gone]


class Coverage(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The part of a log that a compaction covers: everything from `start` to before `end`.

    `only_responses`: in this part only the responses of tools are affected. `inside`: its summary covers cycles of one
    turn, whose requests stay. `seen` is the compaction's own position: later entries are not covered. `summary` is the
    text that replaces what it covers, empty if it has none: a blank text would hide turns and say nothing.
    """

    compaction: Compaction
    summary: str = ""
    start: Point
    end: Point
    seen: Point
    only_responses: bool = False
    inside: bool = False


def coverages(division: Division, undone: frozenset[str], cycles_at: CyclesAt) -> list[Coverage]:
    """Return the coverage of each compaction in force, in the log's order.

    A compaction changes how the entries before it are read, so it never covers a turn or a cycle that began after it: a
    request stays the same while the stream grows.
    """
    numbers = {turn.id: turn.number for turn in division.turns if turn.id}
    found: list[Coverage] = []
    for placement in division.placements:
        if placement.compaction.id not in undone:
            found.extend(part for part in _parts(placement, numbers, cycles_at) if part.start < part.end)
    return found


def _parts(placement: Placement, numbers: Mapping[str, int], cycles_at: CyclesAt) -> list[Coverage]:
    compaction = placement.compaction
    first, last = turns_covered(placement, numbers)
    if last < first:
        return []
    start, seen = (first, 0), (placement.turn, _cycles_begun(placement, cycles_at))
    text = "" if compaction.summary is None else compaction.summary.text
    summary = "" if is_blank(text) else text
    if compaction.to_cycle is None:
        end = seen if last == placement.turn else (last + 1, 0)
        return [Coverage(compaction=compaction, summary=summary, start=start, end=end, seen=seen)]
    cycles = seen[1] if last == placement.turn else len(cycles_at(last))
    inside, end = (last, 0), (last, min(compaction.to_cycle + 1, cycles - UNCOVERED_CYCLES))
    parts = [
        Coverage(compaction=compaction, summary=summary, start=start, end=inside, seen=seen),
        Coverage(compaction=compaction, start=inside, end=end, seen=seen, only_responses=True),
    ]
    if summary and first == last:
        end = (last, min(compaction.to_cycle + 1, cycles - NEWEST_CYCLES))
        parts.append(Coverage(compaction=compaction, summary=summary, start=inside, end=end, seen=seen, inside=True))
    return parts


def turns_covered(placement: Placement, numbers: Mapping[str, int]) -> tuple[int, int]:
    """Return the turns that a compaction names: by id, or by number if an id is missing or unknown in this stream."""
    compaction = placement.compaction
    first = numbers.get(compaction.from_id or "", compaction.from_turn)
    last = numbers.get(compaction.to_id or "", compaction.to_turn)
    return max(first, 0), min(last, placement.turn)


def _cycles_begun(placement: Placement, cycles_at: CyclesAt) -> int:
    """Return the number of cycles of its turn that began before the compaction."""
    return bisect_left(cycles_at(placement.turn), placement.events, key=lambda cycle: cycle.start)


class StripRule(msgspec.Struct, frozen=True, kw_only=True):
    """Rule for the arguments, or for the results, of tool calls, and the tools that are exempt by hint (RFD D17).

    With `digest`, results are replaced by digests: it has the facts of those recorded without evidence, by id. `kept`
    are the ids of those that are exempt.
    """

    strip: bool = False
    wishes: Mapping[str, bool] = {}
    digest: Mapping[str, Facts] | None = None
    kept: frozenset[str] = frozenset()

    def strips(self, tool: str, identity: str = "") -> bool:
        """Return whether the one of `tool` with the id `identity` is."""
        return self.strip and identity not in self.kept and self.wishes.get(tool, True)


KEEP = StripRule()


class ToolPolicies(msgspec.Struct, frozen=True, kw_only=True):
    """Policies for tool calls. `omit` hides calls and their responses, whatever a tool's hint is."""

    omit: bool = False
    requests: StripRule = KEEP
    responses: StripRule = KEEP


class Policies(msgspec.Struct, frozen=True, kw_only=True):
    """Policies that apply at a place. Two of them are the coverage itself, which says what it had seen."""

    summary: Coverage | None = None
    strip_reasoning: bool = False
    tools: ToolPolicies = ToolPolicies()
    superseded: Coverage | None = None


class Winners:
    """The policies of every place in a stream. `coverages` are in the log's order."""

    def __init__(self, coverages: Sequence[Coverage]) -> None:
        self._coverages = coverages
        self._edges = sorted({edge for coverage in coverages for edge in (coverage.start, coverage.end)})
        self._found: dict[int, Policies] = {}

    def at(self, place: Point) -> Policies:
        """Return the policies at a turn and cycle."""
        stretch = bisect_right(self._edges, place)
        found = self._found.get(stretch)
        if found is None:
            found = Policies()
            for coverage in self._coverages:
                if coverage.start <= place < coverage.end:
                    found = _overlaid(found, coverage)
            self._found[stretch] = found
        return found

    def summary_of(self, turn: int) -> Coverage | None:
        """Return the summary that replaces a whole turn, whose entries need not be read then."""
        begin, end = (turn, 0), (turn + 1, 0)
        is_uniform = bisect_right(self._edges, begin) == bisect_left(self._edges, end)
        return self.at(begin).summary if is_uniform else None


def _overlaid(policies: Policies, coverage: Coverage) -> Policies:
    """Return `policies`, overridden where `coverage` has a policy."""
    compaction = coverage.compaction
    if coverage.inside:
        return replace(policies, summary=coverage)
    tools = compaction.tool_calls
    if coverage.only_responses:
        if tools is None or tools.policy == "omit":
            return policies
        return replace(policies, tools=replace(policies.tools, omit=False, responses=_responses(compaction, tools)))
    return Policies(
        summary=coverage if coverage.summary else policies.summary,
        strip_reasoning=policies.strip_reasoning or compaction.reasoning == "strip",
        tools=policies.tools if tools is None else _tool_policies(compaction, tools),
        superseded=policies.superseded if compaction.resources is None else coverage,
    )


def _tool_policies(compaction: Compaction, tools: ToolCallPolicy) -> ToolPolicies:
    if tools.policy == "omit":
        return ToolPolicies(omit=True)
    wishes = {
        tool: override.request == "strip"
        for tool, override in compaction.tool_overrides.items()
        if override.request is not None
    }
    requests = StripRule(strip=tools.request, wishes=wishes, kept=frozenset(compaction.kept))
    return ToolPolicies(requests=requests, responses=_responses(compaction, tools))


def _responses(compaction: Compaction, tools: ToolCallPolicy) -> StripRule:
    wishes = {
        tool: override.response == "strip"
        for tool, override in compaction.tool_overrides.items()
        if override.response is not None
    }
    digest = compaction.facts if tools.policy == "digest" else None
    return StripRule(strip=tools.response, wishes=wishes, digest=digest, kept=frozenset(compaction.kept))


class ForkedStream(msgspec.Struct, frozen=True, kw_only=True):
    """The turns of a range as a stream of their own; see `jp.conversation.forking.Extract`.

    `notices` says what of the source could not come along.
    """

    turns: TurnRange
    entries: tuple[AnyEntry, ...]
    before: tuple[ConfigDelta, ...] = ()
    notices: tuple[str, ...] = ()


def forked_stream(entries: Sequence[AnyEntry], turns: TurnRange) -> ForkedStream:
    """Return the fork of turns that exist.

    A compaction that only hides or strips is clipped to what is copied. A summary that covers more than that is
    dropped, with a notice.
    """
    division = divide(entries)
    identities = {turn.id: turn.number for turn in division.turns if turn.id}
    clipper = _Clipper(turns, identities, undone(entries))
    compactions = [clipper.clipped(placement) for placement in division.placements]
    extracted = extract(entries, turns, compactions)
    return ForkedStream(turns=turns, entries=extracted.entries, before=extracted.before, notices=tuple(clipper.notices))


class _Clipper:
    def __init__(self, turns: TurnRange, numbers: dict[str, int], undone_ids: frozenset[str]) -> None:
        self._turns = turns
        self._undone = undone_ids
        self._numbers = numbers
        self._identities = {number: identity for identity, number in numbers.items()}
        self.notices: list[str] = []

    def clipped(self, placement: Placement) -> Compaction | None:
        """Return the compaction as it is in the fork; None if it covers nothing that is copied."""
        compaction = placement.compaction
        first, last = turns_covered(placement, self._numbers)
        start, end = max(first, self._turns.first), min(last, self._turns.last)
        if end < start:
            return None
        to_cycle = compaction.to_cycle if last in self._turns else None
        summary_end = last if compaction.to_cycle is None else last - 1
        summary = compaction.summary
        if summary is not None and not (first in self._turns and summary_end <= self._turns.last):
            if not is_blank(summary.text) and compaction.id not in self._undone:
                self.notices.append(_left_behind(first, summary_end))
            summary = None
        if self._stays(compaction, last) and summary is compaction.summary:
            return compaction
        found = replace(
            compaction,
            from_turn=start - self._turns.first,
            to_turn=end - self._turns.first,
            from_id=self._identities.get(start),
            to_id=self._identities.get(end),
            to_cycle=to_cycle,
            summary=summary,
        )
        return found if _says_anything(found) else None

    def _stays(self, compaction: Compaction, last: int) -> bool:
        """Return whether the fork reads it exactly as the source does."""
        named = [identity for identity in (compaction.from_id, compaction.to_id) if identity is not None]
        are_known = all(self._numbers.get(identity, -1) in self._turns for identity in named)
        return self._turns.first == 0 and last <= self._turns.last and are_known


def _says_anything(compaction: Compaction) -> bool:
    policies = (compaction.summary, compaction.reasoning, compaction.tool_calls, compaction.resources)
    return any(policy is not None for policy in policies)


def _left_behind(first: int, last: int) -> str:
    return f"the summary of {turns_text(first, last)} was not copied: it covers turns that are not in the fork"
