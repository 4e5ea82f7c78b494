"""Directories, conversations and commands for benchmarks: jp's own command in an environment of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

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
from jp.workspace.listing import ConversationInfo, Metadata
from jp.workspace.workspace import Workspace, create_workspace, find_workspace
from server import LINES

JP = str(Path(sys.executable).with_name("jp"))
MODEL = "anthropic/claude-haiku-4-5"
ENTRIES_OF_A_TURN = 8
BLOB_BYTES = 25_000
RECENT_TURNS = 40
"""The turns at the end of a long conversation that are not compacted away."""


def environment(home: Path, **more: str) -> dict[str, str]:
    """Return the environment of a command whose data and configuration are below `home`."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "JP_USER_DATA_DIR": str(home / "data"),
        "JP_GLOBAL_CONFIG_DIR": str(home / "config"),
        "JP_SESSION": "bench",
        **{f"{name}_API_KEY": "k" for name in ("ANTHROPIC", "OPENAI", "GEMINI", "OPENROUTER", "CEREBRAS")},
        "LC_ALL": "C.UTF-8",
        **more,
    }


def query(url: str, *words: str, model: str = MODEL, path: str = "") -> tuple[str, ...]:
    """Return the words of a query to a server on this machine; `path` follows its address."""
    account = f"providers.llm.{model.partition('/')[0]}.base_url={url}{path}"
    return ("query", "--cfg", account, "--model", model, *words)


def tool_query(url: str, *words: str) -> tuple[str, ...]:
    """Return the words of a query whose model may call `fs_read_file` as often as it wants."""
    free = ("--tool=fs_read_file", "--approve-all", "--cfg", "assistant.request.max_cycles=10000")
    return query(url, *free, *words)


def new_workspace(home: Path) -> Workspace:
    """Return the workspace in `home/work`, made with the file that tool calls read if it is not there."""
    root = home / "work"
    if not root.exists():
        root.mkdir(parents=True)
        create_workspace(root, commit_conversations=False)
        (root / "lines.txt").write_text("".join(f"line {number}\n" for number in range(LINES)), encoding="utf-8")
    return find_workspace(root, user_data=home / "data")


def make_conversations(workspace: Workspace, count: int) -> None:
    """Make that many conversations with a title and nothing else: one, and copies that are older."""
    if not count:
        return
    first = workspace.create({}, Metadata(title="conversation 0")).directory
    identity = int(first.name.partition("-")[0])
    for number in range(1, count):
        copy = first.with_name(f"{identity - number}-conversation-{number}")
        copy.mkdir()
        for file in first.iterdir():
            content = file.read_bytes().replace(b"conversation 0", b"conversation %d" % number)
            (copy / file.name).write_bytes(content)


def make_long_conversation(workspace: Workspace, entries: int, *, blob_bytes: int = BLOB_BYTES) -> ConversationInfo:
    """Create a conversation of that many entries; all turns but the recent ones are compacted."""
    info = workspace.create({}, Metadata())
    lock = workspace.lock(info)
    lock.acquire(patience=0, waiting=lambda _: None)
    turns = entries // ENTRIES_OF_A_TURN
    with lock, workspace.open(info, lock) as log:
        for number in range(turns):
            for entry in _turn(number, blob_bytes):
                log.append(entry)
        if turns > RECENT_TURNS:
            stripped = ToolCallPolicy(policy="strip", response=True)
            last = turns - RECENT_TURNS
            log.append(Compaction(from_turn=0, to_turn=last, tool_calls=stripped, reasoning="strip"))
    return info


def _turn(number: int, blob_bytes: int) -> list[AnyEntry]:
    path = f"file:///project/src/module{number % 40}.py"
    text = f"# {number}\n" + f"value_{number} = {number}\n" * (blob_bytes // 22)
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
