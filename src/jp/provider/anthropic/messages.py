"""The events of a thread as messages of the Messages API. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, assert_never

import msgspec

from jp.conversation.entries import JsonObject
from jp.conversation.resource import Block, Resource
from jp.conversation.thread import AssistantData, AssistantReasoning, AssistantText, Thread, UserResource, UserText
from jp.provider.base import Model, WireRequest
from jp.provider.grammar import Dialect, Grammar, Inexpressible
from jp.provider.models import find_model, is_readable
from jp.provider.schemas import wrapped
from jp.provider.transcript import (
    IMAGES,
    NOT_SHOWN,
    PDF,
    ContentPart,
    IncrementalMessages,
    Media,
    TextPart,
    WireCall,
    WireEvent,
    WireResult,
    arguments_of,
    empty_attachment,
    media_type_of,
    newest_request,
    not_shown,
    not_taken,
    request_of,
    result,
    shown_of,
    title_of,
)

_MOST_OPTIONAL, _MOST_UNIONS = 24, 16
"""Most optional properties and most values of several kinds that the API accepts."""

_FORMATS = frozenset({
    *("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"),
})


def _holds(name: str, keyword: str, value: object) -> bool:
    """Return whether the grammar takes a keyword: some formats of strings, and whether a list may be empty."""
    return (name == "string" and keyword == "format" and value in _FORMATS) or (
        name == "array" and keyword == "minItems" and value in (0, 1)
    )


_DIALECT = Dialect(holds=_holds)


def answer_format(schema: JsonObject, model: Model) -> JsonObject | None:
    """Return `output_config.format`, None if the model or the grammar does not support the schema."""
    if not model.abilities.structured:
        return None
    strict = strict_schema(schema)
    return None if strict is None else {"type": "json_schema", "schema": strict}


def strict_schema(schema: JsonObject) -> JsonObject | None:
    """Return `schema` in the grammar, wrapped if it is not of an object; None if the grammar cannot express it."""
    grammar = Grammar(schema, _DIALECT)
    try:
        strict = grammar.root()
    except (Inexpressible, AttributeError, KeyError, TypeError):
        return None  # a log from elsewhere may hold as a schema what is none
    if grammar.optional > _MOST_OPTIONAL or grammar.unions > _MOST_UNIONS:
        return None
    return {**(strict if strict.get("type") == "object" else wrapped(strict)), **grammar.definitions}


_TAKEN = frozenset({*IMAGES, PDF})
_LONGEST_TITLE = 500


def text_block(text: str) -> JsonObject:
    """Return a text block; the caller must not pass a text without visible characters, which the API rejects."""
    return {"type": "text", "text": text}


def _block(shown: ContentPart) -> JsonObject:
    match shown:
        case TextPart(text=text):
            return text_block(text)
        case Media(media_type=media_type):
            source = {"type": "base64", "media_type": media_type, "data": shown.base64}
            return {"type": "document" if media_type == PDF else "image", "source": source}
        case _:
            assert_never(shown)


def _context(resource: Resource) -> JsonObject:
    """Return the context for citations and `refresh_resource`: the title, and the URI if it differs."""
    title = title_of(resource)[:_LONGEST_TITLE]
    lines = [] if title == resource.uri else [f"uri: {resource.uri}"]
    if resource.description:
        lines.append(resource.description)
    return {"title": title, "context": "\n".join(lines)} if lines else {"title": title}


def attachment_blocks(resource: Resource, *, is_new: bool) -> list[JsonObject]:
    """Return the blocks of a resource that the user attached; `formatted` is used before the content.

    `is_new` means that it belongs to the request to be answered. An earlier attachment stays in the log, perhaps for
    another provider: if the API does not accept it, a note replaces it.

    Raises:
        ProviderError: it is new and the API does not accept its type (kind `unsupported`).
    """
    shown = shown_of(resource)
    if not shown.strip():
        return [text_block(empty_attachment(resource))]
    if isinstance(shown, str):
        source = {"type": "text", "media_type": "text/plain", "data": shown}
        return [{"type": "document", "source": source, **_context(resource)}]
    media_type = media_type_of(resource.mime_type)
    if media_type not in _TAKEN:
        if is_new:
            raise not_taken(resource, "anthropic", "text, PDF, JPEG, PNG, GIF and WebP")
        return [text_block(not_shown(resource.uri, resource.mime_type, len(shown)))]
    block = _block(Media(data=shown, media_type=media_type, name=resource.uri))
    if block["type"] == "document":
        return [{**block, **_context(resource)}]
    return [text_block(f"{title_of(resource)[:_LONGEST_TITLE]} ({resource.uri}):"), block]


def result_content(content: Sequence[Block], *, is_error: bool) -> list[JsonObject]:
    """Return the content of a tool result, possibly none. The API requires an explanation of an error, only in text."""
    return [_block(shown) for shown in result(content, takes=_TAKEN, is_error=is_error)]


PROVIDER = "anthropic"
THINKING_TYPES = frozenset({"thinking", "redacted_thinking"})


class Message(msgspec.Struct, kw_only=True):
    """A message as it grows."""

    role: Literal["user", "assistant"]
    content: list[JsonObject]


Place = tuple[int, int]
"""The place of a block: the number of its message, and its own there."""


class Messages(msgspec.Struct, kw_only=True):
    """The messages of a request. Those before the last one can be shared with other requests.

    `asked` is the number of the message with the user's newest request, `last_resource` the place of the last block of
    the newest attachment.
    """

    messages: list[Message]
    asked: int | None
    last_resource: Place | None

    def plead(self, text: str) -> Place | None:
        """Add a text to the user's newest request; return its place, None if there is no such request.

        It is not at the end, because it has to stay in its place when the model is asked again.
        """
        if self.asked is None:
            return None
        content = [*self.messages[self.asked].content, text_block(text)]
        self.messages[self.asked] = Message(role="user", content=content)
        return self.asked, len(content) - 1


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


class Builder:
    """Adds events to messages. Only the last message ever changes."""

    def __init__(self, provider: str, model: str, newest: tuple[str, int]) -> None:
        self._provider = provider
        self._model = model
        self._newest = newest
        self._messages: list[Message] = []
        self._asked: int | None = None
        self._last_resource: Place | None = None

    def fork(self) -> Builder:
        """Return a builder that goes on from here; what is added to it is not added here."""
        found = Builder(self._provider, self._model, self._newest)
        found._messages, found._asked, found._last_resource = list(self._messages), self._asked, self._last_resource
        if self._messages:
            last = self._messages[-1]
            found._messages[-1] = Message(role=last.role, content=list(last.content))
        return found

    def add(self, event: WireEvent) -> None:
        """Add the next event.

        Raises:
            ProviderError: it is a new attachment of a type that the API does not take, of kind `unsupported`.
        """
        match event:
            case UserText():
                self._ask(event, [text_block(text) for text in (event.text, *self._rules(event)) if text.strip()])
            case UserResource(resource=resource):
                self._ask(event, attachment_blocks(resource, is_new=request_of(event) == self._newest))
                self._last_resource = (len(self._messages) - 1, len(self._messages[-1].content) - 1)
            case AssistantText(text=text) | AssistantData(text=text):
                self._say("assistant", text_block(text) if text.strip() else None)
            case AssistantReasoning():
                self._say("assistant", own_thinking(event, self._model, self._provider))
            case WireCall(wire_id=wire_id, call=call):
                block = {"type": "tool_use", "id": wire_id, "name": call.name, "input": arguments_of(call)}
                self._say("assistant", block)
            case WireResult():
                self._say("user", _result(event))
            case _:
                assert_never(event)

    def finish(self) -> Messages:
        """Return the messages; nothing more is added."""
        if self._messages and self._messages[-1].role == "assistant":
            self._end_answer()
        return Messages(messages=self._messages, asked=self._asked, last_resource=self._last_resource)

    def _rules(self, request: UserText) -> tuple[str, ...]:
        """Return the instruction about the answer's schema, at every position of the request, as it was asked."""
        if request.schema is None:
            return ()

        from jp.provider.schemas import in_words

        is_held = answer_format(request.schema, find_model(PROVIDER, self._model)) is not None
        return () if is_held else (in_words(request.schema),)

    def _ask(self, event: UserText | UserResource, blocks: Sequence[JsonObject]) -> None:
        for block in blocks:
            self._say("user", block)
        if blocks and request_of(event) == self._newest:
            self._asked = len(self._messages) - 1

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


