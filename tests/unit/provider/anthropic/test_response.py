from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

import anthropic_wire as wire
from jp.conversation.entries import InputChange, Usage
from jp.provider.anthropic.response import AnthropicDecoder
from jp.provider.base import (
    BlockEnd,
    DataDelta,
    Finished,
    InputReport,
    KeepAlive,
    Part,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallStart,
    UsageReport,
)
from jp.provider.errors import ProviderError

MODEL = "claude-haiku-4-5"
OWN = {"provider": "anthropic", "model": MODEL}


def parts_of(*events: Mapping[str, object], is_structured: bool = False, is_wrapped: bool = False) -> list[Part]:
    decoder = AnthropicDecoder(model=MODEL, is_structured=is_structured, is_wrapped=is_wrapped)
    return [part for event in events for part in decoder.feed("", msgspec.json.encode(event))]


def finished(*events: Mapping[str, object]) -> Finished:
    last = parts_of(*events)[-1]
    assert isinstance(last, Finished)
    return last


def test_text_comes_in_pieces_and_ends() -> None:
    assert parts_of(*wire.text(2, "a", "b")) == [TextDelta(2, "a"), TextDelta(2, "b"), BlockEnd(2)]


def test_text_may_come_with_the_start_of_its_block() -> None:
    assert parts_of(*wire.block(0, {"type": "text", "text": "a"})) == [TextDelta(0, "a"), BlockEnd(0)]


def test_text_is_data_where_the_output_is_structured() -> None:
    assert parts_of(*wire.text(0, "{}"), is_structured=True) == [DataDelta(0, "{}"), BlockEnd(0)]


def test_an_answer_that_comes_wrapped_is_taken_out() -> None:
    events = wire.text(0, '{"wrapped_', 'answer":[1,', '{"a":2}', " ]}")

    assert parts_of(*events, is_structured=True, is_wrapped=True) == [
        DataDelta(0, "[1,"),
        DataDelta(0, '{"a":2'),
        DataDelta(0, "} ]"),
        BlockEnd(0),
    ]


def test_every_text_is_taken_out_by_itself() -> None:
    events = [*wire.text(0, '{"wrapped_answer":1}'), *wire.text(1, '{"wrapped_answer":[{}]}')]

    assert parts_of(*events, is_structured=True, is_wrapped=True) == [
        DataDelta(0, "1"),
        BlockEnd(0),
        DataDelta(1, "[{}]"),
        BlockEnd(1),
    ]


def test_what_was_held_back_of_an_answer_comes_with_its_end() -> None:
    assert parts_of(*wire.text(0, '{"wrapped_answer":{}}'), is_structured=True, is_wrapped=True) == [
        DataDelta(0, "{"),
        DataDelta(0, "}"),
        BlockEnd(0),
    ]


def test_thinking_ends_with_its_signature() -> None:
    assert parts_of(*wire.thinking(0, "hm", "m", signature="s")) == [
        ReasoningDelta(0, ""),
        ReasoningDelta(0, "hm"),
        ReasoningDelta(0, "m"),
        BlockEnd(0, {**OWN, "signature": "s"}),
    ]


def test_thinking_without_text_keeps_its_signature() -> None:
    assert parts_of(*wire.thinking(0, signature="s")) == [ReasoningDelta(0, ""), BlockEnd(0, {**OWN, "signature": "s"})]


def test_redacted_thinking_keeps_its_data() -> None:
    assert parts_of(*wire.redacted(0, "xyz")) == [ReasoningDelta(0, ""), BlockEnd(0, {**OWN, "redacted": "xyz"})]


def test_thinking_that_is_split_stays_three_blocks_with_their_own_metadata() -> None:
    parts = parts_of(
        *wire.thinking(0, "The ans", signature="s1"), *wire.redacted(1), *wire.thinking(2, "wer", signature="s2")
    )

    assert [part.metadata for part in parts if isinstance(part, BlockEnd)] == [
        {**OWN, "signature": "s1"},
        {**OWN, "redacted": "opaque"},
        {**OWN, "signature": "s2"},
    ]


def test_a_call_starts_at_once_and_its_arguments_follow() -> None:
    assert parts_of(*wire.tool_use(1, "run", '{"a"', ":1}")) == [
        ToolCallStart(1, "toolu_1", "run"),
        ToolArgumentsDelta(1, '{"a"'),
        ToolArgumentsDelta(1, ":1}"),
        BlockEnd(1),
    ]


