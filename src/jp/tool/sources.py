"""Where a tool comes from, as far as its name and its settings say. Pure."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from jp.config.tools import ToolConfig
from jp.errors import ConfigurationError


class BuiltIn(msgspec.Struct, frozen=True):
    """It comes with jp."""

    @property
    def text(self) -> str:
        """As `source` has it."""
        return "builtin"


class Local(msgspec.Struct, frozen=True):
    """It is a command that the configuration has."""

    @property
    def text(self) -> str:
        """As `source` has it."""
        return "local"


class OnServer(msgspec.Struct, frozen=True):
    """An MCP server has it, under the name `tool`."""

    server: str
    tool: str

    @property
    def text(self) -> str:
        """As `source` has it."""
        return f"mcp.{self.server}.{self.tool}"


class InPackage(msgspec.Struct, frozen=True):
    """Another Python package brings it, if any does."""

    @property
    def text(self) -> str:
        """As a person is told: no `source` says it."""
        return "package"


ToolSource = BuiltIn | Local | OnServer | InPackage


def source_of(name: str, settings: ToolConfig, built_in: Collection[str]) -> ToolSource:
    """Where the tool `name` comes from. `built_in` are the names of those that come with jp.

    Without a `source`, a tool with a command is local; else it comes with jp, or with another package.

    Raises:
        ConfigurationError: the source is none.
    """
    match (settings.source or "").split(".", 2):
        case [""]:
            if settings.command is not None:
                return Local()
            return BuiltIn() if name in built_in else InPackage()
        case ["builtin"]:
            return BuiltIn()
        case ["local", *_]:
            return Local()
        case ["mcp", server, *tool] if server and tool != [""]:
            return OnServer(server, tool[0] if tool else name)
        case _:
            raise ConfigurationError(
                f"'conversation.tools.{name}.source' cannot be {settings.source!r}",
                hint="it is `builtin`, `local`, `mcp.SERVER`, `mcp.SERVER.TOOL` or `mcp.SERVER.*`",
            )
