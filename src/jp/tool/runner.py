"""Calls → outcomes: check, ask, run. One after the other, each handed over as soon as it is there."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from time import monotonic

import msgspec

from jp.conversation.entries import JsonObject, ToolCallRequest
from jp.conversation.thread import ToolDefinition
from jp.errors import JpError
from jp.tool.arguments import argument_problems
from jp.tool.base import (
    CallOutcome,
    CallStarted,
    ConfiguredTool,
    Tool,
    Toolbox,
    ToolInvocation,
    ToolOutput,
    error_output,
)
from jp.tool.permission import Answers, Approver, Denied, explain, permission_for
from jp.tool.toolbox import definitions


class _AllowedCall(msgspec.Struct, frozen=True, kw_only=True):
    tool: Tool
    arguments: JsonObject


class ToolRunner:
    """Runs the calls of one cycle.

    `root` confines built-in file tools; `approver` is None where nobody can be asked; `notice` hears what a person
    should know although the turn goes on.
    """

    def __init__(
        self,
        toolbox: Toolbox,
        *,
        root: Path,
        answers: Answers,
        approver: Approver | None,
        notice: Callable[[str], None],
    ) -> None:
        self._toolbox = toolbox
        self._root = root
        self._answers = answers
        self._approver = approver
        self._notice = notice

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """The tools that the model may call, sorted by name."""
        return definitions(self._toolbox)

    async def run(self, calls: Sequence[ToolCallRequest]) -> AsyncGenerator[CallStarted | CallOutcome, None]:
        """An outcome for each call, and before it whether the call runs.

        Cancelling stops the one that runs; the ones after it never start.
        """
        for call in calls:
            allowed = await self._allowed(call)
            if isinstance(allowed, CallOutcome):
                yield allowed
                continue
            yield CallStarted(call=call)
            start = monotonic()
            output = await self._run(allowed.tool, allowed.arguments)
            yield CallOutcome(call=call, output=output, duration_ms=round((monotonic() - start) * 1000))

    async def _allowed(self, call: ToolCallRequest) -> _AllowedCall | CallOutcome:
        """What is to be run for a call, or what came of it without running."""
        configured = self._toolbox.get(call.name)
        if configured is None:
            return CallOutcome(call=call, output=self._unknown_tool(call.name))
        arguments = _checked(call, configured)
        if isinstance(arguments, ToolOutput):
            return CallOutcome(call=call, output=arguments)
        decision = await permission_for(call, configured.settings.run or "ask", self._answers, self._approver)
        if isinstance(decision, Denied):
            output = error_output(explain(call.name, decision))
            return CallOutcome(call=call, output=output, denied=decision.cause != "skipped")
        return _AllowedCall(tool=configured.tool, arguments=arguments)

    async def _run(self, tool: Tool, arguments: JsonObject) -> ToolOutput:
        name = tool.definition.name
        try:
            return await tool.run(ToolInvocation(arguments=arguments, root=self._root))
        except JpError as error:
            return error_output(error.message)
        except Exception as error:  # noqa: BLE001  a tool may raise anything; the turn, its log and its user go on
            self._notice(f"tool {name!r} failed: {type(error).__name__}: {error}")
            return error_output(f"{name} failed: {type(error).__name__}: {error}")

    def _unknown_tool(self, name: str) -> ToolOutput:
        names = ", ".join(repr(known) for known in sorted(self._toolbox)) or "none"
        return error_output(f"There is no tool {name!r}, so nothing ran. Tools that may be called: {names}.")


def _checked(call: ToolCallRequest, configured: ConfiguredTool) -> JsonObject | ToolOutput:
    if isinstance(call.arguments, str):
        return error_output("The arguments are not a JSON object, so nothing ran. Send the call again with an object.")
    problems = argument_problems(configured.tool.definition.parameters, call.arguments)
    if not problems:
        return call.arguments
    return error_output(f"The arguments do not fit, so nothing ran: {'; '.join(problems)}.")
