"""Asking MCP servers for their tools, so that these are remembered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jp.cli.options import GlobalOptions
from jp.cli.output import notice
from jp.config.model import AppConfig
from jp.errors import JpError

if TYPE_CHECKING:
    from jp.cli.servers import Servers


async def refresh(options: GlobalOptions, config: AppConfig, servers: Servers) -> list[JpError]:
    """Ask every server of which a tool is declared, all at once. Return what went wrong, at most once per server.

    Raises:
        ConfigurationError: there is no such server.
    """
    from jp.tool.mcp.offered import declared_servers

    servers.configure(config)
    asked = [(name, servers.asked(name)) for name in sorted(declared_servers(config.conversation.tools))]
    errors: list[JpError] = []
    for name, connection in asked:
        try:
            listing = await connection.listing()
        except JpError as error:
            errors.append(error)
        else:
            notice(options, f"the MCP server {name!r} has {len(listing.tools)} tools")
    return errors
