"""The `cmd` URIs: a program and its arguments, as people type them and as they are declared. Pure."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote, unquote_plus

import msgspec

from jp.attachment.base import AttachmentError

_SCHEME = re.compile(r"cmd:", re.IGNORECASE)
_SHORT = re.compile(r"[^\s?'\"\\]+\?(?:arg|description)=")
_DESCRIPTION = "?description="
_OF_A_SHELL = frozenset({"|", "||", "&", "&&", ";", ">", ">>", "<", "<<", "2>", "2>&1", "&>"})

# What neither ends a value nor means a space in a query.
_SAFE = "/@:,=!$*();'"
_SAFE_PROGRAM = "/@:,=+"


class CommandLine(msgspec.Struct, frozen=True, kw_only=True):
    """A command. Bytes that are not UTF-8 are surrogates, as in `os.fsdecode`."""

    program: str
    arguments: tuple[str, ...] = ()
    description: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        """The program and its arguments."""
        return (self.program, *self.arguments)

    @property
    def uri(self) -> str:
        """`cmd://PROGRAM?arg=A&arg=B`: what is run. Two commands that run the same have the same."""
        return _uri(self.program, [("arg", argument) for argument in self.arguments])

    @property
    def declared(self) -> str:
        """The URI with the description."""
        described = [("description", self.description)] if self.description else []
        return _uri(self.program, [*(("arg", argument) for argument in self.arguments), *described])

    @property
    def typed(self) -> str:
        """The command as one would type it into a shell; for people."""
        from shlex import join

        return join(self.words).encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _uri(program: str, parameters: list[tuple[str, str]]) -> str:
    query = "&".join(f"{name}={_encoded(value, _SAFE)}" for name, value in parameters)
    return f"cmd://{_encoded(program, _SAFE_PROGRAM)}{'?' if query else ''}{query}"


def _encoded(text: str, safe: str) -> str:
    return quote(text, safe=safe, errors="surrogateescape")


def parse_command(uri: str) -> CommandLine:
    """Read a command.

    `cmd:git diff --cached` is split into words as a shell does it, and nothing else of a shell happens: no `$`, no
    `*`, no pipe. `?description=…` at its end describes it. `cmd://git?arg=diff&arg=--cached&description=…` gives each
    argument as it is, percent-encoded, `+` for a space; `cmd:git?arg=…` is short for it.

    Raises:
        AttachmentError: it is malformed, names no program, or asks for a shell.
    """
    body = _SCHEME.sub("", uri, count=1) if _SCHEME.match(uri) else None
    if body is None:
        raise _malformed(uri, "is no command")
    if body.startswith("//"):
        command = _exact(uri, body[2:])
    elif _SHORT.match(body):
        command = _exact(uri, body)
    else:
        command = _words(uri, body)
    if not command.program.strip("/"):
        raise _malformed(uri, "names no program")
    if any("\0" in word for word in command.words):
        raise _malformed(uri, "has a zero byte, which no argument can hold")
    return command


def _malformed(uri: str, fault: str) -> AttachmentError:
    hint = "Write it as 'cmd:git diff --cached', or as 'cmd://git?arg=diff&arg=--cached'."
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
            raise _malformed(uri, f"has the parameter {name!r}, and a command only knows 'arg' and 'description'")
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
        hint = f"Ask for one: {'cmd:sh -c ' + repr(typed)!s}. For the sign itself write 'cmd://PROGRAM?arg=…'."
        raise AttachmentError(f"{uri!r} has {sign!r}, but runs without a shell", hint=hint)
    program, *arguments = words or [""]
    return CommandLine(program=program, arguments=tuple(arguments), description=description.strip())


def _ends_command(word: str, typed: str) -> bool:
    """Whether a shell would begin another command after `word`, which stands so in what was typed, without quotes."""
    return word.endswith(";") and f"{word} " in typed
