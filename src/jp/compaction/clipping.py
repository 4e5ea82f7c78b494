"""Clipping: what the compactions of a stream are in a fork that copies a part of it (design: compaction). Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from jp.compaction.overlays import turns_covered
from jp.conversation.entries import AnyEntry, Compaction, ConfigDelta
from jp.conversation.forking import TurnRange, extract
from jp.conversation.reverts import undone
from jp.conversation.turns import Placement, divide, is_blank


class ForkedStream(msgspec.Struct, frozen=True, kw_only=True):
    """The turns of a range as a stream of their own; see `jp.conversation.forking.Extract`.

    `notices` says what of the source could not come along.
    """

    turns: TurnRange
    entries: tuple[AnyEntry, ...]
    before: tuple[ConfigDelta, ...] = ()
    notices: tuple[str, ...] = ()


def forked_stream(entries: Sequence[AnyEntry], turns: TurnRange) -> ForkedStream:
    """The fork of turns that exist.

    A compaction that only leaves out or strips is clipped to what is copied. A summary that tells of more than that is
    left behind, with a notice.
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
        """The compaction as it is in the fork; None where nothing of it concerns what is copied."""
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
        """Whether the fork reads it as the source does, word for word."""
        named = [identity for identity in (compaction.from_id, compaction.to_id) if identity is not None]
        are_known = all(self._numbers.get(identity, -1) in self._turns for identity in named)
        return self._turns.first == 0 and last <= self._turns.last and are_known


def _says_anything(compaction: Compaction) -> bool:
    policies = (compaction.summary, compaction.reasoning, compaction.tool_calls, compaction.resources)
    return any(policy is not None for policy in policies)


def _left_behind(first: int, last: int) -> str:
    turns = f"turn {first}" if first == last else f"turns {first} to {last}"
    return f"the summary of {turns} was left behind: it tells of turns that are not in the fork"
