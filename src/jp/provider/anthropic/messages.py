"""The events of a thread as messages that alternate between user and assistant. Pure.

Everything is decided by what comes before it, so that a longer thread begins with the messages of a shorter one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, assert_never

import msgspec

from jp.conversation.entries import JsonObject
from jp.conversation.thread import AssistantData, AssistantReasoning, AssistantText, Thread, UserResource, UserText
from jp.provider.anthropic.content import attachment_blocks, result_content, text_block
from jp.provider.arrangement import (
    NOT_SHOWN,
    Answered,
    Arranged,
    Called,
    arguments_of,
    arranged,
    newest_request,
    request_of,
)
from jp.provider.models import find_model
from jp.provider.opaque import is_readable

PROVIDER = "anthropic"
THINKING_TYPES = frozenset({"thinking", "redacted_thinking"})


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


def own_thinking(event: AssistantReasoning, model: str, provider: str) -> JsonObject | None:
    """Return the block as the API gave it, None unless this provider made it and the model reads it."""
    metadata = event.metadata or {}
    if not is_readable(metadata, provider, model, reads=find_model(PROVIDER, model).abilities.reads):
        return None
    if isinstance(redacted := metadata.get("redacted"), str):
        return {"type": "redacted_thinking", "data": redacted}
    if isinstance(signature := metadata.get("signature"), str):
        return {"type": "thinking", "thinking": event.text, "signature": signature}
    return None


class _Builder:
    def __init__(self, provider: str, model: str, newest: tuple[str, int]) -> None:
        self._provider = provider
        self._model = model
        self._newest = newest
        self._messages: list[Message] = []
        self._asked: Message | None = None
        self._last_resource: JsonObject | None = None

    def add(self, event: Arranged) -> None:
        match event:
            case UserText():
                self._ask(event, [text_block(text) for text in (event.text, *self._rules(event)) if text.strip()])
            case UserResource(resource=resource):
                blocks = attachment_blocks(resource, is_new=request_of(event) == self._newest)
                self._last_resource = blocks[-1]
                self._ask(event, blocks)
            case AssistantText(text=text) | AssistantData(text=text):
                self._say("assistant", text_block(text) if text.strip() else None)
            case AssistantReasoning():
                self._say("assistant", own_thinking(event, self._model, self._provider))
            case Called(wire_id=wire_id, call=call):
                block = {"type": "tool_use", "id": wire_id, "name": call.name, "input": arguments_of(call)}
                self._say("assistant", block)
            case Answered():
                self._say("user", _result(event))
            case _:
                assert_never(event)

    def finish(self) -> Messages:
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
        if blocks and request_of(event) == self._newest:
            self._asked = self._messages[-1]

    def _say(self, role: Literal["user", "assistant"], block: JsonObject | None) -> None:
        if block is None:
            return
        if not self._messages or self._messages[-1].role != role:
            self._open_message(role)
        self._messages[-1].content.append(block)

    def _open_message(self, role: Literal["user", "assistant"]) -> None:
        if role == "user" and self._messages:
            self._end_answer()
        if role == "assistant" and not self._messages:
            self._messages.append(Message(role="user", content=[text_block(NOT_SHOWN)]))
        if not self._messages or self._messages[-1].role != role:
            self._messages.append(Message(role=role, content=[]))

    def _end_answer(self) -> None:
        """Close the last message, the assistant's: it may not end with thinking, nor be empty."""
        content = self._messages[-1].content
        while content and content[-1]["type"] in THINKING_TYPES:
            content.pop()
        if not content:
            self._messages.pop()


def _result(answered: Answered) -> JsonObject:
    content = result_content(answered.content, is_error=answered.is_error)
    block: JsonObject = {"type": "tool_result", "tool_use_id": answered.wire_id}
    if content:
        block["content"] = content
    if answered.is_error:
        block["is_error"] = True
    return block


def build_messages(thread: Thread, *, provider: str = PROVIDER) -> Messages:
    """The messages of `thread`. The roles alternate, the user speaks first, and each call is answered at once.

    Raises:
        ProviderError: a new attachment is of a type that the API does not take, of kind `unsupported`.
    """
    builder = _Builder(provider, thread.model, newest_request(thread.events))
    for event in arranged(thread.events):
        builder.add(event)
    return builder.finish()


def settle_trailing_answer(messages: list[Message]) -> None:
    """Make an answer at the very end plain.

    Its signatures hold for a complete answer only, and the API refuses white space at the end of a final text.
    """
    if not messages or messages[-1].role == "user":
        return
    content = [block for block in messages[-1].content if block["type"] not in THINKING_TYPES]
    content[-1] = {**content[-1], "text": content[-1]["text"].rstrip()}
    messages[-1].content = content
