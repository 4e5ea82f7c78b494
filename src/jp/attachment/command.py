"""The `cmd` scheme: the output of a program."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, unquote_plus

import msgspec

from jp.attachment.base import AttachmentError, Declaration, Resolution, ResolveContext, Slots
from jp.conversation.resource import Resource
from jp.process.environment import child_environment, exit_code_text, find_program
from jp.remedies import Ask, phrase

if TYPE_CHECKING:
    from jp.process.guardian import ProcessLimits, ProcessResult


_SCHEME = re.compile(r"cmd:", re.IGNORECASE)
_SHORT = re.compile(r"[^\s?'\"\\]+\?(?:arg|description)=")
_DESCRIPTION = "?description="
_OF_A_SHELL = frozenset({"|", "||", "&", "&&", ";", ">", ">>", "<", "<<", "2>", "2>&1", "&>"})

# Characters that neither end a value nor encode a space in a query.
_SAFE = "/@:,=!$*();'"
_SAFE_PROGRAM = "/@:,=+"


class CommandLine(msgspec.Struct, frozen=True, kw_only=True):
    """A command line. Bytes that are not UTF-8 are surrogates, as in `os.fsdecode`."""

    program: str
    arguments: tuple[str, ...] = ()
    description: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        """Return the program and its arguments."""
        return (self.program, *self.arguments)

    @property
    def uri(self) -> str:
        """Return `cmd://PROGRAM?arg=A&arg=B`, the same for all spellings of one command."""
        return _uri(self.program, [("arg", argument) for argument in self.arguments])

    @property
    def declared(self) -> str:
        """Return the URI with the description."""
        described = [("description", self.description)] if self.description else []
        return _uri(self.program, [*(("arg", argument) for argument in self.arguments), *described])

    @property
    def typed(self) -> str:
        """Return the command as typed into a shell, for display."""
        from shlex import join

        return join(self.words).encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _uri(program: str, parameters: list[tuple[str, str]]) -> str:
    query = "&".join(f"{name}={_encoded(value, _SAFE)}" for name, value in parameters)
    return f"cmd://{_encoded(program, _SAFE_PROGRAM)}{'?' if query else ''}{query}"


def _encoded(text: str, safe: str) -> str:
    return quote(text, safe=safe, errors="surrogateescape")


def parse_command(uri: str) -> CommandLine:
    """Parse a `cmd` URI.

    `cmd:git diff --cached` is split into words as in a shell, without its other features (`$`, `*`, pipes), and may
    end in `?description=…`. `cmd://git?arg=diff&arg=--cached&description=…` has each argument percent-encoded, with
    `+` for a space; `cmd:git?arg=…` is short for it.

    Raises:
        AttachmentError: `uri` is malformed, names no program, or needs a shell.
    """
    body = _SCHEME.sub("", uri, count=1) if _SCHEME.match(uri) else None
    if body is None:
        raise _malformed(uri, "is not a command")
    if body.startswith("//"):
        command = _exact(uri, body[2:])
    elif _SHORT.match(body):
        command = _exact(uri, body)
    else:
        command = _words(uri, body)
    if not command.program.strip("/"):
        raise _malformed(uri, "names no program")
    if any("\0" in word for word in command.words):
        raise _malformed(uri, "has a zero byte, which no argument can contain")
    return command


def _malformed(uri: str, fault: str) -> AttachmentError:
    hint = "write it as 'cmd:git diff --cached', or as 'cmd://git?arg=diff&arg=--cached'"
    return AttachmentError(f"{uri!r} {fault}", hint=hint)


def _exact(uri: str, body: str) -> CommandLine:
    program, _, query = body.partition("?")
    arguments: list[str] = []
    description = ""
    for parameter in filter(None, query.split("&")):
        name, _, value = parameter.partition("=")
        decoded = unquote_plus(value, errors="surrogateescape")
        if name == "arg":
            arguments.append(decoded)
        elif name == "description":
            description = decoded
        else:
            raise _malformed(uri, f"has the parameter {name!r}, and a command has only 'arg' and 'description'")
    return CommandLine(
        program=unquote(program, errors="surrogateescape"), arguments=tuple(arguments), description=description.strip()
    )


def _words(uri: str, body: str) -> CommandLine:
    from shlex import split

    typed, _, description = body.rpartition(_DESCRIPTION) if _DESCRIPTION in body else (body, "", "")
    try:
        words = split(typed)
    except ValueError:
        raise _malformed(uri, "has a quote that is not closed") from None
    if (sign := next((word for word in words if word in _OF_A_SHELL or _ends_command(word, typed)), None)) is not None:
        hint = f"ask for one: {'cmd:sh -c ' + repr(typed)!s}. For the sign itself write 'cmd://PROGRAM?arg=…'"
        raise AttachmentError(f"{uri!r} has {sign!r}, but runs without a shell", hint=hint)
    program, *arguments = words or [""]
    return CommandLine(program=program, arguments=tuple(arguments), description=description.strip())


def _ends_command(word: str, typed: str) -> bool:
    """Return whether `word` was typed with a `;` that ends a command in a shell."""
    return word.endswith(";") and f"{word} " in typed


AT_ONCE = 4
"""Maximum number of programs that run concurrently."""

_slots = Slots("command", AT_ONCE)

_PIPE = phrase("Pipe its output instead: `command | ", Ask(is_open=True), "`.")


class CommandHandler:
    """The handler of `cmd`: a program, run in the workspace's root without a shell, an input or a terminal."""

    def __init__(self, limits: ProcessLimits | None = None) -> None:
        self._limits = limits

    def canonical(self, uri: str, context: ResolveContext) -> str:
        """Return `cmd://PROGRAM?arg=…`. See `parse_command`.

        Raises:
            AttachmentError: `uri` is malformed.
        """
        return parse_command(uri).declared

    async def resolve(
        self, declaration: Declaration, context: ResolveContext, *, excludes: Sequence[Declaration] = ()
    ) -> Resolution:
        """Run the program. Its exit code is part of the resource, also if it is not 0.

        Raises:
            AttachmentError: the program does not start, does not end in time, or prints too much or no text.
        """
        from jp.process.guardian import OutputLimits, ProcessLimits, Program, run

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
    """Return the environment of the program, in which `git` takes no optional locks."""
    passed = child_environment(environment, cwd=str(context.cwd.absolute()), directory=directory)
    return {**passed, "GIT_OPTIONAL_LOCKS": "0"}


