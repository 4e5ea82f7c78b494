"""An MCP server for timing: it lists twenty tools of a usual size, and answers at once."""

from __future__ import annotations

import json
import sys
from typing import Any

TOOLS = 20


def _tool(number: int) -> dict[str, Any]:
    properties = {
        "path": {"type": "string", "description": "Where to look, relative to the root of the repository."},
        "limit": {"type": "integer", "description": "How many entries there are at most.", "default": 10},
        "order": {"type": "string", "enum": ["newest", "oldest", "largest"]},
    }
    return {
        "name": f"look_{number}",
        "description": "Look at the repository and say what is there, with names, sizes and dates of all entries.",
        "inputSchema": {"type": "object", "properties": properties, "required": ["path"]},
    }


def _result(method: str) -> dict[str, Any] | None:
    match method:
        case "initialize":
            server = {"name": "bench", "version": "1"}
            return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": server}
        case "tools/list":
            return {"tools": [_tool(number) for number in range(TOOLS)]}
        case _:
            return None


def main() -> None:
    """Serve until the input ends."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result = _result(message["method"])
        answer = {"result": result} if result else {"error": {"code": -32601, "message": "Method not found"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)


if __name__ == "__main__":
    main()
