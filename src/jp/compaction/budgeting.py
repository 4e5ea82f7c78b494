"""Budgets: the overlays with which a view has as many tokens as there is room for, and no fewer than that takes. Pure.

What gives way comes in passes, those first that lose least for what they free: outdated copies of resources, reasoning,
the bulk of arguments, results, and at last whole turns for a summary. Each piece of the view is estimated once, whole
and with everything given way; what is chosen is settled by sums, and the view is made of it at the end to correct them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property

import msgspec
from msgspec.structs import replace

from jp.compaction.overlays import UNCOVERED_CYCLES, KeepTurns, Range, RangeRequest, resolve
from jp.compaction.planning import Plan, Planner, PolicyRequest
from jp.compaction.transcript import ViewTranscript
from jp.context.budget import Candidate, Item, ItemKind, items_of, least_loss
from jp.context.estimate import estimate_tokens
from jp.context.types import Message, texts_of
from jp.conversation.entries import AnyEntry, Compaction
from jp.conversation.resource import Resource
from jp.conversation.thread import ToolCall, ToolResult, carriers_in
from jp.conversation.turns import cycles_of, turns_of

_RANKS: Mapping[ItemKind, int] = {"reasoning": 0, "arguments": 1, "results": 2, "images": 2, "digests": 2}
_NEWEST = 10
"""Added to the rank of candidates in the newest turns."""

_ASKED: frozenset[ItemKind] = frozenset({"system", "user", "attachments"})
"""Status of a result whose turn is summarized up to its finished cycles."""

_FAILURES = ("error", "fail", "exception", "traceback", "panic", "fatal", "not found")
_MOST_FAILURES = 20

_SCALE = 100_000
"""Scale of a loss for each freed token, which keeps it an integer."""

_LEAST_SUMMARY = 500
_SUMMARY_PERCENT = 15
"""Estimated size of a summary in percent of the range it replaces, besides the user's words, which it keeps."""

_LARGEST_SUMMARY_PERCENT = 50
"""Of a budget that is left to it a summary takes no more."""

_SETTLINGS = 3
"""Most rounds in which overlays are chosen; each corrects the estimate of the one before."""

_SPENT_PERCENT = 98
"""A budget of which so much is used needs no further round."""


