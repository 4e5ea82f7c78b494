"""Budgets: the overlays with which a view has as many tokens as there is room for, and no fewer than that takes. Pure.

What gives way comes in passes, those first that lose least for what they free: outdated copies of resources, reasoning,
the bulk of arguments, results, and at last whole turns for a summary. In a pass that goes first which frees most for
what it says of failures, and of reasoning the oldest. The newest turns that a wish keeps give way after all others.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from jp.compaction.overlays import UNCOVERED_CYCLES
from jp.compaction.planning import Plan, Planner, PolicyWish, with_unwritten_summary
from jp.compaction.ranges import KeepTurns, Range, RangeWish, resolve
from jp.compaction.transcript import ViewTranscript
from jp.context.items import Item, ItemKind, items_of
from jp.context.selection import Candidate, least_loss
from jp.context.types import Message, texts_of
from jp.conversation.entries import AnyEntry, Compaction
from jp.conversation.thread import ToolCall, ToolResult
from jp.conversation.turns import cycles_of, turns_of

_RANKS: Mapping[ItemKind, int] = {"reasoning": 0, "arguments": 1, "results": 2, "images": 2, "digests": 2}
_NEWEST = 10
"""Added to the rank of candidates in the newest turns."""

_FAILURE = re.compile(
    r"^.{0,200}?(?:error|fail|exception|traceback|panic|fatal|not found)", re.IGNORECASE | re.MULTILINE
)
_MOST_FAILURES = 20

_SCALE = 100_000
"""Scale of a loss for each freed token, which keeps it an integer."""

_LEAST_SUMMARY = 500
_SUMMARY_PERCENT = 15
"""About how much of what it stands for a summary takes."""

_LARGEST_SUMMARY_PERCENT = 50
"""Of a budget that is left to it a summary takes no more."""

_SETTLINGS = 3
"""Most rounds in which overlays are chosen beside a summary; each corrects the estimate of the one before."""


def plan_budget(planner: Planner, wish: PolicyWish, bounds: RangeWish, tokens: int, *, is_firm: bool = False) -> Plan:
    """Return the overlays that bring the view of `planner` to `tokens` with the least loss.

    Where `wish` has a summary and nothing else reaches the budget, the oldest turns are left to it. `is_firm` says that
    the newest turns that `bounds` keeps are kept whatever the budget is.
    """
    if planner.tokens <= tokens:
        return Plan()
    found = resolve(_widened(bounds, is_firm=is_firm), planner.shape, "tools", now=planner.now)
    if found is None:
        return Plan()
    soft = resolve(bounds, planner.shape, "tools", now=planner.now)
    chooser = _Chooser(planner, wish, found, soft.last if soft is not None else found.first - 1)
    overlays = chooser.overlays(tokens)
    if not wish.summary or planner.size(overlays) <= tokens:
        return Plan(overlays=overlays)
    turns = chooser.turns_for_summary(planner.summary_range(_widened(bounds, is_firm=is_firm)), tokens)
    if turns is None:
        return Plan(overlays=overlays)
    return Plan(overlays=chooser.overlays(tokens, told=turns), summary=turns)


def settle(
    planner: Planner, wish: PolicyWish, bounds: RangeWish, summary: Compaction, *, tokens: int, is_firm: bool = False
) -> tuple[Compaction, ...]:
    """Return what brings the view to `tokens` beside `summary`, now that it is written, and `summary` at the end.

    What a short summary leaves of the budget is spent on what would have given way, and a long one has more give way.
    """
    found = resolve(_widened(bounds, is_firm=is_firm), planner.shape, "tools", now=planner.now)
    if found is None:
        return (summary,)
    soft = resolve(bounds, planner.shape, "tools", now=planner.now)
    chooser = _Chooser(planner, wish, found, soft.last if soft is not None else found.first - 1)
    return chooser.beside(summary, tokens)


def summary_room(planner: Planner, plan: Plan, turns: Range, tokens: int) -> int:
    """Return the tokens that a summary of `turns` may have beside the overlays of `plan` in a view of `tokens`."""
    return max(tokens - planner.size((*plan.overlays, with_unwritten_summary(planner.bare(turns)))), _LEAST_SUMMARY)


def _widened(bounds: RangeWish, *, is_firm: bool) -> RangeWish:
    return bounds if is_firm else replace(bounds, keep_last=KeepTurns(0))


class _Placed(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate with its turn."""

    candidate: Candidate
    turn: int


