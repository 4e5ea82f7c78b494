"""Recorded sessions as the logs that jp would have written of them, with what their providers reasoned."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from context.sessions import Session
from jp.context.types import Message, ReasoningBlock, Transcript, texts_of
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    CycleEnd,
    Facts,
    Header,
    JsonObject,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
)
from jp.conversation.resource import TextBlock
from jp.workspace.log import Log

_HEADER = Header(id="h", format=1, created_at="2026-01-01T00:00:00Z", nonce="b3nchm4rk")


class Conversation(NamedTuple):
    """A log under the name of its session, and that session."""

    session: Session
    entries: tuple[AnyEntry, ...]


class LogWriter:
    """Writes messages as the entries of a log: whatever a person said begins a turn.

    With `facts`, results have what jp's own tools record while they run; without, what an imported log has: nothing.
    """

    def __init__(self, *, facts: bool = True) -> None:
        self.entries: list[AnyEntry] = [replace(_HEADER, id="e000000")]
        self._calls: dict[str, str] = {}
        self._facts = facts
        self._written = 1

    def add(self, messages: Transcript) -> None:
        """Append the entries of `messages`."""
        for message in messages:
            for entry in self._entries_of(message):
                stamped = self.append(entry)
                if isinstance(stamped, ToolCallRequest):
                    self._calls[stamped.call_id] = stamped.id

    def append(self, entry: AnyEntry) -> AnyEntry:
        """Append one entry with an id."""
        stamped = replace(entry, id=f"e{self._written:06}")
        self._written += 1
        self.entries.append(stamped)
        return stamped

    def _entries_of(self, message: Message) -> Iterator[AnyEntry]:
        text = "\n".join(texts_of(message))
        match message.role:
            case "user" | "system":
                if message.role == "user" and message.meta.kind == "real":
                    yield TurnStart()
                yield ChatRequest(content=text)
            case "assistant":
                yield from _answer(message, text)
                yield CycleEnd(attempt=1, finish="tools" if message.calls else "stop")
            case "tool":
                yield ToolCallResponse(
                    request=self._calls[message.call_id],
                    content=(TextBlock(text=text),),
                    is_error=self._facts and message.is_error,
                    facts=_told(message) if self._facts else None,
                )


class _FiledLog(LogWriter):
    """Writes into the log of a workspace."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def append(self, entry: AnyEntry) -> AnyEntry:
        """Append one entry, stamped by the log."""
        return self._log.append(entry)


def write_session(root: Path, user_data: Path, messages: Transcript) -> None:
    """Write `messages` as a new conversation of the workspace at `root`."""
    from jp.workspace.listing import Metadata
    from jp.workspace.workspace import find_workspace

    workspace = find_workspace(root, user_data=user_data)
    info = workspace.create({}, Metadata(title="benchmark"), local=False)
    lock = workspace.lock(info)
    lock.acquire(patience=0, waiting=print)
    with lock, workspace.open(info, lock) as log:
        _FiledLog(log).add(messages)


def conversation_of(session: Session) -> Conversation:
    """The log of a session, as jp's own tools would have left it."""
    writer = LogWriter()
    writer.add(session.messages)
    return Conversation(session, tuple(writer.entries))


def _told(message: Message) -> Facts | None:
    """Return the facts that a tool records; the planner extracts evidence by the same rules as a delivery."""
    told = message.meta.facts
    return None if told is None else Facts(kind=told.kind, path=told.path or None, exit_code=told.exit_code)


def _answer(message: Message, text: str) -> Iterator[AnyEntry]:
    for block in () if isinstance(message.content, str) else message.content:
        if isinstance(block, ReasoningBlock) and block.text:
            yield ChatResponse(reasoning=block.text)
    if text:
        yield ChatResponse(message=text)
    for call in message.calls:
        yield ToolCallRequest(call_id=call.id, name=call.name, arguments=_arguments(call.arguments))


def _arguments(text: str) -> JsonObject | str:
    try:
        return msgspec.json.decode(text, type=JsonObject)
    except msgspec.DecodeError:
        return text
