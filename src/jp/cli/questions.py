"""Asking the person at the terminal what a tool wants to know."""

from __future__ import annotations

from typing import Any, assert_never

from jp.cli.dialogue import Dialogue
from jp.conversation.entries import Question, ToolCallRequest
from jp.tool.base import Answer, Stream, Unanswered

_ATTEMPTS = 3


class TerminalRespondent:
    """A `Respondent` who sits at the terminal, whatever the standard streams are."""

    def __init__(self, dialogue: Dialogue) -> None:
        self._dialogue = dialogue

    async def answer(self, question: Question, call: ToolCallRequest, stream: Stream) -> Answer | Unanswered:
        """Ask; cancellation leaves the question unanswered. The end of input (Ctrl-D) is no answer."""
        from anyio.to_thread import run_sync

        del stream
        async with self._dialogue.question():
            return await run_sync(_ask, question, call.name, abandon_on_cancel=True)


class AbsentRespondent:
    """A `Respondent` where nobody can be asked. `asked` are the questions that had no answer, by id."""

    def __init__(self) -> None:
        self.asked: dict[str, Question] = {}

    async def answer(self, question: Question, call: ToolCallRequest, stream: Stream) -> Answer | Unanswered:
        """Note the question."""
        del call, stream
        self.asked[question.id] = question
        return Unanswered(cause="nobody")


def _ask(question: Question, tool: str) -> Answer | Unanswered:
    from jp.render.prompt import can_ask

    if not can_ask():
        return Unanswered(cause="nobody")
    value = _value(question, f"{tool}: {question.text}")
    return Unanswered(cause="declined") if value is None else Answer(value=value, by="user")


def _value(question: Question, text: str) -> Any:
    """What is answered, None where nothing is."""
    from jp.render.prompt import ask_line, ask_yes_no

    match question.kind:
        case "boolean":
            return ask_yes_no(text, default=question.default is True)
        case "select":
            return _chosen(question, text)
        case "text":
            return ask_line(text, question.default if isinstance(question.default, str) else "")
        case _:
            assert_never(question.kind)


def _chosen(question: Question, text: str) -> str | None:
    """One of the options, by its number or its words."""
    from jp.render.prompt import ask_line

    options = question.options
    listed = "\n".join(f"  {number}  {option}" for number, option in enumerate(options, 1))
    default = question.default if question.default in options else ""
    asked = f"{text}\n{listed}\n1-{len(options)}:"
    for _ in range(_ATTEMPTS):
        typed = ask_line(asked, default)
        if typed is None:
            return None
        if typed in options:
            return typed
        if typed.isascii() and typed.isdigit() and 0 < int(typed) <= len(options):
            return options[int(typed) - 1]
        asked = f"One of these, 1-{len(options)}:"
    return None