def _path(command: CommandLine, directory: str, environment: Mapping[str, str]) -> str:
    """Return the path of the program.

    Raises:
        AttachmentError: there is no such program.
    """
    name = command.program
    path = find_program(name, directory, environment)
    if path is not None:
        return path
    if os.path.lexists(f"{directory}/{name}"):
        raise AttachmentError(f"there is no command {name!r}", hint=f"the file in the workspace is './{name}'")
    raise AttachmentError(f"there is no command {name!r}", hint="check its name; aliases of a shell are not available")


def _not_started(command: CommandLine, path: str, error: OSError) -> AttachmentError:
    name = command.program
    if os.path.isdir(path):  # noqa: PTH112 - text
        return AttachmentError(f"{name!r} is a directory", hint="name a program in it, or attach it without 'cmd:'")
    if isinstance(error, FileNotFoundError):
        hint = "its path is relative to the workspace's root, and without a shell '~' is not expanded"
        return AttachmentError(f"there is no command {name!r}", hint=hint)
    reason = error.strerror or str(error)
    remedy = f"Make it executable: `chmod +x {name}`." if isinstance(error, PermissionError) else "try it in a shell"
    return AttachmentError(f"cannot run {name!r}: {reason}", hint=remedy)


def _too_much(command: CommandLine, max_bytes: int) -> AttachmentError:
    from jp.attachment.base import format_size

    message = f"{command.typed!r} prints more than {format_size(max_bytes)}, and was stopped"
    hint = "let it print less, pipe a part of it, or raise 'conversation.max_attachment_bytes'"
    return AttachmentError(message, hint=hint)


def _resolution(command: CommandLine, ended: ProcessResult) -> Resolution:
    notices: list[str] = []
    sections = [f"<command>{command.typed}</command>", f"<exit_code>{exit_code_text(ended.exit_code)}</exit_code>"]
    if ended.exit_code:
        notices.append(
            f"{command.typed!r} ended with exit code {exit_code_text(ended.exit_code)}; its output is attached"
        )
    for name, captured in (("stdout", ended.stdout), ("stderr", ended.stderr)):
        data = captured.head + captured.tail
        if b"\0" in data:
            message = f"{command.typed!r} prints binary data"
            raise AttachmentError(message, hint="let it write a file, and attach that")
        text = data.decode("utf-8", "replace")
        if text.encode() != data:
            notices.append(f"the output of {command.typed!r} is not valid UTF-8; invalid bytes were replaced")
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
