"""The shared conversations as logs: what the original JP stored, and the transcripts of other agents."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from jp.context.types import Message, ReasoningBlock, Transcript, texts_of
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    CycleEnd,
    Header,
    JsonObject,
    RequestContext,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
)
from jp.conversation.ids import ConversationId
from jp.conversation.original import convert
from jp.conversation.resource import Payload, TextBlock
from originals import Fixed
from recorded import recorded_transcripts

MODEL = "claude-sonnet-4-5"
MADE_BY: JsonObject = {"provider": "anthropic", "model": MODEL}


class Conversation(NamedTuple):
    """A log and the name of what it was made of."""

    name: str
    entries: tuple[AnyEntry, ...]


def shared_conversations() -> list[Conversation]:
    """All of them, each once; skips the test where there are none."""
    transcripts = recorded_transcripts()
    found = [
        Conversation(name, conversation_of(transcript))
        for name, transcript in transcripts
        if not name.endswith("/transcript.jsonl")
    ]
    for file in sorted(Path(os.environ["JP_TEST_DATA"]).glob("jp_conversations/*/events.json")):
        identity = ConversationId.parse(f"jp-c{file.parent.name.partition('-')[0]}")
        found.append(Conversation(file.parent.name, tuple(convert(file.read_bytes(), identity, Fixed()))))
    return found


def sampled_conversations(most: int) -> list[Conversation]:
    """At most `most` of them, from the smallest to the largest; all where properties are tried on many examples."""
    found = sorted(shared_conversations(), key=lambda one: (len(one.entries), one.name))
    if os.environ.get("JP_TEST_EXAMPLES"):
        return found
    return found[:: -(-len(found) // most)]


def conversation_of(messages: Transcript) -> tuple[AnyEntry, ...]:
    """The log that such a transcript would have left, with what a provider signs."""
    header = Header(id="h", format=1, created_at="2026-01-01T00:00:00Z", nonce="n0nce")
    system = tuple(Payload(text=_text(message)) for message in messages if message.role == "system")
    context = RequestContext(id="x", provider="anthropic", model=MODEL, renderer=1, system=system)
    calls: dict[str, str] = {}
    entries: list[AnyEntry] = [header]
    for message in messages:
        for entry in _entries(message, calls):
            stamped = replace(entry, id=f"e{len(entries):06}")
            if isinstance(stamped, ToolCallRequest):
                calls[stamped.call_id] = stamped.id
            entries.append(stamped)
    return (*entries[:2], context, *entries[2:])


def _entries(message: Message, calls: dict[str, str]) -> Iterator[AnyEntry]:
    match message.role:
        case "user":
            yield TurnStart()
            yield ChatRequest(content=_text(message))
        case "assistant":
            yield from _answers(message)
            yield CycleEnd(attempt=1, finish="tools" if message.calls else "stop")
        case "tool" if message.call_id in calls:
            content = (TextBlock(text=_text(message)),)
            yield ToolCallResponse(request=calls[message.call_id], content=content, is_error=message.is_error)
        case _:
            pass


def _answers(message: Message) -> Iterator[AnyEntry]:
    blocks = () if isinstance(message.content, str) else message.content
    for number, block in enumerate(blocks):
        if isinstance(block, ReasoningBlock) and block.text:
            yield ChatResponse(reasoning=block.text, metadata={**MADE_BY, "signature": f"signed-{number}"})
    if text := _text(message):
        yield ChatResponse(message=text)
    for call in message.calls:
        yield ToolCallRequest(call_id=call.id, name=call.name, arguments=_arguments(call.arguments))


def _text(message: Message) -> str:
    return "\n".join(texts_of(message))


def _arguments(text: str) -> JsonObject | str:
    try:
        return msgspec.json.decode(text, type=JsonObject)
    except msgspec.DecodeError:
        return text
