from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import anyio
import pytest

from jp.config.entries import QuestionConfig, ToolConfig
from jp.conversation.entries import AnyEntry, Question, ToolCallRequest, TurnStart, Usage
from jp.conversation.thread import ToolDefinition
from jp.errors import ConfigurationError
from jp.tool.base import Answer, ConfiguredTool, Stream, ToolInvocation, ToolOutput, Unanswered
from jp.tool.consent import Inquiries

SURE = Question(id="sure", text="Sure?", kind="boolean")
NOBODY, DECLINED = Unanswered(cause="nobody"), Unanswered(cause="declined")
BY_PERSON = Answer(value=True, by="user")
BY_MODEL = Answer(value=False, by="assistant", model="script/test", usage=Usage(input=1))


class Speaker:
    """Answers all alike, and counts how often it was asked."""

    def __init__(self, answer: Answer | Unanswered) -> None:
        self._answer = answer
        self.asked = 0

    async def answer(self, question: Question, call: ToolCallRequest, stream: Stream) -> Answer | Unanswered:
        self.asked += 1
        await anyio.lowlevel.checkpoint()
        return self._answer


class Entries:
    def __init__(self, *entries: AnyEntry) -> None:
        self.entries: Sequence[AnyEntry] = entries

    def load(self, carrier: Any, /) -> Any:
        return carrier


class Nothing:
    definition = ToolDefinition(name="t", description="", parameters={})

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        raise AssertionError


def inquiries(
    *,
    person: Speaker | None = None,
    model: Speaker | None = None,
    target: Literal["user", "assistant"] = "user",
    answer: Any = None,
) -> Inquiries:
    settings = ToolConfig(questions={"sure": QuestionConfig(target=target, answer=answer)})
    return Inquiries({"t": ConfiguredTool(tool=Nothing(), settings=settings)}, person=person, model=model)


def ask(
    asked: Inquiries, *questions: Question, turn: str = "turn", tool: str = "t", person_only: bool = False
) -> list[Answer | Unanswered]:
    """What is answered to these questions, asked at once by several calls."""
    stream = Entries(TurnStart(id="earlier"), TurnStart(id=turn))
    answers: dict[int, Answer | Unanswered] = {}

    async def one(number: int, question: Question) -> None:
        call = ToolCallRequest(id=f"e{number}", call_id="c", name=tool, arguments={})
        answers[number] = await asked.inquirer(call, stream).ask(question, person_only=person_only)

    async def run() -> None:
        async with anyio.create_task_group() as tasks:
            for number, question in enumerate(questions or (SURE,)):
                tasks.start_soon(one, number, question)

    anyio.run(run)
    return [answers[number] for number in sorted(answers)]


@pytest.mark.parametrize(
    ("target", "person", "model", "expected"),
    [
        ("user", BY_PERSON, BY_MODEL, BY_PERSON),
        ("user", None, BY_MODEL, BY_MODEL),
        ("user", NOBODY, BY_MODEL, BY_MODEL),
        ("user", DECLINED, BY_MODEL, DECLINED),
        ("user", None, None, NOBODY),
        ("user", None, NOBODY, NOBODY),
        ("assistant", BY_PERSON, BY_MODEL, BY_MODEL),
        ("assistant", BY_PERSON, NOBODY, BY_PERSON),
        ("assistant", BY_PERSON, None, BY_PERSON),
    ],
)
def test_who_is_there_answers_in_the_order_that_the_configuration_says(
    target: Literal["user", "assistant"],
    person: Answer | Unanswered | None,
    model: Answer | Unanswered | None,
    expected: Answer | Unanswered,
) -> None:
    asked = inquiries(person=person and Speaker(person), model=model and Speaker(model), target=target)

    assert ask(asked) == [expected]


@pytest.mark.parametrize("person", [None, NOBODY, DECLINED])
def test_what_only_a_person_may_answer_is_not_answered_by_the_model(person: Unanswered | None) -> None:
    model = Speaker(BY_MODEL)
    asked = inquiries(person=person and Speaker(person), model=model, target="assistant")

    assert ask(asked, person_only=True) == [person or NOBODY]
    assert model.asked == 0


def test_an_answer_that_is_always_given_asks_nobody() -> None:
    person = Speaker(BY_PERSON)

    assert ask(inquiries(person=person, answer=False), person_only=True) == [Answer(value=False, by="config")]
    assert person.asked == 0


def test_an_answer_that_does_not_fit_is_a_mistake_of_the_configuration() -> None:
    asked = inquiries(answer="yes")
    call = ToolCallRequest(call_id="c", name="t", arguments={})

    with pytest.raises(ConfigurationError, match=r"'conversation.tools.t.questions.sure.answer' is 'yes', but"):
        anyio.run(asked.inquirer(call, Entries()).ask, SURE)


def test_what_was_answered_in_a_turn_is_answered_alike_without_asking_again() -> None:
    model = Speaker(BY_MODEL)
    asked = inquiries(model=model)
    free = Answer(value=False, by="assistant")

    assert ask(asked, SURE, SURE) == [BY_MODEL, free]
    assert ask(asked) == [free]
    assert model.asked == 1

    assert ask(asked, turn="next") == [BY_MODEL]
    assert ask(asked, tool="other") == [BY_MODEL]
    assert ask(asked, Question(id="sure", text="Really?", kind="boolean")) == [BY_MODEL]
    assert model.asked == 4


def test_what_was_not_answered_is_asked_again() -> None:
    person = Speaker(DECLINED)

    assert ask(inquiries(person=person), SURE, SURE) == [DECLINED, DECLINED]
    assert person.asked == 2
