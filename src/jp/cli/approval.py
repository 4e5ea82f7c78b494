"""Asking the person at the terminal whether a tool may run."""

from __future__ import annotations

import msgspec

from jp.cli.dialogue import Dialogue
from jp.conversation.entries import ToolCallRequest
from jp.tool.permission import Allowed, Decision, Denied

_SHOWN_CHARS = 400


class TerminalApprover:
    """An `Approver` that asks on the terminal, whatever the standard streams are."""

    def __init__(self, dialogue: Dialogue) -> None:
        self._dialogue = dialogue

    async def approve(self, call: ToolCallRequest) -> Decision:
        """Ask whether `call` may run; cancellation leaves the question unanswered."""
        from anyio.to_thread import run_sync

        async with self._dialogue.question():
            answer = await run_sync(_ask, call, abandon_on_cancel=True)
        if answer is None:
            return Denied(cause="nobody")
        return Allowed() if answer else Denied(cause="declined")


def _ask(call: ToolCallRequest) -> bool | None:
    from jp.render.prompt import ask_yes_no

    arguments = msgspec.json.encode(call.arguments).decode()
    if len(arguments) > _SHOWN_CHARS:
        arguments = f"{arguments[:_SHOWN_CHARS]}… ({len(arguments):,} characters)"
    return ask_yes_no(f"Run {call.name} with {arguments}?", default=False)
