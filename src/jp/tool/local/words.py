"""What is run for a call of a local tool: words, and variables that hold values. Pure but for the templates."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

import msgspec

from jp.config.tools import CommandConfig
from jp.conversation.entries import JsonObject
from jp.errors import ConfigurationError

_EXPRESSION = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_HELD = re.compile("\ue000([0-9]+)\ue001")
_CONDITION = "{%"
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "fish"})
_SCRIPT_OPTION = re.compile(r"-[a-z]*c[a-z]*")


class CommandLine(msgspec.Struct, frozen=True, kw_only=True):
    """Words, the first of which is a program, and variables besides those of every program."""

    words: tuple[str, ...]
    variables: Mapping[str, str] = {}


def command_of(name: str, command: str | CommandConfig | None) -> CommandConfig:
    """The command of the local tool `name`. One that is a text is split as a shell splits words, its templates whole.

    Raises:
        ConfigurationError: there is none, or it has a quote that is not closed.
    """
    hint = f"name its program: `conversation.tools.{name}.command`, as words or as {{program, args}}"
    if command is None or (isinstance(command, str) and not command.strip()):
        raise ConfigurationError(f"the local tool {name!r} has no command", hint=hint)
    if isinstance(command, str):
        words = _split(name, command)
        command = CommandConfig(program=words[0], args=tuple(words[1:]))
    if not command.program.strip():
        raise ConfigurationError(f"the command of the tool {name!r} has no program", hint=hint)
    return command


def check_script(name: str, command: CommandConfig) -> None:
    """Refuse a template inside of a script that a shell gets as an argument: there its values would be code.

    Raises:
        ConfigurationError: there is one.
    """
    if posixpath.basename(command.program) not in _SHELLS or command.shell:
        return
    option = next((number for number, word in enumerate(command.args) if _SCRIPT_OPTION.fullmatch(word)), None)
    script = "" if option is None else "".join(command.args[option + 1 : option + 2])
    if "{{" in script:
        raise ConfigurationError(
            f"the command of the tool {name!r} has a template inside of a script, where its value would run as code",
            hint='let jp put it in safely: `command = {program = "SCRIPT", shell = true}`',
        )


def _split(name: str, command: str) -> list[str]:
    import shlex

    held: list[str] = []

    def hold(found: re.Match[str]) -> str:
        held.append(found[0])
        return f"\ue000{len(held) - 1}\ue001"

    try:
        words = shlex.split(_EXPRESSION.sub(hold, command))
    except ValueError:
        message = f"the command of the tool {name!r} has a quote that is not closed: {command!r}"
        raise ConfigurationError(message) from None
    return [_HELD.sub(lambda found: held[int(found[1])], word) for word in words]


def rendered(command: CommandConfig, values: JsonObject) -> CommandLine:
    """The words of a call whose templates see `values`: see `jp.tool.local.rendering`, which bounds what it takes.

    An argument that begins with a condition and comes to nothing is left out.

    Raises:
        TemplateError: a template cannot be rendered.
    """
    from jp.tool.local.templates import render, render_script

    texts = ((template, render(template, values)) for template in command.args)
    arguments = [text for template, text in texts if text or not template.lstrip().startswith(_CONDITION)]
    if not command.shell:
        return CommandLine(words=(render(command.program, values), *arguments))

    from jp.tool.local.templates import mark, variable, with_variables

    script, held = render_script(command.program, values)
    marks = [mark(len(held) + number) for number in range(len(arguments))]
    held += arguments
    variables = {variable(number): value for number, value in enumerate(held)}
    return CommandLine(words=("/bin/sh", "-c", with_variables(" ".join([script, *marks]))), variables=variables)


def plain(command: CommandConfig) -> CommandLine:
    """The words of a command that gets its arguments in another way, as they stand there."""
    if not command.shell:
        return CommandLine(words=(command.program, *command.args))
    import shlex

    return CommandLine(words=("/bin/sh", "-c", " ".join([command.program, *map(shlex.quote, command.args)])))


def shown(line: CommandLine) -> str:
    """A command as one could type it, for the person who is asked about it."""
    import shlex

    assignments = [f"{name}={shlex.quote(value)}" for name, value in line.variables.items()]
    script = line.words[-1] if line.words[:2] == ("/bin/sh", "-c") else shlex.join(line.words)
    return "\n".join([*assignments, script])
