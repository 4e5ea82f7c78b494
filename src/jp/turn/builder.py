"""The entry builder: one attempt's parts to entries. Pure."""

from __future__ import annotations

from typing import Literal, assert_never

import msgspec

from jp.conversation.entries import ChatResponse, InputChange, JsonObject, ToolCallRequest, Usage
from jp.conversation.turns import is_blank
from jp.provider.parts import (
    BlockEnd,
    DataDelta,
    Finished,
    InputReport,
    KeepAlive,
    Part,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallStart,
    UsageReport,
)

BlockKind = Literal["message", "reasoning", "data", "call"]


class _OpenBlock:
    def __init__(self, kind: BlockKind, *, call_id: str = "", name: str = "") -> None:
        self.kind: BlockKind = kind
        self.call_id = call_id
        self.name = name
        self.pieces: list[str] = []

    def complete(self, metadata: JsonObject | None) -> ChatResponse | ToolCallRequest | None:
        text = "".join(self.pieces)
        match self.kind:
            case "message":
                return ChatResponse(message=text, metadata=metadata) if text else None
            case "reasoning":
                return ChatResponse(reasoning=text, metadata=metadata) if text or metadata else None
            case "data":
                return _data(text, metadata)
            case "call":
                return ToolCallRequest(
                    call_id=self.call_id, name=self.name, arguments=_arguments(text), metadata=metadata
                )
            case _:
                assert_never(self.kind)


def _data(text: str, metadata: JsonObject | None) -> ChatResponse | None:
    """Structured output; what is not just JSON, or was cut, is kept as it came."""
    if is_blank(text):
        return None
    from jp.conversation.json_text import JsonValue, find_json

    found = find_json(text)
    if not isinstance(found, JsonValue):
        return ChatResponse(data=text, text=text, metadata=metadata)
    return ChatResponse(data=found.value, text=None if found.is_whole else text, metadata=metadata)


def _arguments(text: str) -> JsonObject | str:
    if not text.strip():
        return {}
    try:
        return msgspec.json.decode(text, type=JsonObject)
    except (msgspec.DecodeError, RecursionError):
        return text


class EntryBuilder:
    """Collects the parts of one attempt; entries come out as their blocks are complete.

    `usage`, `input_changes` and `finished` are what the provider reported last. `answered` says whether message
    text or data has come that is more than white space.
    """

    def __init__(self) -> None:
        self.usage = Usage()
        self.input_changes: tuple[InputChange, ...] = ()
        self.finished: Finished | None = None
        self.answered = False
        self.dropped_calls: list[str] = []
        self._blocks: dict[int, _OpenBlock] = {}

    def feed(self, part: Part) -> ChatResponse | ToolCallRequest | None:
        """Take one part; the entry that it completes."""
        match part:
            case TextDelta() | ReasoningDelta() | DataDelta() | ToolArgumentsDelta():
                self._grow(part)
            case ToolCallStart(index=index, call_id=call_id, name=name):
                self._blocks.setdefault(index, _OpenBlock("call", call_id=call_id, name=name))
            case BlockEnd(index=index, metadata=metadata):
                return self._complete(index, metadata)
            case UsageReport(usage=usage):
                self.usage = usage
            case InputReport(changes=changes):
                self.input_changes = changes
            case Finished():
                self.finished = part
            case KeepAlive():
                pass
            case _:
                assert_never(part)
        return None

    def cut(self) -> list[ChatResponse]:
        """The stream is over: what the open blocks held. Half a call is dropped, and named in `dropped_calls`."""
        entries: list[ChatResponse] = []
        for index in sorted(self._blocks):
            block = self._blocks[index]
            if block.kind == "call":
                self.dropped_calls.append(block.name)
                continue
            entry = block.complete(None)
            if isinstance(entry, ChatResponse):
                entries.append(entry)
        self._blocks.clear()
        return entries

    def _grow(self, part: TextDelta | ReasoningDelta | DataDelta | ToolArgumentsDelta) -> None:
        match part:
            case TextDelta():
                kind: BlockKind = "message"
            case ReasoningDelta():
                kind = "reasoning"
            case DataDelta():
                kind = "data"
            case ToolArgumentsDelta():
                kind = "call"
            case _:
                assert_never(part)
        self.answered = self.answered or (kind in {"message", "data"} and bool(part.text.strip()))
        self._blocks.setdefault(part.index, _OpenBlock(kind)).pieces.append(part.text)

    def _complete(self, index: int, metadata: JsonObject | None) -> ChatResponse | ToolCallRequest | None:
        block = self._blocks.pop(index, None)
        return None if block is None else block.complete(metadata)
