"""Asking the person at the terminal whether tools may run and their results be given."""

from __future__ import annotations

import msgspec

from jp.cli.dialogue import Dialogue
from jp.config.model import EditorConfig
from jp.conversation.entries import JsonObject, ToolCallRequest
from jp.errors import JpError, reason_of
from jp.tool.approver import Declined, Edited, Granted, Nobody, Proposal, Replaced
from jp.tool.base import ToolOutput


class TerminalApprover:
    """An `Approver` that asks on the terminal, whatever the standard streams are.

    Cancellation leaves a question unanswered.
    """

    def __init__(self, dialogue: Dialogue, editor: EditorConfig) -> None:
        self._dialogue = dialogue
        self._editor = editor

    async def approve(self, proposal: Proposal) -> Granted | Declined | Edited | Nobody:
        """See the port."""
        async with self._dialogue.question():
            return await self._approve(proposal)

    async def edit(self, proposal: Proposal) -> Granted | Declined | Edited | Nobody:
        """See the port."""
        async with self._dialogue.question():
            return await self._edited(proposal) or await self._approve(proposal)

    async def deliver(self, call: ToolCallRequest, output: ToolOutput) -> Granted | Declined | Replaced | Nobody:
        """See the port."""
        async with self._dialogue.question():
            return await self._deliver(call, output)

    async def edit_result(self, call: ToolCallRequest, output: ToolOutput) -> Granted | Declined | Replaced | Nobody:
        """See the port."""
        async with self._dialogue.question():
            return await self._replaced(output) or await self._deliver(call, output)

    async def _approve(self, proposal: Proposal) -> Granted | Declined | Edited | Nobody:
        from jp.cli.approval_question import answer_to, call_question

        question = call_question(proposal, color=self._dialogue.color)
        while True:
            key = await answer_to(question)
            if key != "e":
                return Granted(remember=key == "Y") if key in {"y", "Y"} else await _declined(key)
            edited = await self._edited(proposal)
            if edited is not None:
                return edited

    async def _deliver(self, call: ToolCallRequest, output: ToolOutput) -> Granted | Declined | Replaced | Nobody:
        from jp.cli.approval_question import answer_to, result_question

        question = result_question(call, output)
        while True:
            key = await answer_to(question)
            if key != "e":
                return Granted() if key == "y" else await _declined(key)
            replaced = await self._replaced(output)
            if replaced is not None:
                return replaced

    async def _edited(self, proposal: Proposal) -> Edited | None:
        """The arguments as the person writes them; None where that comes to nothing."""
        written = msgspec.json.format(msgspec.json.encode(proposal.arguments), indent=2).decode() + "\n"
        while True:
            text = await self._written(written, ".json")
            if text is None:
                return None
            arguments = _arguments(text, proposal)
            if not isinstance(arguments, str):
                return Edited(arguments=arguments)
            if not await _wants_another_try(arguments):
                return None
            written = text

    async def _replaced(self, output: ToolOutput) -> Replaced | None:
        """The result as the person writes it; None where that comes to nothing."""
        from jp.tool.results import text_of

        text = await self._written(text_of(output), ".md")
        return None if text is None else Replaced(text=text)

    async def _written(self, text: str, suffix: str) -> str | None:
        from jp.cli.editing import edited_text

        try:
            return await edited_text(text, suffix=suffix, config=self._editor)
        except JpError as error:
            from jp.render.escape import escape_line
            from jp.render.prompts import tell

            tell(f"Nothing is changed: {escape_line(error.message)}\n")
            return None


async def _declined(key: str | None) -> Declined | Nobody:
    from jp.render.prompts import ask_line

    if key is None:
        return Nobody()
    reason = await ask_line("Why not?") if key == "r" else None
    return Declined(reason=reason or "", remember=key == "N")


def _arguments(text: str, proposal: Proposal) -> JsonObject | str:
    """The arguments that `text` says, or why they cannot be used."""
    try:
        arguments = msgspec.json.decode(text, type=JsonObject)
    except (msgspec.DecodeError, RecursionError) as error:
        return f"That is no JSON object: {reason_of(error)}."
    problems = proposal.problems(arguments)
    return f"The arguments do not fit: {'; '.join(problems)}." if problems else arguments


async def _wants_another_try(problem: str) -> bool:
    from jp.render.escape import escape_line
    from jp.render.prompts import ask_yes_no

    return bool(await ask_yes_no(f"{escape_line(problem)} Edit again?", default=True))
