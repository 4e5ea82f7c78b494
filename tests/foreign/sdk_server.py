"""A server on the SDK, which speaks the newest version of the protocol; it starts too slowly for the suite."""

from __future__ import annotations

from mcp.server import MCPServer
from mcp.server.mcpserver import Context

SERVER = MCPServer("tests")


@SERVER.tool()
async def grow(context: Context) -> str:
    """Add a tool, and say that there is one more."""
    SERVER.add_tool(lambda: "x", name="grown", description="New.")
    await context.notify_tools_changed()
    return "grown"


if __name__ == "__main__":
    SERVER.run()
