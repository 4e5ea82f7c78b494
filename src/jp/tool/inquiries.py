"""Who answers what a tool asks while it runs: the configuration, a person, or the model."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Protocol

import msgspec

from jp.config.tools import QuestionConfig
from jp.conversation.entries import Question, ToolCallRequest, TurnStart
from jp.errors import ConfigurationError
from jp.tool.answers import expected, fits
from jp.tool.base import Answer, Inquirer, Stream, Toolbox, Unanswered

if TYPE_CHECKING:
    from anyio import Lock

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
