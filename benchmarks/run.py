"""`make bench`: every figure that we quote, in one run on one machine. Ratios hold, absolute times do not."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable

import compaction
import confinement
import delivery
import entered
import log
import markdown
import processes
from context import tables


def _report(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


def main() -> None:
    """Print all tables."""
    print(f"Python {platform.python_version()}, {platform.system()} {platform.machine()}")
    measured = (
        ("Processes", processes.rows),
        ("Start to wire, by provider", processes.provider_rows),
        ("Start to wire, with an MCP server", processes.server_rows),
        ("What confining a command costs", confinement.rows),
        ("The log", log.rows),
        ("Streaming Markdown", _markdown),
        ("What recorded sessions send, had their tools been jp's", delivery.rows),
        ("What compacting recorded conversations saves and costs", compaction.rows),
        ("What is left of a session that `jp conversation compact` made to fit", tables.availability_rows),
        ("What a session costs under automatic compaction, with a prompt cache", tables.automatic_rows),
        ("The passes of jp.context, over json.loads", tables.speed_rows),
        ("What of jp.context commands enter", entered.rows),
    )
    for title, rows in measured:
        table = list(rows(_report))
        _report("")
        print(f"\n{title}\n")
        print("\n".join(table))


def _markdown(report: Callable[[str], None]) -> list[str]:
    report("streaming Markdown")
    head = f"{'tokens':>8}{'raw s':>8}{'jp s':>8}{'ratio':>8}{'a token, over the first':>26}"
    lines = [
        f"{row.tokens:>8,}{row.raw:>8.3f}{row.ours:>8.3f}{row.ratio:>8.2f}{row.linearity:>26.2f}"
        for row in markdown.rows()
    ]
    return [head, *lines]


if __name__ == "__main__":
    main()
