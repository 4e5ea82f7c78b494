"""Reports on a conversation: the content of its context, and its tokens and cost."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from time import time
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from jp.app.compaction.preview import (
    LastCycle,
    LostReasoning,
    ProfileGain,
    gains_of,
    last_cycle,
    model_name,
    parts_of,
    reasoning_withheld,
)
from jp.app.conversations import ReadConversation, read_conversation
from jp.app.estimates import known_error
from jp.app.models import details_of, pricing
from jp.app.options import Options
from jp.app.prompts import INSTRUCTION_FILES, INSTRUCTIONS_TAG
from jp.compaction.fact_lines import StatusLineFormatter
from jp.compaction.large_items import LargeItem, Savings, large_items, savings_of
from jp.compaction.planning import Planner
from jp.config.model import AppConfig, AssistantConfig
from jp.context.breakdown import Breakdown, Bucket, Calibration, Measurement, Room, Source, break_down, ratio_of
from jp.context.budget import Budget, ItemKind, threshold
from jp.context.cache_hints import Volatile, find_volatile
from jp.context.estimate import estimate_tokens
from jp.conversation.entries import (
    AnyEntry,
    Compaction,
    InputChange,
    RequestContext,
    ToolCallRequest,
    ToolCallResponse,
)
from jp.conversation.turns import RequestUsage, TurnUsage, prompt_tokens, turns_of, usage_by_turn
from jp.provider.base import ModelDetails
from jp.provider.models import CacheFacts, cache_facts
from jp.provider.registry import ModelId, kind_of, parse_model_id
from jp.tool.mcp import on_servers
from jp.tool.toolbox import RECALL
from jp.turn.machine import parameters_of, system_parts
from jp.turn.request import Loader, RequestSettings, context_in_force
from jp.turn.sent import settings_of
from jp.turn.usage import (
    CacheReport,
    DetailsOf,
    Spending,
    add_spending,
    by_cycle,
    cache_report,
    of_inquiries,
    of_summaries,
    total_of,
)

if TYPE_CHECKING:
    from jp.workspace.listing import Parent


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """The share of one kind of content: `tokens` scaled to what was measured, and as `estimated`."""

    kind: str
    tokens: int
    estimated: int
    bytes: int
    items: int


class BucketShare(Share, frozen=True, kw_only=True):
    """A bucket. `static`: every request begins with it. `compressible`: something of it can be hidden."""

    kind: Bucket
    static: bool
    compressible: bool


class KindShare(Share, frozen=True, kw_only=True):
    """A part of the conversation."""

    kind: ItemKind


class ToolShare(Share, frozen=True, kw_only=True):
    """The results of one tool."""

    kind: str = msgspec.field(name="name")


class ContextItem(msgspec.Struct, frozen=True, kw_only=True):
    """One of the largest items; `handle` recalls it. `source` is the URI or path of its content."""

    handle: str | None
    kind: ItemKind
    turn: int
    tokens: int
    estimated: int
    bytes: int
    tool: str | None
    source: str | None


class InstructionFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of the workspace in the system prompt, such as AGENTS.md, as it was when the conversation began."""

    name: str
    tokens: int
    bytes: int


