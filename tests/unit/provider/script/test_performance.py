from __future__ import annotations

import pytest

from jp.conversation.entries import Usage
from jp.conversation.resource import TextBlock
from jp.conversation.thread import AssistantText, Thread, ToolCall, ToolResult, UserText, ViewEvent
from jp.provider.base import (
    BlockEnd,
    Finished,
    Part,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallStart,
    UsageReport,
)
from jp.provider.script.provider import Casting, response_to
from jp.provider.script.scenario import Call, Failure, Reply, Scenario, Tokens, body_of

NO_TOKENS = Tokens()
ASKED = (UserText(text='Say "hi"', turn=0),)


def parts(reply: Reply, events: tuple[ViewEvent, ...] = ASKED, *, failing: bool = False) -> list[Part]:
    body = body_of(Thread(model="m", system=(), tools=(), events=events))
    cue = Casting(Scenario(reply=(reply,)), body).cue()
    assert cue is not None
    return list(response_to(body, cue, failing=failing))


def test_a_reply_comes_as_reasoning_text_and_calls_in_pieces() -> None:
    reply = Reply(
        reasoning="Hmm",
        text="Hello",
        calls=(Call(name="read", arguments={"a": 1}), Call(name="write", arguments="{")),
        chunk=3,
        usage=Tokens(input=1, output=2, cache_read=3, cache_write=4, reasoning=5),
    )

    assert parts(reply) == [
        ReasoningDelta(0, "Hmm"),
        BlockEnd(0),
        TextDelta(1, "Hel"),
        TextDelta(1, "lo"),
        BlockEnd(1),
        ToolCallStart(2, "call-1", "read"),
        ToolArgumentsDelta(2, '{"a'),
        ToolArgumentsDelta(2, '":1'),
        ToolArgumentsDelta(2, "}"),
        BlockEnd(2),
        ToolCallStart(3, "call-2", "write"),
        ToolArgumentsDelta(3, "{"),
        BlockEnd(3),
        UsageReport(Usage(input=1, output=2, cache_read=3, cache_write=4, reasoning=5)),
        Finished("tools"),
    ]


def test_an_empty_answer_is_one() -> None:
    assert parts(Reply(text="", usage=NO_TOKENS)) == [UsageReport(Usage()), Finished("stop")]


def test_a_stop_and_its_detail_are_passed_on() -> None:
    assert parts(Reply(stop="refused", detail="No.", usage=NO_TOKENS))[-1] == Finished("refused", "No.")
    assert parts(Reply(text="a", stop="length", usage=NO_TOKENS))[-1] == Finished("length")


def test_calls_are_numbered_through_the_conversation() -> None:
    before = (
        *ASKED,
        ToolCall(call_id="call-1", name="read", arguments={}, turn=0, origin="e"),
        ToolResult(call="e", call_id="call-1", name="read", content=(TextBlock(text="x"),), turn=0),
    )

    assert ToolCallStart(2, "call-2", "read") in parts(Reply(calls=(Call(name="read"),)), before)


def test_placeholders_are_filled_everywhere_and_arguments_stay_json() -> None:
    reply = Reply(
        reasoning="1 {{user}}",
        text="2 {{user}}",
        calls=(
            Call(name="a", arguments={"deep": [{"{{turn}}": "3 {{user}}"}, 4, None]}),
            Call(name="b", arguments="{{user}}"),
        ),
        chunk=1000,
    )

    said = parts(reply)

    assert ReasoningDelta(0, '1 Say "hi"') in said
    assert TextDelta(1, '2 Say "hi"') in said
    assert ToolArgumentsDelta(2, r'{"deep":[{"0":"3 Say \"hi\""},4,null]}') in said
    assert ToolArgumentsDelta(3, 'Say "hi"') in said


def test_usage_is_estimated_where_none_is_given() -> None:
    reply = Reply(reasoning="x" * 40, text="x" * 80, calls=(Call(name="read", arguments={"a": "x" * 32}),))

    (report,) = [part for part in parts(reply) if isinstance(part, UsageReport)]

    assert report.usage == Usage(input=11, output=40, reasoning=10)


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (None, []),
        (0, [ReasoningDelta(0, "Hmm"), BlockEnd(0)]),
        (2, [ReasoningDelta(0, "Hmm"), BlockEnd(0), TextDelta(1, "He")]),
        (99, [ReasoningDelta(0, "Hmm"), BlockEnd(0), TextDelta(1, "Hello")]),
    ],
)
def test_an_error_ends_a_reply_where_it_strikes(after: int | None, expected: list[Part]) -> None:
    reply = Reply(reasoning="Hmm", text="Hello", error=Failure(kind="cut", after=after))

    assert parts(reply, failing=True) == expected


def test_an_error_that_does_not_strike_changes_nothing() -> None:
    reply = Reply(text="Hello", error=Failure(kind="cut", after=2), usage=NO_TOKENS)

    assert parts(reply) == [TextDelta(1, "Hello"), BlockEnd(1), UsageReport(Usage()), Finished("stop")]


def test_going_on_repeats_neither_reasoning_nor_text() -> None:
    cut = (*ASKED, AssistantText(text="Hel", turn=0), UserText(text="Continue.", turn=0, synthetic=True))

    assert parts(Reply(reasoning="Hmm", text="Hello", usage=NO_TOKENS), cut) == [
        TextDelta(1, "lo"),
        BlockEnd(1),
        UsageReport(Usage()),
        Finished("stop"),
    ]
