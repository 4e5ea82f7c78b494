"""A server on FastMCP of the official SDK, of whichever version the environment that runs it has.

Its first argument is the transport: `stdio`, or `streamable-http`, whose port is the second. Annotations are not
deferred: old versions look for the context in them.
"""

from __future__ import annotations

import sys

from pydantic import BaseModel

try:
    from mcp.server.fastmcp import Context, FastMCP
except ImportError:
    from mcp.server import MCPServer as FastMCP
    from mcp.server.mcpserver import Context

TRANSPORT = sys.argv[1]
PORT = int(sys.argv[2]) if TRANSPORT != "stdio" else 0
IS_OLD = "fastmcp" in FastMCP.__module__
SERVER = FastMCP("tests", port=PORT) if IS_OLD and PORT else FastMCP("tests")


class Person(BaseModel):
    """Whom the server asks for."""

    name: str


@SERVER.tool()
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


if hasattr(Context, "elicit"):

    @SERVER.tool()
    async def meet(ctx: Context) -> str:
        """Ask who is there."""
        answer = await ctx.elicit("Who is there?", schema=Person)
        return f"{answer.action}: {answer.data.name}" if answer.action == "accept" else answer.action


if __name__ == "__main__":
    if IS_OLD or not PORT:
        SERVER.run(TRANSPORT)
    else:
        SERVER.run(TRANSPORT, port=PORT)
