"""A tool that an MCP server has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from jp.conversation.entries import Facts
from jp.conversation.resource import Block, ResourceBlock, ResourceLink, TextBlock
from jp.conversation.thread import ToolDefinition
from jp.errors import JpError
from jp.mcp.forms import Elicitation, Filled
from jp.mcp.ports import Call, Called
from jp.process.sandbox.words import Limits
from jp.tool.base import ToolInvocation, ToolOutput, error_output
from jp.tool.mcp.filling import answer
from jp.tool.mcp.offered import OfferedTool
from jp.tool.sources import OnServer


def _unconfined() -> Limits:
    return Limits(word="off", text="")


class Server(Protocol):
    """Who calls the tools of one server, starting it where it does not run yet."""

    async def call(self, call: Call) -> Called:
        """Call a tool; cancelling tells the server.

        Raises:
            JpError: the server does not start, has ended, or refuses.
        """
        ...


class McpTool:
    """A tool of a server. Whatever becomes of the server costs this tool a result that says so, and nothing else."""

    def __init__(
        self,
        offered: OfferedTool,
        server: Server,
        *,
        summary: str | None = None,
        limits: Callable[[], Limits] = _unconfined,
    ) -> None:
        """`summary` takes the place of what the server says of the tool; `limits` says what confines the server."""
        self._offered = offered
        self._server = server
        self._summary = summary
        self._limits = limits

    @property
    def definition(self) -> ToolDefinition:
        """What the server says of it, under the name that it is offered by."""
        tool = self._offered.tool
        return ToolDefinition(
            name=self._offered.name, description=self._summary or tool.description, parameters=tool.parameters
        )

    @property
    def source(self) -> OnServer:
        """Where it is."""
        return OnServer(self._offered.server, self._offered.tool.name)

    @property
    def hints(self) -> tuple[str, ...]:
        """What the server says of its effects, for a person. It may be wrong, and is never consent."""
        return self._offered.tool.hints.sentences

    def sandbox_limits(self, invocation: ToolInvocation) -> Limits:
        """See the port."""
        return self._limits()

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        """Call it, and let the server ask meanwhile."""

        async def elicit(elicitation: Elicitation) -> Filled:
            return await answer(elicitation, invocation.inquirer, invocation.notice)

        call = Call(
            tool=self._offered.tool.name, arguments=invocation.arguments, progress=invocation.progress, elicit=elicit
        )
        try:
            called = await self._server.call(call)
        except JpError as error:
            return error_output(error.message)
        content = called.content or (TextBlock(text=""),)
        return ToolOutput(content=content, is_error=called.is_error, facts=_facts(content))


def _facts(content: Sequence[Block]) -> Facts | None:
    """What is known of the one resource that came, embedded or named."""
    found = [
        block.resource if isinstance(block, ResourceBlock) else block
        for block in content
        if isinstance(block, ResourceBlock | ResourceLink)
    ]
    return Facts(url=found[0].uri, title=found[0].title) if len(found) == 1 else None
