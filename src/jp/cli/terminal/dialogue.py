"""Questions to the person at the terminal while work goes on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar, assert_never

from jp.app.query.screen import Dialogue
from jp.conversation.entries import Question, ToolCallRequest
from jp.tool.base import Answer, Stream, Unanswered

if TYPE_CHECKING:
    from jp.errors import ExitCode
    from jp.render.prompts import About


T = TypeVar("T")


def ask_alone(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask where no event loop runs; a signal takes the question away.

    Raises:
        KeyboardInterrupt: by Ctrl-C.
        Terminated: by SIGTERM or SIGHUP.
    """
    import anyio

    from jp.cli.terminal.exit import Terminated
    from jp.errors import ExitCode

    answers, code = anyio.run(_ask_interruptibly, ask)
    if code == ExitCode.TERMINATED:
        raise Terminated(code)
    if not answers:
        raise KeyboardInterrupt
    return answers[0]


async def _ask_interruptibly(ask: Callable[[], Awaitable[T]]) -> tuple[list[T], ExitCode | None]:
    """Return the answer, or none with the exit code of a signal that came instead."""
    from jp.cli.terminal.signals import interruptions

    answers: list[T] = []
    with interruptions() as interruption:
        answers.append(await ask())
    return answers, interruption.exit_code


_ATTEMPTS = 3
_LONGEST_TEXT = 200
_LONGEST_DEFAULT = 60


class TerminalRespondent:
    """A `Respondent` who sits at the terminal, whatever the standard streams are."""

    def __init__(self, dialogue: Dialogue) -> None:
        self._dialogue = dialogue

    async def answer(self, question: Question, call: ToolCallRequest, stream: Stream) -> Answer | Unanswered:
        """Ask; cancellation leaves the question unanswered. The end of input (Ctrl-D) is no answer."""
        from jp.render.tty import can_ask

        del stream
        async with self._dialogue.question():
            if not can_ask():
                return Unanswered(cause="nobody")
            value = await _value(question, call.name)
            return Unanswered(cause="declined") if value is None else Answer(value=value, by="user")


class AbsentRespondent:
    """A `Respondent` where nobody can be asked. `asked` are the questions that had no answer, by id."""

    def __init__(self) -> None:
        self.asked: dict[str, Question] = {}

    async def answer(self, question: Question, call: ToolCallRequest, stream: Stream) -> Answer | Unanswered:
        """Note the question."""
        del call, stream
        self.asked[question.id] = question
        return Unanswered(cause="nobody")


async def _value(question: Question, tool: str) -> Any:
    """Return what is answered, None where nothing is."""
    from jp.render.prompts import ask_line, ask_yes_no

    text, about = _in_words(question, tool)
    match question.kind:
        case "boolean":
            return await ask_yes_no(text, default=question.default is True, about=about)
        case "select":
            return await _chosen(question, text, about)
        case "text":
            default = _default(question)
            is_short = len(default) <= _LONGEST_DEFAULT
            answer = await ask_line(text, default if is_short else "", about=about)
            return default if answer == "" else answer
        case _:
            assert_never(question.kind)


def _default(question: Question) -> str:
    return question.default if isinstance(question.default, str) else ""


def _in_words(question: Question, tool: str) -> tuple[str, About]:
    """Return the question, and what is shown above it, so that a tool's words never pass for jp's."""
    from jp.render.approval import Sheet
    from jp.render.prompts import About
    from jp.render.sanitize import escape, escape_line

    name = escape_line(tool)
    is_short = "\n" not in question.text and len(question.text) <= _LONGEST_TEXT
    default = _default(question)
    lines = [] if is_short and not question.options else escape(question.text).split("\n")
    lines += [f"  {number}  {escape_line(option)}" for number, option in enumerate(question.options, 1)]
    if question.kind == "text" and len(default) > _LONGEST_DEFAULT:
        lines.append(f"without an answer: {escape_line(default)}")
    if lines and not is_short:
        text = f"{name} asks this:"
    else:
        text = f"{name}:" if question.options else f"{name}: {escape_line(question.text)}"
    return text, About(sheets=(Sheet(text="\n".join(lines)),) if lines else ())


async def _chosen(question: Question, text: str, about: About) -> str | None:
    """Return one of the options, by its number or its words."""
    from jp.render.prompts import ask_line

    options = question.options
    default = _default(question) if _default(question) in options else ""
    asked = f"{text} 1-{len(options)}:"
    for _ in range(_ATTEMPTS):
        typed = await ask_line(asked, default, about=about)
        if typed is None or typed in options:
            return typed
        if typed.isascii() and typed.isdigit() and 0 < int(typed) <= len(options):
            return options[int(typed) - 1]
        asked = f"One of these, 1-{len(options)}:"
    return None
