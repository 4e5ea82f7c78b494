"""A tool that the configuration declares: a command, run in the workspace's root."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from jp.config.tools import AccessConfig, ToolConfig
from jp.conversation.entries import Header, JsonObject, Question
from jp.conversation.resource import TextBlock
from jp.conversation.thread import ToolDefinition
from jp.errors import JpError
from jp.tool.base import ToolInvocation, ToolOutput, Unanswered, error_output
from jp.tool.local.confining import Sandbox
from jp.tool.local.execution import execute, facts_of, is_text, no_text, said, transcript
from jp.tool.local.optionals import Optionals
from jp.tool.local.output import Returned, read_output
from jp.tool.local.parameters import definition_of
from jp.tool.local.rendering import rendered_in_bounds
from jp.tool.local.words import CommandLine, check_script, command_of, plain, shown

if TYPE_CHECKING:
    from jp.process.running import Ended
    from jp.process.sandbox.words import Limits

_NOTHING = (TextBlock(text="(no output)"),)
_MOST_QUESTIONS = 20
"""A tool that asks more in one call does not come to an end."""


class LocalTool:
    """A tool whose `settings` say what it runs.

    `workspace_id` is what the command is told of where it runs; `private` gives the directories of jp itself, which a
    confined one cannot read. What it says on its standard error is for the log.
    """

    def __init__(
        self, name: str, settings: ToolConfig, *, workspace_id: str = "", private: Callable[[], Sequence[str]] = tuple
    ) -> None:
        """Check what can be checked before it runs.

        Raises:
            ConfigurationError: there is no command, it is no command, or a parameter is declared as none can be.
        """
        self._name = name
        self._settings = settings
        self._command = command_of(name, settings.command)
        if not self._takes_json:
            check_script(name, self._command)
        self._workspace_id = workspace_id
        self._sandbox = Sandbox(name=name, default="off", private=private)
        self._definition = definition_of(name, settings)

    @property
    def definition(self) -> ToolDefinition:
        """See the port."""
        return self._definition

    @property
    def keeps_time(self) -> bool:
        """See the port."""
        return True

    async def preview(self, invocation: ToolInvocation) -> str | None:
        """The command as it is run, where the arguments stand in it. See the port."""
        if self._takes_json:
            return None
        try:
            return shown(await self._line(self._values(invocation, {})))
        except JpError:
            return None

    def sandbox_limits(self, invocation: ToolInvocation) -> Limits:
        """See the port."""
        return self._sandbox.limits(invocation)

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        """Run the command, and again with the answers as often as it asks.

        Raises:
            JpError: it cannot be run.
        """
        answers: dict[str, Any] = {}
        for _ in range(_MOST_QUESTIONS + 1):
            ended = await self._execute(invocation, answers)
            asked = self._output(ended, invocation.settings.timeout_secs)
            if isinstance(asked, ToolOutput):
                return self._sandbox.explained(asked, ended, invocation)
            answer = await invocation.inquirer.ask(asked)
            if isinstance(answer, Unanswered):
                return error_output(unanswered(self._name, asked, answer))
            answers[asked.id] = answer.value
        return error_output(f"{self._name} asked more than {_MOST_QUESTIONS} questions, and was stopped.")

    @property
    def _takes_json(self) -> bool:
        return self._settings.input == "json"

    async def _line(self, values: JsonObject) -> CommandLine:
        return plain(self._command) if self._takes_json else await rendered_in_bounds(self._command, values)

    async def _execute(self, invocation: ToolInvocation, answers: Mapping[str, Any]) -> Ended:
        settings = invocation.settings
        values = self._values(invocation, answers)
        ended = await execute(
            await self._line(values),
            root=invocation.root,
            timeout_secs=settings.timeout_secs,
            named=settings.environment,
            stdin=msgspec.json.encode(values) + b"\n" if self._takes_json else None,
            sandbox=self._sandbox.of_call(invocation),
        )
        for line in said(ended.stderr).splitlines():
            invocation.log(f"{self._name}: {line}")
        return ended

    def _values(self, invocation: ToolInvocation, answers: Mapping[str, Any]) -> JsonObject:
        """What a command is told, in the form of the original JP."""
        header = next((entry for entry in invocation.stream.entries[:1] if isinstance(entry, Header)), None)
        return {
            "tool": {
                "name": self._name,
                "arguments": Optionals(invocation.arguments, self._settings.parameters),
                "answers": Optionals(answers),
                "options": invocation.settings.options,
            },
            "context": {
                "action": "run",
                "root": str(invocation.root.absolute()),
                "access": _access(invocation.settings.access),
                "workspace_id": self._workspace_id,
                "conversation_id": "" if header is None else header.id,
            },
        }

    def _output(self, ended: Ended, timeout_secs: float | None) -> ToolOutput | Question:
        is_whole = ended.stopped is None and not ended.stdout.omitted and is_text(ended.stdout)
        found = read_output(said(ended.stdout)) if is_whole else None
        if isinstance(found, Question):
            return found
        if isinstance(found, Returned):
            is_error = bool(ended.exit_code) if found.is_error is None else found.is_error
            content = found.content or _NOTHING
            return ToolOutput(content=content, is_error=is_error, facts=facts_of(ended) if ended.exit_code else None)
        if ended.exit_code or ended.stopped is not None:
            return transcript(ended, timeout_secs=timeout_secs)
        if not is_text(ended.stdout):
            facts = replace(facts_of(ended), first_error=no_text(ended.stdout))
            return replace(transcript(ended), is_error=True, facts=facts)
        text = said(ended.stdout)
        return ToolOutput(content=(TextBlock(text=text),) if text else _NOTHING, facts=facts_of(ended))


def unanswered(name: str, question: Question, answer: Unanswered) -> str:
    """What the model is told where a question of the tool `name` has no answer."""
    why = "nobody can answer it here" if answer.cause == "nobody" else "who was asked did not answer"
    return f"{name} asks {question.text!r}, and {why}, so it did not go on. Go on without it, or say what it needs."


def _access(access: AccessConfig) -> JsonObject | None:
    return {"fs": msgspec.to_builtins(access.fs)} if access.fs else None
