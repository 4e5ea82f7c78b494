"""A log of jp as events of the original JP: what that format has no place for, and what is said in its own way."""

from __future__ import annotations

import json

from jp.config.sources import OriginalSettings
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    Compaction,
    CycleEnd,
    Header,
    Revert,
    ToolCallPolicy,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
    Unknown,
)
from jp.conversation.original import convert
from jp.conversation.original_writer import OriginalStream, write_stream
from jp.conversation.resource import Block, Resource, ResourceLink, TextBlock
from originals import ID, Event, encoded, event

HEADER = Header(id="h", format=1, created_at="2026-01-01T00:00:00Z", nonce="n")


def text_of(block: Block) -> str:
    return block.text or "" if isinstance(block, TextBlock) else "(a link)"


def written(*entries: AnyEntry) -> OriginalStream:
    return write_stream([HEADER, *entries], OriginalSettings({}), text_of)


def events(*entries: AnyEntry) -> list[Event]:
    return json.loads(written(*entries).events)


def turn(name: str, *entries: AnyEntry, attachments: tuple[str, ...] = ()) -> list[AnyEntry]:
    return [TurnStart(id=name), ChatRequest(id=f"{name}q", content=name, attachments=attachments), *entries]


def test_what_a_turn_attached_is_declared_before_it_once() -> None:
    found = events(*turn("a", attachments=("file:a.md",)), *turn("b", attachments=("file:a.md", "file:b.md")))
    deltas = [one["delta"]["conversation"]["attachments"] for one in found if one["type"] == "config_delta"]
    assert deltas == [["file:a.md"], ["file:a.md", "file:b.md"]]


def test_the_model_that_metadata_belongs_to_is_set_before_it() -> None:
    metadata = {"provider": "google", "model": "gemini-a", "signature": "c2ln"}
    answer = ChatResponse(id="m", reasoning="so", metadata=metadata)
    found = events(*turn("a", answer, ChatResponse(id="n", reasoning="yes", metadata=metadata)))
    assert [one["type"] for one in found][2:] == ["config_delta", "chat_response", "chat_response"]
    assert found[2]["delta"] == {"assistant": {"model": {"id": {"provider": "google", "name": "gemini-a"}}}}
    assert found[3]["metadata"] == {"google_thought_signature": encoded("c2ln")}


def test_an_answer_that_was_asked_for_again_is_not_written() -> None:
    failed = CycleEnd(id="e", attempt=1, finish="error", error="cut")
    found = events(*turn("a", ChatResponse(id="m", message="ha"), failed, ChatResponse(id="n", message="half")))
    assert [one["message"] for one in found if one["type"] == "chat_response"] == ["half"]


def test_calls_of_the_same_id_are_told_apart_where_a_result_would_go_to_another() -> None:
    calls = [ToolCallRequest(id=name, call_id="t", name="run", arguments={}) for name in ("c1", "c2")]
    results = [ToolCallResponse(id=f"r{name}", request=name, content=()) for name in ("c2", "c1")]
    found = events(*turn("a", *calls, *results))
    assert [one["id"] for one in found if "id" in one] == ["t-1", "t-2", "t-2", "t-1"]


def test_policies_of_the_original_are_written_as_they_are() -> None:
    policies = [ToolCallPolicy(policy="strip", request=True), ToolCallPolicy(policy="omit")]
    overlays = [Compaction(id=f"k{n}", from_turn=0, to_turn=0, tool_calls=one) for n, one in enumerate(policies)]
    found = [one["tool_calls"] for one in events(*turn("a"), *overlays) if one["type"] == "compaction"]
    assert found == [{"policy": "strip", "request": True, "response": False}, {"policy": "omit"}]


def test_metadata_that_an_entry_has_no_place_for_is_encoded_again() -> None:
    stored = [event("turn_start", metadata={"somebody_elses": encoded("text")})]
    entries = convert(json.dumps(stored).encode(), ID, OriginalSettings({}))
    assert json.loads(write_stream(entries, OriginalSettings({}), text_of).events) == stored


def test_what_has_no_place_is_counted() -> None:
    found = written(
        *turn("a", ToolCallRequest(id="c", call_id="t", name="run", arguments="{not JSON")),
        ToolCallResponse(id="r", request="c", content=(TextBlock(text="see"), ResourceLink(uri="x:y"))),
        Unknown(raw=b'{"type":"of_the_future"}', id="u", type="of_the_future"),
        TurnStart(id="b"),
        ChatRequest(id="bq", content="b", resources=(Resource(uri="file:///a", text="a"),)),
        *turn("d"),
        Compaction(id="k1", from_turn=0, to_turn=1, tool_calls=ToolCallPolicy(policy="digest")),
        Compaction(id="k2", from_turn=2, to_turn=2, reasoning="strip"),
        Compaction(id="k3", from_turn=0, to_turn=0, to_cycle=0, reasoning="strip"),
        Revert(id="v", entries=("d",)),
    )
    assert found.omitted == {
        "undone turns": 1,
        "entries of an unknown type": 1,
        "malformed tool arguments": 1,
        "tool results that are not plain text": 1,
        "attachment snapshots": 1,
        "details of compactions": 2,
        "compactions of undone turns or of a part of a turn": 2,
    }
    stored = json.loads(found.events)
    assert [one["content"] for one in stored if one["type"] == "tool_call_response"] == [encoded("see\n\n(a link)")]
    assert [one for one in stored if one["type"] == "compaction"] == [
        {
            "timestamp": "1970-01-01 00:00:00.0",
            "type": "compaction",
            "from_turn": 0,
            "to_turn": 1,
            "tool_calls": {"policy": "strip", "request": False, "response": True},
        }
    ]


def test_a_compaction_that_was_undone_is_not_written() -> None:
    compaction = Compaction(id="c", from_turn=0, to_turn=0, reasoning="strip")
    kept, undone = (
        [found["type"] for found in events(*turn("one"), compaction, *more)] for more in ((), (Revert(entries=("c",)),))
    )

    assert "compaction" in kept
    assert undone == [kind for kind in kept if kind != "compaction"]
