from __future__ import annotations

from jp.conversation.entries import ChatResponse, ToolCallRequest, Usage
from jp.provider.base import (
    BlockEnd,
    DataDelta,
    Finished,
    KeepAlive,
    Part,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallStart,
    UsageReport,
)
from jp.turn.builder import EntryBuilder


def built(*parts: Part) -> list[ChatResponse | ToolCallRequest]:
    builder = EntryBuilder()
    return [entry for part in parts if (entry := builder.feed(part)) is not None]


def test_a_message_is_recorded_when_its_block_ends() -> None:
    assert built(TextDelta(0, "Hel"), TextDelta(0, "lo")) == []
    assert built(TextDelta(0, "Hel"), TextDelta(0, "lo"), BlockEnd(0)) == [ChatResponse(message="Hello")]


def test_interleaved_blocks_stay_apart() -> None:
    entries = built(
        ToolCallStart(1, "a", "read"),
        ToolCallStart(2, "b", "write"),
        ToolArgumentsDelta(2, '{"x":'),
        ToolArgumentsDelta(1, '{"y":1}'),
        ToolArgumentsDelta(2, "2}"),
        BlockEnd(2),
        BlockEnd(1, {"provider": "p"}),
    )

    assert entries == [
        ToolCallRequest(call_id="b", name="write", arguments={"x": 2}),
        ToolCallRequest(call_id="a", name="read", arguments={"y": 1}, metadata={"provider": "p"}),
    ]


def test_the_first_name_and_id_of_a_call_count() -> None:
    entries = built(ToolCallStart(0, "a", "read"), ToolCallStart(0, "b", "write"), BlockEnd(0))

    assert entries == [ToolCallRequest(call_id="a", name="read", arguments={})]


def test_arguments_that_are_no_object_are_kept_as_text() -> None:
    def arguments(text: str) -> object:
        entry = built(ToolCallStart(0, "a", "read"), ToolArgumentsDelta(0, text), BlockEnd(0))[0]
        assert isinstance(entry, ToolCallRequest)
        return entry.arguments

    assert arguments('{"a":') == '{"a":'
    assert arguments("[1]") == "[1]"
    assert arguments("  ") == {}


def test_arguments_that_are_nested_too_deeply_are_kept_as_text() -> None:
    deep = '{"a":' * 20_000 + "1" + "}" * 20_000
    (entry,) = built(ToolCallStart(0, "a", "read"), ToolArgumentsDelta(0, deep), BlockEnd(0))

    assert isinstance(entry, ToolCallRequest)
    assert entry.arguments == deep


def test_reasoning_without_text_is_kept_for_its_metadata() -> None:
    redacted = {"provider": "p", "redacted": "x"}

    assert built(ReasoningDelta(0, ""), BlockEnd(0, redacted)) == [ChatResponse(reasoning="", metadata=redacted)]
    assert built(ReasoningDelta(0, ""), BlockEnd(0)) == []


def test_an_empty_message_is_none() -> None:
    assert built(TextDelta(0, ""), BlockEnd(0)) == []
    assert built(BlockEnd(7)) == []


def test_structured_output_is_decoded() -> None:
    assert built(DataDelta(0, '{"a":'), DataDelta(0, "[1]}"), BlockEnd(0)) == [ChatResponse(data={"a": [1]})]


def test_structured_output_that_is_no_json_is_kept_as_text() -> None:
    assert built(DataDelta(0, "sorry"), BlockEnd(0)) == [ChatResponse(data="sorry", text="sorry")]
    assert built(DataDelta(0, '"sorry"'), BlockEnd(0)) == [ChatResponse(data="sorry")]
    assert built(DataDelta(0, ""), BlockEnd(0)) == []
    assert built(DataDelta(0, " \n"), BlockEnd(0)) == []


def test_structured_output_in_words_is_taken_out_of_them_and_they_are_kept() -> None:
    text = 'Sure:\n```json\n{"a": 1}\n```\n'

    assert built(DataDelta(0, text), BlockEnd(0)) == [ChatResponse(data={"a": 1}, text=text)]


def test_structured_output_that_was_cut_is_kept_as_it_came() -> None:
    builder = EntryBuilder()
    builder.feed(DataDelta(0, '{"a": {"b": 1}, "c'))

    assert builder.cut() == [ChatResponse(data='{"a": {"b": 1}, "c', text='{"a": {"b": 1}, "c')]


def test_a_cut_keeps_text_and_drops_half_a_call() -> None:
    builder = EntryBuilder()
    for part in (ReasoningDelta(0, "hm"), TextDelta(1, "So"), ToolCallStart(2, "a", "read"), TextDelta(3, "")):
        builder.feed(part)

    assert builder.cut() == [ChatResponse(reasoning="hm"), ChatResponse(message="So")]
    assert builder.dropped_calls == ["read"]
    assert builder.cut() == []


def test_what_the_provider_reports_is_at_hand() -> None:
    builder = EntryBuilder()
    for part in (KeepAlive(), UsageReport(Usage(input=1)), UsageReport(Usage(input=1, output=2)), Finished("stop")):
        builder.feed(part)

    assert (builder.usage, builder.finished) == (Usage(input=1, output=2), Finished("stop"))
    assert not builder.answered


def test_reasoning_is_no_answer_but_text_and_data_are() -> None:
    def answers(part: Part) -> bool:
        builder = EntryBuilder()
        builder.feed(part)
        return builder.answered

    assert answers(TextDelta(0, "x"))
    assert answers(DataDelta(0, "1"))
    assert not answers(ReasoningDelta(0, "x"))
    assert not answers(TextDelta(0, ""))


def test_structured_output_keeps_its_metadata_and_what_is_around_it() -> None:
    metadata = {"provider": "p"}

    assert built(DataDelta(0, '{"x": 1}'), BlockEnd(0, metadata)) == [ChatResponse(data={"x": 1}, metadata=metadata)]
    assert built(DataDelta(0, "cut {"), BlockEnd(0, metadata)) == [
        ChatResponse(data="cut {", text="cut {", metadata=metadata)
    ]
    assert built(DataDelta(0, 'Here: {"x": 1}'), BlockEnd(0, metadata)) == [
        ChatResponse(data={"x": 1}, text='Here: {"x": 1}', metadata=metadata)
    ]
    assert built(DataDelta(0, "  "), BlockEnd(0, metadata)) == []
