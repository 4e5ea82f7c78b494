from __future__ import annotations

import pytest

from jp.cli.approval_question import PREVIEW_LINES, answer_to, call_question, result_question
from jp.conversation.entries import JsonObject, ToolCallRequest
from jp.conversation.resource import TextBlock
from jp.tool.approver import Proposal
from jp.tool.base import ToolOutput

LONG = "x" * 100


def proposal(arguments: JsonObject, preview: str | None = None) -> Proposal:
    call = ToolCallRequest(id="e1", call_id="x", name="write", arguments=arguments)
    return Proposal(call=call, arguments=arguments, preview=preview, problems=lambda _: ())


def introduction(arguments: JsonObject, preview: str | None = None) -> str:
    return call_question(proposal(arguments, preview), colour=False).introduction


def test_short_arguments_stand_in_the_question_and_all_of_them_where_they_are_wanted() -> None:
    question = call_question(proposal({"path": "a\x1b[2J", "lines": 3}), colour=False)

    assert question.text == 'Run write(path="a\\u001b[2J", lines=3)?'
    assert question.introduction == ""
    assert question.whole == '{\n  "path": "a\\u001b[2J",\n  "lines": 3\n}\n'


def test_arguments_that_the_question_shortens_stand_before_it() -> None:
    assert introduction({"path": "a", "text": f"one\n{LONG}\n\x1b[2Jtwo"}) == (
        f'path: "a"\ntext: \n  one\n  {LONG}\n  two\n'
    )
    assert introduction({"list": [LONG]}) == f'list: ["{LONG}"]\n'


def test_of_very_many_lines_the_first_are_shown_and_how_many_there_are() -> None:
    assert introduction({"text": "line\n" * 100}).endswith(f"  line\n({101 - PREVIEW_LINES} more lines)\n")


def test_what_the_tool_says_stands_before_the_question_and_with_all_of_it() -> None:
    question = call_question(proposal({"text": LONG}, "would write x"), colour=False)

    assert question.introduction == "would write x\n"
    assert question.whole.startswith('would write x\n{\n  "text": "xxx')


@pytest.mark.parametrize(("is_error", "failed"), [(False, ""), (True, ", a failure")])
def test_a_result_is_told_by_its_size(*, is_error: bool, failed: str) -> None:
    output = ToolOutput(content=(TextBlock(text="one\ntwo\x1b[2J\n"),), is_error=is_error)
    question = result_question(proposal({}).call, output)

    assert question.text == f"Give the model the result of write (2 lines, 12 B{failed})?"
    assert question.whole == "one\ntwo\n"
    assert "Y" not in question.keys


@pytest.mark.parametrize(("is_there", "expected"), [(True, "n"), (False, None)])
def test_whoever_says_nothing_says_no_and_where_nobody_is_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch, *, is_there: bool, expected: str | None
) -> None:
    def say_nothing(_question: str, _keys: object, *, default: str) -> None:
        assert default == "n"

    monkeypatch.setattr("jp.cli.approval_question.ask_key", say_nothing)
    monkeypatch.setattr("jp.cli.approval_question.can_ask", lambda: is_there)
    monkeypatch.setattr("jp.cli.approval_question.tell", print)

    assert answer_to(call_question(proposal({}), colour=False)) == expected
