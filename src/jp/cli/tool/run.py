"""`jp tool run`: its arguments, the permission, the run as it is shown, and the result."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, assert_never

import msgspec
import typer

from jp.app.query.arguments import DisplayOptions
from jp.app.query.conversation import is_attended
from jp.app.query.screen import Dialogue
from jp.app.settings import tell_ignored
from jp.app.tools import ReadTools, read_tools, unknown_name
from jp.cli.options import GlobalOptions
from jp.cli.output import print_result
from jp.cli.query.terminal import open_display
from jp.cli.terminal.approval import AbsentRespondent
from jp.cli.terminal.signals import interruptions
from jp.cli.tool.ls import OptionalTarget, ToolName
from jp.conversation.entries import JsonObject, ToolCallRequest, ToolCallResponse
from jp.conversation.resource import (
    AudioBlock,
    Block,
    ImageBlock,
    Resource,
    ResourceBlock,
    ResourceLink,
    TextBlock,
    size_in_bytes,
)
from jp.errors import ExitCode, JpError, UsageError, reason_of
from jp.file_access import read_beginning
from jp.render.stream import PausableRenderer
from jp.render.tables import size_text
from jp.render.theme import use_color
from jp.tool.base import CallOutcome, CallProgress, CallStarted, QuestionAnswered, ToolEvent, ToolOutput
from jp.tool.coordinator import ToolCoordinator, ToolPorts
from jp.tool.rules import argument_problems, fitted
from jp.turn.ports import CallAnswered, CallMade, SystemClock

if TYPE_CHECKING:
    from jp.config.model import AppConfig
    from jp.tool.base import ConfiguredTool, Toolbox


_FORM = 'an object such as {"path": "README.md"}'
_MOST_BYTES = 10 * 1024 * 1024


async def read_arguments(options: GlobalOptions, text: str | None) -> JsonObject:
    """Return the arguments from `--arguments`: JSON, or a file that contains it.

    Raises:
        UsageError: it cannot be read, or is not a JSON object.
    """
    if text is None:
        return {}
    if text == "-":
        from jp.app.values import read_piped, stdin_source

        source = stdin_source(asked=True, refused=False)
        piped = await read_piped(source, on_idle=lambda: options.notice("reading arguments from standard input …"))
        return _object("" if piped is None else piped.text)
    return _object(_content(text[1:]) if text.startswith("@") else text)


def _content(name: str) -> str:
    path = Path(name).expanduser()
    try:
        data = read_beginning(path, _MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise UsageError(f"{str(path)!r} has more than {_MOST_BYTES:,} bytes", hint=f"arguments are {_FORM}")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(
            f"the arguments {str(path)!r} cannot be read: {error.strerror or error}",
            hint="a path is relative to the current directory",
        ) from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{str(path)!r} is not UTF-8: byte {error.start:,} does not fit", hint=_FORM) from None


def _object(text: str) -> JsonObject:
    try:
        return msgspec.json.decode(text, type=JsonObject)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise UsageError(f"the arguments are no JSON object: {reason_of(error)}", hint=f"write {_FORM}") from None


def output_text(output: ToolOutput) -> str:
    """Return a result as text; content that is not text is described."""
    return "\n".join(text.removesuffix("\n") for text in map(_content_text, output.content))


def _content_text(block: Block) -> str:
    match block:
        case TextBlock(text=text):
            return text or ""
        case ResourceBlock(resource=resource) if resource.text is not None:
            return resource.text
        case ResourceBlock(resource=Resource(uri=where, mime_type=kind)) | ResourceLink(uri=where, mime_type=kind):
            return f"[{where}{f', {kind}' if kind else ''}]"
        case ImageBlock(mime_type=kind) | AudioBlock(mime_type=kind):
            return f"[{kind}, {size_text(size_in_bytes(block))}]"
        case _:
            assert_never(block)


class ToolDeniedError(JpError):
    """A tool did not run, because it needed consent and did not get it."""

    exit_code = ExitCode.TOOL_DENIED


class ToolRunArguments(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `jp tool run`."""

    name: str
    arguments: str | None = None
    target: str | None = None
    is_approved: bool = False
    is_shown: bool = True


async def run_tool(options: GlobalOptions, wanted: ToolRunArguments) -> int:
    """Run a tool; the exit code. See `jp tool run`.

    Raises:
        JpError: it could not be run, or was not let.
    """
    code: int = ExitCode.OK
    with interruptions() as interruption:
        arguments = await read_arguments(options, wanted.arguments)
        read = read_tools(options, wanted.target)
        tell_ignored(options, read.resolved, read.info)
        async with read.opened(wanted.name) as toolset:
            if not toolset.is_known(wanted.name):
                raise unknown_name(wanted.name, toolset, read)
            configured = toolset.configured(wanted.name)
            _check(configured, arguments)
            by_hand = _ManualToolRun(options, read, {wanted.name: configured}, wanted)
            outcome = await by_hand.run(ToolCallRequest(call_id="by-hand", name=wanted.name, arguments=arguments))
        code = _ended(options, outcome, by_hand.nobody.asked)
    return code if interruption.exit_code is None else interruption.exit_code


def _check(configured: ConfiguredTool, arguments: JsonObject) -> None:
    definition = configured.tool.definition
    problems = argument_problems(definition.parameters, fitted(definition.parameters, arguments))
    if problems:
        raise UsageError(
            f"the arguments of {definition.name!r} do not fit: {'; '.join(problems)}",
            hint=f"`jp tool show {definition.name}` says what it takes",
        )


