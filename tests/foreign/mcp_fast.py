"""A server on FastMCP of the official SDK, of whichever version the environment that runs it has.

Its first argument is the transport: `stdio`, or `streamable-http`, whose port is the second.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, get_type_hints

from pydantic import BaseModel

TRANSPORT, *REST = sys.argv[1:]
PORT = {"port": int(REST[0])} if REST else {}
IS_OLD = find_spec("mcp.server.mcpserver") is None
MODULE: Any = import_module("mcp.server.fastmcp" if IS_OLD else "mcp.server.mcpserver")
CONTEXT: Any = MODULE.Context
SERVER: Any = MODULE.FastMCP("tests", **PORT) if IS_OLD else MODULE.MCPServer("tests")


def tool(function: Callable[..., object]) -> None:
    """Offer `function`. Old versions look for the context in annotations that are no texts."""
    hints = get_type_hints(function)
    function.__annotations__ = {name: CONTEXT if name == "ctx" else hint for name, hint in hints.items()}
    SERVER.tool()(function)


class Person(BaseModel):
    """Whom the server asks for."""

    name: str


def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


async def meet(ctx: Any) -> str:
    """Ask who is there."""
    answer = await ctx.elicit("Who is there?", schema=Person)
    return f"{answer.action}: {answer.data.name}" if answer.action == "accept" else str(answer.action)


if __name__ == "__main__":
    tool(add)
    if hasattr(CONTEXT, "elicit"):
        tool(meet)
    SERVER.run(TRANSPORT, **({} if IS_OLD else PORT))
