"""The tool port: what a tool is, what it returns, who may run it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from jp.conversation.entries import Facts, JsonObject, ToolCallRequest
from jp.conversation.resource import Block, TextBlock
from jp.conversation.thread import ToolDefinition

RunMode = Literal["ask", "unattended", "skip"]


class ToolOutput(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool returns. A failure is a result too: the model reads it."""

    content: tuple[Block, ...]
    is_error: bool = False
    facts: Facts | None = None


class CallStarted(msgspec.Struct, frozen=True, kw_only=True):
    """A call is about to run: from here on it may have effects."""

    call: ToolCallRequest


class CallOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one call. `denied`: it needed a person's consent and did not get it, so it did not run.

    `duration_ms` is None where nothing ran.
    """

    call: ToolCallRequest
    output: ToolOutput
    duration_ms: int | None = None
    denied: bool = False


class ToolInvocation(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool is run with. `root` confines built-in file tools."""

    arguments: JsonObject
    root: Path


class Tool(Protocol):
    """A function that the model may call."""

    @property
    def definition(self) -> ToolDefinition:
        """What the model is told of it."""
        ...

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        """Run it. Cancellation stops it."""
        ...


class ConfiguredTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool and whether it may run without asking."""

    tool: Tool
    run: RunMode


Toolbox = Mapping[str, ConfiguredTool]
"""Tools by name."""


def error_output(text: str) -> ToolOutput:
    """A failure, in words for the model."""
    return ToolOutput(content=(TextBlock(text=text),), is_error=True)