class ContextReport(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the next request's context, in tokens, and what each compaction profile would free of it.

    `id` is the conversation. `volatile` counts in the parts of the system prompt, of which `files` are some.
    `reasoning_withheld` is reasoning that is not sent, because something before it has changed. Of messages and
    results it holds no word.

    Args:
        window: the model's; None where it is not known, as `threshold` and `free` then are.
        reserved: tokens of the window for the answer.
        threshold: the number of tokens from which on compaction is due.
        source: what `used` is from: the provider's report, an estimate, or both.
    """

    id: str = ""
    model: str
    window: int | None
    reserved: int
    threshold: int | None
    used: int
    free: int | None
    source: Source
    estimated: int
    ratio: float | None
    buckets: tuple[BucketShare, ...]
    other: int
    conversation: tuple[KindShare, ...]
    tools: tuple[ToolShare, ...]
    last_cycle: LastCycle | None = None
    largest: tuple[ContextItem, ...] = ()
    profiles: tuple[ProfileGain, ...] = ()
    volatile: tuple[Volatile, ...] = ()
    files: tuple[InstructionFile, ...] = ()
    reasoning_withheld: LostReasoning = LostReasoning()


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """Facts beside the log: of the model, how far estimates of its tokens are off, and the prompt that is set.

    The other parts of a system prompt are sections and instructions. `on_servers` are the tools of MCP servers.
    `trigger_ratio` is the share of the window from which on compaction is automatic, None where it is not.
    """

    details: ModelDetails
    ratio: float = 1.0
    prompt: str = ""
    on_servers: Collection[str] = frozenset()
    trigger_ratio: float | None = None


def context_report(options: Options, target: str = ".") -> ContextReport:
    """Return a report on what the next request of a conversation would hold. Nothing is sent or written.

    Raises:
        JpError: there is no such conversation, or it cannot be read.
    """
    read = read_conversation(options, target)
    config = read.resolved.config
    settings = _settings(read.entries, config, read.loader)
    model = ModelId(settings.provider, settings.model)
    auto = config.conversation.compaction.auto
    known = Known(
        details=details_of(config, model),
        ratio=known_error(str(model)).ratio,
        prompt=config.assistant.system_prompt,
        on_servers=on_servers([tool.name for tool in settings.tools], config.conversation.tools),
        trigger_ratio=auto.trigger_ratio if auto.enabled else None,
    )
    planner = Planner(read.entries, StatusLineFormatter(), config.conversation.tools, now=time())
    report = context_report_of(planner, settings, known, loader=read.loader)
    gains = gains_of(planner, config, window=known.details.context_window, ratio=report.ratio or 1.0)
    return replace(
        report,
        id=str(read.id),
        profiles=tuple(gains),
        files=tuple(_instruction_files(config.assistant)),
        reasoning_withheld=reasoning_withheld(read.entries, config, read.loader),
    )


def _instruction_files(assistant: AssistantConfig) -> Iterator[InstructionFile]:
    for section in assistant.system_prompt_sections:
        if section.tag == INSTRUCTIONS_TAG and section.title in INSTRUCTION_FILES:
            tokens = estimate_tokens(section.content)
            yield InstructionFile(name=section.title, tokens=tokens, bytes=len(section.content.encode()))


def _settings(entries: Sequence[AnyEntry], config: AppConfig, loader: Loader) -> RequestSettings:
    """Return what the newest request held besides the stream; of a log that does not say, what is configured."""
    current = context_in_force(entries)
    if current is not None:
        return settings_of(current, loader)
    assistant = config.assistant
    model = ModelId("", "") if assistant.model.id is None else parse_model_id(assistant.model.id, config.providers.llm)
    return RequestSettings(
        provider=model.provider,
        model=model.name,
        renderer=0,
        system=system_parts(assistant),
        parameters=parameters_of(assistant),
    )


def context_report_of(planner: Planner, settings: RequestSettings, known: Known, *, loader: Loader) -> ContextReport:
    """Return the report for the planner's stream; `settings` are what its next request holds besides.

    Raises:
        StorageError: a system prompt or definitions of tools cannot be read.
    """
    entries, transcript, items = planner.entries, planner.transcript, planner.items
    parts = tuple(parts_of(settings, known.prompt, known.on_servers))
    last = last_cycle(entries, transcript.messages, loader, planner.status_formatter)
    found = break_down(
        parts,
        items,
        known_tools=_tool_names(entries, loader),
        room=_room(settings, known),
        measured=_measurement(last, known, settings),
    )
    report = of_breakdown(found, model=model_name(settings.provider, settings.model))
    return replace(
        report,
        last_cycle=last,
        largest=tuple(map(_context_item, large_items(items, transcript, entries, ratio=found.ratio or 1.0))),
        volatile=find_volatile(settings.system),
    )


def of_breakdown(found: Breakdown, *, model: str) -> ContextReport:
    """Return the part of a report that a breakdown holds."""
    return ContextReport(
        model=model,
        window=found.room.window,
        reserved=found.room.reserved,
        threshold=found.room.threshold,
        used=found.total,
        free=found.free,
        source=found.source,
        estimated=found.estimated,
        ratio=found.ratio,
        buckets=tuple(
            BucketShare(
                kind=one.kind,
                tokens=one.tokens,
                estimated=one.estimated,
                bytes=one.size,
                items=one.items,
                static=one.is_static,
                compressible=one.is_compressible,
            )
            for one in found.buckets
        ),
        other=found.other,
        conversation=tuple(
            KindShare(kind=one.kind, tokens=one.tokens, estimated=one.estimated, bytes=one.size, items=one.items)
            for one in found.conversation
        ),
        tools=tuple(
            ToolShare(kind=one.name, tokens=one.tokens, estimated=one.estimated, bytes=one.size, items=one.items)
            for one in found.tools
        ),
    )


def _context_item(item: LargeItem) -> ContextItem:
    return ContextItem(
        handle=item.handle,
        kind=item.kind,
        turn=item.turn,
        tokens=item.tokens,
        estimated=item.estimated,
        bytes=item.size,
        tool=item.tool or None,
        source=item.source or None,
    )


def _tool_names(entries: Sequence[AnyEntry], loader: Loader) -> frozenset[str]:
    """Return the tools that were ever offered in this log, or that ran: what else a model calls is no tool."""
    contexts = {entry.tools: entry for entry in entries if isinstance(entry, RequestContext)}
    offered = {tool.name for context in contexts.values() for tool in settings_of(context, loader).tools}
    done = {entry.request for entry in entries if isinstance(entry, ToolCallResponse) and not entry.is_error}
    ran = {entry.name for entry in entries if isinstance(entry, ToolCallRequest) and entry.id in done}
    return frozenset(offered | ran)


def _room(settings: RequestSettings, known: Known) -> Room:
    """Return the window, the part reserved for the answer (at most half of it), and the compaction threshold."""
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
    """Return the provider's count of the beginning of this context; else the error of estimates for the model."""
    if last is not None and last.added is not None:
        return Measurement(tokens=last.reported, added=last.added)
    is_same_model = last is not None and last.model == model_name(settings.provider, settings.model)
    ratio = last.ratio if last is not None and is_same_model else known.ratio
    return Measurement(ratio=ratio_of(Calibration({"": ratio}), ""))


class CycleRow(msgspec.Struct, frozen=True, kw_only=True):
    """A cycle. `model` is `provider/name`, empty where the log does not say."""

    number: int
    attempts: int
    model: str
    spending: Spending


class TurnRow(msgspec.Struct, frozen=True, kw_only=True):
    """A turn. `is_copied`: it came with a fork, so its money was spent in another conversation.

    `inquiries` is what the model's answers to questions of tools took; `spending` has it, too.
    """

    number: int
    is_undone: bool
    is_copied: bool
    cycles: tuple[CycleRow, ...]
    spending: Spending
    inquiries: Spending = Spending()

    @property
    def models(self) -> tuple[str, ...]:
        """The models that it asked, each once."""
        return tuple(dict.fromkeys(cycle.model for cycle in self.cycles if cycle.model))


class ProviderChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change that a provider reports of a request, such as dropped reasoning."""

    turn: int
    cycle: int
    change: InputChange


class UsageReport(msgspec.Struct, frozen=True, kw_only=True):
    """All turns of a conversation, those that were undone and those that were copied too, and their sums.

    `withheld` is how many pieces of reasoning the newest request was without because something before them had changed.
    """

    id: str = ""
    turns: tuple[TurnRow, ...]
    models: dict[str, Spending]
    total: Spending
    undone: Spending
    copied: Spending
    parent: str | None
    cache: CacheReport
    inquiries: Spending = Spending()
    summaries: Spending = Spending()
    savings: Savings = Savings()
    withheld: int = 0
    input_changes: tuple[ProviderChange, ...] = ()

    @property
    def hit_rate(self) -> float | None:
        """The share of the prompts' tokens that was read from the cache; None where there were none."""
        prompt = prompt_tokens(self.total.usage)
        return self.total.usage.cache_read / prompt if prompt else None


def usage_report(options: Options, target: str = ".") -> UsageReport:
    """Return the tokens and cost of a conversation. Files of settings may be invalid.

    Raises:
        JpError: there is no such conversation, or it cannot be read.
    """
    read = read_conversation(options, target, lenient=True)
    parent = None if read.info is None else read.info.metadata.parent
    return replace(usage_report_of(read.entries, read.resolved.config, parent=parent), id=read.id)


def usage_report_of(entries: Sequence[AnyEntry], config: AppConfig, *, parent: Parent | None = None) -> UsageReport:
    """Return the report of a stream; `parent` is what it was forked from."""
    turns = usage_by_turn(entries)
    copied = 0 if parent is None else parent.to_turn - parent.from_turn + 1
    details_of = pricing(config)
    rows = tuple(_rows(turns, details_of, copied=copied))
    summaries = of_summaries(entries, details_of)
    return UsageReport(
        turns=rows,
        models=_by_model(cycle for row in rows for cycle in row.cycles),
        total=total_of((*(row.spending for row in rows), summaries)),
        undone=total_of(row.spending for row in rows if row.is_undone),
        copied=total_of(row.spending for row in rows if row.is_copied),
        inquiries=total_of(row.inquiries for row in rows),
        summaries=summaries,
        parent=None if parent is None else str(parent.conversation),
        cache=_cache(turns, config),
        savings=savings_of(entries, StatusLineFormatter(), recall=RECALL),
        withheld=_withheld(turns),
        input_changes=tuple(_input_changes(turns)),
    )


def _withheld(turns: Sequence[TurnUsage]) -> int:
    ends = (request.end for turn in reversed(turns) for request in reversed(turn.requests))
    return next((end.withheld for end in ends if end is not None), 0)


def _input_changes(turns: Iterable[TurnUsage]) -> Iterator[ProviderChange]:
    for turn in turns:
        for request in turn.requests:
            for change in () if request.end is None else request.end.input_changes:
                yield ProviderChange(turn=turn.number, cycle=request.cycle, change=change)


def _rows(turns: Iterable[TurnUsage], details_of: DetailsOf, *, copied: int) -> Iterator[TurnRow]:
    for turn in turns:
        cycles = tuple(_cycle(last, spending) for last, spending in by_cycle(turn.requests, details_of))
        inquiries = of_inquiries(turn.inquiries, details_of)
        yield TurnRow(
            number=turn.number,
            is_undone=turn.is_undone,
            is_copied=turn.number < copied,
            cycles=cycles,
            spending=total_of([*(cycle.spending for cycle in cycles), inquiries]),
            inquiries=inquiries,
        )


def _cycle(last: RequestUsage, spending: Spending) -> CycleRow:
    return CycleRow(
        number=last.cycle,
        attempts=1 if last.end is None else last.end.attempt,
        model="/".join(filter(None, last.model)),
        spending=spending,
    )


def _by_model(cycles: Iterable[CycleRow]) -> dict[str, Spending]:
    found: dict[str, Spending] = {}
    for cycle in cycles:
        found[cycle.model] = add_spending(found.get(cycle.model, Spending()), cycle.spending)
    return found


def _cache(turns: Sequence[TurnUsage], config: AppConfig) -> CacheReport:
    from jp.workspace.files import seconds_of

    known: dict[tuple[str, str], CacheFacts] = {}

    def facts_of(provider: str, name: str) -> CacheFacts:
        key = (provider, name)
        if key not in known:
            known[key] = cache_facts(kind_of(config.providers.llm, provider), name)
        return known[key]

    requests = (request for turn in turns for request in turn.requests)
    return cache_report(requests, facts_of=facts_of, seconds_of=seconds_of)


class ContextOfTurn(msgspec.Struct, frozen=True, kw_only=True):
    """The estimated tokens of each kind of content after a turn, and what each compaction after it freed, by its id."""

    turn: int
    tokens: dict[str, int]
    freed_by: dict[str, int]


_MOST_TURNS = 60


def context_by_turn(read: ReadConversation) -> list[ContextOfTurn]:
    """Return what filled the context after each turn; of a long conversation, after some of them."""
    entries = read.entries
    settings = _settings(entries, read.resolved.config, read.loader)
    known = Known(details=ModelDetails(provider=settings.provider, id=settings.model))
    tools = read.resolved.config.conversation.tools
    positions = {id(entry): position for position, entry in enumerate(entries)}
    starts = [*(positions[id(turn.entries[0])] for turn in turns_of(entries)), len(entries)]
    ends = list(enumerate(starts[1:]))
    step = max(len(ends) // _MOST_TURNS, 1)
    found: list[ContextOfTurn] = []
    for number, end in ends:
        since = starts[number]
        compactions = [at for at in range(since, end) if isinstance(entries[at], Compaction)]
        if not compactions and number % step and number != len(ends) - 1:
            continue
        planners = [Planner(entries[: at + 1], StatusLineFormatter(), tools, now=time()) for at in compactions]
        before = [Planner(entries[:at], StatusLineFormatter(), tools, now=time()) for at in compactions]
        freed = {
            entries[at].id: max(old.tokens - new.tokens, 0)
            for at, old, new in zip(compactions, before, planners, strict=True)
        }
        planner = Planner(entries[:end], StatusLineFormatter(), tools, now=time())
        report = context_report_of(planner, settings, known, loader=read.loader)
        shares = [*(one for one in report.buckets if one.kind != "conversation"), *report.conversation]
        tokens = {one.kind: one.estimated for one in shares if one.estimated}
        found.append(ContextOfTurn(turn=number, tokens=tokens, freed_by=freed))
    return found