def _result(answered: WireResult) -> JsonObject:
    content = result_content(answered.content, is_error=answered.is_error)
    block: JsonObject = {"type": "tool_result", "tool_use_id": answered.wire_id}
    if content:
        block["content"] = content
    if answered.is_error:
        block["is_error"] = True
    return block


def build_messages(
    thread: Thread, *, provider: str = PROVIDER, growing: IncrementalMessages[Builder] | None = None
) -> Messages:
    """Return the messages of `thread`. The roles alternate, the user speaks first, and each call is answered at once.

    `growing` knows those of a thread that this one goes on with.

    Raises:
        ProviderError: a new attachment is of a type that the API does not take, of kind `unsupported`.
    """
    growing = IncrementalMessages() if growing is None else growing
    return growing.build(thread, lambda: Builder(provider, thread.model, newest_request(thread.events))).finish()


def settle_trailing_answer(messages: list[Message]) -> None:
    """Make an answer at the very end plain.

    Its signatures hold for a complete answer only, and the API refuses white space at the end of a final text.
    """
    if not messages or messages[-1].role == "user":
        return
    content = [block for block in messages[-1].content if block["type"] not in THINKING_TYPES]
    content[-1] = {**content[-1], "text": content[-1]["text"].rstrip()}
    messages[-1] = Message(role="assistant", content=content)


