from __future__ import annotations

from collections.abc import Sequence

import anyio
import pytest

from doubles import MemoryRecorder, ScriptedProvider, Step, answer
from jp.app.query.inquiries import ModelRespondent, inquiry_thread, value_in
from jp.conversation.entries import ChatRequest, Question, ToolCallRequest, Usage
from jp.conversation.thread import UserText
from jp.provider.base import UsageReport, WireRequest
from jp.provider.errors import ErrorKind, ProviderError
from jp.provider.registry import ModelId
from jp.tool.base import Answer, Unanswered
from jp.turn.ports import NoCap

SURE = Question(id="sure", text="Overwrite 'a'?", kind="boolean", default=False)
CALL = ToolCallRequest(id="e", call_id="c", name="write", arguments={"path": "a"})
MODEL = ModelId("scripted", "m")


class Purse:
    def __init__(self, permitted: int) -> None:
        self._permitted = permitted

    def permits(self, request: WireRequest) -> bool:
        self._permitted -= 1
        return self._permitted >= 0


def respond(
    *answers: Sequence[Step], question: Question = SURE, permitted: int | None = None
) -> tuple[Answer | Unanswered, list[str]]:
    log: list[str] = []
    cap = NoCap() if permitted is None else Purse(permitted)
    respondent = ModelRespondent(MODEL, ScriptedProvider(*answers), cap=cap, abilities={}, log=log.append)
    stream = MemoryRecorder([ChatRequest(content="earlier"), ChatRequest(content="write it")])
    return anyio.run(respondent.answer, question, CALL, stream), log


def used(text: str, tokens: int) -> list[Step]:
    return [UsageReport(Usage(input=tokens)), *answer(text)]


def test_the_model_answers_with_json_and_its_tokens_are_told() -> None:
    assert respond(used('{"answer": true}', 5)) == (
        Answer(value=True, by="assistant", model="scripted/m", usage=Usage(input=5)),
        [],
    )


def test_what_does_not_fit_is_asked_for_once_more() -> None:
    assert respond(used("Yes!", 5), used('```\n{"answer": false}\n```', 7)) == (
        Answer(value=False, by="assistant", model="scripted/m", usage=Usage(input=12)),
        [],
    )
    found, log = respond(answer('{"answer": "yes"}'), answer("{}"))
    assert found == Unanswered(cause="nobody")
    assert log == ["write asks \"Overwrite 'a'?\", and 'scripted/m' gives no answer: its answer is not true or false"]


@pytest.mark.parametrize(("kind", "requests"), [("transient", 2), ("quota", 1)])
def test_a_failure_is_tried_again_where_that_may_help(kind: ErrorKind, requests: int) -> None:
    error = ProviderError("no luck", kind=kind)

    found, log = respond([error], answer('{"answer": true}'))

    assert isinstance(found, Answer) == (requests == 2)
    assert len(log) == 2 - requests


def test_nothing_is_asked_that_the_limit_on_costs_forbids() -> None:
    found, log = respond(permitted=0)

    assert found == Unanswered(cause="nobody")
    assert "limit on costs" in log[0]


def test_the_model_is_told_the_request_the_call_and_the_question() -> None:
    question = Question(id="q", text="Which?", kind="select", options=("a", "b"), default="a")
    entries = [ChatRequest(content="earlier"), ChatRequest(content="x" * 9000 + "end")]

    thread = inquiry_thread("m", question, CALL, entries)

    assert thread.schema is not None
    assert thread.schema["properties"] == {"answer": {"type": "string", "enum": ["a", "b"]}}
    (event,) = thread.events
    assert isinstance(event, UserText)
    assert event.text == (
        f"<request>\n{'x' * 4000}\n[… 1,003 characters …]\n{'x' * 3997}end\n</request>\n\n"
        '<call>\nwrite {"path":"a"}\n</call>\n\n<question>\nWhich?\n</question>\n\n'
        "The answer is one of 'a', 'b'; the tool proposes \"a\"."
    )
    call = ToolCallRequest(call_id="c", name="write", arguments="path")
    (plain,) = inquiry_thread("m", Question(id="q", text="Which?", kind="text"), call, []).events
    assert isinstance(plain, UserText)
    assert plain.text.endswith("write path\n</call>\n\n<question>\nWhich?\n</question>\n\nThe answer is a text.")


@pytest.mark.parametrize(
    ("text", "value"),
    [('{"answer": 1}', 1), ('{"answer": null}', None), ("[1]", None), ("no", None), ('{"other": 1}', None)],
)
def test_the_answer_is_the_member_of_an_object(text: str, value: object) -> None:
    assert value_in(text) == value
