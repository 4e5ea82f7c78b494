"""Local tools: programs that the configuration declares, and `run_command`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from jp.config.entries import AccessConfig, ParameterConfig, ToolConfig
from jp.conversation.entries import Header, JsonObject, Question
from jp.conversation.resource import TextBlock
from jp.conversation.thread import ToolDefinition
from jp.errors import ConfigurationError, JpError
from jp.tool.base import ToolInvocation, ToolOutput, Unanswered, error_output
from jp.tool.execution import (
    ReturnedResult,
    Sandbox,
    execute,
    facts_of,
    is_text,
    no_text,
    output_text,
    read_output,
    transcript,
)
from jp.tool.rules import TYPES, argument_problems
from jp.tool.templates import CommandLine, check_script, command_of, plain, rendered_in_bounds, shown

if TYPE_CHECKING:
    from jp.process.guardian import ProcessResult
    from jp.process.sandbox.policy import Limits


def definition_of(name: str, settings: ToolConfig) -> ToolDefinition:
    """Return the definition of the tool `name` for the model.

    Raises:
        ConfigurationError: a parameter has a type that there is not, or a default that it may not have.
    """
    declared = settings.parameters
    for parameter, config in declared.items():
        _check(f"conversation.tools.{name}.parameters.{parameter}", parameter, config)
    schema: JsonObject = {
        "type": "object",
        "properties": {parameter: _schema(config) for parameter, config in declared.items()},
        "additionalProperties": False,
    }
    required = [parameter for parameter, config in declared.items() if config.required]
    if required:
        schema["required"] = required
    return ToolDefinition(name=name, description=settings.summary or settings.description or "", parameters=schema)


def _check(key: str, parameter: str, config: ParameterConfig) -> None:
    types = (config.type,) if isinstance(config.type, str) else config.type
    for wrong in (found for found in types if found not in TYPES):
        raise ConfigurationError(
            f"'{key}.type' is {wrong!r}, which is no type of JSON Schema", hint=f"the types are: {', '.join(TYPES)}"
        )
    if config.default is None:
        return
    for problem in argument_problems({"properties": {parameter: _schema(config)}}, {parameter: config.default}):
        raise ConfigurationError(f"'{key}.default' does not fit: {problem}")


def _schema(config: ParameterConfig) -> JsonObject:
    types = config.type
    about: dict[str, Any] = {
        "type": types if isinstance(types, str) else list(types),
        "description": config.summary or config.description,
        "enum": list(config.enum) or None,
        "items": config.items or None,
        "properties": config.properties or None,
        "default": config.default,
    }
    return {keyword: value for keyword, value in about.items() if value is not None}


class Optionals(dict[str, Any]):
    """Values of which those in `known` are optional, all if it is None; a template then sees nothing.

    To ask for another one is an error.
    """

    def __init__(self, values: Mapping[str, Any], known: Collection[str] | None = None) -> None:
        super().__init__(values)
        self._known = None if known is None else frozenset(known)

    def __missing__(self, name: str) -> None:
        if self._known is not None and name not in self._known:
            raise KeyError(name)


_NOTHING = (TextBlock(text="(no output)"),)
_MOST_QUESTIONS = 20
"""A tool that asks more in one call does not come to an end."""


class LocalTool:
    """A tool that runs the command of its `settings`.

    `workspace_id` is passed to the command; `private` gives the directories of jp itself, which a
    confined one cannot read. What it says on its standard error is for the log.
    """

    keeps_time = True

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

    async def preview(self, invocation: ToolInvocation) -> str | None:
        """Return the command as it is run, with the arguments in it. See the port."""
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

    async def _execute(self, invocation: ToolInvocation, answers: Mapping[str, Any]) -> ProcessResult:
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
        for line in output_text(ended.stderr).splitlines():
            invocation.log(f"{self._name}: {line}")
        return ended

    def _values(self, invocation: ToolInvocation, answers: Mapping[str, Any]) -> JsonObject:
        """Return the values for a command, in the form of the original JP."""
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

    def _output(self, ended: ProcessResult, timeout_secs: float | None) -> ToolOutput | Question:
        is_whole = ended.stopped is None and not ended.stdout.omitted and is_text(ended.stdout)
        found = read_output(output_text(ended.stdout)) if is_whole else None
        if isinstance(found, Question):
            return found
        if isinstance(found, ReturnedResult):
            is_error = bool(ended.exit_code) if found.is_error is None else found.is_error
            content = found.content or _NOTHING
            return ToolOutput(content=content, is_error=is_error, facts=facts_of(ended) if ended.exit_code else None)
        if ended.exit_code or ended.stopped is not None:
            return transcript(ended, timeout_secs=timeout_secs)
        if not is_text(ended.stdout):
            facts = replace(facts_of(ended), first_error=no_text(ended.stdout))
            return replace(transcript(ended), is_error=True, facts=facts)
        text = output_text(ended.stdout)
        return ToolOutput(content=(TextBlock(text=text),) if text else _NOTHING, facts=facts_of(ended))


def unanswered(name: str, question: Question, answer: Unanswered) -> str:
    """Return the result of a call if a question of the tool `name` has no answer."""
    why = "nobody can answer it here" if answer.cause == "nobody" else "who was asked did not answer"
    return f"{name} asks {question.text!r}, and {why}, so it did not go on. Go on without it, or say what it needs."


def _access(access: AccessConfig) -> JsonObject | None:
    return {"fs": msgspec.to_builtins(access.fs)} if access.fs else None


MOST_SECS = 600
"""Default of the most seconds that the model may give a command."""

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

    definition = DEFINITION
    keeps_time = True

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

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
    """Return how long it may take: what the model says, as far as the configuration allows it."""
    wanted: int | None = invocation.arguments.get("timeout")
    limit = invocation.settings.timeout_secs
    if wanted is None or wanted <= 0:
        return limit
    return min(wanted, MOST_SECS if limit is None else limit or wanted)
