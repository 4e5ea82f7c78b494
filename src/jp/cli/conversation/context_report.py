"""What fills a conversation's context: from the log, what the provider reported, and what is known of the model."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from jp.cli.compacting.measured import LastCycle, last_cycle, model_name, parts_of
from jp.cli.compacting.preview import ProfileGain
from jp.compaction.large_items import LargeItem, large_items
from jp.compaction.projection import project
from jp.compaction.stand_ins import StandIns
from jp.compaction.transcript import transcript_of
from jp.context.breakdown import Breakdown, Measurement, Room, break_down
from jp.context.budget import Budget, threshold
from jp.context.cache_hints import Volatile, find_volatile
from jp.context.calibration import Calibration, ratio_of
from jp.context.items import items_of
from jp.conversation.entries import AnyEntry, RequestContext, ToolCallRequest, ToolCallResponse
from jp.provider.base import ModelDetails
from jp.turn.request import Loader, RequestSettings
from jp.turn.sent import settings_of


class ContextReport(msgspec.Struct, frozen=True, kw_only=True):
    """What fills the context that the next request would have, and what each compaction profile would free of it.

    `volatile` counts in the parts of the system prompt.
    """

    model: str
    breakdown: Breakdown
    last_cycle: LastCycle | None
    largest: tuple[LargeItem, ...]
    volatile: tuple[Volatile, ...]
    gains: tuple[ProfileGain, ...] = ()


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What is known beside the log: of the model, how far estimates of its tokens are off, and the prompt that is set.

    The other parts of a system prompt are sections and instructions. `on_servers` are the tools of MCP servers.
    `trigger_ratio` is the share of the window from which on compaction happens by itself, None where it does not.
    """

    details: ModelDetails
    ratio: float = 1.0
    prompt: str = ""
    on_servers: Collection[str] = frozenset()
    trigger_ratio: float | None = None


def report_of(
    entries: Sequence[AnyEntry], settings: RequestSettings, known: Known, *, loader: Loader, stand_ins: StandIns
) -> ContextReport:
    """The report for a stream; `settings` are what its next request holds besides, `stand_ins` those of requests.

    Raises:
        StorageError: a system prompt or definitions of tools cannot be read.
    """
    transcript = transcript_of(project(entries, stand_ins), entries)
    parts = tuple(parts_of(settings, known.prompt, known.on_servers))
    items = tuple(items_of(transcript.messages))
    last = last_cycle(entries, transcript.messages, loader, stand_ins)
    breakdown = break_down(
        parts,
        items,
        known_tools=_tool_names(entries, loader),
        room=_room(settings, known),
        measured=_measurement(last, known, settings),
    )
    return ContextReport(
        model=model_name(settings.provider, settings.model),
        breakdown=breakdown,
        last_cycle=last,
        largest=tuple(large_items(items, transcript, entries, ratio=breakdown.ratio or 1.0)),
        volatile=find_volatile(settings.system),
    )


def _tool_names(entries: Sequence[AnyEntry], loader: Loader) -> frozenset[str]:
    """The tools that were ever offered in this log, or that ran: what else a model calls is no tool."""
    contexts = {entry.tools: entry for entry in entries if isinstance(entry, RequestContext)}
    offered = {tool.name for context in contexts.values() for tool in settings_of(context, loader).tools}
    done = {entry.request for entry in entries if isinstance(entry, ToolCallResponse) and not entry.is_error}
    ran = {entry.name for entry in entries if isinstance(entry, ToolCallRequest) and entry.id in done}
    return frozenset(offered | ran)


def _room(settings: RequestSettings, known: Known) -> Room:
    """The window, what is reserved for the answer, but at most half of it, and from where on it is rather full."""
    details = known.details
    window = details.context_window
    if window is None:
        return Room()
    wanted = settings.parameters.max_tokens or details.max_output or 0
    reserved = min(wanted, window // 2)
    full = threshold(Budget(window=window, reserved=reserved))
    if known.trigger_ratio is not None:
        full = round((window - reserved) * known.trigger_ratio)
    return Room(window=window, reserved=reserved, threshold=full)


def _measurement(last: LastCycle | None, known: Known, settings: RequestSettings) -> Measurement:
    """What the provider said of the beginning of this context; else by what estimates for the model are off."""
    if last is not None and last.added is not None:
        return Measurement(tokens=last.reported, added=last.added)
    is_same_model = last is not None and last.model == model_name(settings.provider, settings.model)
    ratio = last.ratio if last is not None and is_same_model else known.ratio
    return Measurement(ratio=ratio_of(Calibration({"": ratio}), ""))
