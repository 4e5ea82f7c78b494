from __future__ import annotations

import pytest

from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    CycleEnd,
    Finish,
    Header,
    RequestContext,
    Revert,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
    Unknown,
)
from jp.conversation.resource import INTERRUPTED_CONTENT, NOT_STARTED_CONTENT, Block, TextBlock
from jp.conversation.turns import Repair, repair

ASKED: list[AnyEntry] = [
    Header(id="h", format=1, created_at="t", nonce="n"),
    TurnStart(id="t1"),
    ChatRequest(id="q1", content="do it"),
]
SENT: list[AnyEntry] = [*ASKED, RequestContext(id="r1", provider="p", model="m", renderer=1)]
UNFINISHED = Repair(notices=("the last turn was not finished: its answer is kept as far as it came",))


def call(identity: str, name: str = "rm") -> ToolCallRequest:
    return ToolCallRequest(id=identity, call_id="same", name=name, arguments={})


def answer(request: str) -> ToolCallResponse:
    return ToolCallResponse(id=f"to-{request}", request=request, content=(TextBlock(text="done"),))


def end(finish: Finish) -> CycleEnd:
    return CycleEnd(attempt=1, finish=finish)


def answered_by_repair(entries: list[AnyEntry]) -> list[str]:
    return [entry.request for entry in repair(entries).entries]


@pytest.mark.parametrize(
    "entries",
    [
        [],
        ASKED[:1],
        ASKED[:2],
        [*ASKED, ChatResponse(message="done"), end("stop")],
        [*ASKED, call("c1"), end("tools"), answer("c1")],
        [*ASKED, call("c1"), end("tools"), answer("c1"), ChatResponse(message="done"), end("stop")],
        [*ASKED, end("error")],
        [*ASKED, ChatResponse(reasoning="hm")],
    ],
    ids=range(8),
)
def test_a_stream_that_lacks_nothing_is_left_alone(entries: list[AnyEntry]) -> None:
    assert repair(entries) == Repair()


def test_an_open_call_gets_an_error_that_says_what_is_not_known() -> None:
    found = repair([*ASKED, call("c1"), end("tools")])

    assert found.entries == (ToolCallResponse(request="c1", content=INTERRUPTED_CONTENT, is_error=True),)
    assert "'rm'" in found.notices[0]


def test_a_call_whose_attempt_did_not_end_is_open_too() -> None:
    assert answered_by_repair([*ASKED, ChatResponse(message="I will"), call("c1")]) == ["c1"]


@pytest.mark.parametrize("ended", [[], [end("cancelled")]], ids=["killed", "stopped"])
def test_a_call_whose_attempt_had_no_end_when_jp_stopped_was_never_run(ended: list[AnyEntry]) -> None:
    found = repair([*SENT, call("c1"), *ended])

    assert found.entries == (ToolCallResponse(request="c1", content=NOT_STARTED_CONTENT, is_error=True),)
    assert found.notices == (
        "the last run stopped before tool calls ('rm') were run: the model is told that they were not",
    )


def test_a_call_of_an_original_may_have_run_whatever_came_later() -> None:
    later: list[AnyEntry] = [TurnStart(id="t2"), ChatRequest(id="q2", content="and?"), *SENT[-1:], call("c2")]

    contents = [entry.content for entry in repair([*ASKED, call("c1"), *later]).entries]

    assert contents == [INTERRUPTED_CONTENT, NOT_STARTED_CONTENT]


def test_only_calls_without_a_response_are_answered_in_their_order() -> None:
    entries = [*ASKED, call("c1", "a"), call("c2", "b"), call("c3", "c"), call("c4", "b"), end("tools"), answer("c2")]

    found = repair(entries)

    assert [entry.request for entry in found.entries] == ["c1", "c3", "c4"]
    assert found.notices == (
        "the last run stopped during tool calls ('a', 'b', 'c'): the model is told that their effects are unknown",
    )


def test_a_repaired_stream_needs_no_repair() -> None:
    entries = [*ASKED, call("c1"), call("c2"), end("tools")]

    assert repair([*entries, *repair(entries).entries]) == Repair()


def test_only_the_calls_of_the_attempt_that_counted_are_answered() -> None:
    entries = [*ASKED, call("c1"), end("error"), call("c2"), end("tools")]

    assert answered_by_repair(entries) == ["c2"]
    assert repair([*entries, answer("c2")]) == Repair()