class _Piece(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An item of the view, the entry that it comes from, and the tokens that stay of it where it gives way."""

    item: Item
    entry: str
    turn: int
    least: int
    is_newest: bool


class _Placed(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate with its turn."""

    candidate: Candidate
    turn: int


class Budgeting:
    """Chooses what brings the view of `planner` to `tokens` with the least loss.

    The newest turns that `bounds` keeps give way after all others; `is_firm` says that they never do.
    """

    def __init__(
        self, planner: Planner, wish: PolicyRequest, bounds: RangeRequest, tokens: int, *, is_firm: bool = False
    ) -> None:
        self._planner = planner
        self._wish = wish
        self._tokens = tokens
        wider = bounds if is_firm else replace(bounds, keep_last=KeepTurns(0))
        self._found = resolve(wider, planner.shape, "tools", now=planner.now)
        soft = resolve(bounds, planner.shape, "tools", now=planner.now)
        self._range = self._found or Range(first=0, last=-1)
        self._oldest = self._range.first - 1 if soft is None else soft.last
        self._for_summary = planner.summary_range(wider) if wish.summary else None

    def plan(self, *, with_summary: bool = True) -> Plan:
        """Return the overlays that reach the budget, and where nothing else does, the oldest turns for a summary."""
        if self._found is None or self._planner.tokens <= self._tokens:
            return Plan()
        told = None
        if with_summary and sum(piece.least for piece in self._pieces) > self._tokens:
            told = self._turns_for_summary()
        if told is None:
            return Plan(overlays=self._settled(self._total() - self._tokens))
        need = self._total(told) + self._expected(told) - self._tokens
        return Plan(overlays=self._drafts(need, told), summary=told)

    def settle(self, summary: Compaction) -> tuple[Compaction, ...]:
        """Return what reaches the budget beside `summary`, now that it is written, and `summary` at the end.

        What a short summary leaves of the budget is spent on what would have given way, and a long one has more give
        way.
        """
        if self._found is None or summary.summary is None:
            return (summary,)
        told = Range(first=summary.from_turn, last=summary.to_turn, to_cycle=summary.to_cycle)
        need = self._total(told) + estimate_tokens(summary.summary.text) - self._tokens
        return self._settled(need, told, (summary,))

    def summary_room(self, turns: Range) -> int:
        """Return the tokens that a summary of `turns` may have beside what gives way with it."""
        need = self._total(turns) + self._expected(turns) - self._tokens
        freed = sum(one.candidate.freed for one in self._chosen(need, turns))
        return max(self._tokens - self._total(turns) + freed, _LEAST_SUMMARY)

    def replaced(self, turns: Range) -> int:
        """Return the tokens that leave for a summary of `turns`."""
        return self._total() - self._total(turns)

    def _settled(
        self, need: int, told: Range | None = None, summary: tuple[Compaction, ...] = ()
    ) -> tuple[Compaction, ...]:
        """Return what frees `need` tokens, and `summary` at the end, with as little left of the budget as can be."""
        best, least = summary, self._tokens - self._planner.tokens
        for _ in range(_SETTLINGS):
            overlays = (*self._drafts(need, told), *summary)
            left = self._tokens - self._planner.size(overlays)
            if best is not summary and 0 <= least <= left:
                break
            if least < left or left >= 0:
                best, least = overlays, left
            if 0 <= left <= self._tokens - self._tokens * _SPENT_PERCENT // 100:
                break
            # What is over by a little takes more than that little: the same pieces would be chosen again.
            need -= left if left >= 0 else left - self._tokens // 100
        return best

    def _chosen(self, need: int, told: Range | None) -> list[_Placed]:
        open_to = self._open_to(told)
        chosen = least_loss((one.candidate for one in open_to), need)
        return [one for one in open_to if one.candidate.key in chosen]

    def _open_to(self, told: Range | None) -> list[_Placed]:
        return [one for one in self._candidates if told is None or not told.first <= one.turn <= told.last]

    def _drafts(self, need: int, told: Range | None) -> tuple[Compaction, ...]:
        chosen = [one.candidate.key for one in self._chosen(need, told)]
        turns = [int(key.removeprefix("turn ")) for key in chosen if key.startswith("turn ")]
        drafts: list[Compaction] = []
        if turns:
            silent = Range(first=self._range.first, last=max(turns))
            drafts.append(self._planner.overlay(silent, ("reasoning",), self._wish))
        if len(turns) < len(chosen):
            whole = {one.candidate.key for one in self._open_to(told)}.difference(chosen) | self._newest_whole
            kept = tuple(one for one in dict.fromkeys(piece.entry for piece in self._pieces) if one in whole)
            drafts.append(
                replace(
                    self._full,
                    reasoning=None,
                    facts={key: facts for key, facts in self._full.facts.items() if key not in whole},
                    kept=kept,
                )
            )
        elif self._copies:
            drafts += self._copies
        return tuple(drafts)

    def _total(self, told: Range | None = None) -> int:
        """Return the tokens of the view without what leaves for a summary of `told`."""
        return sum(piece.item.tokens for piece in self._pieces if told is None or not _leaves(piece, told))

    def _turns_for_summary(self) -> Range | None:
        """Return the fewest of the oldest turns whose summary reaches the budget, or all that it may be."""
        found = self._for_summary
        if found is None:
            return None
        if found.first == found.last and found.last == self._planner.shape.turns[-1].number:
            return self._planner.finished_cycles() or found
        whole, said, least = Counter[int](), Counter[int](), Counter[int]()
        for piece in self._pieces:
            whole[piece.turn] += piece.item.tokens
            said[piece.turn] += piece.item.tokens if piece.item.kind == "user" else 0
            least[piece.turn] += piece.least
        replaced, words, left = 0, 0, least.total()
        for last in range(found.first, found.last + 1):
            replaced += whole[last]
            words += said[last]
            left -= least[last]
            if left + self._summary_size(replaced, words) <= self._tokens:
                return replace(found, last=last)
        return found

    def _expected(self, turns: Range) -> int:
        """Return about how many tokens a summary of `turns` takes."""
        words = [piece.item.tokens for piece in self._pieces if piece.item.kind == "user" and _leaves(piece, turns)]
        return self._summary_size(self.replaced(turns), sum(words))

    def _summary_size(self, replaced: int, words: int) -> int:
        """Return the estimated tokens of a summary that replaces so many, of which `words` are the user's."""
        usual = words + (replaced - words) * _SUMMARY_PERCENT // 100
        return min(max(_LEAST_SUMMARY, min(usual, self._tokens * _LARGEST_SUMMARY_PERCENT // 100)), replaced)

    @cached_property
    def _full(self) -> Compaction:
        """The overlay with which everything gives way that a wish without its summary names."""
        return self._planner.overlay(self._range, self._wish.mechanical, self._wish)

    @cached_property
    def _copies(self) -> tuple[Compaction, ...]:
        """The overlay that hides older copies of resources, where there are any."""
        if self._full.resources is None or not _has_copies(self._planner.entries):
            return ()
        return (replace(self._planner.bare(self._range), resources=self._full.resources),)

    @cached_property
    def _pieces(self) -> tuple[_Piece, ...]:
        """Every item of the view without older copies, in its order."""
        before = self._planner.view(self._copies)
        items = tuple(items_of(before.messages)) if self._copies else self._planner.items
        left = _tokens_by_origin(self._planner.view((self._full,))) if self._wish.mechanical else {}
        newest = _newest_cycles(self._planner.entries)
        pieces: list[_Piece] = []
        for item in items:
            origin = _origin(item, before)
            event = before.records[origin].event
            is_open = (
                item.kind in _RANKS
                and bool(self._wish.mechanical)
                and self._range.first <= event.turn <= self._range.last
                and event.origin not in newest
                and event.origin not in self._hidden
            )
            pieces.append(
                _Piece(
                    item=item,
                    entry=event.origin,
                    turn=event.turn,
                    least=min(left.get(origin, 0), item.tokens) if is_open else item.tokens,
                    is_newest=event.origin in newest and isinstance(event, ToolCall | ToolResult),
                )
            )
        return tuple(pieces)

    @cached_property
    def _hidden(self) -> frozenset[str]:
        """The entries whose older copies are hidden: whole, they would be shown again where the newer one gives way."""
        if not self._copies:
            return frozenset()
        view = self._planner.view()
        shown = _tokens_by_origin(self._planner.view(self._copies))
        return frozenset(
            view.records[origin].event.origin
            for origin, tokens in _tokens_by_origin(view).items()
            if tokens > shown.get(origin, 0)
        )

    @cached_property
    def _newest_whole(self) -> frozenset[str]:
        return frozenset(
            piece.entry for piece in self._pieces if piece.is_newest and piece.item.kind not in {"digests", "reasoning"}
        )

    @cached_property
    def _candidates(self) -> tuple[_Placed, ...]:
        messages = self._planner.view(self._copies).messages
        freed: dict[tuple[str, int, int], tuple[int, int, int]] = {}
        for position, piece in enumerate(self._pieces):
            if piece.least == piece.item.tokens:
                continue
            key = f"turn {piece.turn}" if piece.item.kind == "reasoning" else piece.entry
            rank = _RANKS[piece.item.kind] + (0 if piece.turn <= self._oldest else _NEWEST)
            known = freed.get((key, rank, piece.turn))
            if known is None:
                known = (0, _failures(messages[piece.item.message]), position)
            freed[key, rank, piece.turn] = (known[0] + piece.item.tokens - piece.least, *known[1:])
        # Of a turn's reasoning the oldest goes first: an overlay has it up to a turn, and not here and there.
        return tuple(
            _Placed(
                candidate=Candidate(
                    key=key,
                    freed=gone,
                    rank=rank,
                    loss=(1 + loss) * _SCALE // gone if rank % _NEWEST else 0,
                    position=position,
                ),
                turn=turn,
            )
            for (key, rank, turn), (gone, loss, position) in freed.items()
        )


def _leaves(piece: _Piece, told: Range) -> bool:
    """Return whether `piece` leaves for a summary of `told`."""
    if not told.first <= piece.turn <= told.last:
        return False
    return told.to_cycle is None or not (piece.is_newest or piece.item.kind in _ASKED)


def _has_copies(entries: Sequence[AnyEntry]) -> bool:
    """Return whether a resource was delivered more than once."""
    uris = [carrier.uri for entry in entries for carrier in carriers_in(entry) if isinstance(carrier, Resource)]
    return len(set(uris)) < len(uris)


def _newest_cycles(entries: Sequence[AnyEntry]) -> frozenset[str]:
    """Return the ids of what was said in the newest cycles of the last turn."""
    cycles = [cycle for turn in turns_of(entries)[-1:] for cycle in cycles_of(turn)[-UNCOVERED_CYCLES:]]
    answers = (answer.id for cycle in cycles for attempt in cycle.attempts for answer in attempt.answers)
    return frozenset((*answers, *(response.id for cycle in cycles for response in cycle.responses)))


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
    lowered = "\n".join(texts_of(message)).lower()
    return min(sum(map(lowered.count, _FAILURES)), _MOST_FAILURES)
