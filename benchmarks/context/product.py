"""jp's own compaction as a benchmark runs it: overlays that the planner makes, in a log that grows, and their view."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import anyio
from msgspec.structs import replace

from context.conversations import LogWriter
from context.gold import places_of
from context.questions import EXCERPTS
from jp.app.compaction.order import Budget, CompactionOrder, SummaryOrder
from jp.app.compaction.preview import Previewer
from jp.compaction.fact_lines import StatusLineFormatter
from jp.compaction.log_contents import contents_in, handles_of, searchable_passages
from jp.compaction.log_contents import recallable as searched
from jp.compaction.overlays import KeepTurns, RangeRequest
from jp.compaction.planning import requested_policies
from jp.compaction.projection import project
from jp.compaction.transcript import transcript_of
from jp.config.model import PROFILES, AppConfig
from jp.context.markers import assign_handles
from jp.context.types import Transcript
from jp.conversation.entries import AnyEntry, Compaction
from jp.conversation.resource import Carrier, TextBlock
from jp.tool.base import Stream, ToolInvocation
from jp.tool.context_tools import FoundPassage, SearchHistory
from jp.tool.toolbox import HISTORY_TOOLS
from jp.turn.request import InlineLoader
from jp.workspace.search_index import Found, opened_index

_C = TypeVar("_C", bound=Carrier)
_CONFIG = AppConfig()
_ORDER = CompactionOrder(
    name="default",
    wish=replace(requested_policies(PROFILES["default"]), summary=True),
    bounds=RangeRequest(keep_last=KeepTurns(3)),
    summary=SummaryOrder(is_local=True),
)
_EXCERPT = re.compile(r"\n\n(?=\[turn )")
_HANDLE = re.compile(r"(?<![0-9a-f])[0-9a-f]{8,64}(?![0-9a-f])")


class _Stream(NamedTuple):
    """The port `jp.tool.base.Stream`: everything is inline."""

    entries: Sequence[AnyEntry]

    def load(self, carrier: _C, /) -> _C:
        """The carrier as it is."""
        return carrier


class _History:
    """The port `jp.tool.context_tools.History`, over an index that is made and searched once."""

    def __init__(self, entries: Sequence[AnyEntry], queries: Sequence[str]) -> None:
        handles = {sha256: handle for handle, sha256 in assign_handles(searched(entries)).items()}
        with opened_index(None) as index:
            index.add("benchmark", searchable_passages(entries, InlineLoader(), without=HISTORY_TOOLS))
            self._found = {
                query: [_passage(one, handles) for one in index.search(query, None, EXCERPTS)] for query in queries
            }

    def search(self, query: str, limit: int, stream: Stream) -> Sequence[FoundPassage]:
        """See the port."""
        del stream
        return self._found[query][:limit]


def _passage(found: Found, handles: Mapping[str, str]) -> FoundPassage:
    return FoundPassage(
        handle=handles[found.sha256],
        turn=found.turn,
        about=found.about,
        offset=found.offset,
        size=found.size,
        text=found.text,
    )


class Product:
    """One conversation of jp, compacted as `jp conversation compact --budget` does, without a model.

    `facts` says whether its tools recorded what they know, as jp's own do; imported logs have none.
    """

    def __init__(self, *, facts: bool = True) -> None:
        self._log = LogWriter(facts=facts)

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
        return transcript_of(project(self.entries, StatusLineFormatter()), self.entries).messages

    def recallable(self) -> Iterator[str]:
        """Return the texts whose handles stand in the view."""
        return recallable(self.entries, self.view())

    def search(self, queries: Sequence[str]) -> list[Sequence[str]]:
        """Return for each query the excerpts that the model is given for one call of `search_history`."""
        entries = tuple(self.entries)
        tool = SearchHistory(_History(entries, queries))
        return anyio.run(_searched, tool, _Stream(entries), queries)


async def _searched(tool: SearchHistory, stream: _Stream, queries: Sequence[str]) -> list[Sequence[str]]:
    found: list[Sequence[str]] = []
    for query in queries:
        output = await tool.run(ToolInvocation(arguments={"query": query}, root=Path(), stream=stream))
        shown = "\n".join(block.text or "" for block in output.content if isinstance(block, TextBlock))
        found.append(_EXCERPT.split(shown))
    return found


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
    """Do as `jp conversation compact --budget TARGET --local` does."""
    previewer = Previewer(entries, _CONFIG, InlineLoader(), now=0.0)
    return previewer.plan(replace(_ORDER, budget=Budget(tokens=target))).overlays
