from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from jp.app.query.structured import InvalidAnswer, NoAnswer, TruncatedAnswer, ValidAnswer, Verdict, judge
from jp.app.schema_checker import Checker
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    CycleEnd,
    Finish,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
)

CHECKER = Checker({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})


def judged(entries: Sequence[AnyEntry], checker: Checker) -> Verdict:
    return anyio.run(judge, entries, checker)


def data(value: Any, text: str | None = None) -> ChatResponse:
    return ChatResponse(data=value, text=text)


def text(came: str) -> ChatResponse:
    return ChatResponse(data=came, text=came)


def turn(*answers: ChatResponse, finish: Finish = "stop") -> list[AnyEntry]:
    return [TurnStart(), ChatRequest(content="q"), *answers, CycleEnd(attempt=1, finish=finish)]


@pytest.mark.parametrize(
    ("entries", "verdict"),
    [
        (turn(data({"a": 1})), ValidAnswer({"a": 1})),
        (turn(ChatResponse(reasoning="hm"), data({"a": 1}, 'So: {"a": 1}')), ValidAnswer({"a": 1})),
        (turn(data({"a": 1}), data({"a": 1})), ValidAnswer({"a": 1})),
        (turn(text("Here it is:"), data({"a": 1})), ValidAnswer({"a": 1})),
        (turn(data({"a": "x"})), InvalidAnswer(('/a: "x" is not of type integer',))),
        (turn(data({"a": 1}), data({"a": 2})), InvalidAnswer(("it holds several JSON values",))),
        (turn(text("no")), InvalidAnswer(("it holds no JSON value",))),
        (turn(text("no"), text('{"a": 1, ')), InvalidAnswer(("its JSON is not well formed",))),
        (turn(text('{"a": 1} {"a": 2}')), InvalidAnswer(("it holds several JSON values",))),
        (turn(data("a text")), InvalidAnswer(('the top: "a text" is not of type object',))),
        (turn(data({"a": 1}), finish="length"), TruncatedAnswer()),
        (turn(finish="length"), TruncatedAnswer()),
        (turn(), NoAnswer()),
        (turn(ChatResponse(message="said before there was a schema")), NoAnswer()),
        ([TurnStart(), ChatRequest(content="q")], NoAnswer()),
        ([], NoAnswer()),
    ],
)
def test_the_answer_of_a_turn_is_judged(entries: list[AnyEntry], verdict: Verdict) -> None:
    assert judged(entries, CHECKER) == verdict


def test_only_the_last_cycle_of_the_last_turn_is_an_answer() -> None:
    call = ToolCallRequest(id="c", call_id="c", name="run", arguments={})
    entries = [
        *turn(data({"a": 1})),
        *turn(data({"a": 2}), finish="tools")[:-1],
        call,
        CycleEnd(attempt=1, finish="tools"),
        ToolCallResponse(request="c", content=()),
    ]

    assert judged(entries, CHECKER) == ValidAnswer({"a": 2})
    assert judged([*entries, CycleEnd(attempt=1, finish="stop")], CHECKER) == NoAnswer()
    assert judged([*entries, data({"a": 3}), CycleEnd(attempt=1, finish="stop")], CHECKER) == ValidAnswer({"a": 3})


def test_an_attempt_that_failed_is_no_answer() -> None:
    entries = [*turn(text('{"a": 1')), CycleEnd(attempt=1, finish="error"), data({"a": 2})]

    assert judged([*entries, CycleEnd(attempt=2, finish="stop")], CHECKER) == ValidAnswer({"a": 2})


PATTERNED = Checker({"type": "object", "properties": {"a": {"pattern": "^a+$"}}})


@pytest.mark.parametrize(
    ("value", "verdict"),
    [({"a": "aa"}, ValidAnswer({"a": "aa"})), ({"a": "b"}, InvalidAnswer(('/a: "b" does not have pattern "^a+$"',)))],
)
def test_an_answer_is_searched_for_the_patterns_of_its_schema(value: Any, verdict: Verdict) -> None:
    assert judged(turn(data(value)), PATTERNED) == verdict