def test_a_call_without_arguments_has_an_empty_object() -> None:
    assert parts_of(*wire.tool_use(0, "run", ""))[1] == ToolArgumentsDelta(0, "{}")


def test_arguments_may_come_with_the_start_of_their_block() -> None:
    events = wire.block(0, {"type": "tool_use", "id": "t", "name": "run", "input": {"a": 1}})

    assert parts_of(*events)[1] == ToolArgumentsDelta(0, '{"a":1}')


def test_calls_without_ids_and_with_repeated_ids_are_told_apart() -> None:
    parts = parts_of(
        *wire.tool_use(0, "a", call_id=""), *wire.tool_use(1, "b", call_id="t"), *wire.tool_use(2, "c", call_id="t")
    )

    assert [part.call_id for part in parts if isinstance(part, ToolCallStart)] == ["call_0", "t", "t_2"]


def test_a_ping_is_a_sign_of_life() -> None:
    assert parts_of(wire.PING) == [KeepAlive()]


def test_what_is_unknown_gives_nothing() -> None:
    unknown: list[wire.Event] = [
        {"type": "message_whisper"},
        *wire.block(0, {"type": "server_tool_use", "id": "s", "name": "n", "input": {}}, {"type": "input_json_delta"}),
        *wire.block(1, {"type": "chart", "text": {"title": 1}}, {"type": "text_delta", "text": "x"}),
        {"type": "content_block_delta", "index": 5, "delta": {"type": "text_delta", "text": "nowhere"}},
        {"type": "message_start", "message": {}},
        {},
    ]
    in_text = wire.block(
        2,
        {"type": "text", "text": ""},
        {"type": "citations_delta", "citation": {}},
        {"type": "odd_delta", "text": 3},
        {"type": "text_delta", "text": ""},
    )

    assert parts_of(*unknown) == []
    assert parts_of(*in_text) == [BlockEnd(2)]


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b'{"type":"content_block_start","index":0,"content_block":{"type":"text","text":7}}',
        b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":7}}',
        b'{"type":"content_block_stop","index":"x"}',
        b'{"type":"message_delta","delta":{"stop_reason":7}}',
    ],
)
def test_what_should_be_known_and_cannot_be_read_is_an_error(data: bytes) -> None:
    with pytest.raises(ProviderError, match="cannot be read") as caught:
        AnthropicDecoder(model=MODEL).feed("", data)

    assert caught.value.kind == "transient"


def test_usage_is_a_total_that_later_events_complete() -> None:
    first = {
        "input_tokens": 10,
        "output_tokens": 1,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 20,
    }
    later = {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 7, "input_tokens": None}}
    detailed = {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn"},
        "usage": {
            "input_tokens": 11,
            "output_tokens": 9,
            "cache_read_input_tokens": 101,
            "cache_creation_input_tokens": 21,
            "output_tokens_details": {"thinking_tokens": 4},
        },
    }

    assert parts_of(wire.start(usage=first), later, detailed) == [
        UsageReport(Usage(input=10, output=1, cache_read=100, cache_write=20)),
        UsageReport(Usage(input=10, output=7, cache_read=100, cache_write=20)),
        UsageReport(Usage(input=11, output=9, cache_read=101, cache_write=21, reasoning=4)),
    ]


@pytest.mark.parametrize(
    ("native", "reason", "detail"),
    [
        ("end_turn", "stop", ""),
        ("stop_sequence", "stop", ""),
        ("tool_use", "tools", ""),
        ("max_tokens", "length", ""),
        ("pause_turn", "length", "pause_turn"),
        ("refusal", "refused", "refusal"),
        ("something_new", "stop", "something_new"),
        (None, "stop", ""),
    ],
)
def test_every_stop_reason_has_a_meaning(native: str | None, reason: str, detail: str) -> None:
    assert finished(*wire.ending(native)) == msgspec.convert({"reason": reason, "detail": detail}, Finished)


