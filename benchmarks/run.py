"""`make bench`: every figure that we quote, in one run on one machine; `make bench ONLY="log turns"` prints a few.

A whole run keeps its figures in `results.json` and writes them into the pages that quote them.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable, Iterable

import compaction
import confinement
import delivery
import log
import markdown
import processes
import turns
from context import tables
from results import Figures, Report, keep_results, rewrite_pages

SECTIONS: dict[str, tuple[str, Callable[[Report], Iterable[str]]]] = {
    "start": ("Whole processes", processes.rows),
    "providers": ("Start to wire, by provider", processes.provider_rows),
    "servers": ("Start to wire, with tools and with an MCP server", processes.server_rows),
    "many": (f"Among {processes.MANY:,} conversations", processes.many_rows),
    "turns": ("Turns with many tool calls", turns.rows),
    "log": ("The log, and a long conversation", log.rows),
    "markdown": ("Streaming Markdown to a terminal", markdown.rows),
    "confinement": ("Confining a command", confinement.rows),
    "delivery": ("What recorded sessions send, had their tools been jp's", delivery.rows),
    "compaction": ("What compacting recorded conversations saves and costs", compaction.rows),
    "availability": ("What is left of a session that `conversation compact` made to fit", tables.availability_rows),
    "automatic": ("What a session costs under automatic compaction, with a prompt cache", tables.automatic_rows),
    "passes": ("The passes of jp.context, over json.loads", tables.speed_rows),
}


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


def _machine() -> Figures:
    processors = f"{os.cpu_count()} processors"
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": f"{processors}, {platform.system()} {platform.machine()}, Python {platform.python_version()}",
    }


def main(names: list[str]) -> None:
    """Print the tables of these sections, or of all."""
    if unknown := set(names) - SECTIONS.keys():
        raise SystemExit(f"no section: {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    found = {"run": _machine()}
    print(f"{found['run']['date']}, {found['run']['machine']}")
    for name in names or SECTIONS:
        title, rows = SECTIONS[name]
        report = Report(_progress)
        start = time.monotonic()
        table = list(rows(report))
        _progress("")
        print(f"\n{title} ({name}, {time.monotonic() - start:.0f} s)\n", *table, sep="\n", flush=True)
        found[name] = report.figures
    if not names:
        rewrite_pages(keep_results(found))


if __name__ == "__main__":
    main(sys.argv[1:])
