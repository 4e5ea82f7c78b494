"""Messages of `jp.context` as a view again, with what a pass has changed in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

import msgspec
from msgspec.structs import replace

from jp.compaction.transcript import Record, arguments_text
from jp.context.types import Block as MessageBlock
from jp.context.types import Call, Message, ReasoningBlock, StoredBlock
from jp.context.types import TextBlock as MessageText
from jp.conversation.entries import JsonObject
from jp.conversation.resource import Block, TextBlock
from jp.conversation.thread import (
    AssistantData,
    AssistantReasoning,
    AssistantText,
    ToolCall,
    ToolResult,
    UserResource,
    UserText,
    ViewEvent,
)
from jp.errors import JpError


class RestoreError(JpError):
    """A message holds what a view cannot show."""


def events_of(messages: Sequence[Message], records: Mapping[str, Record]) -> tuple[ViewEvent, ...]:
    """The events that `messages` stand for, which were made with `records` (`jp.compaction.transcript`).

    What was not changed is the very same event. What was loses its provider's metadata: signatures hold for what they
    were given with. A text without a known origin becomes words on the speaker's behalf.

    Raises:
        RestoreError: there is a system message, a call or a result of which the view knows nothing, or content that is
            no text and was not there before.
    """
    restorer = _Restorer(records)
    return tuple(event for message in messages for event in restorer.events(message))


class _Restorer:
    def __init__(self, records: Mapping[str, Record]) -> None:
        self._records = records
        self._turn = 0

    def events(self, message: Message) -> Iterator[ViewEvent]:
        """The events of the next message."""
        match message.role:
            case "tool":
                found = [self._result(message)]
            case "user" | "assistant":
                found = self._spoken(message)
            case "system":
                raise RestoreError("a view has no system message")
            case _:
                assert_never(message.role)
        for event in found:
            self._turn = event.turn
            yield event

    def _spoken(self, message: Message) -> list[ViewEvent]:
        """What a message says and calls, in the order in which the model did."""
        content = message.content
        if isinstance(content, str):
            blocks: tuple[MessageBlock, ...] = (MessageText(text=content, origin=message.origin),) if content else ()
        else:
            blocks = content
        placed: list[tuple[int, ViewEvent]] = []
        place = -1
        for piece in (*blocks, *message.calls):
            record = self._records.get(piece.origin)
            if record is not None:
                place = record.position
            placed.append((place, self._piece(message, piece, record)))
        placed.sort(key=_place)
        return [event for _, event in placed]

    def _piece(self, message: Message, piece: MessageBlock | Call, record: Record | None) -> ViewEvent:
        if record is not None and piece == record.became:
            return record.event
        match piece:
            case Call():
                return _with_arguments(piece, record)
            case MessageText() | ReasoningBlock():
                changed = None if record is None else _with_text(record.event, piece.text)
                return self._new(message, piece) if changed is None else changed
            case StoredBlock():
                raise RestoreError(f"content {piece.sha256[:8]!r} was not there before")
            case _:
                assert_never(piece)

    def _new(self, message: Message, piece: MessageText | ReasoningBlock) -> ViewEvent:
        if message.role == "user":
            return UserText(text=piece.text, turn=self._turn, synthetic=True)
        if isinstance(piece, ReasoningBlock):
            return AssistantReasoning(text=piece.text, turn=self._turn)
        return AssistantText(text=piece.text, turn=self._turn, synthetic=True)

    def _result(self, message: Message) -> ToolResult:
        record = self._records.get(message.origin)
        if record is None or not isinstance(record.event, ToolResult):
            raise RestoreError(f"the result of {message.call_id!r} was not there before")
        content = message.content
        blocks = (MessageText(text=content),) if isinstance(content, str) else content
        shown = tuple(self._returned(block) for block in blocks)
        event = record.event
        if len(shown) == len(event.content) and all(
            one is other for one, other in zip(shown, event.content, strict=True)
        ):
            return event if event.is_error == message.is_error else replace(event, is_error=message.is_error)
        return replace(event, content=shown, is_error=message.is_error)

    def _returned(self, block: MessageBlock) -> Block:
        record = self._records.get(block.origin)
        if record is not None and block == record.became and isinstance(record.event, ToolResult):
            return record.event.content[record.block or 0]
        if isinstance(block, MessageText):
            return TextBlock(text=block.text)
        raise RestoreError("a tool returns nothing but text that was not there before")


def _place(placed: tuple[int, ViewEvent]) -> int:
    return placed[0]


def _with_text(event: ViewEvent, text: str) -> ViewEvent | None:
    """`event` with another text; None where it has none."""
    match event:
        case UserText():
            return replace(event, text=text)
        case UserResource(resource=resource):
            return replace(event, resource=replace(resource, formatted=text, formatted_against=None))
        case AssistantText() | AssistantData() | AssistantReasoning():
            return replace(event, text=text, metadata=None)
        case ToolCall() | ToolResult():
            return None
        case _:
            assert_never(event)


def _with_arguments(call: Call, record: Record | None) -> ToolCall:
    if record is None or not isinstance(record.event, ToolCall):
        raise RestoreError(f"the call {call.id!r} was not there before")
    event = record.event
    if call.arguments == arguments_text(event):
        return event
    return replace(event, arguments=_arguments(event, call.arguments), metadata=None)


def _arguments(event: ToolCall, text: str) -> JsonObject | str:
    """An object where there was one and still is."""
    if isinstance(event.arguments, str):
        return text
    try:
        return msgspec.json.decode(text, type=JsonObject)
    except (msgspec.DecodeError, RecursionError):
        return text
