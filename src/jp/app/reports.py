"""Reports on the content of a conversation's context, and on what it took and cost."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from jp.app.compaction.preview import LastCycle, ProfileGain, ReasoningLost, last_cycle, model_name, parts_of
from jp.app.models import pricing
from jp.compaction.fact_lines import FactLines
from jp.compaction.large_items import LargeItem, large_items
from jp.compaction.projection import project
from jp.compaction.savings import Savings, savings_of
from jp.compaction.stand_ins import StandIns
from jp.compaction.transcript import transcript_of
from jp.config.model import AppConfig
from jp.context.breakdown import Breakdown, Measurement, Room, break_down
from jp.context.budget import Budget, threshold
from jp.context.cache_hints import Volatile, find_volatile
from jp.context.calibration import Calibration, ratio_of
from jp.context.items import items_of
from jp.conversation.entries import AnyEntry, InputChange, RequestContext, ToolCallRequest, ToolCallResponse
from jp.conversation.turns import RequestUsage, TurnUsage, prompt_tokens, usage_by_turn
from jp.provider.base import ModelDetails
from jp.provider.models import CacheFacts, cache_facts
from jp.provider.registry import kind_of
from jp.tool.toolbox import RECALL
from jp.turn.cache_misses import CacheReport, cache_report
from jp.turn.request import Loader, RequestSettings
from jp.turn.sent import settings_of
from jp.turn.spending import DetailsOf, Spending, add_spending, by_cycle, of_inquiries, of_summaries, total_of

if TYPE_CHECKING:
    from jp.workspace.listing import Parent


class ContextReport(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the next request's context, and what each compaction profile would free of it.

    `volatile` counts in the parts of the system prompt. `withheld` is reasoning that the request is without, because
    what stands before it has changed since.
    """

    model: str
    breakdown: Breakdown
    last_cycle: LastCycle | None
    largest: tuple[LargeItem, ...]
    volatile: tuple[Volatile, ...]
    gains: tuple[ProfileGain, ...] = ()
    withheld: ReasoningLost = ReasoningLost()


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """Facts beside the log: of the model, how far estimates of its tokens are off, and the prompt that is set.

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


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All turns, those that were undone and those that were copied too, and their sums.

    `withheld` is how many pieces of reasoning the newest request was without because something before them had changed.
    """

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


def report_of_usage_report(entries: Sequence[AnyEntry], config: AppConfig, *, parent: Parent | None = None) -> Report:
    """The report of a stream; `parent` is what it was forked from."""
    turns = usage_by_turn(entries)
    copied = 0 if parent is None else parent.to_turn - parent.from_turn + 1
    details_of = pricing(config)
    rows = tuple(_rows(turns, details_of, copied=copied))
    summaries = of_summaries(entries, details_of)
    return Report(
        turns=rows,
        models=_by_model(cycle for row in rows for cycle in row.cycles),
        total=total_of((*(row.spending for row in rows), summaries)),
        undone=total_of(row.spending for row in rows if row.is_undone),
        copied=total_of(row.spending for row in rows if row.is_copied),
        inquiries=total_of(row.inquiries for row in rows),
        summaries=summaries,
        parent=None if parent is None else str(parent.conversation),
        cache=_cache(turns, config),
        savings=savings_of(entries, FactLines(), recall=RECALL),
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
