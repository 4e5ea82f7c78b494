from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import anyio
import pytest

from jp.conversation.entries import Question
from jp.conversation.resource import TextBlock
from jp.tool.base import Answer, ToolInvocation, ToolOutput, Unanswered, error_output
from jp.tool.consent import AskUser


class Person:
    def __init__(self, answer: Answer | Unanswered) -> None:
        self._answer = answer
        self.asked: list[Question] = []

    async def ask(self, question: Question, *, person_only: bool = False) -> Answer | Unanswered:
        assert person_only
        self.asked.append(question)
        return self._answer


def asked_of(person: Person, tool: AskUser | None = None, **arguments: Any) -> ToolOutput:
    invocation = ToolInvocation(arguments=arguments, root=Path(), inquirer=person)
    return anyio.run((tool or AskUser()).run, invocation)


def test_what_the_person_answers_is_the_result() -> None:
    person, tool = Person(Answer(value="blue", by="user")), AskUser()

    assert asked_of(person, tool, question=" Which colour? ") == ToolOutput(
        content=(TextBlock(text="The user answered: blue"),)
    )
    asked_of(person, tool, question="Which colour?", options=["red", "blue", "red"])

    assert person.asked == [
        Question(id="question-1", text="Which colour?", kind="text"),
        Question(id="question-2", text="Which colour?", kind="select", options=("red", "blue")),
    ]


@pytest.mark.parametrize(
    ("cause", "said"), [("nobody", "Nobody can be asked here"), ("declined", "was asked, and gave no answer")]
)
def test_the_model_is_told_where_nobody_answers(cause: Literal["nobody", "declined"], said: str) -> None:
    output = asked_of(Person(Unanswered(cause=cause)), question="Which colour?")

    assert output.is_error
    assert said in str(output.content[0])


def test_an_empty_question_is_not_asked() -> None:
    person = Person(Unanswered(cause="nobody"))

    assert asked_of(person, question="  ") == error_output("The question is empty, so nobody was asked.")
    assert person.asked == []
