"""What the SDK and the network raise, as errors that a person and a model can read."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from jp.errors import JpError
from jp.mcp.bounds import Excess
from jp.mcp.errors import ClosedError, RefusalError, ServerError

if TYPE_CHECKING:
    from mcp.shared.exceptions import MCPError

_LONGEST = 2000
_CLOSED = "Connection closed"


def explained(server: str, error: BaseException) -> JpError:
    """Why a session, or a request in it, has failed. Of several reasons it is the first."""
    import httpx2
    from mcp.shared.exceptions import MCPError
    from pydantic import ValidationError

    match error:
        case JpError():
            return error
        case BaseExceptionGroup():
            return explained(server, error.exceptions[0])
        case MCPError():
            return _refused(server, error)
        case ValidationError():
            return ServerError(f"the MCP server {server!r} sent an answer that is not what the protocol says")
        case httpx2.HTTPError():
            said = str(error) or type(error).__name__
            return ServerError(f"the MCP server {server!r} cannot be reached: {said}")
        case _:
            said = (str(error) or type(error).__name__)[:_LONGEST]
            return ServerError(f"the MCP server {server!r}: {said}")


def speaks_otherwise(error: BaseException) -> bool:
    """Return whether a server may have refused `initialize` because it knows only versions that begin without it."""
    from mcp.shared.exceptions import MCPError
    from mcp_types import HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND
    from mcp_types import UNSUPPORTED_PROTOCOL_VERSION as UNSUPPORTED

    codes = {HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, UNSUPPORTED}
    # What is raised from a group may be in it.
    reasons, seen = [error], set[int]()
    while reasons:
        reason = reasons.pop()
        if id(reason) in seen:
            continue
        seen.add(id(reason))
        if isinstance(reason, MCPError):
            return reason.code in codes
        if isinstance(reason, BaseExceptionGroup):
            reasons += cast("BaseExceptionGroup[BaseException]", reason).exceptions
        reasons += [reason.__cause__] if reason.__cause__ is not None else []
    return False


def _refused(server: str, error: MCPError) -> JpError:
    from mcp_types import CONNECTION_CLOSED

    # Servers use the number for errors of their own.
    if error.code == CONNECTION_CLOSED and error.message == _CLOSED:
        return ClosedError(f"the MCP server {server!r} has ended")
    if isinstance(error.data, Excess):
        return RefusalError(f"the MCP server {server!r} {error.data.sentence}")
    return RefusalError(f"the MCP server {server!r} says: {error.message[:_LONGEST]}")
