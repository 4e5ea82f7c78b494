"""What a conversation took and cost, by turns, cycles and models, and how its provider's cache did. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from jp.cli.model_details import pricing
from jp.compaction.fact_lines import FactLines
from jp.compaction.savings import Savings, savings_of
from jp.config.model import AppConfig
from jp.conversation.entries import AnyEntry, InputChange
from jp.conversation.usage import RequestUsage, TurnUsage, prompt_tokens, usage_by_turn
from jp.provider.models import CacheFacts, cache_facts
from jp.provider.registry import kind_of
from jp.tool.toolbox import RECALL
from jp.turn.cache_misses import CacheReport, cache_report
from jp.turn.spending import DetailsOf, Spending, add_spending, by_cycle, of_inquiries, of_summaries, total_of

if TYPE_CHECKING:
    from jp.workspace.metadata import Parent


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
        """Whom it asked, each once."""
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
        """Which share of the prompts' tokens was read from the cache; None where there were none."""
        prompt = prompt_tokens(self.total.usage)
        return self.total.usage.cache_read / prompt if prompt else None


def report_of(entries: Sequence[AnyEntry], config: AppConfig, *, parent: Parent | None = None) -> Report:
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
    from jp.workspace.stamp import seconds_of

    known: dict[tuple[str, str], CacheFacts] = {}

    def facts_of(provider: str, name: str) -> CacheFacts:
        key = (provider, name)
        if key not in known:
            known[key] = cache_facts(kind_of(config.providers.llm, provider), name)
        return known[key]

    requests = (request for turn in turns for request in turn.requests)
    return cache_report(requests, facts_of=facts_of, seconds_of=seconds_of)
