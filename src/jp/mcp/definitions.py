"""What a server says that it can do: data of jp's own, so that nothing of the SDK is needed to read it. Pure."""

from __future__ import annotations

from typing import Literal

import msgspec

from jp.config.kinds import JsonObject

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
