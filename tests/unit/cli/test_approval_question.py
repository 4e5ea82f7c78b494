from __future__ import annotations

import anyio
import pytest

from escapes import decode, decode_arguments
from jp.cli.terminal.approval import ask_approval, call_question, result_question
from jp.conversation.entries import JsonObject, ToolCallRequest
from jp.conversation.resource import ResourceLink, TextBlock
from jp.render.prompts import About
from jp.tool.base import ToolOutput
from jp.tool.consent import Proposal

LONG = "x" * 100


def proposal(arguments: JsonObject, preview: str | None = None, name: str = "write") -> Proposal:
    call = ToolCallRequest(id="e1", call_id="x", name=name, arguments=arguments)
    return Proposal(
        call=call, arguments=arguments, preview=preview, problems=lambda _: (), rules=(), lasting_rules=list
    )


def texts(about: About) -> list[str]:
    return [sheet.text for sheet in about.sheets]


def test_short_arguments_stand_in_the_question_and_in_lines_where_they_are_wanted() -> None:
    question = call_question(proposal({"path": "a\u202e\x1b[2J", "lines": 3}), color=False)

    assert question.text == 'Run write(path="a⟨U+202E⟩\\u001b[2J", lines=3)?'
    assert not question.about.is_shown
    assert texts(question.about) == ['path: "a⟨U+202E⟩\\u001b[2J"\nlines: 3']


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "a", "text": f"one\n{LONG}\n\x1b[2Jtwo"},
        {"list": [LONG]},
        {"a": "\n", "b": "\n\n\n\n\n\nx \n", "c": ""},
        {"x: y": "\n", 'x"\n': LONG},
    ],
)
def test_long_arguments_are_shown_and_decode_to_what_they_are(arguments: JsonObject) -> None:
    question = call_question(proposal({"long": LONG, **arguments}), color=False)

    assert question.text == "Run write with these arguments?"
    assert question.about.is_shown
    assert [decode_arguments(text) for text in texts(question.about)] == [{"long": LONG, **arguments}]


def test_an_argument_cannot_pass_for_another_one() -> None:
    question = call_question(proposal({"path=1, x": 2}), color=False)

    assert question.text == "Run write with these arguments?"
    assert texts(question.about) == ['"path=1, x": 2']


def test_a_name_cannot_be_longer_than_the_question() -> None:
    question = call_question(proposal({"path": "a"}, name="n" * 500), color=False)

    assert question.text == "Run this tool with these arguments?"
    assert texts(question.about) == [f"tool: {'n' * 500}", 'path: "a"']


def test_what_the_tool_says_is_shown_before_the_arguments() -> None:
    question = call_question(proposal({"text": LONG}, "would write\x9b2K x\n"), color=False)

    assert texts(question.about) == ["would write⟨U+009B⟩2K x", f'text: "{LONG}"']
    assert decode(texts(question.about)[0]) == "would write\x9b2K x"
    assert question.about.is_shown


def test_arguments_that_stand_in_the_question_are_not_shown_again() -> None:
    question = call_question(proposal({"path": "a"}, "would write x"), color=False)

    assert question.text == 'Run write(path="a")?'
    assert texts(question.about) == ["would write x"]


@pytest.mark.parametrize(("is_error", "failed"), [(False, ""), (True, ", a failure")])
def test_a_result_is_shown_with_its_size(*, is_error: bool, failed: str) -> None:
    link = ResourceLink(uri="file:///x")
    output = ToolOutput(content=(TextBlock(text="one\ntwo\x1b[2J\n"), link), is_error=is_error)
    question = result_question(proposal({}).call, output)

    assert (
        question.text == f"Give the model the result of write (2 lines, 12 B, and 1 part that cannot be shown{failed})?"
    )
    assert texts(question.about) == ["one\ntwo⟨ESC⟩[2J\n"]
    assert question.about.is_shown
    assert "Y" not in question.keys


@pytest.mark.parametrize(("is_there", "expected"), [(True, "n"), (False, None)])
def test_whoever_says_nothing_says_no_and_where_nobody_is_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch, *, is_there: bool, expected: str | None
) -> None:
    async def say_nothing(_question: str, _keys: object, *, default: str, about: About) -> None:
        assert default == "n"

    monkeypatch.setattr("jp.cli.terminal.approval.ask_key", say_nothing)
    monkeypatch.setattr("jp.cli.terminal.approval.can_ask", lambda: is_there)

    assert anyio.run(ask_approval, call_question(proposal({}), color=False)) == expected
