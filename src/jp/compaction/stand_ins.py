"""Stand-ins: what a view shows in place of what a compaction strips."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from jp.conversation.entries import AnyEntry, Facts, JsonObject, ToolCallRequest, ToolCallResponse


class CallStandIns(Protocol):
    """How stripped halves of the tool calls of one log look. Pure, and never longer than what they stand for."""

    def arguments(self, call: ToolCallRequest) -> JsonObject | str:
        """What is left of a stripped call's arguments; a text only where they are none but a text."""
        ...

    def response(self, call: ToolCallRequest, response: ToolCallResponse) -> str | None:
        """Return the status line of a stripped response; None where nothing shorter says enough."""
        ...

    def digest(self, call: ToolCallRequest, response: ToolCallResponse, facts: Facts | None) -> str | None:
        """Return the status line with evidence: the response's own facts, else the overlay's `facts`."""
        ...


class StandIns(Protocol):
    """Makes the stand-ins of a log. Those of what stands in it already stay what they are when it grows."""

    def of(self, entries: Sequence[AnyEntry]) -> CallStandIns:
        """The stand-ins in a view of `entries`."""
        ...


class StatusLines:
    """The plain stand-ins, of any log: no arguments, and `[compacted] <tool>: success` or `error`."""

    def of(self, entries: Sequence[AnyEntry]) -> StatusLines:
        """The same for all."""
        return self

    def arguments(self, call: ToolCallRequest) -> JsonObject:
        """Nothing."""
        return {}

    def response(self, call: ToolCallRequest, response: ToolCallResponse) -> str:
        """The tool's name and how it ended."""
        return f"[compacted] {call.name}: {'error' if response.is_error else 'success'}"

    def digest(self, call: ToolCallRequest, response: ToolCallResponse, facts: Facts | None) -> str:
        """Return the same."""
        return self.response(call, response)
