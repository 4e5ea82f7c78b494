"""jp's own compaction as a benchmark runs it: overlays that the planner makes, in a log that grows, and their view."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import anyio
from jp.tool.search_history import SearchHistory
from msgspec.structs import replace

from context.conversations import LogWriter
from context.gold import places_of
from jp.cli.compacting.summarizer import local_summary, texts_of
from jp.cli.recalled import IndexedHistory
from jp.compaction.fact_lines import FactLines
from jp.compaction.log_contents import contents_in, handles_of
from jp.compaction.planning import Planner, wish_of
from jp.compaction.projection import project
from jp.compaction.ranges import KeepTurns, RangeWish
from jp.compaction.transcript import transcript_of
from jp.config.compaction import PROFILES
from jp.context.summarizing import summary_limit
from jp.context.types import Transcript
from jp.conversation.entries import AnyEntry, Compaction
from jp.conversation.resource import Carrier, TextBlock
from jp.tool.base import ToolInvocation
from jp.turn.request import InlineLoader

_C = TypeVar("_C", bound=Carrier)
WINDOW = 200_000
_EXCERPT = re.compile(r"\n\n(?=\[turn )")
_HANDLE = re.compile(r"(?<![0-9a-f])[0-9a-f]{8,64}(?![0-9a-f])")


class _Stream(NamedTuple):
    """The port `jp.tool.base.Stream`: everything is inline."""

    entries: Sequence[AnyEntry]

    def load(self, carrier: _C, /) -> _C:
        """The carrier as it is."""
        return carrier


class Product:
    """One conversation of jp, compacted as `jp conversation compact --budget` does, without a model.

    `facts` says whether its tools recorded what they know, as jp's own do; imported logs have none.
    """

    def __init__(self, *, facts: bool = True) -> None:
        self._log = LogWriter(facts=facts)
        self._search = SearchHistory(IndexedHistory())

    @property
    def entries(self) -> Sequence[AnyEntry]:
        """The log, with its overlays."""
        return self._log.entries

    def grow(self, part: Transcript) -> None:
        """Append what was said next."""
        self._log.add(part)

    def compact(self, target: int) -> None:
        """Append the overlays that bring the view to `target` tokens, as jp estimates them."""
        for overlay in _overlays_to(tuple(self.entries), target):
            self._log.append(overlay)

    def view(self) -> Transcript:
        """Return what the model is sent."""
        return transcript_of(project(self.entries, FactLines()), self.entries).messages

    def recallable(self) -> Iterator[str]:
        """Return the texts whose handles stand in the view."""
        return recallable(self.entries, self.view())

    def search(self, query: str) -> Sequence[str]:
        """Return the excerpts that the model is given for one call of `search_history`."""
        invocation = ToolInvocation(arguments={"query": query}, root=Path(), stream=_Stream(self.entries))
        output = anyio.run(self._search.run, invocation)
        shown = "\n".join(block.text or "" for block in output.content if isinstance(block, TextBlock))
        return _EXCERPT.split(shown)


def recallable(entries: Sequence[AnyEntry], view: Transcript) -> Iterator[str]:
    """Return the texts of a log whose handles stand in `view`."""
    words = {word for place in places_of(view) for word in _HANDLE.findall(place.text)}
    named = {sha256 for sha256, handle in handles_of(entries).items() if handle in words}
    for entry in entries:
        for sha256, content in contents_in(entry):
            text = getattr(content, "text", None)
            if sha256 in named and isinstance(text, str):
                yield text


def _overlays_to(entries: Sequence[AnyEntry], target: int) -> tuple[Compaction, ...]:
    planner = Planner(entries, FactLines(), {}, now=0.0, load=texts_of(InlineLoader()))
    if planner.tokens <= target:
        return ()
    found: tuple[Compaction, ...] = ()
    for keep in (3, 1, 0):
        bounds = RangeWish(keep_last=KeepTurns(keep))
        found = planner.plan(wish_of(PROFILES["default"]), bounds).overlays
        if planner.effect(found).after <= target:
            return found
    plan = planner.plan(wish_of(PROFILES["heavy"]), RangeWish(keep_last=KeepTurns(1)))
    if plan.summary is not None:
        policy = local_summary(entries, plan.summary, InlineLoader(), limit=summary_limit(WINDOW))
        if policy is not None:
            found = (*found, replace(planner.bare(plan.summary), summary=policy))
    return found
