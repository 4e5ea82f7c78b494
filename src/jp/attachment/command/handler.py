"""The `cmd` scheme: what a program prints."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from jp.attachment.base import AttachmentError, Declaration, Resolution, ResolveContext
from jp.attachment.command.line import CommandLine, parse_command
from jp.attachment.slots import Slots
from jp.conversation.resource import Resource
from jp.process.environment import child_environment
from jp.process.programs import exit_code_text, find_program

if TYPE_CHECKING:
    from jp.process.running import Ended, ProcessLimits

AT_ONCE = 4
"""How many programs run at the same time."""

_slots = Slots("command", AT_ONCE)

_PIPE = "Pipe what it prints instead: `command | jp query …`."


class CommandHandler:
    """`cmd`: a program and its arguments, run in the workspace's root without a shell, an input or a terminal."""

    def __init__(self, limits: ProcessLimits | None = None) -> None:
        self._limits = limits

    def canonical(self, uri: str, context: ResolveContext) -> str:
        """`cmd://PROGRAM?arg=…`. See `parse_command`.

        Raises:
            AttachmentError: `uri` is malformed.
        """
        return parse_command(uri).declared

    async def resolve(
        self, declaration: Declaration, context: ResolveContext, *, excludes: Sequence[Declaration] = ()
    ) -> Resolution:
        """Run it. An exit code that is not 0 is content like any other.

        Raises:
            AttachmentError: it cannot be started, does not end in time, or prints too much or what is no text.
        """
        from jp.process.running import OutputLimits, ProcessLimits, Program, run

        command = parse_command(declaration.uri)
        if any(parse_command(exclude.uri).uri == command.uri for exclude in excludes if exclude.uri.startswith("cmd:")):
            return Resolution(resources=(), notices=(f"{command.typed!r} is not run: it is excluded",))
        directory = str(context.root.absolute())
        environment = _environment(os.environ, directory, context)
        path = _path(command, directory, environment)
        program = Program(words=[path, *command.arguments], directory=directory, environment=environment)
        limits = self._limits or ProcessLimits()
        output = OutputLimits(kept=context.max_bytes, most=context.max_bytes)
        try:
            async with _slots.one():
                ended = await run(program, output=output, limits=limits)
        except OSError as error:
            raise _not_started(command, path, error) from None
        if ended.stopped == "time":
            message = f"{command.typed!r} did not end within {limits.timeout_secs:g} s, and was stopped"
            raise AttachmentError(message, hint=_PIPE)
        if ended.stopped == "output":
            raise _too_much(command, context.max_bytes)
        return _resolution(command, ended)


def _environment(environment: Mapping[str, str], directory: str, context: ResolveContext) -> dict[str, str]:
    """What the program gets. Nothing in it takes a lock that another `git` waits for."""
    passed = child_environment(environment, cwd=str(context.cwd.absolute()), directory=directory)
    return {**passed, "GIT_OPTIONAL_LOCKS": "0"}


def _path(command: CommandLine, directory: str, environment: Mapping[str, str]) -> str:
    """Where the program lies.

    Raises:
        AttachmentError: nowhere.
    """
    name = command.program
    path = find_program(name, directory, environment)
    if path is not None:
        return path
    if os.path.lexists(f"{directory}/{name}"):
        raise AttachmentError(f"there is no command {name!r}", hint=f"The file in the workspace is './{name}'.")
    raise AttachmentError(
        f"there is no command {name!r}", hint="Check its name; aliases of a shell are not known here."
    )


def _not_started(command: CommandLine, path: str, error: OSError) -> AttachmentError:
    name = command.program
    if os.path.isdir(path):  # noqa: PTH112 - text
        return AttachmentError(f"{name!r} is a directory", hint="Name a program in it, or attach it without 'cmd:'.")
    if isinstance(error, FileNotFoundError):
        hint = "Its path begins at the workspace's root, and '~' means nothing: there is no shell."
        return AttachmentError(f"there is no command {name!r}", hint=hint)
    reason = error.strerror or str(error)
    remedy = f"Make it executable: `chmod +x {name}`." if isinstance(error, PermissionError) else "Try it in a shell."
    return AttachmentError(f"cannot run {name!r}: {reason}", hint=remedy)


def _too_much(command: CommandLine, max_bytes: int) -> AttachmentError:
    from jp.attachment.files.failures import in_units

    message = f"{command.typed!r} prints more than {in_units(max_bytes)}, and was stopped"
    hint = "Let it print less, pipe a part of it, or raise 'conversation.max_attachment_bytes'."
    return AttachmentError(message, hint=hint)


def _resolution(command: CommandLine, ended: Ended) -> Resolution:
    notices: list[str] = []
    sections = [f"<command>{command.typed}</command>", f"<exit_code>{exit_code_text(ended.exit_code)}</exit_code>"]
    if ended.exit_code:
        notices.append(
            f"{command.typed!r} ended with exit code {exit_code_text(ended.exit_code)}; what it printed is attached"
        )
    for name, captured in (("stdout", ended.stdout), ("stderr", ended.stderr)):
        data = captured.head + captured.tail
        if b"\0" in data:
            message = f"{command.typed!r} prints what is no text"
            raise AttachmentError(message, hint="Let it write a file, and attach that.")
        text = data.decode("utf-8", "replace")
        if text.encode() != data:
            notices.append(f"what {command.typed!r} prints is not valid UTF-8; what does not fit was replaced")
        if text:
            end = "" if text.endswith("\n") else "\n"
            sections.append(f"<{name}>\n{text}{end}</{name}>")
    resource = Resource(
        uri=command.uri,
        mime_type="text/plain",
        name=command.typed,
        description=command.description or None,
        text="\n".join(sections) + "\n",
    )
    return Resolution(resources=(resource,), notices=tuple(notices))
