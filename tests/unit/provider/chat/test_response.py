from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import chat_wire as wire
from jp.conversation.entries import JsonObject, Usage
from jp.provider.base import (
    BlockEnd,
    DataDelta,
    Finished,
    Part,
    ReasoningDelta,
    Sections,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallStart,
    UsageReport,
    WireRequest,
)
from jp.provider.chat.messages import Quirks, Server
from jp.provider.chat.response import ChatDecoder
from jp.provider.errors import ProviderError
from jp.provider.reader import Reader
from jp.provider.schemas import strict_answer
from stories import Told, told

MADE = {"provider": "mine", "model": "m"}


def read(body: bytes, **settings: Any) -> list[Part]:
    reader = Reader(ChatDecoder(model="m", provider="mine", **settings), "sse", max_bytes=100_000)
    parts = list(reader.feed(body))
    return [*parts, *([] if reader.finished else reader.close())]


def answered(*deltas: Mapping[str, object], finish: str = "stop", **settings: Any) -> list[Part]:
    return [part for part in read(wire.answer(*deltas, finish=finish), **settings) if not isinstance(part, UsageReport)]


def blocks(*deltas: Mapping[str, object], finish: str = "stop") -> list[Told]:
    return told(answered(*deltas, finish=finish)).blocks


def failure(*chunks: wire.Chunk) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        read(wire.stream(*chunks))
    return caught.value


def test_text_streams_as_it_comes() -> None:
    assert answered(*wire.says("Hel", "lo")) == [
        TextDelta(0, "Hel"),
        TextDelta(0, "lo"),
        BlockEnd(0),
        Finished("stop"),
    ]


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_reasoning_has_one_of_two_names_and_says_who_made_it(name: str) -> None:
    assert answered({name: "hm"}, *wire.says("a")) == [
        ReasoningDelta(0, "hm"),
        TextDelta(1, "a"),
        BlockEnd(0, MADE),
        BlockEnd(1),
        Finished("stop"),
    ]


def test_reasoning_under_two_names_at_once_is_told_once() -> None:
    assert blocks({"reasoning": "hm", "reasoning_content": "hm"}) == [Told("reasoning", "hm")]


def test_reasoning_that_comes_late_belongs_to_the_thought_and_comes_first_in_a_chunk() -> None:
    assert blocks({"content": "a", "reasoning": "x"}, {"reasoning": "y"}, {"content": "b"}) == [
        Told("reasoning", "xy"),
        Told("message", "ab"),
    ]


def test_reasoning_after_a_call_is_another_thought() -> None:
    parts = answered({"reasoning": "x"}, wire.call(name="run"), {"reasoning": "y"}, {"content": "b"}, finish="stop")

    assert [(part.index, part.metadata) for part in parts if isinstance(part, BlockEnd)] == [
        (0, MADE),
        (2, MADE),
        (3, None),
        (1, None),
    ]
    assert parts[-1] == Finished("tools")


def test_details_of_reasoning_are_kept_whole_and_open_till_the_end() -> None:
    pieces: list[JsonObject] = [
        {"type": "reasoning.text", "text": "h", "signature": "", "index": 0},
        {"type": "reasoning.text", "text": "m", "index": 0},
        {"type": "reasoning.text", "signature": "sig", "index": 0},
    ]
    sealed = {"type": "reasoning.encrypted", "data": "x", "id": "rs", "index": 1}
    parts = answered(
        *({"reasoning_details": [piece]} for piece in pieces),
        wire.call(name="run"),
        {"reasoning_details": [sealed]},
        finish="tool_calls",
    )

    whole = {"type": "reasoning.text", "text": "hm", "signature": "sig", "index": 0}
    assert BlockEnd(0, {**MADE, "reasoning_details": [whole, sealed]}) in parts
    assert told(parts).blocks[0] == Told("reasoning", "hm")


def test_details_that_nobody_can_read_are_a_thought_without_words() -> None:
    sealed = {"type": "reasoning.encrypted", "data": "x"}

    assert answered({"reasoning_details": [sealed], "reasoning": None}, {"content": "a"})[:2] == [
        ReasoningDelta(0, ""),
        TextDelta(1, "a"),
    ]


def test_a_thought_in_the_text_is_taken_out_of_it() -> None:
    pieces = wire.says("<th", "ink>h", "m</thi", "nk>\n\nHi")

    assert blocks(*pieces) == [Told("reasoning", "hm"), Told("message", "Hi")]
    assert answered(*pieces, think_tags=False)[0] == TextDelta(0, "<th")


def test_what_looks_like_a_tag_until_a_call_begins_is_text() -> None:
    assert blocks({"content": "<th"}, wire.call(name="run"), finish="tool_calls")[0] == Told("message", "<th")


def test_content_may_be_a_list_of_texts_and_thoughts() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "h"}, {"type": "other"}]}

    assert blocks({"content": [thinking, {"type": "thinking", "thinking": "m"}, {"type": "text", "text": "a"}]}) == [
        Told("reasoning", "hm"),
        Told("message", "a"),
    ]


