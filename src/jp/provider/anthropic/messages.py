"""The events of a thread as messages that alternate between user and assistant. Pure.

Everything is decided by what comes before it, so that a longer thread begins with the messages of a shorter one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, assert_never

import msgspec

from jp.conversation.entries import JsonObject
from jp.conversation.interruption import INTERRUPTED_CONTENT
from jp.conversation.thread import (
    AssistantData,
    AssistantReasoning,
    AssistantText,
    Thread,
    ToolCall,
    ToolResult,
    UserResource,
    UserText,
    ViewEvent,
)
from jp.provider.anthropic.content import attachment_blocks, result_content, text_block
from jp.provider.models import find_model
from jp.provider.opaque import is_made_by

PROVIDER = "anthropic"
THINKING_TYPES = frozenset({"thinking", "redacted_thinking"})
_NOT_SHOWN = "[Earlier messages are not shown.]"
"""What a conversation that begins with the assistant begins with: the API wants the user to speak first."""


class Message(msgspec.Struct, kw_only=True):
    """A message as it grows."""

    role: Literal["user", "assistant"]
    content: list[JsonObject]


class Messages(msgspec.Struct, frozen=True, kw_only=True):
    """The messages of a request.

    `asked` is the one that holds what the user asked last, `last_resource` the last block of what was attached last.
    """

    messages: list[Message]
    asked: Message | None
    last_resource: JsonObject | None


def _thought(text: str) -> JsonObject | None:
    """Reasoning as text, for models that cannot be given it as their own."""
    return text_block(f"<think>\n{text}\n</think>\n\n") if text.strip() else None


def _as_text(block: JsonObject) -> JsonObject | None:
    if block["type"] == "redacted_thinking":
        return None
    return _thought(block["thinking"]) if block["type"] == "thinking" else block


def own_thinking(event: AssistantReasoning, model: str) -> JsonObject | None:
    """The block as the API gave it, None unless this provider and model made it."""
    metadata = event.metadata or {}
    if not is_made_by(metadata, PROVIDER, model):
        return None
    if isinstance(redacted := metadata.get("redacted"), str):
        return {"type": "redacted_thinking", "data": redacted}
    if isinstance(signature := metadata.get("signature"), str):
        return {"type": "thinking", "thinking": event.text, "signature": signature}
    return None


def _id_character(character: str) -> str:
    return character if character in "_-" or (character.isascii() and character.isalnum()) else "_"


class _CallIds:
    """Wire ids: the provider's own where they are valid and new, since the API wants them unique in a request."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}

    def take(self, call_id: str) -> str:
        base = "".join(map(_id_character, call_id)) or "call"
        # Counting on from where the last one of this name ended: an id may repeat in every turn of a long stream.
        number = self._numbers.get(base, 0) + 1
        while (wire_id := base if number == 1 else f"{base}_{number}") in self._taken:
            number += 1
        self._numbers[base] = number
        self._taken.add(wire_id)
        return wire_id


