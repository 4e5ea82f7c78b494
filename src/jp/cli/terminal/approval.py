"""Questions at a terminal: dialogues, and approvals of tool calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, assert_never

import msgspec

from jp.app.query.screen import Dialogue
from jp.config.model import EditorConfig
from jp.conversation.entries import JsonObject, Question, ToolCallRequest
from jp.errors import JpError, reason_of
from jp.render.approval import Sheet, argument_lines, is_plain_name, value_text
from jp.render.prompts import About, ask_key, tell
from jp.render.sanitize import escape, escape_line
from jp.render.tables import count_text, size_text
from jp.render.tty import can_ask
from jp.tool.base import Answer, Stream, ToolOutput, Unanswered, other_than_text, text_of
from jp.tool.consent import Approval, EditedArguments, NoApprover, Proposal, Refusal, ReplacedText

if TYPE_CHECKING:
    from jp.app.options import Options
    from jp.errors import ExitCode


T = TypeVar("T")


def run_question(ask: Callable[[], Awaitable[T]]) -> T:
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
            value = await _ask_value(question, call.name)
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


async def _ask_value(question: Question, tool: str) -> Any:
    """Return what is answered, None where nothing is."""
    from jp.render.prompts import ask_line, ask_yes_no

    text, about = _question_text(question, tool)
    match question.kind:
        case "boolean":
            return await ask_yes_no(text, default=question.default is True, about=about)
        case "select":
            return await _ask_option(question, text, about)
        case "text":
            default = _default(question)
            is_short = len(default) <= _LONGEST_DEFAULT
            answer = await ask_line(text, default if is_short else "", about=about)
            return default if answer == "" else answer
        case _:
            assert_never(question.kind)


def _default(question: Question) -> str:
    return question.default if isinstance(question.default, str) else ""


def _question_text(question: Question, tool: str) -> tuple[str, About]:
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


async def _ask_option(question: Question, text: str, about: About) -> str | None:
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


_LONGEST_VALUE = 60
_LONGEST_CALL = 120

_CALL_KEYS = {
    "y": "run it",
    "n": "do not run it",
    "Y": "run it, and for the rest of this turn every call with these arguments",
    "N": "do not run it, and for the rest of this turn no call with these arguments",
    "a": "run it, and such calls from now on: lists what that can mean, and writes your choice into your own settings",
    "p": "show the next page: what it would do, then all of the arguments",
    "r": "do not run it, and say why",
    "e": "edit the arguments",
    "?": "help",
}
_RESULT_KEYS = {
    "y": "give it to the model",
    "n": "keep it back",
    "p": "show the next page",
    "r": "keep it back, and say why",
    "e": "edit it",
    "?": "help",
}


class ApprovalQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question with its keys, and what it is about."""

    text: str
    keys: Mapping[str, str]
    about: About


def call_question(proposal: Proposal, *, color: bool) -> ApprovalQuestion:
    """Return the question whether a call may run."""
    name = escape_line(proposal.call.name)
    call = _call_in_words(name, proposal.arguments)
    texts = [escape(proposal.preview.removesuffix("\n"))] if proposal.preview else []
    if proposal.arguments and not (texts and call):
        texts.append(argument_lines(proposal.arguments))
    if call is None and len(name) > _LONGEST_VALUE:
        texts, name = [f"tool: {name}", *texts], "this tool"
    about = About(
        sheets=tuple(Sheet(text=text) for text in texts),
        is_shown=bool(proposal.preview) or call is None,
        color=color,
    )
    limits = f"{escape_line(proposal.limits)}\n" if proposal.limits else ""
    return ApprovalQuestion(text=f"{limits}Run {call or f'{name} with these arguments'}?", keys=_CALL_KEYS, about=about)


def result_question(call: ToolCallRequest, output: ToolOutput) -> ApprovalQuestion:
    """Return the question whether the model gets a result."""
    text = text_of(output)
    size = f"{count_text(len(text.splitlines()), 'line')}, {size_text(len(text.encode('utf-8', 'replace')))}"
    others = other_than_text(output)
    beside = f", and {count_text(others, 'part')} that cannot be shown" if others else ""
    failed = ", a failure" if output.is_error else ""
    return ApprovalQuestion(
        text=f"Give the model the result of {escape_line(call.name)} ({size}{beside}{failed})?",
        keys=_RESULT_KEYS,
        about=About(sheets=(Sheet(text=escape(text)),) if text else ()),
    )


async def ask_approval(question: ApprovalQuestion) -> str | None:
    """Return the key that the person chose; None if no one can be asked. No answer means no."""
    while True:
        asked = f"{question.text} [{','.join(question.keys)}]"
        key = await ask_key(asked, question.keys, default="n", about=question.about)
        match key:
            case None:
                return "n" if can_ask() else None
            case "p":
                tell("There is nothing else to show.\n")
            case _:
                return key


def _call_in_words(name: str, arguments: JsonObject) -> str | None:
    """Return the call with all of its arguments, as long as they are short: `fs_read_file(path="a.py")`."""
    values = [value_text(value) for value in arguments.values()]
    said = ", ".join(f"{key}={value}" for key, value in zip(arguments, values, strict=True))
    is_plain = all(map(is_plain_name, arguments)) and not any("\n" in str(value) for value in arguments.values())
    is_short = len(name) + len(said) <= _LONGEST_CALL and all(len(value) <= _LONGEST_VALUE for value in values)
    return f"{name}({said})" if is_plain and is_short else None


