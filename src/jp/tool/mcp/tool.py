"""A tool that an MCP server has, and the forms with which servers ask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, assert_never

from msgspec.structs import replace

from jp.conversation.entries import Facts, Question
from jp.conversation.resource import Block, ResourceBlock, ResourceLink, TextBlock
from jp.conversation.thread import ToolDefinition
from jp.errors import JpError
from jp.mcp.forms import Elicitation, Field, Filled, Form, Page, Value, value_of
from jp.mcp.session import Call, Called
from jp.process.sandbox.mechanisms import Limits
from jp.tool.base import Inquirer, ToolInvocation, ToolOutput, Unanswered, error_output
from jp.tool.mcp.offered import OfferedTool
from jp.tool.toolbox import OnServer

_MOST_TRIES = 3

_GO_ON = "go on"


async def answer(elicitation: Elicitation, inquirer: Inquirer, say: Callable[[str], None]) -> Filled:
    """What is answered. An address is never opened for a server: it is shown, and declined."""
    match elicitation:
        case Page(server=server, message=message, url=url):
            say(f"the MCP server {server!r} asks you to open {url} ({message}); jp declines: open it and ask again")
            return Filled(action="decline")
        case Form():
            return await _fill(elicitation, inquirer)
        case _:
            assert_never(elicitation)


async def _fill(form: Form, inquirer: Inquirer) -> Filled:
    if not form.fields:
        question = Question(id=_GO_ON, text=_headed(form, "go on?"), kind="boolean")
        reply = await inquirer.ask(question, person_only=True)
        if isinstance(reply, Unanswered):
            return _without(reply)
        return Filled(action="accept" if reply.value is True else "decline")
    values: dict[str, Value | None] = {}
    for position, field in enumerate(form.fields):
        asked = field if position else _introduced(form, field)
        value = await _ask(asked, inquirer)
        if isinstance(value, Unanswered):
            return _without(value)
        if value is not None:
            values[field.question.id] = value
        elif field.required:
            return Filled(action="decline")
    return Filled(action="accept", values=values)


def _introduced(form: Form, field: Field) -> Field:
    """The first field, with what the form is about."""
    question = field.question
    return replace(field, question=replace(question, text=_headed(form, question.text)))


def _headed(form: Form, text: str) -> str:
    return f"{form.server}: {form.message}\n{text}"


def _without(reply: Unanswered) -> Filled:
    return Filled(action="decline" if reply.cause == "declined" else "cancel")


async def _ask(field: Field, inquirer: Inquirer) -> Value | Unanswered | None:
    """The value of a field, None where it is left empty. What it cannot be is asked for again, a few times."""
    for attempt in range(_MOST_TRIES):
        question = field.question
        if attempt:
            # What was answered to a question is not asked again in a turn.
            question = replace(question, id=f"{question.id}#{attempt + 1}", text=f"that does not fit. {question.text}")
        reply = await inquirer.ask(question)
        if isinstance(reply, Unanswered):
            return reply
        value = value_of(field, reply.value)
        if value is not None or (not field.required and reply.value in {None, ""}):
            return value
    return None


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
