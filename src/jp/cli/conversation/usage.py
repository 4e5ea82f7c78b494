"""`jp conversation usage`: its report as text and as a value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, assert_never

import typer
from msgspec import to_builtins
from msgspec.structs import asdict, replace

from jp.app.reports import TurnRow, UsageReport
from jp.app.targets import TARGET_HELP
from jp.app.values import cost_sentence, cost_text
from jp.cli.options import GlobalOptions
from jp.compaction.large_items import Saved, Savings
from jp.context.estimate import estimate_tokens_of_bytes
from jp.conversation.entries import Usage
from jp.conversation.turns import prompt_tokens
from jp.render.sanitize import one_line
from jp.render.tables import Part, Table, count_text, money_text, short_count, size_text
from jp.turn.usage import Change, Miss, Spending

_TOKENS = ("input", "read", "written", "output", "reasoning")
_LISTED = 20
"""Number of cache misses that are listed."""
_MINUTE = 60
_LABEL = 9

Row = tuple[str, ...]
Count = Callable[[int], str]


def report_parts(report: UsageReport, *, by_cycle: bool) -> Sequence[Part]:
    """Return a row for each turn or cycle, one for each model if there are several, the sums, and the cache misses."""

    def rows(count: Count) -> list[Row]:
        found = (_cycle_rows if by_cycle else _turn_rows)(report.turns, count)
        return [(*row, model) for row, model in found]

    def models(count: Count) -> list[Row]:
        items = report.models.items()
        return [(str(spent.cycles), *_cells(spent, count), model or "-") for model, spent in items]

    tokens = (*_TOKENS, "cost", "model")
    tables = [_table(("cycle", "attempts", *tokens) if by_cycle else ("turn", "cycles", *tokens), rows, left=1)]
    if len(report.models) > 1:
        tables.append(_table(("cycles", *tokens), models, left=0))
    sums = "\n".join(f"{label:<{_LABEL}}  {text}" for label, text in _sums(report))
    blocks = [*tables, sums, *_misses(report), *_input_changes(report)]
    return [part for block in blocks for part in (block, "")][:-1]


def _table(head: Row, rows: Callable[[Count], Sequence[Row]], *, left: int) -> Table:
    """Return a table whose first `left` columns and whose last one are aligned to the left."""
    right = frozenset(range(left, len(head) - 1))
    exact = Table(head=head, rows=rows(_exact), right=right, keys=frozenset(range(left)))
    return replace(exact, narrow=replace(exact, rows=rows(short_count)))


def _exact(count: int) -> str:
    return f"{count:,}"


def _turn_rows(turns: Sequence[TurnRow], count: Count) -> Iterator[tuple[Row, str]]:
    for turn in turns:
        cells = (_turn_name(turn), str(len(turn.cycles)), *_cells(turn.spending, count))
        yield cells, ", ".join(turn.models) or "-"


def _cycle_rows(turns: Sequence[TurnRow], count: Count) -> Iterator[tuple[Row, str]]:
    for turn in turns:
        number, _, marks = _turn_name(turn).partition(" ")
        for cycle in turn.cycles:
            name = f"{number}.{cycle.number} {marks}"
            yield (name, str(cycle.attempts), *_cells(cycle.spending, count)), cycle.model or "-"


def _turn_name(turn: TurnRow) -> str:
    marks = [word for word, is_so in (("undone", turn.is_undone), ("copied", turn.is_copied)) if is_so]
    return " ".join([str(turn.number), ", ".join(marks)]) if marks else str(turn.number)


def _cells(spending: Spending, count: Count) -> Row:
    """Return the tokens and cost; a `+` means that a part is unknown."""
    if not spending.cycles:
        return ("-",) * (len(_TOKENS) + 1)
    usage = spending.usage
    amounts = (usage.input, usage.cache_read, usage.cache_write, usage.output, usage.reasoning)
    more = "+" if spending.untold else ""
    is_told = spending.untold < spending.cycles or any(amounts)
    tokens = (f"{count(amount)}{more}" if is_told else "-" for amount in amounts)
    partly = spending.unpriced and spending.usd
    return (*tokens, f"{money_text(spending.usd)}+" if partly else cost_text(spending))


def _sums(report: UsageReport) -> Iterator[tuple[str, str]]:
    total = report.total
    counted = f"{count_text(len(report.turns), 'turn')}, {count_text(total.cycles, 'cycle')}"
    if total.cycles and total.untold == total.cycles:
        yield "total", f"{counted}: the log does not say what they took"
    else:
        yield "total", f"{counted}: {prompt_tokens(total.usage):,} tokens in, {total.usage.output:,} out"
        if total.untold:
            yield "", f"the tokens of {total.untold:,} of the cycles are not recorded"
    yield "cost", cost_sentence(total).removeprefix("cost ")
    if report.hit_rate is not None:
        yield "cache", f"{report.hit_rate:.0%} of the tokens that went in were read from it"
    asked = report.inquiries.usage
    if asked != Usage():
        yield "questions", f"{prompt_tokens(asked):,} tokens in, {asked.output:,} out for answers to what tools asked"
    told = report.summaries.usage
    if told != Usage():
        yield "summaries", f"{prompt_tokens(told):,} tokens in, {told.output:,} out for summaries of old turns"
    yield from _saved(report.savings)
    yield from _withheld(report.withheld)
    if any(turn.is_undone for turn in report.turns):
        yield "undone", f"{cost_text(report.undone)} of it in turns that were undone"
    if report.parent is not None:
        yield "copied", f"{cost_text(report.copied)} of it in turns that were copied from {report.parent}"


def _saved(savings: Savings) -> Iterator[tuple[str, str]]:
    """Yield what was not sent, by cause, and what was recalled of it."""
    sent = savings.sent
    ways = {"bounds": sent.bounds, "references": sent.references, "diffs": sent.diffs}
    told = [f"{size_text(size)} by {way}" for way, size in ways.items() if size]
    if told:
        size = sum(ways.values())
        requests = count_text(savings.requests, "request")
        amount = f"{size_text(size)}, about {estimate_tokens_of_bytes(size):,} tokens,"
        yield "saved", f"{amount} not sent in {requests}: {', '.join(told)}"
    if sent.recalled:
        yield "recalled", f"{size_text(sent.recalled)}, about {estimate_tokens_of_bytes(sent.recalled):,} tokens"


def _withheld(pieces: int) -> Iterator[tuple[str, str]]:
    if pieces:
        told = count_text(pieces, "piece")
        yield "reasoning", f"{told} not sent with the newest request: what came before has changed"


def _misses(report: UsageReport) -> Iterator[str]:
    misses, lapsed = report.cache.misses, report.cache.lapsed
    if misses:
        lines = [f"  turn {miss.turn}, cycle {miss.cycle}: {_miss(miss)}" for miss in misses[:_LISTED]]
        if len(misses) > _LISTED:
            lines.append(f"  and {len(misses) - _LISTED:,} more: `--format json` lists them all")
        yield "\n".join(["expected from the cache, and not read from it:", *lines])
    if lapsed:
        yield (
            f"{count_text(lapsed, 'request')} came later than the cache is kept: "
            "`assistant.request.cache=long` asks for an hour"
        )


def _input_changes(report: UsageReport) -> Iterator[str]:
    found = report.input_changes
    if found:
        lines = [
            f"  turn {one.turn}, cycle {one.cycle}: {one_line(f'{one.change.type} {one.change.path}')}"
            f" ({one_line(one.change.reason)})"
            for one in found[:_LISTED]
        ]
        if len(found) > _LISTED:
            lines.append(f"  and {len(found) - _LISTED:,} more: `--format json` lists them all")
        yield "\n".join(["changed by the provider before the model saw the request:", *lines])


def _miss(miss: Miss) -> str:
    return f"{changed_text(miss.change, miss.seconds)} ({miss.read:,} of about {miss.expected:,} tokens read)"


def changed_text(change: Change, seconds: float | None) -> str:
    """Return the change in words; if nothing changed, `seconds` is the time between the two requests."""
    match change.section:
        case "tools":
            return "the tool definitions changed"
        case "system":
            return "the system prompt changed"
        case "message":
            owner = "" if change.turn is None else f", turn {change.turn},"
            return f"message {change.message}{owner} changed"
        case "parameters":
            return f"same prefix, other parameters: {', '.join(change.parameters)}"
        case "nothing":
            return f"same prefix; the provider's cache had expired or missed{_after(seconds)}"
        case "untold":
            return "the log does not say what was sent"
        case _:
            assert_never(change.section)


def _after(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f" after {seconds / _MINUTE:.0f} min" if seconds >= _MINUTE else " after less than a minute"


Value = dict[str, Any]


def report_value(report: UsageReport) -> Value:
    """Return the fields of the report."""
    return {
        "id": report.id,
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
            "misses": [_miss_value(miss) for miss in report.cache.misses],
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
            "sent": _saved_value(report.savings.sent),
            "each": _saved_value(report.savings.each),
        },
    }


def spending_value(spending: Spending) -> Value:
    """Return tokens and money. `cost_usd` is null if a part is unknown, and `cost_usd_at_least` the known part."""
    is_told = not spending.cycles or spending.untold < spending.cycles or spending.usage != Usage()
    return {
        "cycles": spending.cycles,
        "usage": asdict(spending.usage) if is_told else None,
        "cost_usd": spending.known_usd,
        "cost_usd_at_least": spending.usd,
        "cycles_of_unknown_usage": spending.untold,
        "cycles_of_unknown_cost": spending.unpriced,
    }


def _saved_value(saved: Saved) -> Value:
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


def _miss_value(miss: Miss) -> Value:
    return {**to_builtins(miss), "text": changed_text(miss.change, miss.seconds)}


def usage(
    options: GlobalOptions,
    *,
    target: Annotated[str, typer.Argument(help=TARGET_HELP)] = ".",
    cycles: Annotated[bool, typer.Option("--cycles", help="Show a row for each cycle instead of each turn")] = False,
) -> None:
    """Show the tokens and the cost of a conversation, and its cache misses.

    Each turn has a row: input tokens (new, read from the cache, written to the cache), output tokens, and the cost at
    today's prices. Failed attempts and undone turns count. An unknown value is shown as unknown, and a sum without it
    as "at least". Requests for titles are not in the log, so they do not count.

    "saved" is the text that truncated results, references and diffs kept out of requests, counted for each request
    that would have sent it again; a token is taken as four bytes. "recalled" is what the model asked for again.

    "reasoning" counts the pieces of earlier reasoning that the newest request could not contain, because the provider
    accepts them only after an unchanged prefix. Content that the provider itself dropped is listed at the end.

    Each unexpected cache miss is listed with the first change that explains it.

    Examples:
        jp conversation usage
        jp conversation usage last --cycles
        jp conversation usage --format json | jq .total.cost_usd
    """
    from jp.app.reports import usage_report
    from jp.cli.output import print_result

    report = usage_report(options, target)
    print_result(
        options,
        text=report_parts(report, by_cycle=cycles) if report.turns else "",
        value=report_value(report),
        nothing="there is no turn in this conversation yet",
    )
