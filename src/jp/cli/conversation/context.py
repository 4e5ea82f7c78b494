"""`jp conversation context`: its report as text and as a value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, assert_never

import msgspec
import typer
from msgspec import to_builtins

from jp.app.compaction.preview import ProfileGain
from jp.app.reports import ContextItem, ContextReport, ToolShare
from jp.app.targets import TARGET_HELP
from jp.cli.options import GlobalOptions
from jp.context.breakdown import Bucket
from jp.context.budget import ItemKind
from jp.context.cache_hints import Volatile, VolatileKind
from jp.render.sanitize import one_line
from jp.render.tables import Colored, Part, Table, count_text, pad, truncate
from jp.render.theme import Look

BUCKET_NAMES: dict[Bucket, str] = {
    "system_prompt": "system prompt",
    "tool_definitions": "tool definitions",
    "rules": "rules",
    "skills": "skills",
    "mcp_tools": "MCP tools",
    "subagents": "subagents",
    "memory": "memory",
    "conversation": "conversation",
}
KIND_NAMES: dict[ItemKind, str] = {
    "system": "system prompt",
    "user": "your messages",
    "attachments": "attachments",
    "assistant": "answers",
    "reasoning": "reasoning",
    "arguments": "tool arguments",
    "results": "tool results",
    "images": "pictures, files",
    "summaries": "summaries",
    "digests": "stand-ins",
    "synthetic": "said for you",
}
_VOLATILE_NAMES: dict[VolatileKind, str] = {
    "timestamp": "time",
    "uuid": "UUID",
    "temporary_directory": "temporary directory",
    "counter": "counter",
}

_MOST_TOOLS = 8
_LABEL, _TOKENS, _SHARE = 20, 11, 6
_FACT = 9
_EIGHTHS = " ▏▎▍▌▋▊▉"
_FULL, _PLAIN_FULL = "█", "#"
_STATIC_STYLE, _CHANGING_STYLE, _PART_STYLE = "36", "33", "2"


class _Bar(msgspec.Struct, frozen=True, kw_only=True):
    """A row: what it is about, how far it is indented, its tokens, and in which style its bar is."""

    label: str
    indent: int
    tokens: int
    style: str


def report_parts(report: ContextReport, look: Look) -> Sequence[Part]:
    """Return the facts, a bar for each bucket and its parts, the largest items, and volatile texts of the prompt.

    Bars are as wide as `look` says.
    """
    facts = "\n".join(f"{label:<{_FACT}}  {text}" for label, text in _facts(report))
    head = f"{'':<{_LABEL}}{'tokens':>{_TOKENS}}{'share':>{_SHARE}}"
    bars = Colored(text="\n".join([head, *(_bar_line(bar, report.used, look) for bar in _bars(report))]))
    tables = [table for table in (_largest(report.largest), _gains(report.profiles)) if table.rows]
    blocks = [facts, bars, *tables, *_warnings(report.volatile)]
    return [part for block in blocks for part in (block, "")][:-1]


def _facts(report: ContextReport) -> Iterator[tuple[str, str]]:
    yield "model", report.model
    if report.window is None:
        yield "window", "not known"
    else:
        kept = f", {report.reserved:,} of them for the answer" if report.reserved else ""
        yield "window", f"{report.window:,} tokens{kept}"
    about = "" if report.source == "provider_usage" else "about "
    yield "used", f"{about}{report.used:,} tokens{_of(report.used, report.window)}"
    yield "", _source(report)
    if report.threshold is not None:
        yield "threshold", f"{report.threshold:,} tokens: {_distance(report.used, report.threshold)}"
    if report.free is not None:
        yield "free", f"{report.free:,} tokens"
    for file in report.files:
        yield "rules", f"{file.name}, about {file.tokens:,} tokens"
    withheld = report.reasoning_withheld
    if withheld.blocks:
        pieces = count_text(withheld.blocks, "piece")
        yield "reasoning", f"{pieces}, about {withheld.tokens:,} tokens, not sent: something before it has changed"
    last = report.last_cycle
    if last is not None:
        cached = f", {last.usage.cache_read:,} of them from the cache" if last.usage.cache_read else ""
        yield "reported", f"{last.reported:,} tokens went in with turn {last.turn}, cycle {last.cycle}{cached}"
        yield "", f"{last.estimated:,} were estimated: {last.ratio:.2f} reported for one estimated"


def _source(report: ContextReport) -> str:
    """Return where the number of used tokens is from."""
    match report.source:
        case "local_estimate":
            return "estimated"
        case "provider_usage":
            return "reported"
        case "provider_usage+estimate":
            reported = 0 if report.last_cycle is None else report.last_cycle.reported
            return f"{reported:,} of them reported, the rest estimated"
        case _:
            assert_never(report.source)


def _of(tokens: int, window: int | None) -> str:
    return "" if window is None else f", {_percent(tokens, window)} of the window"


def _distance(tokens: int, threshold: int) -> str:
    if tokens >= threshold:
        return f"passed by {tokens - threshold:,}"
    return f"{threshold - tokens:,} to go"


def _bars(report: ContextReport) -> Iterator[_Bar]:
    """Yield a bar for each bucket that is not empty, and for each part of the conversation."""
    for bucket in report.buckets:
        if bucket.items or bucket.kind == "conversation":
            style = _STATIC_STYLE if bucket.static else _CHANGING_STYLE
            yield _Bar(label=BUCKET_NAMES[bucket.kind], indent=0, tokens=bucket.tokens, style=style)
    for share in sorted(report.conversation, key=lambda share: -share.tokens):
        yield _Bar(label=KIND_NAMES[share.kind], indent=1, tokens=share.tokens, style=_PART_STYLE)
        if share.kind == "results":
            yield from _tool_bars(report.tools)
    if report.other:
        yield _Bar(label="not accounted for", indent=0, tokens=report.other, style=_PART_STYLE)


def _tool_bars(tools: Sequence[ToolShare]) -> Iterator[_Bar]:
    for tool in tools[:_MOST_TOOLS]:
        yield _Bar(label=one_line(tool.kind), indent=2, tokens=tool.tokens, style=_PART_STYLE)
    rest = tools[_MOST_TOOLS:]
    if rest:
        tokens = sum(tool.tokens for tool in rest)
        yield _Bar(label=f"{len(rest)} others", indent=2, tokens=tokens, style=_PART_STYLE)


def _bar_line(bar: _Bar, total: int, look: Look) -> str:
    label = pad(truncate("  " * bar.indent + bar.label, _LABEL), _LABEL)
    numbers = f"{bar.tokens:>{_TOKENS},}{_percent(bar.tokens, total):>{_SHARE}}"
    width = max(look.width - _LABEL - _TOKENS - _SHARE - 2, 0)
    drawn = _drawn(bar.tokens, total, width, look)
    if look.color and drawn:
        drawn = f"\x1b[{bar.style}m{drawn}\x1b[0m"
    return f"{label}{numbers}  {drawn}".rstrip()


def _drawn(tokens: int, total: int, width: int, look: Look) -> str:
    """Return a bar of at most `width` cells, which `total` tokens fill. A bar of any tokens is visible."""
    if not tokens or not width:
        return ""
    if not look.unicode:
        return _PLAIN_FULL * max(tokens * width // total, 1)
    eighths = max(tokens * width * 8 // total, 1)
    return (_FULL * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()


def _percent(tokens: int, total: int) -> str:
    """Return a share in percent, never 0 for any tokens."""
    if not tokens or not total:
        return "0%"
    return f"{tokens * 100 / total:.0f}%" if tokens * 200 >= total else "<1%"


def _largest(items: Sequence[ContextItem]) -> Table:
    rows = [
        (item.handle or "-", f"{item.tokens:,}", str(item.turn), KIND_NAMES[item.kind], _what(item)) for item in items
    ]
    head = ("handle", "tokens", "turn", "kind", "of")
    return Table(head=head, rows=rows, right=frozenset({1, 2}), keys=frozenset({0}))


def _gains(gains: Sequence[ProfileGain]) -> Table:
    rows = [
        (
            gain.profile,
            f"{'at least ' if gain.with_summary else ''}{gain.freed:,}" if gain.turns else "-",
            count_text(gain.turns, "turn") if gain.turns else "nothing to hide",
        )
        for gain in gains
    ]
    return Table(head=("profile", "frees", "of"), rows=rows, right=frozenset({1}), keys=frozenset({0}))


def _what(item: ContextItem) -> str:
    return ": ".join(filter(None, (item.tool, item.source))) or "-"


def _warnings(volatile: Sequence[Volatile]) -> Iterator[str]:
    if not volatile:
        return
    lines = [
        f"  part {found.part}: {count_text(found.count, _VOLATILE_NAMES[found.kind])}, such as {found.sample}"
        for found in volatile
    ]
    yield "\n".join(["where this changes in the system prompt, the provider's cache is missed:", *lines])


def context(options: GlobalOptions, *, target: Annotated[str, typer.Argument(help=TARGET_HELP)] = ".") -> None:
    """Show what fills the context of a conversation, and how many tokens are free.

    It draws a bar for each part of the next request, and lists the ten largest items with their recall handles, the
    tokens that each compaction profile frees, and the distance to the threshold. Tokens that the provider reported
    count as reported; newer and unreported ones are estimated. Nothing is sent or written.

    Examples:
        jp conversation context
        jp conversation context last --width 120
        jp conversation context --format json | jq '.largest[].handle'
    """
    from jp.app.reports import context_report
    from jp.cli.output import look_of_stdout, print_result
    from jp.config.model import StyleConfig

    report = context_report(options, target)
    look = look_of_stdout(options, StyleConfig())
    print_result(options, text=report_parts(report, look), value=to_builtins(report))
