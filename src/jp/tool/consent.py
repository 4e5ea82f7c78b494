"""Whether a call may run and its result be given: what was decided beforehand, or the person who is asked."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import assert_never

import msgspec
from msgspec.structs import replace

from jp.config.kinds import RunMode
from jp.conversation.entries import JsonObject
from jp.conversation.resource import TextBlock
from jp.tool.approver import Approver, Declined, Edited, Granted, Nobody, Proposal, Replaced
from jp.tool.base import Confined, Previewed, Stream, ToolInvocation, ToolOutput
from jp.tool.checking import CheckedCall, problems_of, with_arguments
from jp.tool.permission import Allowed, Answers, Decision, Denied, decide, explain_withheld
from jp.tool.remembered import RememberedAnswers
from jp.tool.results import with_text
from jp.tool.rules import Paths, run_mode

PREVIEW_SECS = 5.0
"""How long is waited for what a tool says that it would do."""

Invoke = Callable[[CheckedCall], ToolInvocation]


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """A call about which a person has to be asked. With `edits_first`, its arguments are edited before."""

    checked: CheckedCall
    edits_first: bool


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """What the model is given for a result. `denied`: not the result, for want of a person's consent."""

    output: ToolOutput
    denied: bool = False


class Consent:
    """The consent to calls and their results.

    `approver` is None where nobody can be asked. `real` is what the links on the disk make of an absolute path; it may
    raise OSError.
    """

    def __init__(
        self, answers: Answers, approver: Approver | None, *, real: Callable[[str], str] = os.path.realpath
    ) -> None:
        self._answers = answers
        self._approver = approver
        self._real = real
        self._remembered = RememberedAnswers()

    async def known(self, checked: CheckedCall, root: Path) -> Decision | Asking:
        """What is decided without asking."""
        mode = await self._mode(checked, root)
        decision = decide(checked.call.name, mode, self._answers)
        return Asking(checked=checked, edits_first=mode == "edit") if decision is None else decision

    async def ask(self, asking: Asking, stream: Stream, invoke: Invoke) -> CheckedCall | Denied:
        """The call as the person lets it run, perhaps with other arguments. Where nobody can be asked, it must not.

        `invoke` makes what a call would be run with.
        """
        reply: CheckedCall | Asking | Denied = asking
        while isinstance(reply, Asking):
            reply = await self._reply(reply, stream, invoke)
        return reply

    async def deliver(self, checked: CheckedCall, output: ToolOutput) -> Given:
        """What the model is given where a call ended with `output`."""
        mode = checked.configured.settings.result or "unattended"
        decision = decide(checked.call.name, mode, self._answers)
        if decision is None and self._approver is not None:
            about = self._approver.edit_result if mode == "edit" else self._approver.deliver
            match await about(checked.call, output):
                case Granted():
                    decision = Allowed()
                case Replaced(text=text):
                    return Given(output=with_text(output, text))
                case Declined(reason=reason):
                    decision = Denied(cause="declined", reason=reason)
                case Nobody():
                    pass
        return _given(checked, output, decision or Denied(cause="nobody"))

    async def _mode(self, checked: CheckedCall, root: Path) -> RunMode:
        settings = checked.configured.settings
        paths = Paths(root=str(root), real=self._real)
        if not settings.rules:
            return run_mode(settings, checked.arguments, paths)
        from anyio.to_thread import run_sync

        return await run_sync(run_mode, settings, checked.arguments, paths, abandon_on_cancel=True)

    async def _reply(self, asking: Asking, stream: Stream, invoke: Invoke) -> CheckedCall | Asking | Denied:
        checked, approver = asking.checked, self._approver
        agreed = replace(checked, is_agreed=True)
        name, arguments = checked.call.name, checked.arguments
        if approver is None:
            return Denied(cause="nobody")
        remembered = self._remembered.answer(stream, name, arguments)
        if remembered is not None:
            return agreed if remembered else Denied(cause="declined")
        proposal = await _proposal(agreed, invoke)
        reply = await (approver.edit(proposal) if asking.edits_first else approver.approve(proposal))
        if isinstance(reply, Granted | Declined) and reply.remember:
            self._remembered.remember(stream, name, arguments, may_run=isinstance(reply, Granted))
        match reply:
            case Granted():
                return agreed
            case Declined(reason=reason):
                return Denied(cause="declined", reason=reason)
            case Edited(arguments=edited):
                return Asking(checked=_edited(checked, edited), edits_first=False)
            case Nobody():
                return Denied(cause="nobody")
            case _:
                assert_never(reply)


async def _proposal(checked: CheckedCall, invoke: Invoke) -> Proposal:
    def problems(arguments: JsonObject) -> list[str]:
        return problems_of(with_arguments(checked, arguments))

    preview = await _preview(checked, invoke)
    tool = checked.configured.tool
    limits = tool.sandbox_limits(invoke(checked)).text if isinstance(tool, Confined) else ""
    return Proposal(call=checked.call, arguments=checked.arguments, preview=preview, problems=problems, limits=limits)


async def _preview(checked: CheckedCall, invoke: Invoke) -> str | None:
    tool = checked.configured.tool
    if not isinstance(tool, Previewed):
        return None
    from anyio import move_on_after

    try:
        with move_on_after(PREVIEW_SECS):
            return await tool.preview(invoke(checked))
    except Exception:  # noqa: BLE001  a tool may raise anything, and it fails again when it runs
        return None
    return None


def _edited(checked: CheckedCall, arguments: JsonObject) -> CheckedCall:
    edited = with_arguments(checked, arguments)
    return msgspec.structs.replace(edited, is_edited=True) if isinstance(edited, CheckedCall) else checked


def _given(checked: CheckedCall, output: ToolOutput, decision: Decision) -> Given:
    match decision:
        case Allowed():
            return Given(output=output)
        case Denied(cause=cause):
            told = TextBlock(text=explain_withheld(checked.call.name, decision))
            withheld = ToolOutput(content=(told,), is_error=output.is_error)
            return Given(output=withheld, denied=cause != "skipped")
        case _:
            assert_never(decision)
