"""What fills a conversation's context: from the log, what the provider reported, and what is known of the model."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import msgspec

from jp.cli.compacting.gains import ProfileGain
from jp.compaction.large_items import LargeItem, large_items
from jp.compaction.projection import project
from jp.compaction.stand_ins import StandIns
from jp.compaction.transcript import transcript_of
from jp.context.breakdown import Breakdown, Measurement, Part, Room, break_down
from jp.context.budget import Budget, estimate_messages, threshold
from jp.context.calibration import Calibration, ratio_of
from jp.context.estimate import estimate_tokens
from jp.context.items import items_of
from jp.context.types import Transcript
from jp.context.volatile import Volatile, find_volatile
from jp.conversation.entries import AnyEntry, RequestContext, ToolCallRequest, ToolCallResponse, Usage
from jp.conversation.thread import ToolDefinition
from jp.conversation.usage import prompt_tokens, reported_usage
from jp.provider.base import ModelDetails
from jp.turn.request import Loader, RequestSettings, canonical_json, context_in_force, is_same_context
from jp.turn.sent import sent_requests, settings_of


class LastCycle(msgspec.Struct, frozen=True, kw_only=True):
    """The last request whose tokens the provider reported, and what is estimated of the same.

    `added` is the estimate of what came since; None where what was sent then does not stand in the context any more.
    """

    turn: int
    cycle: int
    model: str
    usage: Usage
    reported: int
    estimated: int
    added: int | None

    @property
    def ratio(self) -> float:
        """Reported tokens for one that is estimated."""
        return self.reported / max(self.estimated, 1)


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
    parts = tuple(_parts(settings, known.prompt, known.on_servers))
    items = tuple(items_of(transcript.messages))
    last = _last_cycle(entries, transcript.messages, loader, stand_ins)
    breakdown = break_down(
        parts,
        items,
        known_tools=_tool_names(entries, loader),
        room=_room(settings, known),
        measured=_measurement(last, known, settings),
    )
    return ContextReport(
        model=_model(settings.provider, settings.model),
        breakdown=breakdown,
        last_cycle=last,
        largest=tuple(large_items(items, transcript, entries, ratio=breakdown.ratio or 1.0)),
        volatile=find_volatile(settings.system),
    )


def _parts(
    settings: RequestSettings, configured: str = "", on_servers: Collection[str] = frozenset()
) -> Iterator[Part]:
    """What a request has beside its messages. Of the system prompt, sections and instructions are rules."""
    prompt = configured if configured in settings.system else "".join(settings.system[:1])
    for text in settings.system:
        bucket = "system_prompt" if text == prompt else "rules"
        yield Part(bucket=bucket, tokens=estimate_tokens(text), size=len(text.encode()))
    for tool in settings.tools:
        bucket = "mcp_tools" if tool.name in on_servers else "tool_definitions"
        yield Part(bucket=bucket, tokens=_tool_tokens(tool), size=len(canonical_json(tool).encode()))


def _tool_tokens(tool: ToolDefinition) -> int:
    return estimate_tokens(canonical_json(tool))


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


def _last_cycle(
    entries: Sequence[AnyEntry], messages: Transcript, loader: Loader, stand_ins: StandIns
) -> LastCycle | None:
    reported = reported_usage(entries)
    for sent in reversed(sent_requests(entries)):
        usage = reported.get((sent.turn, sent.cycle, sent.attempt))
        if usage is not None and prompt_tokens(usage):
            then = entries[: sent.entries]
            before = transcript_of(project(then, stand_ins, continuing=sent.going_on), then).messages
            beside = sum(part.tokens for part in _parts(settings_of(sent.context, loader)))
            current = context_in_force(entries)
            stands = current is not None and is_same_context(sent.context, current)
            return LastCycle(
                turn=sent.turn,
                cycle=sent.cycle,
                model=_model(sent.context.provider, sent.context.model),
                usage=usage,
                reported=prompt_tokens(usage),
                estimated=beside + estimate_messages(before),
                added=_added(before, messages) if stands else None,
            )
    return None


def _added(before: Transcript, now: Transcript) -> int | None:
    """What came since, None where what was sent does not stand there any more."""
    return estimate_messages(now[len(before) :]) if now[: len(before)] == before else None


def _measurement(last: LastCycle | None, known: Known, settings: RequestSettings) -> Measurement:
    """What the provider said of the beginning of this context; else by what estimates for the model are off."""
    if last is not None and last.added is not None:
        return Measurement(tokens=last.reported, added=last.added)
    is_same_model = last is not None and last.model == _model(settings.provider, settings.model)
    ratio = last.ratio if last is not None and is_same_model else known.ratio
    return Measurement(ratio=ratio_of(Calibration({"": ratio}), ""))


def _model(provider: str, name: str) -> str:
    return f"{provider}/{name}" if provider else "not known"
