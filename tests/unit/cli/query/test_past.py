from __future__ import annotations

from jp.app.query.earlier_turns import answer_of, calls_of, effective_turns, last_answer, request_of
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    CycleEnd,
    Revert,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
)
from jp.conversation.resource import Resource, TextBlock
from jp.conversation.turns import Turn

A, B = Resource(uri="file:///a", text="a"), Resource(uri="file:///b", text="b")


def turn(*entries: AnyEntry) -> Turn:
    (found,) = effective_turns((TurnStart(id="t"), *entries))
    return found


def asked(number: int, answer: str) -> list[AnyEntry]:
    return [
        TurnStart(id=f"t{number}"),
        ChatRequest(id=f"r{number}", content=f"question {number}"),
        ChatResponse(id=f"m{number}", message=answer),
        CycleEnd(id=f"c{number}", attempt=1, finish="stop"),
    ]


def test_turns_that_were_undone_do_not_count_and_numbers_stay() -> None:
    entries = [*asked(0, "a"), *asked(1, "b"), *asked(2, "c"), Revert(id="x", entries=("t1",))]

    assert [found.number for found in effective_turns(entries)] == [0, 2]


def test_what_was_added_to_a_request_later_is_a_part_of_it() -> None:
    found = request_of(
        turn(
            ChatRequest(content="one", resources=(A,), attachments=("file:a",), schema={"a": 1}, author="me"),
            ChatResponse(message="…"),
            CycleEnd(attempt=1, finish="cancelled"),
            ChatRequest(content=" ", resources=(B,), attachments=("file:a", "file:b"), schema={"b": 1}),
            ChatRequest(content="two"),
        )
    )

    assert found == ChatRequest(
        content="one\n\ntwo", resources=(A, B), attachments=("file:a", "file:b"), schema={"b": 1}, author="me"
    )


def test_a_turn_may_lack_a_request_and_an_answer() -> None:
    empty = turn()

    assert request_of(empty) is None
    assert answer_of(empty) == ""
    assert request_of(turn(ChatRequest(content="x"))) == ChatRequest(content="x")


def test_the_answer_is_what_was_said_last_without_reasoning() -> None:
    found = turn(
        ChatRequest(content="x"),
        ChatResponse(message="Let me look."),
        ToolCallRequest(id="k", call_id="1", name="fs_read_file", arguments={}),
        CycleEnd(attempt=1, finish="tools"),
        ToolCallResponse(request="k", content=(TextBlock(text="r"),)),
        ChatResponse(reasoning="hm", metadata={"signature": "s"}),
        ChatResponse(message="One."),
        ChatResponse(message="Two.\n"),
        CycleEnd(attempt=1, finish="stop"),
    )

    assert answer_of(found) == "One.\n\nTwo."
    assert calls_of(found) == ("fs_read_file",)


def test_where_the_last_cycle_says_nothing_the_one_before_it_counts() -> None:
    found = turn(
        ChatRequest(content="x"),
        ChatResponse(message="Let me look."),
        ToolCallRequest(id="k", call_id="1", name="fs_read_file", arguments={}),
        CycleEnd(attempt=1, finish="tools"),
        ToolCallResponse(request="k", content=(TextBlock(text="r"),)),
        CycleEnd(attempt=1, finish="error"),
    )

    assert answer_of(found) == "Let me look."


def test_a_message_that_was_continued_is_whole() -> None:
    found = turn(
        ChatRequest(content="x"),
        ChatResponse(message="half a "),
        CycleEnd(attempt=1, finish="error"),
        ChatResponse(message="sentence"),
        CycleEnd(attempt=2, finish="stop"),
    )

    assert answer_of(found) == "half a sentence"


def test_structured_output_is_an_answer_as_json() -> None:
    assert answer_of(turn(ChatResponse(data={"a": [1]}), CycleEnd(attempt=1, finish="stop"))) == '{"a":[1]}'
    assert answer_of(turn(ChatResponse(data="cut {"), CycleEnd(attempt=1, finish="stop"))) == "cut {"


def test_the_last_answer_of_a_stream_is_that_of_the_last_turn_that_has_one() -> None:
    unanswered: list[AnyEntry] = [TurnStart(id="t9"), ChatRequest(id="r9", content="?")]

    assert last_answer([*asked(0, "a"), *asked(1, "b"), *unanswered]) == "b"
    assert last_answer([*asked(0, "a"), *asked(1, "b"), Revert(id="x", entries=("t1",))]) == "a"
    assert last_answer(unanswered) == ""
