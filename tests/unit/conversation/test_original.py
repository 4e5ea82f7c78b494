"""Every variant of the original's streams, and what becomes of each event."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    Compaction,
    ConfigDelta,
    Header,
    InquiryRequest,
    InquiryResponse,
    Question,
    SummaryPolicy,
    ToolCallPolicy,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
    Unknown,
)
from jp.conversation.ids import ConversationId
from jp.conversation.original import MalformedOriginalError, convert
from jp.conversation.resource import TextBlock
from jp.conversation.turns import turns_of
from originals import ID, Event, Fixed, call, converted, current, encoded, event, result


def only(kind: type[Any], entries: list[AnyEntry]) -> Any:
    found = [entry for entry in entries if isinstance(entry, kind)]
    assert len(found) == 1
    return found[0]


def rest(entries: list[AnyEntry]) -> list[Any]:
    return [json.loads(entry.raw) for entry in entries if isinstance(entry, Unknown)]


def test_a_current_stream_becomes_entries() -> None:
    entries = converted(current())

    asked, thought, called, inquiry, answered, responded, said = entries[1:8]
    assert [type(entry) for entry in entries] == [
        TurnStart,
        ChatRequest,
        ChatResponse,
        ToolCallRequest,
        InquiryRequest,
        InquiryResponse,
        ToolCallResponse,
        ChatResponse,
        ConfigDelta,
        TurnStart,
        ChatRequest,
        ChatResponse,
    ]
    assert isinstance(asked, ChatRequest)
    assert (asked.content, asked.author, asked.attachments) == ("What is in a.txt?", "Somebody", ("file:a",))
    assert asked.at == "2025-12-20T11:33:02.091877Z"
    assert isinstance(thought, ChatResponse)
    assert (thought.reasoning, thought.metadata) == (
        "I look.",
        {"provider": "anthropic", "model": "claude-a", "signature": "c2ln"},
    )
    assert isinstance(called, ToolCallRequest)
    assert (called.call_id, called.arguments) == ("toolu_1", {"path": "a.txt", "deep": ["x", {"y": 1}]})
    assert called.metadata == {"rendered_arguments": "ü"}
    assert isinstance(inquiry, InquiryRequest)
    assert inquiry.request == called.id
    assert inquiry.question == Question(id="overwrite", text="Really?", kind="boolean", default=True)
    assert isinstance(answered, InquiryResponse)
    assert (answered.request, answered.answer, answered.answered_by) == (inquiry.id, True, "unknown")
    assert isinstance(responded, ToolCallResponse)
    assert (responded.request, responded.is_error) == (called.id, False)
    assert isinstance(said, ChatResponse)
    last = entries[-1]
    assert isinstance(last, ChatResponse)
    assert (said.message, last.data) == ("It holds lines.", {"lines": 400})
    assert rest(entries) == []


def test_the_header_says_when_it_was_created_and_what_it_was_made_of() -> None:
    header = convert(b"[]", ID, Fixed())[0]

    assert isinstance(header, Header)
    assert (header.created_at, header.at) == ("2025-12-20T11:33:49.000Z", "2025-12-20T11:33:49.000Z")
    assert header.original is not None
    assert (header.original.size, len(header.original.sha256), header.nonce) == (2, 64, "")


def test_an_id_that_is_no_date_gives_way_to_the_first_event() -> None:
    data = json.dumps([event("turn_start", 7)]).encode()

    dated, empty = (convert(stored, ConversationId.parse("9" * 18), Fixed())[0] for stored in (data, b"[]"))

    assert (dated.at, empty.at) == ("2025-12-20T11:33:07.091877Z", "1970-01-01T00:00:00.000Z")


def test_ids_are_stable_sorted_and_depend_on_place_and_content() -> None:
    once, again = converted(current()), converted(current())
    grown = converted([*current(), event("turn_start", 1)])
    twice = converted([event("turn_start"), event("turn_start")])

    ids = [entry.id for entry in once]
    assert ids == sorted(set(ids))
    assert once == again
    assert grown[:-1] == once
    assert grown[-1].id > ids[-1]
    assert twice[0].id != twice[1].id


@pytest.mark.parametrize(
    "beginning",
    [
        [event("config_delta", delta={"assistant": {}})],  # the base configuration as a first delta
        [{**event("config_delta"), "assistant": {}, "style": {}}],  # its keys in the event itself
        [],  # a base configuration in a file, and no turns all the same
    ],
)
def test_streams_without_turns_have_one_for_each_request(beginning: list[Event]) -> None:
    asked = [event("chat_request", content="one"), event("chat_response", message="1")]
    entries = converted([*beginning, *asked, event("chat_request", content="two")])

    turns = turns_of(entries)
    assert [[type(entry) for entry in turn.entries] for turn in turns] == [
        [TurnStart, ChatRequest, ChatResponse],
        [TurnStart, ChatRequest],
    ]
    assert all(entry.attachments == ("file:a",) for entry in entries if isinstance(entry, ChatRequest))
    if beginning:
        assert only(ConfigDelta, entries).delta.keys() <= {"assistant", "style"}


def test_turns_that_are_marked_may_hold_several_requests_or_none() -> None:
    entries = converted([
        event("turn_start"),
        event("turn_start"),
        event("chat_request", content="one"),
        event("chat_response", message="1"),
        event("chat_request", content="a reply"),
        event("turn_start"),
    ])

    assert [len(turn.entries) for turn in turns_of(entries)] == [4, 1]
    assert [entry.attachments for entry in entries if isinstance(entry, ChatRequest)] == [("file:a",), ()]


def test_a_stream_that_learnt_to_mark_turns_keeps_those_before() -> None:
    entries = converted([
        event("chat_request", content="old"),
        event("turn_start"),
        event("chat_request", content="new"),
    ])

    assert [[type(entry) for entry in turn.entries] for turn in turns_of(entries)] == [[TurnStart, ChatRequest]] * 2


def test_content_is_decoded_in_either_alphabet_and_left_where_it_is_none() -> None:
    text = "~~~???>>>"
    stored = base64.urlsafe_b64encode(text.encode()).decode()
    assert set("-_") & set(stored)

    entries = converted([
        {**result("a", ""), "content": stored},
        {**result("b", ""), "content": "plain text"},
        {**result("c", ""), "content": "/////w=="},
        result("d", ""),
    ])

    contents = [entry.content for entry in entries if isinstance(entry, ToolCallResponse)]
    assert contents == [(TextBlock(text=content),) for content in (text, "plain text", "/////w==", "")]


@pytest.mark.parametrize("times", [1, 4, 12])
def test_a_signature_is_decoded_however_often_it_was_encoded(times: int) -> None:
    signature = base64.b64encode(bytes(range(128, 256))).decode()
    stored = {"anthropic_thinking_signature": encoded(signature, times)}

    entry = only(ChatResponse, converted([event("chat_response", reasoning="…", metadata=stored)]))

    assert entry.metadata["signature"] == (signature if times < 9 else encoded(signature, times - 9))


def test_metadata_of_others_keeps_its_names() -> None:
    stored = {
        "google_thought_signature": encoded("c2ln"),
        "anthropic_redacted_thinking": encoded("data"),
        "cache_breakpoint": True,
    }

    entry = only(ChatResponse, converted([event("chat_response", message="x", metadata=stored)]))

    assert entry.metadata == {
        "provider": "anthropic",
        "model": "claude-a",
        "redacted": "data",
        "google_thought_signature": "c2ln",
        "cache_breakpoint": True,
    }


def test_ids_of_calls_repeat_and_responses_find_theirs() -> None:
    entries = converted([
        event("turn_start"),
        event("chat_request", content="one"),
        call("t_0"),
        call("t_0"),
        result("t_0", "first"),
        result("t_0", "second"),
        call("t_0"),
        event("turn_start"),
        event("chat_request", content="two"),
        call("t_0"),
        result("t_0", "third"),
        result("t_0", "late"),
        result("t_1", "early"),
        call("t_1"),
        result("t_2", "nobody's"),
    ])

    calls = [entry.id for entry in entries if isinstance(entry, ToolCallRequest)]
    answers = [entry.request for entry in entries if isinstance(entry, ToolCallResponse)]
    assert answers == [calls[0], calls[1], calls[3], calls[2], calls[4], "t_2"]


def test_inquiries_name_their_call_and_keep_what_has_no_place() -> None:
    choice = {"type": "select", "options": [{"value": "a", "description": "the first"}, {"value": 2}, "b", 3]}
    entries = converted([
        call("x.y", "edit"),
        event(
            "inquiry_request",
            id="x.y.which.one",
            source={"source": "tool", "name": "other"},
            question={"text": "Which?", "answer_type": choice},
        ),
        event(
            "inquiry_request",
            id="z",
            source={"source": "assistant"},
            question={"text": "Why?", "answer_type": {"type": "text"}},
        ),
        event("inquiry_response", id="nobody", answer="x"),
    ])

    first, second = (entry for entry in entries if isinstance(entry, InquiryRequest))
    assert first.request == entries[0].id
    assert first.question == Question(id="which.one", text="Which?", kind="select", options=("a", "2", "b", "3"))
    assert (second.request, second.question.id) == ("", "z")
    assert only(InquiryResponse, entries).request == "nobody"
    assert [(found["of"], sorted(found["fields"])) for found in rest(entries)] == [
        (first.id, ["question", "source"]),
        (second.id, ["source"]),
    ]


def test_options_that_have_a_place_leave_nothing_over() -> None:
    choice = {"type": "select", "options": [{"value": "a"}, {"value": "b"}]}
    asked = {"text": "Which?", "answer_type": choice, "default": "a"}

    assert rest(converted([event("inquiry_request", id="x", question=asked)])) == []


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"summary": {"summary": "It was long."}}, {"summary": SummaryPolicy(text="It was long.")}),
        ({"reasoning": "strip"}, {"reasoning": "strip"}),
        (
            {"tool_calls": {"policy": "strip", "request": True, "response": False}},
            {"tool_calls": ToolCallPolicy(policy="strip", request=True, response=False)},
        ),
        ({"tool_calls": {"policy": "omit"}}, {"tool_calls": ToolCallPolicy(policy="omit")}),
    ],
)
def test_a_compaction_covers_the_turns_that_it_covered(fields: Event, expected: dict[str, Any]) -> None:
    entries = converted([
        *(event("chat_request", content=str(number)) for number in range(3)),
        event("turn_start"),
        event("chat_request", content="new"),
        event("compaction", from_turn=0, to_turn=0, **fields),
        event("compaction", from_turn=1, to_turn=9, **fields),
        event("compaction", from_turn=7, to_turn=9, **fields),
    ])

    turns = turns_of(entries)
    old, new, beyond = (entry for entry in entries if isinstance(entry, Compaction))
    assert (old.from_turn, old.to_turn, old.from_id, old.to_id) == (0, 2, turns[0].id, turns[2].id)
    assert (new.from_turn, new.to_turn, new.from_id) == (3, 3, turns[3].id)
    assert (beyond.from_turn, beyond.to_turn, beyond.from_id) == (7, 9, None)
    assert all(getattr(old, name) == value for name, value in expected.items())
    assert rest(entries) == []


def test_a_compaction_of_a_turn_that_nothing_marks_has_no_id_to_name() -> None:
    entries = converted([event("chat_response", message="x"), event("compaction", from_turn=0, to_turn=0)])

    compaction = only(Compaction, entries)
    assert (compaction.from_turn, compaction.to_turn, compaction.from_id) == (0, 0, None)


@pytest.mark.parametrize(
    ("stored", "left"),
    [
        (event("chat_request", content="x", images=["y"]), {"images": ["y"]}),
        (event("chat_request", content="x", schema="y"), {"schema": "y"}),
        (event("chat_response", message="x", reasoning="y"), {"reasoning": "y"}),
        ({**result("a", "x"), "metadata": {"k": encoded("v")}}, {"metadata": {"k": "v"}}),
        ({**call("a"), "arguments": "text"}, {"arguments": "text"}),
        ({**call("a"), "arguments": None}, None),
        (event("chat_request", content="x", metadata="odd"), {"metadata": "odd"}),
        (
            event("compaction", from_turn=0, to_turn=0, summary={"summary": "s", "by": "m"}),
            {"summary": {"summary": "s", "by": "m"}},
        ),
        (event("compaction", from_turn=0, to_turn=0, summary={"text": "s"}), {"summary": {"text": "s"}}),
        (event("compaction", from_turn=0, to_turn=0, reasoning="keep"), {"reasoning": "keep"}),
        (event("compaction", from_turn=0, to_turn=0, tool_calls={"policy": "new"}), {"tool_calls": {"policy": "new"}}),
    ],
)
def test_what_an_entry_has_no_place_for_stays_beside_it(stored: Event, left: Event | None) -> None:
    entries = converted([event("turn_start"), stored])

    found = rest(entries)
    if left is None:
        assert found == []
    else:
        (remainder,) = found
        assert (remainder["type"], remainder["of"], remainder["fields"]) == ("original", entries[1].id, left)
        assert remainder["id"] == entries[2].id > entries[1].id


@pytest.mark.parametrize(
    "stored",
    [
        event("newer_type", text="kept", number=1.50),
        event("chat_request", content=["x"]),
        event("chat_response"),
        event("tool_call_request", id="a"),
        event("tool_call_response", id="a"),
        event("inquiry_request", id="a"),
        event("inquiry_request", id="a", question={"text": "x", "answer_type": {"type": "date"}}),
        event("inquiry_request", id=5, question={}),
        event("inquiry_response", id="a"),
        event("config_delta", delta=[]),
        event("compaction", from_turn=True, to_turn=0),
    ],
)
def test_an_event_that_is_none_of_ours_is_kept_whole(stored: Event) -> None:
    (entry,) = converted([event("turn_start"), stored])[1:]

    assert isinstance(entry, Unknown)
    assert (entry.type, json.loads(entry.raw)["event"]) == ("original", stored)
    assert b"\n" not in entry.raw
    assert (entry.id, entry.at) == (json.loads(entry.raw)["id"], json.loads(entry.raw)["at"])


def test_numbers_are_kept_as_they_are_written() -> None:
    data = (
        b'[{"timestamp": "2025-12-20 11:33:49.0",\n "type": "odd", "n": 1.50e1, "big": 123456789012345678901234567890}]'
    )

    entry = convert(data, ID, Fixed())[1]

    assert isinstance(entry, Unknown)
    assert b'"n":1.50e1,"big":123456789012345678901234567890' in entry.raw


class Respelling(Fixed):
    def change(self, delta: Event) -> Event:
        return {**delta, "a": {**delta["a"], "b": "new"}}


def test_a_delta_is_spelled_anew_and_its_old_words_are_kept() -> None:
    delta = {"a": {"b": "old", "c": 1}, "d": 2}
    data = json.dumps([event("config_delta", delta=delta)]).encode()

    _, entry, remainder = convert(data, ID, Respelling())

    assert isinstance(entry, ConfigDelta)
    assert entry.delta == {"a": {"b": "new", "c": 1}, "d": 2}
    assert isinstance(remainder, Unknown)
    assert json.loads(remainder.raw)["fields"] == {"delta": {"a": {"b": "old"}}}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "it is empty"),
        (b"\xef\xbb\xbf\n", "it is empty"),
        (b"{}", "not an array of events"),
        (b'"[]"', "not an array of events"),
        (b"[", "cut off: it ends in line 1, column 2"),
        (b"\xff", "malformed JSON in line 1, column 1"),
        (b"\xef\xbb\xbf\xef\xbb\xbf[]", "malformed JSON in line 1, column 1"),
        (b'[{"a":1},\n {"\xc3\xbc":}]', "malformed JSON in line 2, column 7"),
        (b'[{"type":"turn_start",\n"timestamp":"2025-12-20 11:33:49.0"}', "cut off: it ends in line 2, column 37"),
        (b'[{"a":"\\ud800"}]', r"malformed JSON in line 1, column 8: \\ud800 alone"),
        (b'[{"a":"\\ud800"}', "cut off"),
        (b"[1]", "event 0 .* not an object"),
        (b'[{"timestamp":"2025-12-20 11:33:49.0"}]', "event 0 .*'type'"),
        (b'[{"type":"turn_start"}]', "event 0 .*'timestamp'"),
        (b'[{"type":"turn_start","timestamp":"once"}]', "event 0 .*'timestamp'"),
        (b"[" * 100_000, "nested too deeply"),
        (b'[{"type":"x","timestamp":"2025-12-20 11:33:49.0","v":"\xff"}]', "event 0 .* is not JSON in UTF-8"),
    ],
)
def test_what_is_no_stream_is_refused_with_what_is_wrong_and_where(data: bytes, words: str) -> None:
    with pytest.raises(MalformedOriginalError, match=words):
        convert(data, ID, Fixed())


def test_a_byte_order_mark_changes_nothing_but_the_checksum() -> None:
    plain = json.dumps(current()).encode()

    header, *entries = convert(b"\xef\xbb\xbf" + plain, ID, Fixed())

    assert entries == convert(plain, ID, Fixed())[1:]
    assert isinstance(header, Header)
    assert header.original is not None
    assert header.original.size == len(plain) + 3


@pytest.mark.parametrize(
    ("written", "at"),
    [
        ("2025-12-20 11:33:49.0", "2025-12-20T11:33:49.000000Z"),
        ("2025-12-20T11:33:49Z", "2025-12-20T11:33:49.000000Z"),
        ("2025-12-20T13:33:49.5+02:00", "2025-12-20T11:33:49.500000Z"),
        ("1960-01-01 00:00:00.0", "1960-01-01T00:00:00.000000Z"),
    ],
)
def test_moments_are_read_in_both_forms(written: str, at: str) -> None:
    (entry,) = converted([{"timestamp": written, "type": "turn_start"}])

    assert entry.at == at
