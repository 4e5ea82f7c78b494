from __future__ import annotations

import msgspec
import pytest

from jp.conversation.entries import JsonObject, Usage
from jp.provider.base import (
    BlockEnd,
    DataDelta,
    Finished,
    KeepAlive,
    Part,
    ReasoningDelta,
    Sections,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallStart,
    UsageReport,
    WireRequest,
)
from jp.provider.errors import ProviderError
from jp.provider.ollama.response import OllamaDecoder

MADE = {"provider": "den", "model": "m"}


def read(*lines: JsonObject | bytes, **body: object) -> list[Part]:
    asked: JsonObject = {"messages": [{"role": "user", "content": "Hi"}], "options": {"num_ctx": 100}, **body}
    decoder = OllamaDecoder(WireRequest(path="", model="m", body=asked, sections=Sections()), provider="den")
    parts: list[Part] = []
    for line in lines:
        parts += decoder.feed("", line if isinstance(line, bytes) else msgspec.json.encode(line))
    return [*parts, *decoder.close()]


def said(**message: object) -> JsonObject:
    return {"message": {"role": "assistant", **message}, "done": False}


def done(reason: str | None = "stop", **counts: int) -> JsonObject:
    return {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": reason, **counts}


def call(name: str = "run", **more: object) -> JsonObject:
    return {"function": {"name": name, "arguments": {"a": 1}}, **more}


def test_thoughts_text_and_calls_are_blocks_of_their_own_in_the_order_in_which_they_come() -> None:
    parts = read(
        said(content="", thinking="hm"),
        said(content="", thinking=" so"),
        said(content="Yes"),
        said(content=None, thinking="late"),
        said(content="", tool_calls=[call(id="x"), call("look")]),
        done(prompt_eval_count=9, eval_count=5),
    )

    assert parts == [
        ReasoningDelta(0, "hm"),
        ReasoningDelta(0, " so"),
        BlockEnd(0, MADE),
        TextDelta(1, "Yes"),
        BlockEnd(1),
        ReasoningDelta(2, "late"),
        BlockEnd(2, MADE),
        ToolCallStart(3, "x", "run"),
        ToolArgumentsDelta(3, '{"a":1}'),
        BlockEnd(3),
        ToolCallStart(4, "call_4", "look"),
        ToolArgumentsDelta(4, '{"a":1}'),
        BlockEnd(4),
        UsageReport(Usage(input=9, output=5)),
        Finished("tools"),
    ]


def test_thoughts_that_are_left_in_the_text_are_taken_out_of_it() -> None:
    assert read(said(content="<think>"), said(content="hm</think>"), said(content="\n\nYes"), done()) == [
        KeepAlive(),
        ReasoningDelta(0, "hm"),
        BlockEnd(0, MADE),
        TextDelta(1, "Yes"),
        BlockEnd(1),
        UsageReport(Usage()),
        Finished("stop"),
    ]
    assert read(said(content="<thi"), done())[1] == TextDelta(0, "<thi")
    assert read(said(content="<"), said(tool_calls=[call()]))[1] == TextDelta(0, "<")
    assert read(said(content="<"), said(thinking="a"))[1] == TextDelta(0, "<")


def test_ids_that_repeat_are_told_apart() -> None:
    parts = read(said(tool_calls=[call(id="x"), call(id="x_2"), call(id="x")]))

    assert [part.call_id for part in parts if isinstance(part, ToolCallStart)] == ["x", "x_2", "x_2_2"]


def test_text_is_data_where_a_schema_holds_it() -> None:
    assert read(said(content="{}"), format={"type": "object"}) == [DataDelta(0, "{}")]
    assert read(said(content="{}"), format="json") == [TextDelta(0, "{}")]


@pytest.mark.parametrize("line", [{"done": False}, {"status": "loading"}, said(content="")])
def test_a_line_that_says_nothing_shows_that_the_server_is_there(line: JsonObject) -> None:
    assert read(line) == [KeepAlive()]


def test_an_answer_without_the_last_line_is_not_finished() -> None:
    assert read(said(content="Yes")) == [TextDelta(0, "Yes")]


@pytest.mark.parametrize(
    ("reason", "finish"), [("stop", "stop"), (None, "stop"), ("length", "length"), ("load", "stop")]
)
def test_an_answer_ends_as_the_server_says(reason: str | None, finish: str) -> None:
    ending = read(said(content="a"), done(reason))[-1]

    assert isinstance(ending, Finished)
    assert ending.reason == finish


def test_what_came_from_the_cache_is_counted_apart() -> None:
    assert read(done(prompt_eval_count=50, prompt_eval_cached_count=40, eval_count=2))[0] == UsageReport(
        Usage(input=10, output=2, cache_read=40)
    )


def failure(*lines: JsonObject | bytes, **body: object) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        read(*lines, **body)
    return caught.value


def test_an_answer_that_filled_the_window_is_too_long_and_not_continued() -> None:
    error = failure(done("length", prompt_eval_count=60, eval_count=40))

    assert error.kind == "context_too_long"
    assert error.message == "the context window of 'm' is full: the answer is incomplete; the output so far is kept"
    assert error.hint.startswith("set `providers.llm.den.context_window` higher than 100, ")


def test_an_answer_to_half_a_request_is_none() -> None:
    error = failure(said(content="a"), done(prompt_eval_count=100, eval_count=4))

    assert error.kind == "context_too_long"
    assert error.message == (
        "den did not read the whole request: the request filled all of the 100 tokens that it holds"
    )
    assert "providers.llm.den.context_window" in error.hint


@pytest.mark.parametrize(
    ("line", "kind", "message"),
    [
        ({"error": "upstream fell over"}, "transient", "den reported an error: upstream fell over"),
        ({"error": {"message": "odd"}}, "other", "den reported an error: odd"),
        ({"error": "rate", "done": "perhaps"}, "other", "den reported an error: rate"),
        (
            {"error": "the input length exceeds the context length"},
            "context_too_long",
            "den reported an error: the input",
        ),
        (b"{", "transient", "den sent a line that cannot be read"),
        (b"\xff", "transient", "den sent a line that cannot be read"),
        ({"done": "perhaps"}, "transient", "den sent a line that cannot be read"),
    ],
)
def test_an_error_in_the_stream_is_one(line: JsonObject | bytes, kind: str, message: str) -> None:
    error = failure(said(content="a"), line)

    assert (error.kind, error.message[: len(message)]) == (kind, message)
    assert ("context_window" in error.hint) == (kind == "context_too_long")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [({"a": 1}, '{"a":1}'), ('{"a":1}', '{"a":1}'), ("", ""), (None, ""), ([1], "[1]")],
)
def test_arguments_may_be_an_object_or_its_text(arguments: object, text: str) -> None:
    parts = read(said(tool_calls=[{"function": {"name": "run", "arguments": arguments}}]), done())

    assert ToolArgumentsDelta(0, text) in parts


def test_a_call_without_a_name_is_none() -> None:
    with pytest.raises(ProviderError, match="den sent a call without a name"):
        read(said(tool_calls=[call("")]))
