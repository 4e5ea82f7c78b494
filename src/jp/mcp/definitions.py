"""Data of jp's own about servers: their tools, errors and addresses. Nothing of the SDK is imported here."""

from __future__ import annotations

import re
from typing import Literal
from urllib.parse import quote

import msgspec

from jp.config.direction import JsonObject
from jp.errors import ExitCode, JpError

Opening = Literal["initialize", "discover"]
"""What a session begins with: the handshake of all versions before 2026-07-28, or a request of that version."""


class Hints(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a server says of the effects of a tool. A person may read it; it is never taken as consent."""

    reads_only: bool | None = None
    destroys: bool | None = None
    repeatable: bool | None = None
    open_world: bool | None = None

    @property
    def sentences(self) -> tuple[str, ...]:
        """In words, for a person."""
        said = (
            (self.reads_only, "changes nothing", "may change something"),
            (self.destroys, "may overwrite or delete", "only adds"),
            (self.repeatable, "does nothing more when it is called again", "does it again when it is called again"),
            (self.open_world, "reaches out", "stays within what it knows"),
        )
        return tuple(yes if hint else no for hint, yes, no in said if hint is not None)


class ServerTool(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool as its server defines it. `parameters` is a JSON Schema of type object."""

    name: str
    description: str = ""
    parameters: JsonObject
    title: str | None = None
    hints: Hints = Hints()


class Listing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The tools of a server, sorted by name, and what a session with it begins with."""

    tools: tuple[ServerTool, ...] = ()
    opening: Opening = "initialize"

    def tool(self, name: str) -> ServerTool | None:
        """The tool of that name."""
        return next((tool for tool in self.tools if tool.name == name), None)


class ServerError(JpError):
    """A server cannot be used: it does not start, has ended, or does not speak the protocol."""


class EndedError(ServerError):
    """The process of a server has ended."""


class UnauthorizedError(ServerError):
    """A server does not accept the credentials, or demands some."""

    exit_code = ExitCode.AUTHENTICATION


class RefusalError(JpError):
    """A server has answered that it does not do what it was asked."""


class ClosedError(ServerError):
    """The session was over before an answer came."""


LONGEST = 8192
"""How many characters a URI of a server has at most."""

_FORM = re.compile(r"mcp\+(?P<server>[^+/\s]+)\+(?P<uri>\S.*)", re.DOTALL | re.IGNORECASE)
_NO_URI = re.compile(r"[\x00-\x20\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def canonical_uri(server: str, uri: str) -> str:
    """The URI of what `server` calls `uri`."""
    legible = _NO_URI.sub(lambda match: quote(match[0], errors="replace"), uri[:LONGEST])
    return f"mcp+{server}+{legible}"


def split_uri(uri: str) -> tuple[str, str] | None:
    """The server, and what it calls the resource; None where `uri` is none of `canonical_uri`."""
    match = _FORM.fullmatch(uri)
    return None if match is None else (match["server"], match["uri"])