class _ManualToolRun:
    """One call of a tool, asked about and shown as in a query."""

    def __init__(self, options: GlobalOptions, read: ReadTools, toolbox: Toolbox, wanted: ToolRunArguments) -> None:
        self._options = options
        self._read = read
        self._toolbox = toolbox
        self._is_approved = wanted.is_approved
        config = read.resolved.config
        screen = open_display(
            options,
            DisplayOptions(tools=wanted.is_shown),
            config,
            clock=SystemClock(),
            entries=read.stream.entries,
        )
        self._screen = screen
        self._renderer = PausableRenderer(screen)
        self._dialogue = Dialogue()
        self._dialogue.screen = self._renderer
        self._dialogue.color = use_color(options.color, os.environ, is_terminal=True)
        self._outcome: CallOutcome | None = None
        self.nobody = AbsentRespondent()

    async def run(self, call: ToolCallRequest) -> CallOutcome:
        """Return the outcome of the call."""
        coordinator = ToolCoordinator(self._toolbox, self._ports(self._read.resolved.config))
        self._renderer.tool(CallMade(call=call))
        try:
            await self._watched(lambda: coordinator.run([call], self._read.stream, self._hear))
        finally:
            self._renderer.close()
        if self._outcome is None:
            raise JpError(f"nothing came of {call.name!r}")
        return self._outcome

    def _ports(self, config: AppConfig) -> ToolPorts:
        from jp.app.toolset import AttachmentNames
        from jp.cli.terminal.approval import TerminalApprover, TerminalRespondent
        from jp.tool.consent import Answers, Consent, Inquiries

        attended = is_attended()
        consent = Consent(
            Answers(approve_all=self._is_approved),
            TerminalApprover(self._dialogue, config.editor, self._options) if attended else None,
            real=AttachmentNames().real_path,
        )
        person = TerminalRespondent(self._dialogue) if attended else self.nobody
        return ToolPorts(
            root=self._read.root,
            consent=consent,
            notice=self._renderer.notice,
            log=self._options.log,
            inquirer_for=Inquiries(self._toolbox, person=person, model=None).inquirer,
        )

    async def _watched(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do the work, saying for how long nothing came."""
        from anyio import create_task_group

        async with create_task_group() as tasks:
            tasks.start_soon(self._screen.animate)
            await work()
            tasks.cancel_scope.cancel()

    def _hear(self, event: ToolEvent) -> None:
        match event:
            case CallStarted():
                pass
            case CallProgress() | QuestionAnswered():
                self._renderer.tool(event)
            case CallOutcome(call=call, output=output, duration_ms=duration):
                self._outcome = event
                response = ToolCallResponse(
                    request=call.id,
                    content=output.content,
                    is_error=output.is_error,
                    duration_ms=duration,
                    facts=output.facts,
                )
                self._renderer.tool(CallAnswered(call=call, response=response))
            case _:
                assert_never(event)


def _ended(options: GlobalOptions, outcome: CallOutcome, unanswered: Collection[str]) -> int:
    """Print the result; the exit code. `unanswered` are the ids of the questions that nobody could be asked."""
    name, output = outcome.call.name, outcome.output
    if outcome.denied and outcome.duration_ms is not None:
        keys = ", ".join(f"`conversation.tools.{name}.questions.{question}.answer`" for question in unanswered)
        hint = f"be at a terminal, or set {keys}" if keys else "be at a terminal"
        raise ToolDeniedError(f"{name!r} has no answer that it needs of a person", hint=hint)
    if outcome.denied:
        hint = "answer y where you are asked, or say --yes" if is_attended() else "--yes lets it run without asking"
        raise ToolDeniedError(f"{name!r} did not run: it needs your consent", hint=hint)
    value = {
        "tool": name,
        "is_error": output.is_error,
        "duration_ms": outcome.duration_ms,
        "content": msgspec.to_builtins(output.content),
        "facts": msgspec.to_builtins(output.facts),
    }
    print_result(options, text=output_text(output), value=value, nothing="the result is empty")
    return ExitCode.FAILURE if output.is_error else ExitCode.OK


def run(
    options: GlobalOptions,
    *,
    name: ToolName,
    arguments: Annotated[
        str | None,
        typer.Option("-a", "--arguments", metavar="JSON", help="Arguments as a JSON object; @FILE or '-' reads them"),
    ] = None,
    target: OptionalTarget = None,
    yes: Annotated[
        bool, typer.Option("--yes", "--approve-all", help="Run it without asking, also without a terminal")
    ] = False,
    hide_tools: Annotated[
        bool, typer.Option("--hide-tools", help="Print the result and nothing about the run")
    ] = False,
) -> int:
    """Run a tool as if a model had called it, and print its result.

    Permission works as in a query: a tool that asks there asks here, and without a terminal it does not run (exit code
    8) unless --yes is given. The result is complete, and nothing is written to a conversation. The exit code is 1 if
    the tool itself reports a failure. With --id, the tool reads that conversation and uses its settings.

    Examples:
        jp tool run fs_list_files --yes
        jp tool run fs_read_file --yes --arguments '{"path": "README.md"}'
        jp tool run run_command --arguments '{"command": "make test"}'
        jp tool run fs_modify_file --arguments @edit.json
    """
    import anyio

    wanted = ToolRunArguments(name=name, arguments=arguments, target=target, is_approved=yes, is_shown=not hide_tools)
    return anyio.run(run_tool, options, wanted)
