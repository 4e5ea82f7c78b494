"""`jp conversation usage`."""

from __future__ import annotations

from typing import Annotated

import typer

from jp.cli.options import GlobalOptions
from jp.cli.targets import TARGET_HELP


def usage(
    options: GlobalOptions,
    *,
    target: Annotated[str, typer.Argument(help=TARGET_HELP)] = ".",
    cycles: Annotated[bool, typer.Option("--cycles", help="A row for each cycle instead of each turn.")] = False,
) -> None:
    """Show what a conversation took in tokens and money, and where the provider's cache was missed.

    By turn: tokens that went in (new ones, those read from the cache, those written to it) and came out, and what they
    cost at the prices of today. Attempts that failed and turns that were undone count, too. What is not known is
    called unknown, and sums without it say "at least". Titles are not in the log, so they do not count.

    What results that were cut, references to what was sent before and diffs kept out of requests is said as "saved":
    the bytes that stand in the log and did not go out, for each request that would have sent them again; a token is
    taken for four of them. "recalled" is what the model asked for again.

    "reasoning" says how many pieces of earlier reasoning the newest request was without, because the provider takes
    them only behind what the model saw then. What the provider itself dropped of a request is listed at the end.

    Where a prompt was expected to be read from the cache and was not, the first thing that had changed is named.

    Examples:
        jp conversation usage
        jp conversation usage last --cycles
        jp conversation usage --format json | jq .total.cost_usd
    """
    from jp.cli.conversation.usage_report import report_of
    from jp.cli.conversation.usage_text import report_text
    from jp.cli.conversation.usage_value import report_value
    from jp.cli.held import read_conversation
    from jp.cli.looks import width_of_stdout
    from jp.cli.output import print_result

    read = read_conversation(options, target, lenient=True)
    if read.info is None:
        return
    report = report_of(read.entries, read.resolved.config, parent=read.info.metadata.parent)
    print_result(
        options,
        text=report_text(report, width=width_of_stdout(options), by_cycle=cycles) if report.turns else "",
        value={"id": read.info.id, **report_value(report)},
        nothing="there is no turn in this conversation yet",
    )
