"""The log: appending; opening, projecting and rendering a long conversation; commands and tool cycles in it."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from fixtures import JP, MODEL, make_long_conversation, new_workspace, tool_query
from jp.compaction.fact_lines import StatusLineFormatter
from jp.conversation.entries import ChatResponse
from jp.provider.anthropic.vendor import AnthropicAdapter
from jp.turn.request import RequestSettings, build_thread, digests_of
from jp.workspace.listing import ConversationInfo, Metadata
from jp.workspace.workspace import Workspace
from results import Report
from samples import Program, Sample, launcher
from server import TimingServer, tool_calls

SHORT, LONG = 10, 100_000
APPENDS = 300
ENTRIES = 20_000
REPEATS = 5
CYCLES = 20


def _fill(info: ConversationInfo, count: int) -> None:
    line = b'{"type":"chat_response","id":"%026d","at":"2026-01-01T00:00:00Z","message":"' + b"x" * 200 + b'"}\n'
    with (info.directory / "events.jsonl").open("ab") as file:
        file.writelines(line % number for number in range(count))


def _append_seconds(count: int, scratch: Path) -> float:
    workspace = new_workspace(scratch / str(count))
    info = workspace.create({}, Metadata())
    _fill(info, count)
    lock = workspace.lock(info)
    lock.acquire(patience=0, waiting=lambda _: None)
    taken: list[float] = []
    with lock, workspace.open(info, lock) as log:
        for number in range(APPENDS):
            entry = ChatResponse(message=f"{number} " + "y" * 2000)
            start = time.perf_counter()
            log.append(entry)
            taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def _open_project_render(workspace: Workspace, info: ConversationInfo) -> dict[str, float]:
    marks = [time.perf_counter()]
    stream = workspace.read(info)
    marks.append(time.perf_counter())
    settings = RequestSettings(provider="anthropic", model="claude-haiku-4-5", renderer=1, system=("Be brief.",))
    thread = build_thread(stream.entries, settings, loader=stream, status_formatter=StatusLineFormatter())
    marks.append(time.perf_counter())
    adapter = AnthropicAdapter(())
    request = adapter.render(thread)
    marks.append(time.perf_counter())
    digests_of(request.sections, ())
    marks.append(time.perf_counter())
    names = ("read", "project and load", "render", "digest")
    return {name: after - before for name, before, after in zip(names, marks, marks[1:], strict=False)}


def rows(report: Report) -> Iterator[str]:
    """Time appending, and what jp's own functions and its commands take for a long conversation."""
    with tempfile.TemporaryDirectory() as scratch:
        report("appending")
        appended = {count: _append_seconds(count, Path(scratch)) * 1e6 for count in (SHORT, LONG)}
        cells = [(f"{count:,} entries before", f"{taken:.0f}") for count, taken in appended.items()]
        yield from report.table("append", ("append an entry", "μs"), cells)
        yield ""
        report(f"a conversation of {ENTRIES:,} entries")
        home = Path(scratch) / "long"
        workspace = new_workspace(home)
        info = make_long_conversation(workspace, ENTRIES)
        blobs = sum(path.stat().st_size for path in (home / "work" / ".jp" / "blobs").rglob("*") if path.is_file())
        runs = [_open_project_render(workspace, info) for _ in range(REPEATS)]
        parts = {name: statistics.median(run[name] for run in runs) * 1000 for name in runs[0]}
        parts["these together"] = sum(parts.values())
        title = f"{ENTRIES:,} entries, {blobs / 1e6:.0f} MB of content"
        cells = [(name, f"{taken:.0f}") for name, taken in (parts | _commands(home, report)).items()]
        yield from report.table("long", (title, "ms"), cells)
    report.figures |= {
        "append us": appended[LONG],
        "entries": ENTRIES,
        "megabytes": blobs / 1e6,
        "together seconds": parts["these together"] / 1000,
    }


def _commands(home: Path, report: Report) -> dict[str, float]:
    """Return the milliseconds of commands on the conversation; it grows by the turns of the last ones."""
    dry_run = ("query", "--dry-run", "--id", "last", "--model", MODEL, "hello")
    context = ("conversation", "context", "last")
    with launcher() as launched, closing(TimingServer()) as server:

        def taken(name: str, *words: str) -> Sample:
            report(f"{ENTRIES:,} entries: {name}")
            return launched.run(Program(name, (JP, *words), home), server)

        found = {
            name: statistics.median(taken(name, *words).wall for _ in range(REPEATS)) * 1000
            for name, words in (("`query --dry-run`", dry_run), ("`conversation context`", context))
        }
        samples: list[Sample] = []
        for cycles in (0, CYCLES):
            server.script([tool_calls(number, 1) for number in range(cycles)])
            samples.append(taken(f"{cycles} cycles", *tool_query(server.url, "--id", "last", "go")))
        waits = [
            arrival - end for end, arrival in zip(server.ends[-CYCLES - 1 :], server.arrivals[-CYCLES:], strict=False)
        ]
    found["CPU between two requests of a turn"] = (samples[1].cpu - samples[0].cpu) / CYCLES * 1000
    found["from an answer to the next request of a turn"] = statistics.median(waits) * 1000
    return found
