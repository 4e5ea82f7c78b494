from __future__ import annotations

import anyio
import pytest

from jp.conversation.entries import Question, ToolCallRequest
from jp.tool.base import Answer, QuestionAnswered, ToolEvent, Unanswered
from jp.tool.coordinator import CallInquirer

CALL = ToolCallRequest(id="e1", call_id="x", name="ask", arguments={})


class Person:
    """Answers when it is told to; `nobody` and `declined` are no answers, and to `fail` it fails."""

    def __init__(self) -> None:
        self.may_answer = anyio.Event()
        self.asked: list[bool] = []

    async def ask(self, question: Question, *, person_only: bool = False) -> Answer | Unanswered:
        self.asked.append(person_only)
        match question.id:
            case "nobody":
                return Unanswered(cause="nobody")
            case "declined":
                return Unanswered(cause="declined")
            case "fail":
                raise ZeroDivisionError
            case name:
                if name == "slow":
                    await self.may_answer.wait()
                return Answer(value=name, by="user")


def question(name: str) -> Question:
    return Question(id=name, text="?", kind="text")


class Called:
    """A call that has 100 seconds, and asks."""

    def __init__(self) -> None:
        self.person = Person()
        self.told: list[ToolEvent] = []
        self.scope = anyio.CancelScope(deadline=anyio.current_time() + 100)
        self.inquirer = CallInquirer(CALL, self.person, self.scope, self.told.append)

    @property
    def has_limit(self) -> bool:
        return self.scope.deadline - anyio.current_time() <= 100


def test_an_answer_is_told_and_what_is_none_is_not() -> None:
    async def run() -> None:
        called = Called()

        assert await called.inquirer.ask(question("now"), person_only=True) == Answer(value="now", by="user")
        assert await called.inquirer.ask(question("declined")) == Unanswered(cause="declined")
        assert not called.inquirer.is_unanswered
        assert await called.inquirer.ask(question("nobody")) == Unanswered(cause="nobody")
        assert called.inquirer.is_unanswered
        assert called.told == [
            QuestionAnswered(call=CALL, question=question("now"), answer=Answer(value="now", by="user"))
        ]
        assert called.person.asked == [True, False, False]

    anyio.run(run)


def test_no_time_passes_while_any_question_is_open_whatever_comes_of_it() -> None:
    async def run() -> None:
        called = Called()
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(called.inquirer.ask, question("slow"))
                await anyio.wait_all_tasks_blocked()
                await called.inquirer.ask(question("now"))
                assert not called.has_limit
                called.person.may_answer.set()
        assert called.has_limit
        with pytest.raises(ZeroDivisionError):
            await called.inquirer.ask(question("fail"))
        assert called.has_limit

    anyio.run(run)
