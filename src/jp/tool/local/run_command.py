"""`run_command`: the model's own commands, in a shell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jp.conversation.thread import ToolDefinition
from jp.tool.base import ToolInvocation, ToolOutput
from jp.tool.local.confining import Sandbox
from jp.tool.local.execution import execute, transcript
from jp.tool.local.words import CommandLine

if TYPE_CHECKING:
    from jp.process.sandbox.words import Limits

MOST_SECS = 600
"""How long the model may let a command take where the configuration does not say."""

DEFINITION = ToolDefinition(
    name="run_command",
    description=(
        "Run a command with `sh -c` in the workspace's root. It has no terminal and nothing to read. The result has "
        "its exit code, what it printed, and its errors. A command is stopped when its time is over, and what it has "
        "started ends with it: so no servers, and nothing that waits for a person."
    ),
    parameters={
        "type": "object",
        "properties": {
            "command": {"type": "string", "description": "The command, as one types it into a shell."},
            "timeout": {
                "type": "integer",
                "description": "After how many seconds it is stopped; 120 where you do not say.",
            },
        },
        "required": ["command"],
        "additionalProperties": False,
    },
)


class RunCommand:
    """Run what the model asks for, confined by `sandbox`."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    @property
    def definition(self) -> ToolDefinition:
        """See the port."""
        return DEFINITION

    @property
    def keeps_time(self) -> bool:
        """See the port."""
        return True

    def sandbox_limits(self, invocation: ToolInvocation) -> Limits:
        """See the port."""
        return self._sandbox.limits(invocation)

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        """Run it.

        Raises:
            JpError: it cannot be started, or must not.
        """
        seconds = _seconds(invocation)
        line = CommandLine(words=("/bin/sh", "-c", str(invocation.arguments["command"])))
        ended = await execute(
            line,
            root=invocation.root,
            timeout_secs=seconds,
            named=invocation.settings.environment,
            sandbox=self._sandbox.of_call(invocation),
        )
        return self._sandbox.explained(transcript(ended, timeout_secs=seconds), ended, invocation)


def _seconds(invocation: ToolInvocation) -> float | None:
    """How long it may take: what the model says, as far as the configuration allows it."""
    wanted: int | None = invocation.arguments.get("timeout")
    limit = invocation.settings.timeout_secs
    if wanted is None or wanted <= 0:
        return limit
    return min(wanted, MOST_SECS if limit is None else limit or wanted)
