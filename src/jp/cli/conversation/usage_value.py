"""A report of usage as `--format json` has it. Pure."""

from __future__ import annotations

from typing import Any

from msgspec import to_builtins
from msgspec.structs import asdict

from jp.cli.conversation.usage_report import Report, TurnRow
from jp.cli.conversation.usage_text import changed_text
from jp.compaction.savings import Saved
from jp.context.estimate import estimate_tokens_of_bytes
from jp.conversation.entries import Usage
from jp.turn.cache_misses import Miss
from jp.turn.spending import Spending

Value = dict[str, Any]


def report_value(report: Report) -> Value:
    """The fields of the report."""
    return {
        "turns": [_turn(turn) for turn in report.turns],
        "models": [{"model": model or None, **spending_value(spent)} for model, spent in report.models.items()],
        "total": spending_value(report.total),
        "undone": spending_value(report.undone),
        "copied": spending_value(report.copied),
        "inquiries": {name: value for name, value in spending_value(report.inquiries).items() if name != "cycles"},
        "summaries": {name: value for name, value in spending_value(report.summaries).items() if name != "cycles"},
        "parent": report.parent,
        "cache": {
            "hit_rate": report.hit_rate,
            "misses": [_miss(miss) for miss in report.cache.misses],
            "lapsed": report.cache.lapsed,
        },
        "reasoning": {
            "withheld": report.withheld,
            "changed_by_provider": [
                {"turn": one.turn, "cycle": one.cycle, **to_builtins(one.change)} for one in report.input_changes
            ],
        },
        "saved": {
            "requests": report.savings.requests,
            "sent": _saved(report.savings.sent),
            "each": _saved(report.savings.each),
        },
    }


def spending_value(spending: Spending) -> Value:
    """Tokens and money. `cost_usd` is null where a part is not known, and `cost_usd_at_least` what is."""
    is_told = not spending.cycles or spending.untold < spending.cycles or spending.usage != Usage()
    return {
        "cycles": spending.cycles,
        "usage": asdict(spending.usage) if is_told else None,
        "cost_usd": spending.known_usd,
        "cost_usd_at_least": spending.usd,
        "cycles_of_unknown_usage": spending.untold,
        "cycles_of_unknown_cost": spending.unpriced,
    }


def _saved(saved: Saved) -> Value:
    """Bytes of text, and about how many tokens they are."""
    sizes = {**asdict(saved), "total": saved.total}
    return {name: {"bytes": size, "tokens": estimate_tokens_of_bytes(size)} for name, size in sizes.items()}


def _turn(turn: TurnRow) -> Value:
    return {
        "turn": turn.number,
        "undone": turn.is_undone,
        "copied": turn.is_copied,
        "models": list(turn.models),
        **spending_value(turn.spending),
        "by_cycle": [
            {
                "cycle": cycle.number,
                "attempts": cycle.attempts,
                "model": cycle.model or None,
                **{name: value for name, value in spending_value(cycle.spending).items() if name != "cycles"},
            }
            for cycle in turn.cycles
        ],
    }


def _miss(miss: Miss) -> Value:
    return {**to_builtins(miss), "text": changed_text(miss.change, miss.seconds)}