_PLACE = re.compile(r"messages\.(\d+)\.content\.(\d+)")

_Blocks = Sequence[JsonObject]


def _sides(messages: Sequence[JsonObject]) -> list[tuple[str, list[JsonObject]]]:
    """Return the messages as the API counts them in its errors.

    An answer continues after the results of its tools, so it spans the messages with these, and its blocks are counted
    through all of them.
    """
    sides: list[tuple[str, list[JsonObject]]] = []
    for message in messages:
        for block in message["content"]:
            role = "assistant" if block["type"] == "tool_result" else message["role"]
            if not sides or sides[-1][0] != role:
                sides.append((role, []))
            sides[-1][1].append(block)
    return sides


def _is_thinking(block: JsonObject) -> bool:
    return block["type"] in THINKING_TYPES


def _thoughts_at(counted: Sequence[_Blocks], number: int, index: int) -> list[JsonObject]:
    """Return the block at a position if it is a thought, else all thoughts beside it."""
    blocks = counted[number] if number < len(counted) else ()
    if index < len(blocks) and _is_thinking(blocks[index]):
        return [blocks[index]]
    return list(filter(_is_thinking, blocks))


def locate(request: WireRequest, thread: Thread, message: str, *, provider: str) -> tuple[str, ...]:
    """Return the origins of the thoughts that an error's `message` refers to, none if it names no position.

    In the newest answer, all thoughts are meant: the API requires them unchanged as a whole. `request` is the one that
    was sent.
    """
    place = _PLACE.search(message)
    if place is None:
        return ()
    number, index = int(place[1]), int(place[2])
    messages: list[JsonObject] = request.body["messages"]
    sides = _sides(messages)
    plain: list[_Blocks] = [given["content"] for given in messages]
    found = _thoughts_at([blocks for _, blocks in sides], number, index) or _thoughts_at(plain, number, index)
    answers = [blocks for role, blocks in sides if role == "assistant"]
    newest = list(filter(_is_thinking, answers[-1] if answers else ()))
    meant = newest if any(block in newest for block in found) else found
    reasoning = (event for event in thread.events if isinstance(event, AssistantReasoning))
    return tuple(event.origin for event in reasoning if own_thinking(event, thread.model, provider) in meant)
