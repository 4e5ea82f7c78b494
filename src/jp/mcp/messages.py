"""Lines of a server's standard output as messages, whatever is in them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from mcp_types import JSONRPCMessage

_ANSWER = rb'\s*\{(?:\s*"jsonrpc"\s*:\s*"[^"]*"\s*,)?\s*"id"\s*:\s*(?P<id>[0-9]{1,18}|"[^"\\]*")\s*,\s*"result"'
"""How an answer begins of which nothing else can be read."""


def message_of(line: bytes) -> JSONRPCMessage | None:
    """The message that a line is; None where it is none.

    Halves of characters become `?`: programs that count in UTF-16 cut texts between them. What has the id of a
    request and is no answer to it becomes an error, so that nobody waits for one.
    """
    from mcp_types import jsonrpc_message_adapter

    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:  # pydantic's errors are ValueErrors
        pass
    try:
        value = json.loads(line.decode("utf-8", "replace"))
    except ValueError:
        return None
    except RecursionError:
        found = re.match(_ANSWER, line)
        return _unreadable({"id": json.loads(found["id"])}, "the answer is nested too deeply") if found else None
    try:
        whole = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        return jsonrpc_message_adapter.validate_json(whole, by_name=False)
    except (ValueError, RecursionError):
        return _unreadable(value)


def _unreadable(value: object, why: str = "the answer is not what the protocol says") -> JSONRPCMessage | None:
    from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError

    answer = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    number = answer.get("id")
    if "method" in answer or isinstance(number, bool) or not isinstance(number, (int, str)):
        return None
    error = ErrorData(code=PARSE_ERROR, message=why)
    return JSONRPCError(jsonrpc="2.0", id=number, error=error)