class _Builder:
    def __init__(self, model: str, results: Iterable[ToolResult], newest: tuple[str, int]) -> None:
        self._model = model
        self._newest = newest
        self._messages: list[Message] = []
        self._asked: Message | None = None
        self._last_resource: JsonObject | None = None
        self._ids = _CallIds()
        self._open: list[tuple[str, ToolCall]] = []
        self._results: dict[str, list[ToolResult]] = {}
        for result in results:
            self._results.setdefault(result.call, []).append(result)

    def add(self, event: ViewEvent) -> None:
        match event:
            case UserText():
                self._ask(event, [text_block(text) for text in (event.text, *self._rules(event)) if text.strip()])
            case UserResource(resource=resource):
                blocks = attachment_blocks(resource, is_new=_request_of(event) == self._newest)
                self._last_resource = blocks[-1]
                self._ask(event, blocks)
            case AssistantText(text=text) | AssistantData(text=text):
                self._say("assistant", text_block(text) if text.strip() else None)
            case AssistantReasoning(text=text):
                self._say("assistant", own_thinking(event, self._model) or _thought(text))
            case ToolCall():
                self._call(event)
            case ToolResult():
                self._answer_calls()
            case _:
                assert_never(event)

    def finish(self) -> Messages:
        self._answer_calls()
        if self._messages and self._messages[-1].role == "assistant":
            self._end_answer()
        return Messages(messages=self._messages, asked=self._asked, last_resource=self._last_resource)

    def _rules(self, request: UserText) -> tuple[str, ...]:
        """What has to be said of the answer's schema in words: wherever the request stands, as it was asked."""
        if request.schema is None:
            return ()
        from jp.provider.anthropic.schema import answer_format
        from jp.provider.structured import in_words

        is_held = answer_format(request.schema, find_model(PROVIDER, self._model)) is not None
        return () if is_held else (in_words(request.schema),)

    def _ask(self, event: UserText | UserResource, blocks: Sequence[JsonObject]) -> None:
        for block in blocks:
            self._say("user", block)
        if blocks and _request_of(event) == self._newest:
            self._asked = self._messages[-1]

    def _call(self, call: ToolCall) -> None:
        wire_id = self._ids.take(call.call_id)
        arguments = call.arguments if isinstance(call.arguments, dict) else {"invalid_json": call.arguments}
        self._say("assistant", {"type": "tool_use", "id": wire_id, "name": call.name, "input": arguments})
        self._open.append((wire_id, call))

    def _answer_calls(self) -> None:
        """Give every open call its result, in the message that follows and in the order of the calls.

        A result without a call is not sent: the API knows no such thing.
        """
        calls, self._open = self._open, []
        for wire_id, call in calls:
            self._say("user", self._result(wire_id, call))

    def _result(self, wire_id: str, call: ToolCall) -> JsonObject:
        waiting = self._results.get(call.origin)
        result = waiting.pop(0) if waiting else None
        is_error = result is None or result.is_error
        content = result_content(INTERRUPTED_CONTENT if result is None else result.content, is_error=is_error)
        block: JsonObject = {"type": "tool_result", "tool_use_id": wire_id}
        if content:
            block["content"] = content
        if is_error:
            block["is_error"] = True
        return block

    def _say(self, role: Literal["user", "assistant"], block: JsonObject | None) -> None:
        if block is None:
            return
        if role == "user":
            self._answer_calls()
        if not self._messages or self._messages[-1].role != role:
            self._open_message(role)
        self._messages[-1].content.append(block)

    def _open_message(self, role: Literal["user", "assistant"]) -> None:
        if role == "user" and self._messages:
            self._end_answer()
        if role == "assistant" and not self._messages:
            self._messages.append(Message(role="user", content=[text_block(_NOT_SHOWN)]))
        if not self._messages or self._messages[-1].role != role:
            self._messages.append(Message(role=role, content=[]))

    def _end_answer(self) -> None:
        """Close the last message, the assistant's: it may not end with thinking, nor be empty."""
        content = self._messages[-1].content
        end = len(content)
        while end and content[end - 1]["type"] in THINKING_TYPES:
            end -= 1
        content[end:] = [text for block in content[end:] if (text := _as_text(block)) is not None]
        if not content:
            self._messages.pop()


def _request_of(event: UserText | UserResource) -> tuple[str, int]:
    """Which request of the user an event belongs to."""
    return event.origin, event.turn


def _newest_request(events: Sequence[ViewEvent]) -> tuple[str, int]:
    """The request that is to be answered. What jp says on the user's behalf is none."""
    for event in reversed(events):
        if isinstance(event, UserResource) or (isinstance(event, UserText) and not event.synthetic):
            return _request_of(event)
    return "", -1


def _ordered(events: Iterable[ViewEvent]) -> list[ViewEvent]:
    """The events with the resources of each request before its text: what is asked comes after what it is about."""
    ordered: list[ViewEvent] = []
    held: list[UserText] = []
    for event in events:
        is_request = isinstance(event, (UserText, UserResource))
        if held and not (is_request and _request_of(event) == _request_of(held[0])):
            ordered += held
            held.clear()
        if isinstance(event, UserText):
            held.append(event)
        else:
            ordered.append(event)
    return ordered + held


def build_messages(thread: Thread) -> Messages:
    """The messages of `thread`. The roles alternate, the user speaks first, and each call is answered at once.

    Raises:
        ProviderError: a new attachment is of a type that the API does not take, of kind `unsupported`.
    """
    results = (event for event in thread.events if isinstance(event, ToolResult))
    builder = _Builder(thread.model, results, _newest_request(thread.events))
    for event in _ordered(thread.events):
        builder.add(event)
    return builder.finish()


def settle_trailing_answer(messages: list[Message]) -> None:
    """Make an answer at the very end plain.

    Its signatures hold for a complete answer only, and the API refuses white space at the end of a final text.
    """
    if not messages or messages[-1].role == "user":
        return
    content = [plain for block in messages[-1].content if (plain := _as_text(block)) is not None]
    content[-1] = {**content[-1], "text": content[-1]["text"].rstrip()}
    messages[-1].content = content
