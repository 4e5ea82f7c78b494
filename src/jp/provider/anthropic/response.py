"""Decoder of the Messages API's events. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from jp.conversation.entries import JsonObject, Usage
from jp.provider.anthropic.messages import PROVIDER
from jp.provider.base import (
    BlockEnd,
    DataDelta,
    Finished,
    InputReport,
    KeepAlive,
    Part,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    UsageReport,
)
from jp.provider.errors import ProviderError
from jp.provider.parameters import stream_error
from jp.provider.reader import CallStarts, bounded_usage, decode_or_none, input_changes, text_of, unreadable_error
from jp.provider.schemas import Unwrapper

Reason = Literal["stop", "tools", "length", "refused"]

_REASONS: dict[str, Reason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tools",
    "max_tokens": "length",
    "pause_turn": "length",
    "refusal": "refused",
}
_WINDOW_IS_FULL = "model_context_window_exceeded"
_PLAIN_REASONS = frozenset({"end_turn", "stop_sequence", "tool_use", "max_tokens"})
"""Reasons that need no explanation."""


class _OutputDetails(msgspec.Struct):
    thinking_tokens: int | None = None


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    output_tokens_details: _OutputDetails | None = None


class _Message(msgspec.Struct):
    usage: _Usage | None = None
    input_transformations: msgspec.Raw = msgspec.Raw(b"null")


class _Block(msgspec.Struct):
    type: str
    id: str = ""
    name: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    data: str = ""
    input: msgspec.Raw = msgspec.Raw(b"{}")


class _StopDetails(msgspec.Struct):
    category: str | None = None
    explanation: str | None = None


class _Delta(msgspec.Struct):
    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    partial_json: str = ""
    stop_reason: str | None = None
    stop_details: _StopDetails | None = None


class _Event(msgspec.Struct):
    """Every event, distinguished by `type`; each has some of the fields."""

    type: str
    index: int = 0
    message: _Message | None = None
    content_block: _Block | None = None
    delta: _Delta | None = None
    usage: _Usage | None = None
    input_transformations: msgspec.Raw = msgspec.Raw(b"null")


class _Kind(msgspec.Struct):
    type: str = ""


class _Head(msgspec.Struct):
    """The fields of an event that decide whether it is needed."""

    type: str = ""
    content_block: _Kind | None = None
    delta: _Kind | None = None


_events = msgspec.json.Decoder(_Event)
_heads = msgspec.json.Decoder(_Head)
_NEEDED_EVENTS = frozenset({
    "message_start",
    "message_delta",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
})
_NEEDED_BLOCKS = frozenset({"text", "thinking", "redacted_thinking", "tool_use"})
_NEEDED_DELTAS = frozenset({"text_delta", "thinking_delta", "input_json_delta", "signature_delta"})


def _is_needed(head: _Head) -> bool:
    """Return whether an event that cannot be read loses part of the answer."""
    if head.content_block is not None:
        return head.content_block.type in _NEEDED_BLOCKS
    if head.delta is not None and head.type == "content_block_delta":
        return head.delta.type in _NEEDED_DELTAS
    return head.type in _NEEDED_EVENTS


class _OpenBlock:
    """A block of a kind that has parts."""

    def __init__(self, block: _Block) -> None:
        self.type = block.type
        self.signature = block.signature
        self.redacted = block.data
        self.arguments = text_of(block.input)
        self.has_deltas = False
        self.unwrapper: Unwrapper | None = None


class AnthropicDecoder:
    """Decoder of one response.

    `model` is the requested model, which signatures are stored with. `is_structured` marks text as data, `is_wrapped`
    as the property of an object; `chains` means that an answer that reaches the output limit is continued.
    """

    def __init__(
        self,
        *,
        model: str,
        provider: str = PROVIDER,
        is_structured: bool = False,
        is_wrapped: bool = False,
        chains: bool = True,
    ) -> None:
        self._provider = provider
        self._model = model
        self._is_wrapped = is_wrapped
        self._chains = chains
        self._is_structured = is_structured
        self._blocks: dict[int, _OpenBlock] = {}
        self._begun: set[int] = set()
        self._calls = CallStarts(provider)
        self._usage = Usage()
        self._stop = _Delta()

    def feed(self, event: str, data: bytes) -> Sequence[Part]:
        """Return the parts of one event. Unknown events, blocks and deltas have none.

        Raises:
            ProviderError: the event reports an error or is malformed.
        """
        read = decode_or_none(_events, data)
        if read is None:
            return self._odd(data)
        match read.type:
            case "content_block_delta" | "content_block_start" | "content_block_stop":
                return self._block_event(read)
            case "message_start" | "message_delta":
                return self._message(read)
            case "message_stop":
                return self._stopped()
            case "ping":
                return [KeepAlive()]
            case "error":
                raise stream_error(data, self._provider, self._model)
            case _:
                return []

    def close(self) -> Sequence[Part]:
        """Return the parts of the end if the stop reason was received and no block is open, else none."""
        return self._stopped() if self._stop.stop_reason is not None and not self._blocks else ()

    def _odd(self, data: bytes) -> Sequence[Part]:
        """Handle a malformed event: raise if it is an error or needed, ignore it otherwise."""
        head = decode_or_none(_heads, data)
        if head is not None and head.type == "error":
            raise stream_error(data, self._provider, self._model)
        if head is None or _is_needed(head):
            raise unreadable_error(self._provider)
        return []

    def _block_event(self, event: _Event) -> Sequence[Part]:
        if event.delta is not None:
            return self._delta(event.index, event.delta)
        if event.content_block is not None:
            return [] if event.index in self._begun else self._start(event.index, event.content_block)
        return self._end(event.index)

    def _start(self, index: int, block: _Block) -> Sequence[Part]:
        opened = _OpenBlock(block)
        match block.type:
            case "text":
                opened.unwrapper = Unwrapper() if self._is_wrapped else None
                parts = self._text(opened, index, block.text)
            case "thinking" | "redacted_thinking":
                parts = [ReasoningDelta(index, block.thinking)]
            case "tool_use":
                parts = [self._calls.start(index, given=block.id, name=block.name)]
            case _:
                return []
        self._blocks[index] = opened
        self._begun.add(index)
        return parts

    def _text(self, block: _OpenBlock, index: int, text: str) -> Sequence[Part]:
        if block.unwrapper is not None:
            text = block.unwrapper.feed(text)
        if not text:
            return []
        return [DataDelta(index, text) if self._is_structured else TextDelta(index, text)]

    def _delta(self, index: int, delta: _Delta) -> Sequence[Part]:
        block = self._blocks.get(index)
        if block is None:
            return []
        match delta.type:
            case "text_delta":
                return self._text(block, index, delta.text)
            case "thinking_delta" if delta.thinking:
                return [ReasoningDelta(index, delta.thinking)]
            case "input_json_delta" if delta.partial_json:
                block.has_deltas = True
                return [ToolArgumentsDelta(index, delta.partial_json)]
            case "signature_delta":
                block.signature += delta.signature
                return []
            case _:
                return []

    def _end(self, index: int) -> Sequence[Part]:
        block = self._blocks.pop(index, None)
        if block is None:
            return []
        parts: list[Part] = []
        if block.type == "tool_use" and not block.has_deltas:
            parts.append(ToolArgumentsDelta(index, block.arguments))
        if block.unwrapper is not None and (rest := block.unwrapper.finish()):
            parts.append(DataDelta(index, rest))
        return [*parts, BlockEnd(index, self._metadata(block))]

    def _metadata(self, block: _OpenBlock) -> JsonObject | None:
        if block.redacted:
            return {"provider": self._provider, "model": self._model, "redacted": block.redacted}
        if block.signature:
            return {"provider": self._provider, "model": self._model, "signature": block.signature}
        return None

    def _message(self, event: _Event) -> Sequence[Part]:
        if event.delta is not None and event.delta.stop_reason is not None:
            self._stop = event.delta
        reported = event.usage or (event.message.usage if event.message is not None else None)
        said = event if event.message is None else event.message
        # The start says it, and the end once more where another model took over.
        changes = input_changes(said.input_transformations)
        parts: list[Part] = [] if changes is None else [InputReport(changes)]
        if reported is not None:
            self._usage = _updated(self._usage, reported)
            parts.append(UsageReport(bounded_usage(self._usage)))
        return parts

    def _stopped(self) -> Sequence[Part]:
        """Return the parts that end the answer and its open blocks, except a call cut by the output limit."""
        finished = self._finished()
        whole = [
            index for index in self._blocks if finished.reason != "length" or self._blocks[index].type != "tool_use"
        ]
        return [*(part for index in whole for part in self._end(index)), finished]

    def _finished(self) -> Finished:
        native = self._stop.stop_reason or ""
        if native == _WINDOW_IS_FULL:
            message = f"the context window of {self._model!r} is full: the answer is incomplete"
            raise ProviderError(message, kind="context_too_long")
        reason = _REASONS.get(native, "stop")
        if reason == "stop" and self._calls:
            reason = "tools"
        details = self._stop.stop_details or _StopDetails()
        detail = details.explanation or details.category or ("" if native in _PLAIN_REASONS else native)
        return Finished(reason, detail, is_final=native == "max_tokens" and not self._chains)


def _updated(usage: Usage, reported: _Usage) -> Usage:
    """Return `usage` with the new report: its values are totals, and missing ones are unchanged."""
    details = reported.output_tokens_details
    thinking = None if details is None else details.thinking_tokens
    return Usage(
        input=usage.input if reported.input_tokens is None else reported.input_tokens,
        output=usage.output if reported.output_tokens is None else reported.output_tokens,
        cache_read=usage.cache_read if reported.cache_read_input_tokens is None else reported.cache_read_input_tokens,
        cache_write=(
            usage.cache_write if reported.cache_creation_input_tokens is None else reported.cache_creation_input_tokens
        ),
        reasoning=usage.reasoning if thinking is None else thinking,
    )
