"""Entries from the parts of an attempt, and messages joined from pieces. Pure."""

from __future__ import annotations

from typing import Literal, assert_never

import msgspec

from jp.compaction.status_lines import AFTER_MESSAGE_END, anchor_of
from jp.conversation.entries import ChatResponse, InputChange, JsonObject, ToolCallRequest, Usage
from jp.conversation.turns import is_blank
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
    ToolCallStart,
    UsageReport,
)

_LONGEST = 500
"""The length, in characters, up to which a repetition other than the requested one is recognized."""

_SHORTEST = 10
"""Shorter ones are taken for chance."""


class StrayError(Exception):
    """A continuation has no known place behind what it should continue."""


class Joiner:
    """Passes on one attempt's message text: without what it repeats of `before`, once it is known to follow it.

    White space waits for what follows it: nothing but white space is no piece of a message that a model could be
    shown, and so none that it could go on from.
    """

    def __init__(self, before: str = "") -> None:
        self._before = before
        self._starts = (before.lstrip(), anchor_of(before))
        self._held = ""
        self._is_joined = not before
        self._has_begun = False

    def feed(self, text: str) -> str:
        """Take more of the text; what comes out follows `before`.

        Raises:
            StrayError: it does not go on with `before`.
        """
        if self._has_begun:
            return text
        self._held += text
        if not self._is_joined:
            self._join()
        return self._release() if self._is_joined and not is_blank(self._held) else ""

    def call(self) -> str:
        """Take the beginning of a call, which may follow a cut message that the model does not go on with."""
        if not self._is_joined and self._held:
            return ""
        self._is_joined = True
        return self._release()

    def end_block(self) -> None:
        """Take the end of a block of text.

        Raises:
            StrayError: it does not go on with `before`.
        """
        if not self._is_joined:
            raise StrayError

    def finish(self) -> str:
        """Take the end of the answer, and return what is still held back.

        Raises:
            StrayError: it does not go on with `before`.
        """
        self.end_block()
        return self._release()

    def _release(self) -> str:
        self._has_begun = True
        text, self._held = self._held, ""
        return text

    def _join(self) -> None:
        """Drop the repetition from what is held, once it is there."""
        begun = self._held.lstrip()
        size = next((len(start) for start in self._starts if begun.startswith(start)), None)
        if size is None and any(start.startswith(begun) for start in self._starts):
            return
        if size is None:
            size = self._other_repetition(begun)
        if size == 0:
            raise StrayError
        if size is not None:
            self._held, self._is_joined = begun[size:], True

    def _other_repetition(self, begun: str) -> int | None:
        """Return the length of the repetition that `begun` starts with, 0 for none, None where it may still come."""
        found = 0
        ends = range(_SHORTEST, min(len(self._before), _LONGEST) + 1)
        for size in ends:
            end = self._before[-size:]
            if len(end) > len(begun) and end.startswith(begun):
                return None
            if not found and begun.startswith(end):
                if self._before.find(end) != len(self._before) - size:
                    return 0
                found = size
        return found


class Follower:
    """Passes on the text of an attempt that was asked for what follows a message that is complete.

    Text is held back until a call begins, which it then introduces: without one, only a repetition of the message or
    the word that nothing follows is known to be no new answer.
    """

    def __init__(self, before: str) -> None:
        self._nothing = ("", AFTER_MESSAGE_END, f"{AFTER_MESSAGE_END}.", before.strip())
        self._before = before.strip()
        self._held = ""
        self._has_call = False

    def feed(self, text: str) -> str:
        """Take more of the text; what comes out follows the message."""
        if self._has_call:
            return text
        self._held += text
        return ""

    def end_block(self) -> None:
        """Take the end of a block of text, which a call may follow."""

    def call(self) -> str:
        """Take the beginning of a call, and return the text before it."""
        self._has_call = True
        text, self._held = self._held, ""
        stripped = text.strip().removeprefix(self._before)
        return "" if stripped.strip() in self._nothing else stripped

    def finish(self) -> str:
        """Take the end of the answer.

        Raises:
            StrayError: it is another answer.
        """
        if not self._has_call and self._held.strip() not in self._nothing:
            raise StrayError
        return ""


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
        """Return the content of the blocks open at the end of the stream; incomplete calls go into `dropped_calls`."""
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
