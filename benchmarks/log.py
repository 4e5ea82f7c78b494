"""The log: appending to a short and a long conversation; opening, projecting and rendering a long one."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from jp.compaction.fact_lines import StatusLineFormatter
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    Compaction,
    CycleEnd,
    ToolCallPolicy,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
)
from jp.conversation.resource import Resource, ResourceBlock
from jp.provider.anthropic.vendor import AnthropicAdapter
from jp.turn.request import RequestSettings, build_thread, digests_of
from jp.workspace.listing import ConversationInfo, Metadata
from jp.workspace.workspace import Workspace, create_workspace, find_workspace

SHORT, LONG = 10, 100_000
APPENDS = 300
ENTRIES = 20_000
TURN = 8
BLOB_BYTES = 25_000


def _conversation(root: Path) -> tuple[Workspace, ConversationInfo]:
    create_workspace(root, commit_conversations=False)
    workspace = find_workspace(root, user_data=root / "data")
    return workspace, workspace.create({}, Metadata())


def _fill(workspace: Workspace, info: ConversationInfo, count: int) -> None:
    line = b'{"type":"chat_response","id":"%026d","at":"2026-01-01T00:00:00Z","message":"' + b"x" * 200 + b'"}\n'
    with (info.directory / "events.jsonl").open("ab") as file:
        file.writelines(line % number for number in range(count))


def _append_seconds(count: int, scratch: Path) -> float:
    root = scratch / str(count)
    root.mkdir()
    workspace, info = _conversation(root)
    _fill(workspace, info, count)
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


def _turn(number: int) -> list[AnyEntry]:
    path = f"file:///project/src/module{number % 40}.py"
    text = f"# {number}\n" + f"value_{number} = {number}\n" * (BLOB_BYTES // 22)
    calls = [
        ToolCallRequest(id=f"c{number}-{n}", call_id=f"call{n}", name="fs_read_file", arguments={"path": path})
        for n in (0, 1)
    ]
    big = Resource(uri=path, mime_type="text/x-python", text=text)
    small = Resource(uri=f"{path}#L1-2", mime_type="text/x-python", text=f"value_{number} = {number}\n")
    return [
        TurnStart(),
        ChatRequest(content=f"question {number} " + "word " * 40),
        *calls,
        CycleEnd(attempt=1, finish="tools"),
        *(
            ToolCallResponse(request=call.id, content=(ResourceBlock(resource=resource),))
            for call, resource in zip(calls, (big, small), strict=True)
        ),
        ChatResponse(message="answer " * 60),
    ]


def _long_conversation(root: Path) -> tuple[Workspace, ConversationInfo, int]:
    workspace, info = _conversation(root)
    lock = workspace.lock(info)
    lock.acquire(patience=0, waiting=lambda _: None)
    turns = ENTRIES // TURN
    with lock, workspace.open(info, lock) as log:
        for number in range(turns):
            for entry in _turn(number):
                log.append(entry)
        stripped = ToolCallPolicy(policy="strip", response=True)
        log.append(Compaction(from_turn=0, to_turn=turns - 40, tool_calls=stripped, reasoning="strip"))
    blobs = sum(path.stat().st_size for path in (root / ".jp" / "blobs").rglob("*") if path.is_file())
    return workspace, info, blobs


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


def rows(report: Callable[[str], None]) -> list[str]:
    """Time it; the lines of two tables."""
    with tempfile.TemporaryDirectory() as scratch:
        report("log, appending")
        appended = {count: _append_seconds(count, Path(scratch)) for count in (SHORT, LONG)}
        report("log, a conversation of 20,000 entries")
        root = Path(scratch) / "long"
        root.mkdir()
        workspace, info, blobs = _long_conversation(root)
        runs = [_open_project_render(workspace, info) for _ in range(5)]
    parts = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
    return [
        *(f"append, {count:>7,} entries before {seconds * 1e6:>12.0f} us" for count, seconds in appended.items()),
        f"ratio {appended[LONG] / appended[SHORT]:.2f}",
        "",
        f"{ENTRIES:,} entries, {blobs / 1e6:.0f} MB of blobs, most of them compacted away:",
        *(f"  {name:<18}{seconds * 1000:>8.0f} ms" for name, seconds in parts.items()),
        f"  {'in all':<18}{sum(parts.values()) * 1000:>8.0f} ms",
    ]