class TerminalApprover:
    """An `Approver` that asks on the terminal, whatever the standard streams are.

    Cancellation leaves a question unanswered.
    """

    def __init__(self, dialogue: Dialogue, editor: EditorConfig, options: Options) -> None:
        self._dialogue = dialogue
        self._editor = editor
        self._options = options

    async def approve(self, proposal: Proposal) -> Approval | Refusal | EditedArguments | NoApprover:
        """See the port."""
        async with self._dialogue.question():
            return await self._approve(proposal)

    async def edit(self, proposal: Proposal) -> Approval | Refusal | EditedArguments | NoApprover:
        """See the port."""
        async with self._dialogue.question():
            return await self._edited(proposal) or await self._approve(proposal)

    async def deliver(
        self, call: ToolCallRequest, output: ToolOutput
    ) -> Approval | Refusal | ReplacedText | NoApprover:
        """See the port."""
        async with self._dialogue.question():
            return await self._deliver(call, output)

    async def edit_result(
        self, call: ToolCallRequest, output: ToolOutput
    ) -> Approval | Refusal | ReplacedText | NoApprover:
        """See the port."""
        async with self._dialogue.question():
            return await self._replaced(output) or await self._deliver(call, output)

    async def _approve(self, proposal: Proposal) -> Approval | Refusal | EditedArguments | NoApprover:
        question = call_question(proposal, color=self._dialogue.color)
        while True:
            key = await ask_approval(question)
            if key == "a":
                if await self._allow_always(proposal):
                    return Approval(remember=True)
                continue
            if key != "e":
                return Approval(remember=key == "Y") if key in {"y", "Y"} else await _decline(key)
            edited = await self._edited(proposal)
            if edited is not None:
                return edited

    async def _allow_always(self, proposal: Proposal) -> bool:
        """List what can be allowed from now on, and write down what the person chooses; False if nothing is."""
        from jp.app.options import open_workspace
        from jp.app.tools import allow_always
        from jp.cli.terminal.wording import worded
        from jp.render.prompts import ask_line

        ways = proposal.lasting_rules()
        tell("".join(f"{number}  {escape_line(way.covers)}\n" for number, way in enumerate(ways, 1)))
        scope = "in this workspace" if open_workspace(self._options).root else "everywhere"
        chosen = await ask_line(f"Which run without a question {scope} from now on? 1-{len(ways)}, or nothing:")
        if chosen not in {str(number) for number in range(1, len(ways) + 1)}:
            return False
        try:
            place = allow_always(self._options, proposal, ways[int(chosen) - 1])
        except JpError as error:
            tell(f"Nothing is changed: {escape_line(worded(error.message))}\n")
            return False
        tell(f"Written to {escape_line(str(place))}; `jp tool rules` lists and removes it.\n")
        return True

    async def _deliver(
        self, call: ToolCallRequest, output: ToolOutput
    ) -> Approval | Refusal | ReplacedText | NoApprover:
        question = result_question(call, output)
        while True:
            key = await ask_approval(question)
            if key != "e":
                return Approval() if key == "y" else await _decline(key)
            replaced = await self._replaced(output)
            if replaced is not None:
                return replaced

    async def _edited(self, proposal: Proposal) -> EditedArguments | None:
        """Return the arguments as the person edits them; None if the edit is canceled."""
        written = msgspec.json.format(msgspec.json.encode(proposal.arguments), indent=2).decode() + "\n"
        while True:
            text = await self._written(written, ".json")
            if text is None:
                return None
            arguments = _arguments(text, proposal)
            if not isinstance(arguments, str):
                return EditedArguments(arguments=arguments)
            if not await _confirm_retry(arguments):
                return None
            written = text

    async def _replaced(self, output: ToolOutput) -> ReplacedText | None:
        """Return the result as the person edits it; None if the edit is canceled."""
        from jp.tool.base import text_of

        text = await self._written(text_of(output), ".md")
        return None if text is None else ReplacedText(text=text)

    async def _written(self, text: str, suffix: str) -> str | None:
        from jp.app.drafts import edited_text

        try:
            return await edited_text(text, suffix=suffix, config=self._editor)
        except JpError as error:
            from jp.cli.terminal.wording import worded
            from jp.render.prompts import tell
            from jp.render.sanitize import escape_line

            tell(f"Nothing is changed: {escape_line(worded(error.message))}\n")
            return None


async def _decline(key: str | None) -> Refusal | NoApprover:
    from jp.render.prompts import ask_line

    if key is None:
        return NoApprover()
    reason = await ask_line("Why not?") if key == "r" else None
    return Refusal(reason=reason or "", remember=key == "N")


def _arguments(text: str, proposal: Proposal) -> JsonObject | str:
    """Return the arguments in `text`, or the reason why they are invalid."""
    try:
        arguments = msgspec.json.decode(text, type=JsonObject)
    except (msgspec.DecodeError, RecursionError) as error:
        return f"That is no JSON object: {reason_of(error)}."
    problems = proposal.problems(arguments)
    return f"The arguments do not fit: {'; '.join(problems)}." if problems else arguments


async def _confirm_retry(problem: str) -> bool:
    from jp.render.prompts import ask_yes_no
    from jp.render.sanitize import escape_line

    return bool(await ask_yes_no(f"{escape_line(problem)} Edit again?", default=True))
