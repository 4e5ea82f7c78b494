"""The words of a call of a local tool, rendered within bounds on time and memory."""

from __future__ import annotations

import msgspec

from jp.config.tools import CommandConfig
from jp.conversation.entries import JsonObject
from jp.errors import JpError
from jp.tool.local.templates import TemplateError, are_placing
from jp.tool.local.words import CommandLine, rendered


async def rendered_in_bounds(command: CommandConfig, values: JsonObject) -> CommandLine:
    """Return what `rendered` gives. Templates that do more than to put values in their places run apart.

    Raises:
        TemplateError: a template cannot be rendered.
    """
    if are_placing((command.program, *command.args)):
        return rendered(command, values)
    from jp.process.apart import ApartError, rendered_apart

    try:
        found = await rendered_apart(__name__, (msgspec.to_builtins(command), values))
    except ApartError as error:
        raise TemplateError(f"the command {command.program!r} cannot be rendered: {error}") from None
    if isinstance(found, str):
        raise TemplateError(found)
    return msgspec.convert(found, CommandLine)


def main() -> None:
    """Render apart: see `jp.process.apart.rendered_apart`. What is wrong is told as a text."""
    from jp.process.apart import answer

    answer(_answer)


def _answer(task: tuple[JsonObject, JsonObject]) -> object:
    try:
        return msgspec.to_builtins(rendered(msgspec.convert(task[0], CommandConfig), task[1]))
    except JpError as error:
        return error.message