@pytest.mark.parametrize("finish", ["error", "refused"])
def test_calls_of_an_attempt_that_did_not_count_were_never_run_and_need_none(finish: Finish) -> None:
    entries = [*ASKED, ChatResponse(message="I will"), call("c1"), end(finish)]

    assert repair(entries) == Repair()
    assert repair([*entries, ChatResponse(message="more"), end("stop")]) == Repair()


@pytest.mark.parametrize("finish", ["tools", "stop", "length", "cancelled"])
def test_calls_of_any_other_attempt_need_one(finish: Finish) -> None:
    assert answered_by_repair([*ASKED, call("c1"), end(finish)]) == ["c1"]


def test_calls_of_earlier_turns_are_answered_too() -> None:
    entries = [*ASKED, call("c1"), end("tools"), TurnStart(id="t2"), ChatRequest(id="q2", content="and?")]

    assert answered_by_repair(entries) == ["c1"]


@pytest.mark.parametrize(
    "raw",
    [
        b'{"type":"tool_call_response","request":"c1","content":[{"type":"hologram"}]}',
        b'{"request":"c1","type":"tool_call_response","content":"later"}',
    ],
    ids=["unknown-block", "unknown-form"],
)
def test_a_response_of_a_later_version_is_a_response(raw: bytes) -> None:
    entries = [*ASKED, call("c1"), end("tools"), Unknown(raw=raw, type="tool_call_response")]

    assert repair(entries) == Repair()


@pytest.mark.parametrize(
    "other",
    [
        Unknown(raw=b'{"type":"tool_call_response"}', type="tool_call_response"),
        Unknown(raw=b'{"type":"tool_call_response","request":["c1"]}', type="tool_call_response"),
        Unknown(raw=b'{"type":"remark","request":"c1"}', type="remark"),
    ],
    ids=["names-nothing", "names-several", "another-type"],
)
def test_other_unknown_entries_answer_nothing(other: Unknown) -> None:
    assert answered_by_repair([*ASKED, call("c1"), end("tools"), other]) == ["c1"]


def test_a_request_to_which_no_answer_came_is_told_and_stays() -> None:
    found = repair(ASKED)

    assert found.entries == ()
    assert len(found.notices) == 1
    assert "before an answer came" in found.notices[0]


@pytest.mark.parametrize(
    "came",
    [
        [ChatResponse(message="Let me")],
        [ChatResponse(reasoning="hm")],
        [ChatResponse(message="Let "), end("error"), ChatResponse(message="me")],
        [call("c1"), end("tools"), answer("c1")],
        [call("c1"), end("tools"), answer("c1"), ChatResponse(message="So")],
        [call("c1"), answer("c1")],
    ],
    ids=["message", "reasoning", "retried", "responses", "after-responses", "no-end"],
)
def test_a_last_turn_without_an_end_is_told_and_left_alone(came: list[AnyEntry]) -> None:
    assert repair([*SENT, *came]) == UNFINISHED
    again: list[AnyEntry] = [TurnStart(id="t2"), ChatRequest(id="q2", content="and?"), end("stop")]
    assert repair([*SENT, *came, *again]) == Repair()


@pytest.mark.parametrize(
    "came",
    [
        [ChatResponse(message="Done."), end("stop")],
        [call("c1"), end("tools"), answer("c1"), ChatResponse(message="Done."), end("stop")],
        [ChatResponse(message="Let"), end("cancelled")],
    ],
    ids=["answered", "answered-after-tools", "stopped"],
)
def test_of_a_turn_that_came_to_its_end_nothing_is_told(came: list[AnyEntry]) -> None:
    assert repair([*SENT, *came]) == Repair()


@pytest.mark.parametrize("content", [INTERRUPTED_CONTENT, NOT_STARTED_CONTENT], ids=["running", "not-started"])
def test_a_turn_that_was_stopped_among_its_tools_has_told_so(content: tuple[Block, ...]) -> None:
    stopped = ToolCallResponse(id="s", request="c2", content=content, is_error=True)

    assert repair([*SENT, call("c1"), call("c2"), end("tools"), answer("c1"), stopped]) == Repair()


def test_of_a_turn_that_was_undone_nothing_is_told() -> None:
    assert repair([*SENT, ChatResponse(message="Let"), Revert(id="x", entries=("t1",))]) == Repair()
    assert repair([*SENT, Revert(id="x", entries=("t1",))]) == Repair()