def test_an_answer_at_its_longest_output_is_final_where_answers_are_not_chained() -> None:
    def is_final(native: str, *, chains: bool) -> bool:
        decoder = AnthropicDecoder(model="m", chains=chains)
        parts = [part for event in wire.ending(native) for part in decoder.feed("", msgspec.json.encode(event))]
        assert isinstance(parts[-1], Finished)
        return parts[-1].is_final

    assert is_final("max_tokens", chains=False)
    assert not is_final("max_tokens", chains=True)
    assert not is_final("pause_turn", chains=False)


def test_a_context_window_that_is_full_is_an_error_after_what_was_said() -> None:
    with pytest.raises(ProviderError, match="the context window of 'claude-haiku-4-5' is full") as caught:
        finished(*wire.ending("model_context_window_exceeded"))

    assert (caught.value.kind, caught.value.is_retryable) == ("context_too_long", False)


@pytest.mark.parametrize(
    ("details", "detail"),
    [
        ({"type": "refusal", "category": "bio", "explanation": "Too dangerous."}, "Too dangerous."),
        ({"type": "refusal", "category": "bio", "explanation": None}, "bio"),
        (None, "refusal"),
    ],
)
def test_a_refusal_is_explained(details: object, detail: str) -> None:
    assert finished(*wire.ending("refusal", stop_details=details)) == Finished("refused", detail)


def test_calls_are_not_forgotten_where_the_reason_does_not_mention_them() -> None:
    assert finished(*wire.tool_use(0, "run"), *wire.ending("end_turn")) == Finished("tools")
    assert finished(*wire.tool_use(0, "run"), *wire.ending("max_tokens")) == Finished("length")


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("overloaded_error", "transient"),
        ("api_error", "transient"),
        ("rate_limit_error", "rate_limit"),
        ("authentication_error", "authentication"),
    ],
)
def test_an_error_event_raises(kind: str, found: str) -> None:
    with pytest.raises(ProviderError, match="anthropic reported an error: So it is") as caught:
        parts_of(wire.error(kind, "So it is"))

    assert caught.value.kind == found
    assert caught.value.retry_after is None
    assert caught.value.least_wait == 3.0


def test_an_error_event_that_says_when_is_believed() -> None:
    with pytest.raises(ProviderError) as caught:
        parts_of(wire.error("rate_limit_error", "try again in 8s"))

    assert caught.value.retry_after == 8.0


def test_an_error_event_of_an_odd_form_is_an_error_all_the_same() -> None:
    with pytest.raises(ProviderError, match="reported an error: odd"):
        AnthropicDecoder(model=MODEL).feed("error", b'{"type":"error","index":"x","error":{"message":"odd"}}')


def test_what_is_open_when_all_is_complete_is_complete() -> None:
    open_call = wire.tool_use(1, "run", "{}")[:-1]
    parts = parts_of(*wire.text(0, "a")[:-1], *open_call, *wire.ending("tool_use"))

    assert parts[-3:] == [BlockEnd(0), BlockEnd(1), Finished("tools")]


def test_a_call_that_the_longest_output_cut_does_not_exist() -> None:
    parts = parts_of(*wire.text(0, "a")[:-1], *wire.tool_use(1, "run", '{"a"')[:-1], *wire.ending("max_tokens"))

    assert [part for part in parts if isinstance(part, BlockEnd)] == [BlockEnd(0)]


def test_a_block_begins_once() -> None:
    parts = parts_of(*wire.tool_use(0, "run", "{}")[:1], *wire.tool_use(0, "run", "{}"), *wire.ending("tool_use"))

    assert len([part for part in parts if isinstance(part, ToolCallStart)]) == 1


def test_what_was_dropped_of_the_request_is_told() -> None:
    start: dict[str, Any] = dict(wire.start())
    start["message"]["input_transformations"] = [
        {"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "prefix_binding_mismatch", "new": 1},
        {"type": "other", "path": None},
    ]

    assert parts_of(start)[0] == InputReport((
        InputChange(type="thinking_dropped", path="messages.1.content.0", reason="prefix_binding_mismatch"),
        InputChange(type="other", path=""),
    ))


@pytest.mark.parametrize("said", ["soon", [1], None])
def test_a_report_of_changes_that_cannot_be_read_costs_nothing(said: object) -> None:
    start: dict[str, Any] = dict(wire.start())
    start["message"]["input_transformations"] = said

    assert parts_of(start) == [UsageReport(Usage(input=10, output=1))]