class _Chooser:
    """Chooses within the turns of `found`; those behind `oldest` give way last."""

    def __init__(self, planner: Planner, wish: PolicyWish, found: Range, oldest: int) -> None:
        self._planner = planner
        self._wish = wish
        self._found = found
        self._oldest = oldest
        every = replace(wish, summary=False).mechanical
        self._copies = (planner.overlay(found, ("resources",), wish),) if "resources" in every else ()
        self._before = planner.view(self._copies)
        self._newest = _newest_cycles(planner.entries)
        shown = _tokens_by_origin(self._before)
        # An older copy is hidden by a newer one. It may not stay whole: it would be shown again where that gives way.
        self._hidden = {
            planner.view().records[origin].event.origin
            for origin, tokens in _tokens_by_origin(planner.view()).items()
            if tokens > shown.get(origin, 0)
        }
        self._full = planner.overlay(found, every, wish)
        after = planner.view((self._full,)) if every else self._before
        self._candidates = list(self._candidates_of(self._before, _tokens_by_origin(after)))
        self._newest_whole = tuple(
            dict.fromkeys(
                event.origin
                for item in items_of(self._before.messages)
                if item.kind not in {"digests", "reasoning"}
                and (event := self._before.records[_origin(item, self._before)].event).origin in self._newest
                and isinstance(event, ToolCall | ToolResult)
            )
        )
        self._now = _tokens_by_turn(self._before)
        self._least = Counter(self._now)
        for one in self._candidates:
            self._least[one.turn] -= one.candidate.freed

    def overlays(self, tokens: int, *, told: Range | None = None) -> tuple[Compaction, ...]:
        """Return what reaches `tokens` where a summary stands for `told`; what does not free anything is left out."""
        need = sum(self._now.values()) - tokens
        if told is not None:
            need -= sum(self._now[turn] for turn in range(told.first, told.last + 1)) - self._of_summary(told, tokens)
        return self._planner.shrinking(self._drafts(need, told))

    def beside(self, summary: Compaction, tokens: int) -> tuple[Compaction, ...]:
        """Return what reaches `tokens` beside `summary`, which comes last, with as little left over as can be."""
        told = Range(first=summary.from_turn, last=summary.to_turn, to_cycle=summary.to_cycle)
        need = self._planner.size((summary,)) - tokens
        best, least = (summary,), -1
        for _ in range(_SETTLINGS):
            kept = self._planner.shrinking((summary, *self._drafts(need, told)))
            overlays = (*(one for one in kept if one is not summary), summary)
            left = tokens - self._planner.size(overlays)
            if 0 <= least <= left:
                break
            if least < 0 or left >= 0:
                best, least = overlays, left
            # What is over by a little takes more than that little: the same pieces would be chosen again.
            need -= left if left >= 0 else left - tokens // 100
        return best

    def _drafts(self, need: int, told: Range | None) -> list[Compaction]:
        open_to = [one for one in self._candidates if told is None or not told.first <= one.turn <= told.last]
        chosen = least_loss((one.candidate for one in open_to), need)
        keys = [one.candidate.key for one in open_to]
        whole = (key for key in keys if key not in chosen and not key.startswith("turn "))
        kept = (*whole, *self._newest_whole)
        has_tools = any(not key.startswith("turn ") for key in chosen)
        turns = [int(key.removeprefix("turn ")) for key in chosen if key.startswith("turn ")]
        tools = replace(
            self._full,
            reasoning=None,
            tool_calls=self._full.tool_calls if has_tools else None,
            tool_overrides=self._full.tool_overrides if has_tools else {},
            facts={key: facts for key, facts in self._full.facts.items() if key in chosen},
            kept=kept if has_tools else (),
        )
        drafts: list[Compaction] = []
        if turns:
            silent = Range(first=self._found.first, last=max(turns))
            drafts.append(self._planner.overlay(silent, ("reasoning",), self._wish))
        if tools.tool_calls is not None or tools.resources is not None:
            drafts.append(tools)
        return drafts

    def turns_for_summary(self, found: Range | None, tokens: int) -> Range | None:
        """Return the fewest of the oldest turns of `found` whose summary reaches `tokens`, or all that it may be."""
        if found is None:
            return None
        if found.first == found.last and found.last == self._planner.shape.turns[-1].number:
            return self._planner.finished_cycles() or found
        rest = sum(self._least.values())
        for last in range(found.first, found.last + 1):
            told = replace(found, last=last)
            left = sum(self._least[turn] for turn in range(told.first, last + 1))
            if rest - left + self._of_summary(told, tokens) <= tokens:
                return told
        return found

    def _of_summary(self, told: Range, tokens: int) -> int:
        """Return about how many tokens a summary of these turns takes in a view of `tokens`."""
        replaced = sum(self._now[turn] for turn in range(told.first, told.last + 1))
        usual = min(replaced * _SUMMARY_PERCENT // 100, tokens * _LARGEST_SUMMARY_PERCENT // 100)
        return min(max(_LEAST_SUMMARY, usual), replaced)

    def _candidates_of(self, view: ViewTranscript, left: Mapping[str, int]) -> Iterator[_Placed]:
        freed: dict[tuple[str, int, int], tuple[int, int, int]] = {}
        for position, item in enumerate(items_of(view.messages)):
            rank = _RANKS.get(item.kind)
            event = view.records[_origin(item, view)].event
            is_settled = event.origin in self._newest | self._hidden
            if rank is None or is_settled or not self._found.first <= event.turn <= self._found.last:
                continue
            gone = item.tokens - left.get(_origin(item, view), 0)
            key = f"turn {event.turn}" if item.kind == "reasoning" else event.origin
            rank += 0 if event.turn <= self._oldest else _NEWEST
            loss = _failures(view.messages[item.message])
            before = freed.get((key, rank, event.turn), (0, loss, position))
            freed[key, rank, event.turn] = (before[0] + gone, *before[1:])
        for (key, rank, turn), (gone, loss, position) in freed.items():
            if gone > 0:
                # Of a turn's reasoning the oldest goes first: an overlay has it up to a turn, and not here and there.
                weight = (1 + loss) * _SCALE // gone if rank % _NEWEST else 0
                candidate = Candidate(key=key, freed=gone, rank=rank, loss=weight, position=position)
                yield _Placed(candidate=candidate, turn=turn)


def _newest_cycles(entries: Sequence[AnyEntry]) -> frozenset[str]:
    """Return the ids of what was said in the newest cycles of the last turn."""
    cycles = [cycle for turn in turns_of(entries)[-1:] for cycle in cycles_of(turn)[-UNCOVERED_CYCLES:]]
    answers = (answer.id for cycle in cycles for attempt in cycle.attempts for answer in attempt.answers)
    return frozenset((*answers, *(response.id for cycle in cycles for response in cycle.responses)))


def _tokens_by_turn(view: ViewTranscript) -> Counter[int]:
    found: Counter[int] = Counter()
    for item in items_of(view.messages):
        found[view.records[view.messages[item.message].origin].event.turn] += item.tokens
    return found


def _tokens_by_origin(view: ViewTranscript) -> dict[str, int]:
    left: dict[str, int] = {}
    for item in items_of(view.messages):
        origin = _origin(item, view)
        left[origin] = left.get(origin, 0) + item.tokens
    return left


def _origin(item: Item, view: ViewTranscript) -> str:
    message = view.messages[item.message]
    if item.call is not None:
        return message.calls[item.call].origin
    blocks = () if isinstance(message.content, str) else message.content
    return message.origin if item.block is None else blocks[item.block].origin


def _failures(message: Message) -> int:
    """Return how much a result says of what failed."""
    if message.role != "tool":
        return 0
    found = 0
    for text in texts_of(message):
        for _ in _FAILURE.finditer(text):
            found += 1
            if found == _MOST_FAILURES:
                return found
    return found
