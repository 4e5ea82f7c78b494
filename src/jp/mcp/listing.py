"""Asking a server for its tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from jp.mcp.definitions import Hints, Listing, Opening, ServerTool
from jp.mcp.errors import ServerError
from jp.mcp.schemas import object_schema

if TYPE_CHECKING:
    from mcp.client import Client
    from mcp_types import Tool

_MOST_PAGES = 100
_MOST_TOOLS = 1000
_LARGEST = 4 * 1024 * 1024
_LONGEST_NAME = 256
_LONGEST_DESCRIPTION = 16 * 1024


async def list_tools(client: Client, server: str, *, opening: Opening) -> Listing:
    """Every tool of the server called `server`, of those of one name the first. The session began with `opening`.

    Raises:
        ServerError: they are more than a server can mean.
    """
    tools: dict[str, ServerTool] = {}
    cursor: str | None = None
    size = 0
    for _ in range(_MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            # The SDK keeps what a result must be, of tools that are not taken here, too.
            size += len(msgspec.json.encode((tool.name, tool.description, tool.input_schema, tool.output_schema)))
            if 0 < len(tool.name) <= _LONGEST_NAME:
                tools.setdefault(tool.name, _of(tool))
        cursor = page.next_cursor
        if cursor is None or len(tools) > _MOST_TOOLS or size > _LARGEST:
            break
    listing = Listing(tools=tuple(tools[name] for name in sorted(tools)), opening=opening)
    if cursor is not None or len(tools) > _MOST_TOOLS or size > _LARGEST:
        most = f"{_MOST_TOOLS:,} tools or {_LARGEST:,} bytes of definitions"
        raise ServerError(f"the MCP server {server!r} lists more than {most}")
    return listing


def _of(tool: Tool) -> ServerTool:
    said = tool.annotations
    hints = Hints()
    if said is not None:
        hints = Hints(
            reads_only=said.read_only_hint,
            destroys=said.destructive_hint,
            repeatable=said.idempotent_hint,
            open_world=said.open_world_hint,
        )
    title = tool.title or (None if said is None else said.title)
    return ServerTool(
        name=tool.name,
        description=(tool.description or title or "").strip()[:_LONGEST_DESCRIPTION],
        parameters=object_schema(tool.input_schema),
        title=title,
        hints=hints,
    )
