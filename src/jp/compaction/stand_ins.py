"""What a view shows in place of what a compaction strips. Never more than there was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, assert_never

import msgspec

from jp.conversation.entries import AnyEntry, Facts, JsonObject, ToolCallRequest, ToolCallResponse
from jp.conversation.resource import (
    AudioBlock,
    Block,
    Carrier,
    ImageBlock,
    Resource,
    ResourceBlock,
    ResourceLink,
    TextBlock,
    formatted_of,
    size_in_bytes,
)


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


def stripped_arguments(call: ToolCallRequest, stand_ins: CallStandIns) -> JsonObject | str | None:
    """What stands for the arguments of `call`; None where that would not be shorter, as JSON."""
    left = stand_ins.arguments(call)
    return left if _json_size(left) < _json_size(call.arguments) else None


def stripped_content(call: ToolCallRequest, response: ToolCallResponse, stand_ins: CallStandIns) -> tuple[Block, ...]:
    """What stands for the content of `response`, or the content itself where that would not be shorter."""
    return _shorter(stand_ins.response(call, response), response)


def digested_content(
    call: ToolCallRequest, response: ToolCallResponse, stand_ins: CallStandIns, facts: Facts | None
) -> tuple[Block, ...]:
    """Return the digest of `response`, or the content itself where that would not be shorter."""
    return _shorter(stand_ins.digest(call, response, facts), response)


def _shorter(text: str | None, response: ToolCallResponse) -> tuple[Block, ...]:
    is_shorter = text is not None and len(text.encode()) < content_size(response.content)
    return (TextBlock(text=text),) if is_shorter else response.content


def content_size(content: Sequence[Block]) -> int:
    """How many bytes a model is shown of what a tool returned."""
    return sum(_shown_size(block) for block in content)


def whole_size(content: Sequence[Block]) -> int:
    """How many bytes a tool returned, whatever a model is shown in their place."""
    links = sum(_shown_size(block) for block in content if isinstance(block, ResourceLink))
    blocks = (block.resource if isinstance(block, ResourceBlock) else block for block in content)
    return links + sum(size_in_bytes(block) for block in blocks if not isinstance(block, ResourceLink))


def shown_size(resource: Resource) -> int:
    """How many bytes a model is shown of `resource`, apart from what names it."""
    return _size(resource)


def _size(carrier: Carrier) -> int:
    formatted = formatted_of(carrier)
    return size_in_bytes(carrier) if formatted is None else len(formatted.encode())


def _shown_size(block: Block) -> int:
    match block:
        case ResourceBlock(resource=resource):
            return _size(resource)
        case TextBlock() | ImageBlock() | AudioBlock():
            return _size(block)
        case ResourceLink():
            return len(block.uri.encode())
        case _:
            assert_never(block)


def _json_size(arguments: JsonObject | str) -> int:
    return len(arguments.encode() if isinstance(arguments, str) else msgspec.json.encode(arguments))
