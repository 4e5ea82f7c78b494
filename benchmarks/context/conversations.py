"""Recorded sessions as the logs that jp would have written of them, with what their providers reasoned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from context.sessions import Session
from jp.context.types import Message, ReasoningBlock, texts_of
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

_HEADER = Header(id="h", format=1, created_at="2026-01-01T00:00:00Z", nonce="b3nchm4rk")


class Conversation(NamedTuple):
    """A log under the name of its session, and that session."""

    session: Session
    entries: tuple[AnyEntry, ...]


def conversation_of(session: Session) -> Conversation:
    """The log of a session: whatever a person said begins a turn."""
    calls: dict[str, str] = {}
    entries: list[AnyEntry] = [_HEADER]
    for message in session.messages:
        for entry in _entries_of(message, calls):
            stamped = replace(entry, id=f"e{len(entries):06}")
            if isinstance(stamped, ToolCallRequest):
                calls[stamped.call_id] = stamped.id
            entries.append(stamped)
    return Conversation(session, tuple(entries))


def _entries_of(message: Message, calls: dict[str, str]) -> Iterator[AnyEntry]:
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
            told = message.meta.facts
            facts = None if told is None else Facts(kind=told.kind, path=told.path or None, exit_code=told.exit_code)
            content = (TextBlock(text=text),)
            yield ToolCallResponse(
                request=calls[message.call_id], content=content, is_error=message.is_error, facts=facts
            )


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
