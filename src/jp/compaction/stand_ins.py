"""Stand-ins: what a view shows in place of what a compaction strips."""

from __future__ import annotations

from typing import Protocol

from jp.conversation.entries import JsonObject, ToolCallRequest, ToolCallResponse


class StandIns(Protocol):
    """How stripped halves of a tool call look. Pure, and never longer than what they stand for."""

    def arguments(self, call: ToolCallRequest) -> JsonObject:
        """What is left of a stripped call's arguments."""
        ...

    def response(self, call: ToolCallRequest, response: ToolCallResponse) -> str:
        """The line that stands for a stripped response."""
        ...


class StatusLines:
    """The plain stand-ins: no arguments, and `[compacted] <tool>: success` or `error`."""

    def arguments(self, call: ToolCallRequest) -> JsonObject:
        """Nothing."""
        return {}

    def response(self, call: ToolCallRequest, response: ToolCallResponse) -> str:
        """The tool's name and how it ended."""
        return f"[compacted] {call.name}: {'error' if response.is_error else 'success'}"
