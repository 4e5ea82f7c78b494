"""A conversation written as the original JP's files and read again says the same."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from conversations import conversation_of
from jp.config.sources import OriginalSettings
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    Compaction,
    ConfigDelta,
    CycleEnd,
    InquiryRequest,
    InquiryResponse,
    RequestContext,
    Revert,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
    Unknown,
)
from jp.conversation.ids import ConversationId
from jp.conversation.original import REMAINDER, convert
from jp.conversation.original_writer import OriginalStream, write_stream
from jp.conversation.resource import Block, TextBlock
from jp.conversation.turns import turns_of, undone
from jp.workspace.layout import conversation_id_of
from jp.workspace.store import read_base_config, read_original
from originals import BASE, ID, Event, call, encoded, event, result
from transcripts import any_transcripts

DATA = os.environ.get("JP_TEST_DATA")
SHARED = sorted(path.parent for path in Path(DATA or os.devnull).glob("jp_conversations/*/events.json"))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
IDS = st.sampled_from(["t_0", "t_1", "x.y"])
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXTS,
    lambda below: st.lists(below, max_size=2) | st.dictionaries(TEXTS, below, max_size=2),
    max_leaves=4,
)
METADATA: st.SearchStrategy[Event] = st.sampled_from([
    {},
    {"metadata": {"anthropic_thinking_signature": encoded("c2ln")}},
    {"metadata": {"google_thought_signature": encoded("c2ln"), "cache_breakpoint": True}},
    {"metadata": {"anthropic_redacted_thinking": encoded("data"), "rendered_arguments": encoded("ü", 2)}},
    {"metadata": {"somebody_elses": [encoded("a"), {"n": 1}]}},
])
AUTHORS: st.SearchStrategy[Event] = st.sampled_from([{}, {"author": "Me"}, {"schema": {"type": "object"}}])
QUESTIONS: st.SearchStrategy[Event] = st.sampled_from([
    {"text": "Really?", "answer_type": {"type": "boolean"}, "default": True},
    {
        "text": "Which?",
        "answer_type": {"type": "select", "options": [{"value": "a"}, {"value": 2, "description": "b"}]},
    },
    {"text": "Say", "answer_type": {"type": "another"}},
])
DELTAS: st.SearchStrategy[Event] = st.sampled_from([
    {"assistant": {"model": {"id": {"provider": "google", "name": "gemini-a"}}}},
    {"assistant": {"model": {"id": "anthropic/claude-b"}}},
    {"conversation": {"attachments": ["file:b.md"]}},
    {"style": {"code": {"copy_link": "off"}}, "inherit": False},
])
COMPACTIONS: st.SearchStrategy[Event] = st.sampled_from([
    {"summary": {"summary": "much"}},
    {"reasoning": "strip", "tool_calls": {"policy": "omit"}},
    {"tool_calls": {"policy": "strip", "request": True, "response": False}},
    {"tool_calls": {"policy": "another"}},
])
KINDS = st.sampled_from([
    *("turn_start", "turn_start", "chat_request", "message", "reasoning", "data", "call", "call", "result", "result"),
    *("question", "answer", "config_delta", "compaction", "of_the_future", "with_more"),
])


@st.composite
def events(draw: st.DrawFn) -> Event:
    """An event of any type, of which none has to fit those before it."""
    identity, first = draw(IDS), draw(st.integers(0, 2))
    source = {"source": "tool", "name": "fs_read_file"}
    text = draw(TEXTS)
    found: dict[str, Event] = {
        "turn_start": event("turn_start"),
        "chat_request": {**event("chat_request", content=text), **draw(AUTHORS)},
        "message": event("chat_response", message=text, **draw(METADATA)),
        "reasoning": event("chat_response", reasoning=text, **draw(METADATA)),
        "data": event("chat_response", data=draw(JSON)),
        "call": {**call(identity, path=text, deep=1), **draw(METADATA)},
        "result": result(identity, text, is_error=draw(st.booleans())),
        "question": event("inquiry_request", id=f"{identity}.q", source=source, question=draw(QUESTIONS)),
        "answer": event("inquiry_response", id=f"{identity}.q", answer=draw(JSON)),
        "config_delta": event("config_delta", delta=draw(DELTAS)),
        "compaction": event(
            "compaction", from_turn=first, to_turn=first + draw(st.integers(0, 2)), **draw(COMPACTIONS)
        ),
        "of_the_future": event("of_the_future", n=1.50),
        "with_more": {"timestamp": "2025-12-20 11:33:01.5", "type": "turn_start", "more": ["x"]},
    }
    return found[draw(KINDS)]


def text_of(block: Block) -> str:
    return block.text or "" if isinstance(block, TextBlock) else "(no text)"


def written(entries: Sequence[AnyEntry], base: Event) -> OriginalStream:
    return write_stream(entries, OriginalSettings(base), text_of)


def read(data: bytes, base: Event, conversation: ConversationId = ID) -> list[AnyEntry]:
    return convert(data, conversation, OriginalSettings(base))


def comparable(entries: Sequence[AnyEntry]) -> list[Any]:
    """The entries without the header, with positions in place of ids."""
    names = {entry.id: str(number) for number, entry in enumerate(entries)}
    found: list[Any] = []
    for entry in entries[1:]:
        if isinstance(entry, Unknown):
            value = json.loads(entry.raw)
            found.append({**value, "id": "", "of": names.get(value.get("of"))})
            continue
        changed: dict[str, Any] = {"id": ""}
        if isinstance(entry, (ToolCallResponse, InquiryRequest, InquiryResponse)):
            changed["request"] = names.get(entry.request, entry.request)
        if isinstance(entry, Compaction):
            changed |= {"from_id": None, "to_id": None}
        found.append(replace(entry, **changed))
    return found


@given(st.lists(events(), max_size=14))
def test_a_conversation_of_the_original_comes_back_as_it_was(stream: list[Event]) -> None:
    entries = read(json.dumps(stream).encode(), BASE)
    found = written(entries, BASE)
    assert comparable(read(found.events, BASE)) == comparable(entries)
    assert not found.omitted


@pytest.mark.skipif(not DATA, reason="JP_TEST_DATA names no conversations")
@pytest.mark.parametrize("stored", SHARED, ids=[path.name.partition("-")[0] for path in SHARED])
def test_shared_conversations_come_back_as_they_were(stored: Path) -> None:
    base, identity = read_base_config(stored), conversation_id_of(stored.name)
    assert identity is not None
    entries = read_original(stored)
    found = written(entries, base)
    assert comparable(read(found.events, base, identity)) == comparable(entries)
    before = json.loads((stored / "events.json").read_bytes())
    after = json.loads(found.events)
    assert [one["type"] for one in after if one["type"] != "turn_start"] == [
        one["type"] for one in before if one["type"] != "turn_start"
    ]
    assert [one["timestamp"] for one in before] == [one["timestamp"] for one in after] or len(before) < len(after)


def said(entries: Sequence[AnyEntry]) -> list[list[Any]]:
    """Return the content of every turn that counts, and the call that each first result belongs to."""
    gone = undone(entries)
    turns = [turn for turn in turns_of(entries) if turn.id not in gone]
    calls = [entry.id for turn in turns for entry in turn.entries if isinstance(entry, ToolCallRequest)]
    waiting = dict(zip(calls, range(len(calls)), strict=True))
    return [
        [
            _said(entry, waiting)
            for entry in turn.entries
            if not isinstance(entry, (TurnStart, CycleEnd, RequestContext))
        ]
        for turn in turns
    ]


def _said(entry: AnyEntry, waiting: dict[str, int]) -> Any:
    match entry:
        case ChatRequest():
            return ("request", entry.content, entry.schema, entry.author)
        case ToolCallRequest():
            return ("call", entry.name, entry.arguments if isinstance(entry.arguments, dict) else {})
        case ToolCallResponse():
            text = "\n\n".join(map(text_of, entry.content))
            return ("result", waiting.pop(entry.request, None), text, entry.is_error)
        case _:
            return replace(entry, id="", at="")


@given(any_transcripts(), st.data())
def test_a_conversation_of_jp_says_the_same_without_what_was_undone(messages: Any, data: st.DataObject) -> None:
    entries = list(conversation_of(messages))
    turns = [turn.id for turn in turns_of(entries) if turn.id]
    if turns and data.draw(st.booleans()):
        entries.append(Revert(id="revert", entries=(data.draw(st.sampled_from(turns)),)))
    if data.draw(st.booleans()):
        entries.insert(1, ConfigDelta(id="delta", delta={"assistant": {"model": {"id": "google/gemini-a"}}}))
    found = written(entries, {})
    kept = [[*turn] for turn in said(entries) if turn]
    assert [turn for turn in said(read(found.events, {})) if turn] == kept
    assert ("undone turns" in found.omitted) == any(isinstance(entry, Revert) for entry in entries)
    assert all(entry.type == REMAINDER for entry in read(found.events, {}) if isinstance(entry, Unknown))
