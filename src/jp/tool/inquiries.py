"""Questions that tools ask while they run, and `ask_user`, with which the model asks."""

from __future__ import annotations

from collections import defaultdict
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol, assert_never

import msgspec

from jp.config.tools import QuestionConfig
from jp.conversation.entries import JsonObject, Question, ToolCallRequest, TurnStart
from jp.conversation.resource import TextBlock
from jp.conversation.thread import ToolDefinition
from jp.errors import ConfigurationError
from jp.tool.base import Answer, Inquirer, Stream, Toolbox, ToolInvocation, ToolOutput, Unanswered, error_output

if TYPE_CHECKING:
    from anyio import Lock


ANSWER = "answer"
"""The member that holds the answer, where it is asked for as JSON."""


def fits(question: Question, value: Any) -> bool:
    """Whether `value` answers `question`."""
    match question.kind:
        case "boolean":
            return isinstance(value, bool)
        case "select":
            return value in question.options
        case "text":
            return isinstance(value, str)
        case _:
            assert_never(question.kind)


def expected(question: Question) -> str:
    """What an answer has to be, in words."""
    match question.kind:
        case "boolean":
            return "true or false"
        case "select":
            return f"one of {', '.join(map(repr, question.options)) or 'no options'}"
        case "text":
            return "a text"
        case _:
            assert_never(question.kind)


def answer_schema(question: Question) -> JsonObject:
    """The JSON Schema of an object whose only member is the answer."""
    match question.kind:
        case "boolean":
            answer: JsonObject = {"type": "boolean"}
        case "select":
            answer = {"type": "string", "enum": list(question.options)}
        case "text":
            answer = {"type": "string"}
        case _:
            assert_never(question.kind)
    return {"type": "object", "properties": {ANSWER: answer}, "required": [ANSWER], "additionalProperties": False}


_UNSET = QuestionConfig()
_NOBODY = Unanswered(cause="nobody")

_Key = tuple[str, str, bytes]
"""A turn, a tool, and what it asks."""


class Respondent(Protocol):
    """A person or the model, who may answer what a call asks."""

    async def answer(self, question: Question, call: ToolCallRequest, stream: Stream) -> Answer | Unanswered:
        """Answer; what is answered fits the question."""
        ...


class Inquiries:
    """The questions of the calls of a query. `person` and `model` are None where they cannot be asked."""

    def __init__(self, toolbox: Toolbox, *, person: Respondent | None, model: Respondent | None) -> None:
        self.toolbox = toolbox
        self.person = person
        self.model = model
        self.known: dict[_Key, Answer] = {}
        self.locks: defaultdict[_Key, Lock] = defaultdict(_lock)

    def inquirer(self, call: ToolCallRequest, stream: Stream) -> Inquirer:
        """Who answers the questions of `call`."""
        return _CallInquirer(self, call, stream)


def _lock() -> Lock:
    from anyio import Lock

    return Lock()


class _CallInquirer:
    """Has the questions of one call answered."""

    def __init__(self, inquiries: Inquiries, call: ToolCallRequest, stream: Stream) -> None:
        self._with = inquiries
        self._call = call
        self._stream = stream

    async def ask(self, question: Question, *, person_only: bool = False) -> Answer | Unanswered:
        """See the port. Where several calls ask the same thing at once, it is asked once.

        Raises:
            ConfigurationError: the answer that is always given does not fit.
        """
        settings = self._settings(question)
        if settings.answer is not None:
            return self._configured(question, settings)
        key = self._key(question)
        async with self._with.locks[key]:
            known = self._with.known.get(key)
            if known is not None:
                return msgspec.structs.replace(known, model=None, usage=None)
            answer = await self._ask(question, settings, person_only=person_only)
            if isinstance(answer, Answer):
                self._with.known[key] = answer
            return answer

    def _settings(self, question: Question) -> QuestionConfig:
        configured = self._with.toolbox.get(self._call.name)
        return _UNSET if configured is None else configured.settings.questions.get(question.id, _UNSET)

    def _configured(self, question: Question, settings: QuestionConfig) -> Answer:
        if fits(question, settings.answer):
            return Answer(value=settings.answer, by="config")
        key = f"conversation.tools.{self._call.name}.questions.{question.id}.answer"
        raise ConfigurationError(
            f"{key!r} is {settings.answer!r}, but {question.text!r} is answered by {expected(question)}"
        )

    def _key(self, question: Question) -> _Key:
        entries = reversed(self._stream.entries)
        turn = next((entry.id for entry in entries if isinstance(entry, TurnStart)), "")
        return turn, self._call.name, msgspec.json.encode(question)

    async def _ask(self, question: Question, settings: QuestionConfig, *, person_only: bool) -> Answer | Unanswered:
        """Ask one after the other; who declines has spoken."""
        person, model = self._with.person, self._with.model
        both = (model, person) if settings.target == "assistant" else (person, model)
        for respondent in (person,) if person_only else both:
            if respondent is not None:
                answer = await respondent.answer(question, self._call, self._stream)
                if answer != _NOBODY:
                    return answer
        return _NOBODY


DEFINITION = ToolDefinition(
    name="ask_user",
    description=(
        "Ask the user one question, and wait for the answer. For what only they can know or decide; what you can find "
        "out or sensibly assume, do not ask."
    ),
    parameters={
        "type": "object",
        "properties": {
            "question": {"type": "string", "description": "The question, with what they need to know to answer it."},
            "options": {
                "type": "array",
                "items": {"type": "string"},
                "description": "The answers that they may choose from; without it they write one.",
            },
        },
        "required": ["question"],
        "additionalProperties": False,
    },
)

_NO_PERSON = (
    "Nobody can be asked here. Go on with what you would sensibly assume and say so, or say in your answer what you "
    "need to know."
)


class AskUser:
    """Asks a person, anew each time, and nobody else."""

    def __init__(self) -> None:
        self._numbers = count(1)

    @property
    def definition(self) -> ToolDefinition:
        """See the port."""
        return DEFINITION

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        """Ask."""
        text = str(invocation.arguments["question"]).strip()
        options = tuple(dict.fromkeys(map(str, invocation.arguments.get("options") or ())))
        if not text:
            return error_output("The question is empty, so nobody was asked.")
        question = Question(
            id=f"question-{next(self._numbers)}", text=text, kind="select" if options else "text", options=options
        )
        answer = await invocation.inquirer.ask(question, person_only=True)
        if isinstance(answer, Answer):
            return ToolOutput(content=(TextBlock(text=f"The user answered: {answer.value}"),))
        return error_output(_NO_PERSON if answer.cause == "nobody" else "The user was asked, and gave no answer.")
