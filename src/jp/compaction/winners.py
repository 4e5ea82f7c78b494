"""Winners: of the compactions that cover a place, those that decide what happens to each type of content there.

The one that is later in the log wins, for each type by itself. A summary goes before the other types, whichever is
newer.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from jp.compaction.overlays import Coverage, Point
from jp.conversation.entries import Compaction, Facts, ToolCallPolicy


class Half(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the requests, or the responses, of tools are stripped. A tool may wish to be left alone (RFD D17).

    With `digest`, responses leave a digest: it has the facts of those that were recorded without evidence, by id.
    `kept` are the ids of those that are left alone.
    """

    strip: bool = False
    wishes: Mapping[str, bool] = {}
    digest: Mapping[str, Facts] | None = None
    kept: frozenset[str] = frozenset()

    def strips(self, tool: str, identity: str = "") -> bool:
        """Return whether the one of `tool` with the id `identity` is."""
        return self.strip and identity not in self.kept and self.wishes.get(tool, True)


KEEP = Half()


class ToolPolicies(msgspec.Struct, frozen=True, kw_only=True):
    """What happens to tool calls. Omitted calls are gone with their responses, whatever a tool wishes."""

    omit: bool = False
    requests: Half = KEEP
    responses: Half = KEEP


class Policies(msgspec.Struct, frozen=True, kw_only=True):
    """What happens at a place. Two types name the coverage itself: who summarises, and what it had seen."""

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
        """What happens at a turn and cycle."""
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
        """The summary that stands for the whole of a turn, which need not be read then."""
        begin, end = (turn, 0), (turn + 1, 0)
        is_uniform = bisect_right(self._edges, begin) == bisect_left(self._edges, end)
        return self.at(begin).summary if is_uniform else None


def _overlaid(policies: Policies, coverage: Coverage) -> Policies:
    """`policies` with what `coverage` has an opinion on."""
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
    requests = Half(strip=tools.request, wishes=wishes, kept=frozenset(compaction.kept))
    return ToolPolicies(requests=requests, responses=_responses(compaction, tools))


def _responses(compaction: Compaction, tools: ToolCallPolicy) -> Half:
    wishes = {
        tool: override.response == "strip"
        for tool, override in compaction.tool_overrides.items()
        if override.response is not None
    }
    digest = compaction.facts if tools.policy == "digest" else None
    return Half(strip=tools.response, wishes=wishes, digest=digest, kept=frozenset(compaction.kept))
