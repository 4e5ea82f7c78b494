"""Asking the person at the terminal whether tools may run and their results be given."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from jp.app.query.screen import Dialogue
from jp.config.model import EditorConfig
from jp.conversation.entries import JsonObject, ToolCallRequest
from jp.errors import JpError, reason_of
from jp.render.approval import Sheet, argument_lines, is_plain_name, value_text
from jp.render.prompts import About, ask_key, tell
from jp.render.sanitize import escape, escape_line
from jp.render.tty import can_ask
from jp.render.units import count_text, size_text
from jp.tool.base import ToolOutput, other_than_text, text_of
from jp.tool.consent import Approval, EditedArguments, NoApprover, Proposal, Refusal, ReplacedText

_LONGEST_VALUE = 60
_LONGEST_CALL = 120

_CALL_KEYS = {
    "y": "run it",
    "n": "do not run it",
    "Y": "run it, and for the rest of this turn every call with these arguments",
    "N": "do not run it, and for the rest of this turn no call with these arguments",
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


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question with its keys, and what it is about."""

    text: str
    keys: Mapping[str, str]
    about: About


def call_question(proposal: Proposal, *, color: bool) -> Question:
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
    return Question(text=f"{limits}Run {call or f'{name} with these arguments'}?", keys=_CALL_KEYS, about=about)


def result_question(call: ToolCallRequest, output: ToolOutput) -> Question:
    """Return the question whether the model gets a result."""
    text = text_of(output)
    size = f"{count_text(len(text.splitlines()), 'line')}, {size_text(len(text.encode('utf-8', 'replace')))}"
    others = other_than_text(output)
    beside = f", and {count_text(others, 'part')} that cannot be shown" if others else ""
    failed = ", a failure" if output.is_error else ""
    return Question(
        text=f"Give the model the result of {escape_line(call.name)} ({size}{beside}{failed})?",
        keys=_RESULT_KEYS,
        about=About(sheets=(Sheet(text=escape(text)),) if text else ()),
    )


async def answer_to(question: Question) -> str | None:
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

    def __init__(self, dialogue: Dialogue, editor: EditorConfig) -> None:
        self._dialogue = dialogue
        self._editor = editor

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
            key = await answer_to(question)
            if key != "e":
                return Approval(remember=key == "Y") if key in {"y", "Y"} else await _declined(key)
            edited = await self._edited(proposal)
            if edited is not None:
                return edited

    async def _deliver(
        self, call: ToolCallRequest, output: ToolOutput
    ) -> Approval | Refusal | ReplacedText | NoApprover:

        question = result_question(call, output)
        while True:
            key = await answer_to(question)
            if key != "e":
                return Approval() if key == "y" else await _declined(key)
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
            if not await _wants_another_try(arguments):
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
            from jp.render.prompts import tell
            from jp.render.sanitize import escape_line

            tell(f"Nothing is changed: {escape_line(error.message)}\n")
            return None


async def _declined(key: str | None) -> Refusal | NoApprover:
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


async def _wants_another_try(problem: str) -> bool:
    from jp.render.prompts import ask_yes_no
    from jp.render.sanitize import escape_line

    return bool(await ask_yes_no(f"{escape_line(problem)} Edit again?", default=True))