def test_calls_are_told_apart_by_index_while_their_arguments_come_in_turns() -> None:
    parts = answered(
        wire.call(0, '{"a"', id="c1", name="run", type="function"),
        wire.call(1, "", id="c2", name="look"),
        wire.call(0, ":1}"),
        wire.call(1, "{}"),
        finish="tool_calls",
    )

    assert parts == [
        ToolCallStart(0, "c1", "run"),
        ToolArgumentsDelta(0, '{"a"'),
        ToolCallStart(1, "c2", "look"),
        ToolArgumentsDelta(0, ":1}"),
        ToolArgumentsDelta(1, "{}"),
        BlockEnd(0),
        BlockEnd(1),
        Finished("tools"),
    ]


@pytest.mark.parametrize("finish", ["tool_calls", "stop", "function_call", "tool_use"])
def test_an_answer_with_calls_ends_with_tools_whatever_it_is_called(finish: str) -> None:
    last = answered(wire.call(name="run"), finish=finish)[-1]

    assert isinstance(last, Finished)
    assert last.reason == "tools"


def test_calls_without_a_call_are_a_stop() -> None:
    assert answered({"content": "a"}, finish="tool_calls")[-1] == Finished("stop")


def test_a_call_that_the_longest_output_cuts_does_not_come_to_exist() -> None:
    parts = answered(
        wire.call(0, "{}", name="whole"), wire.call(1, '{"a":', name="cut"), wire.call(2, "{"), finish="length"
    )

    assert [part for part in parts if isinstance(part, BlockEnd)] == [BlockEnd(0)]
    assert parts[-1] == Finished("length")


def test_a_call_with_broken_arguments_is_told_all_the_same() -> None:
    assert blocks(wire.call(arguments='{"a":', name="run"), finish="tool_calls") == [
        Told("tool_call", '{"a":', call_id="call_0", name="run")
    ]


def test_a_call_without_a_name_is_worth_another_try() -> None:
    error = failure(wire.chunk(wire.call(arguments="{}", id="c1")), wire.chunk(finish="tool_calls"))

    assert (error.kind, error.message) == ("transient", "mine sent a call without a name")


def test_what_a_server_runs_itself_is_skipped() -> None:
    hosted = {"tool_calls": [{"index": 0, "type": "web_search", "web_search": {"query": "x"}}]}

    assert blocks(hosted, {"content": "a", "executed_tools": [{"index": 0}], "annotations": []}) == [
        Told("message", "a")
    ]


def test_only_the_first_answer_is_read() -> None:
    other = {"choices": [{"index": 1, "delta": {"content": "no"}, "finish_reason": "stop"}]}

    assert told(read(wire.stream(other, wire.chunk({"content": "a"}, "stop")))).blocks == [Told("message", "a")]


@pytest.mark.parametrize("done", [True, False])
def test_an_answer_ends_with_its_stream_or_with_done_once_it_said_why(*, done: bool) -> None:
    assert read(wire.stream(wire.chunk({"content": "a"}), wire.chunk(finish="stop"), done=done))[-1] == Finished("stop")


def test_done_without_a_reason_is_no_end() -> None:
    assert Finished("stop") not in read(wire.stream(wire.chunk({"content": "a"})))


def test_what_comes_after_done_is_not_read() -> None:
    body = wire.answer({"content": "a"}) + wire.stream({"error": {"message": "late"}})

    assert read(body)[-1] == Finished("stop")


def test_tokens_are_counted_after_the_reason_to_finish_and_the_last_count_holds() -> None:
    chunks = [wire.chunk(finish="stop", usage=wire.usage(1, 1)["usage"]), wire.usage(10, 5, cached=4, reasoning=3)]
    parts = read(wire.stream(wire.chunk({"content": "a"}), *chunks))

    assert told(parts).usage == Usage(input=6, output=5, cache_read=4, reasoning=3)


@pytest.mark.parametrize(
    ("native", "finished"),
    [
        ("stop", Finished("stop")),
        ("eos", Finished("stop", "eos")),
        ("length", Finished("length")),
        ("model_length", Finished("length", is_final=True)),
        ("content_filter", Finished("refused", "content_filter")),
        ("SAFETY", Finished("refused", "SAFETY")),
    ],
)
def test_each_reason_to_finish_has_its_meaning(native: str, finished: Finished) -> None:
    assert answered({"content": "a"}, finish=native)[-1] == finished


def test_the_reason_behind_a_filter_is_told() -> None:
    chunk = {"choices": [{"finish_reason": "content_filter", "native_finish_reason": "PROHIBITED_CONTENT"}]}

    assert read(wire.stream(chunk))[-1] == Finished("refused", "PROHIBITED_CONTENT")


def test_a_refusal_is_one_whatever_it_finishes_with() -> None:
    assert answered({"refusal": "I can"}, {"refusal": "not."})[-1] == Finished("refused", "I cannot.")


