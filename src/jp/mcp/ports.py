"""Whom a session works with, and what is asked of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from jp.config.kinds import JsonObject
from jp.conversation.resource import Block
from jp.errors import JpError
from jp.mcp.definitions import Listing
from jp.mcp.forms import Elicitation, Filled


class Talk(Protocol):
    """Who is told what happens."""

    def log(self, text: str) -> None:
        """Something that only who looks for a reason wants to know."""
        ...

    def listed(self, server: str, listing: Listing) -> None:
        """A server has said which tools it has, for the first time or because they have changed."""
        ...

    def failed(self, server: str, error: JpError) -> None:
        """A server does not start, or has ended before its session was over."""
        ...


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A tool to be called. `progress` shows how far it is, `elicit` answers what the server asks meanwhile."""

    tool: str
    arguments: JsonObject
    progress: Callable[[str], None]
    elicit: Callable[[Elicitation], Awaitable[Filled]]


class Called(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool has returned."""

    content: tuple[Block, ...]
    is_error: bool
