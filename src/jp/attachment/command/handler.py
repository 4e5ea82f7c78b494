"""The `cmd` scheme: what a program prints."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from jp.attachment.base import AttachmentError, Declaration, Resolution, ResolveContext
from jp.attachment.command.line import CommandLine, parse_command
from jp.attachment.command.scrubbed import scrubbed
from jp.attachment.slots import Slots
from jp.conversation.resource import Resource

if TYPE_CHECKING:
    from jp.attachment.command.process import Ended, ProcessLimits

AT_ONCE = 4
"""How many programs run at the same time."""

_slots = Slots("command", AT_ONCE)

_PLACES_OF_GIT = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR")
_OF_A_SIGNAL = 128
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
        from jp.attachment.command.process import ProcessLimits, TooMuchOutputError, TooSlowError, run

        command = parse_command(declaration.uri)
        if any(parse_command(exclude.uri).uri == command.uri for exclude in excludes if exclude.uri.startswith("cmd:")):
            return Resolution(resources=(), notices=(f"{command.typed!r} is not run: it is excluded",))
        directory = str(context.root.absolute())
        environment = _environment(os.environ, directory, context)
        path = _path(command, directory, environment)
        limits = self._limits or ProcessLimits()
        try:
            async with _slots.one():
                ended = await run(
                    [path, *command.arguments],
                    directory=directory,
                    environment=environment,
                    max_bytes=context.max_bytes,
                    limits=limits,
                )
        except OSError as error:
            raise _not_started(command, path, error) from None
        except TooSlowError:
            message = f"{command.typed!r} did not end within {limits.timeout_secs:g} s, and was stopped"
            raise AttachmentError(message, hint=_PIPE) from None
        except TooMuchOutputError:
            raise _too_much(command, context.max_bytes) from None
        return _resolution(command, ended)


def _environment(environment: Mapping[str, str], directory: str, context: ResolveContext) -> dict[str, str]:
    """What the program gets. Nothing in it asks a question, or takes a lock that another `git` waits for."""
    passed = scrubbed(environment)
    for name in _PLACES_OF_GIT:
        if name in passed:
            # A hook of git names them as seen from where it runs.
            passed[name] = str(context.cwd.absolute() / passed[name])
    return {**passed, "PWD": directory, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}


def _path(command: CommandLine, directory: str, environment: Mapping[str, str]) -> str:
    """Where the program lies. Only absolute directories are looked into: others are whatever a stranger put there.

    Raises:
        AttachmentError: nowhere.
    """
    name = command.program
    if "/" in name:
        return os.path.join(directory, name)  # noqa: PTH118 - text
    for place in environment.get("PATH", os.defpath).split(os.pathsep):
        path = f"{place}/{name}"
        if place.startswith("/") and os.access(path, os.X_OK) and not os.path.isdir(path):  # noqa: PTH112 - text
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
    sections = [f"<command>{command.typed}</command>", f"<exit_code>{_exit_code(ended.exit_code)}</exit_code>"]
    if ended.exit_code:
        notices.append(
            f"{command.typed!r} ended with exit code {_exit_code(ended.exit_code)}; what it printed is attached"
        )
    for name, data in (("stdout", ended.stdout), ("stderr", ended.stderr)):
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


def _exit_code(code: int) -> str:
    """As a shell gives it, with the signal that ended it."""
    if code >= 0:
        return str(code)
    import signal

    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"{_OF_A_SIGNAL - code} ({name})"