@pytest.mark.parametrize(
    "chunk",
    [
        {"error": {"code": 502, "message": "down"}},
        {"error": {"type": "overloaded_error", "message": "down"}},
        wire.chunk({"content": ""}, "error", error={"code": 503, "message": "down"}),
        {"choices": [{"index": 0, "error": {"code": 500, "message": "down"}, "finish_reason": "error"}]},
        {"choices": 3, "error": {"code": 502, "message": "down"}},
    ],
)
def test_an_error_in_a_stream_is_classified_wherever_it_stands(chunk: wire.Chunk) -> None:
    error = failure(wire.chunk({"content": "a"}), chunk)

    assert error.message == "mine reported an error: down"
    assert (error.kind, error.least_wait) == ("transient", 3.0)


def test_an_error_as_text_is_one() -> None:
    assert failure({"error": "no such thing"}).message == "mine reported an error: no such thing"


@pytest.mark.parametrize("reason", ["error", "abort", "insufficient_system_resource"])
def test_an_answer_that_breaks_off_without_a_word_is_worth_another_try(reason: str) -> None:
    error = failure(wire.chunk({"content": "a"}), wire.chunk(finish=reason))

    assert (error.kind, error.message) == ("transient", f"mine cut the answer: {reason}")


@pytest.mark.parametrize("empty", [None, {}, "", False])
def test_an_error_that_says_nothing_is_none(empty: object) -> None:
    assert read(wire.stream(wire.chunk({"content": "a"}, "stop", error=empty)))[-1] == Finished("stop")


@pytest.mark.parametrize("data", [b"{", b"[]", b'"x"', b'{"choices":[{"delta":{"content":3}}]}', b'{"choices":3}'])
def test_an_event_that_cannot_be_read_is_worth_another_try(data: bytes) -> None:
    with pytest.raises(ProviderError) as caught:
        ChatDecoder(model="m", provider="mine").feed("", data)

    assert (caught.value.kind, caught.value.message) == ("transient", "mine sent an event that cannot be read")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" ",
        b'{"object":"ping"}',
        b'{"choices":[]}',
        b'{"choices":{}}',
        b'{"choices":null}',
        b'{"error":null,"choices":null}',
    ],
)
def test_an_event_without_meaning_gives_nothing(data: bytes) -> None:
    assert list(ChatDecoder(model="m", provider="mine").feed("ping", data)) == []


def test_an_answer_to_a_schema_is_data_as_the_schema_was_given() -> None:
    strict = strict_answer({"type": "array", "items": {"type": "string"}})
    parts = answered(*wire.says('{"wrapped_answer":["a"', "]}"), is_structured=True, strict=strict)

    assert "".join(part.text for part in parts if isinstance(part, DataDelta)) == '["a"]'
    assert told(parts).blocks == [Told("data", '["a"]')]


def test_what_was_omitted_of_an_answer_to_a_schema_is_taken_out_at_the_end() -> None:
    strict = strict_answer({"type": "object", "properties": {"a": {"type": "string"}}})
    parts = answered({"content": '{"a":null}'}, is_structured=True, strict=strict)

    assert [part for part in parts if isinstance(part, DataDelta)] == [DataDelta(0, "{}")]


def test_an_answer_to_a_schema_goes_on_past_a_call() -> None:
    strict = strict_answer({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]})
    deltas = [{"content": '{"a":'}, wire.call(name="run"), {"content": '"b"}'}]

    assert told(answered(*deltas, is_structured=True, strict=strict)).blocks[0] == Told("data", '{"a":"b"}')


def test_a_request_says_how_its_answer_is_read() -> None:
    server = Server(provider="mine", kind="openai-compatible", quirks=Quirks(think_tags=False))
    wanted: JsonObject = {"type": "json_schema", "json_schema": {"schema": {"type": "object", "properties": {}}}}
    for wire_format, delta in ((wanted, DataDelta), ({"type": "json_object"}, DataDelta), ({}, TextDelta)):
        body: JsonObject = {"response_format": wire_format} if wire_format else {}
        request = WireRequest(path="", model="m", body=body, sections=Sections())
        parts = ChatDecoder.of(request, server).feed("", b'{"choices":[{"delta":{"content":"<think>"}}]}')

        assert parts == [delta(0, "<think>")]


@pytest.mark.parametrize("counted", [False, True])
def test_an_error_after_the_finish_takes_nothing_and_its_usage_counts(*, counted: bool) -> None:
    usage = wire.usage(prompt=9, output=4)["usage"] if counted else None
    late = {**wire.chunk({"content": ""}, error={"code": 503, "message": "down"}), "usage": usage}

    parts = read(wire.stream(wire.chunk({"content": "Hi"}, "stop"), late))

    reports = [part for part in parts if isinstance(part, UsageReport)]
    assert parts[-1] == Finished("stop", is_final=True)
    assert [report.usage.output for report in reports] == ([4] if counted else [])
