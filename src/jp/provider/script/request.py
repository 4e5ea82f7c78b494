"""Thread → the neutral request that a scenario is matched against. Pure."""

from __future__ import annotations

from itertools import groupby
from typing import Literal, assert_never

import msgspec

from jp.conversation.entries import JsonObject
from jp.conversation.resource import (
    AudioBlock,
    BinaryContent,
    Block,
    Carrier,
    ImageBlock,
    Resource,
    ResourceBlock,
    ResourceLink,
    StoredContent,
    TextBlock,
    TextContent,
    content_of,
    formatted_of,
)
from jp.conversation.thread import (
    AssistantData,
    AssistantReasoning,
    AssistantText,
    Thread,
    ToolCall,
    ToolDefinition,
    ToolResult,
    UserResource,
    UserText,
    ViewEvent,
    set_parameters,
)
from jp.provider.base import Sections
from jp.provider.errors import ProviderError

Role = Literal["user", "assistant"]


class Item(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """A piece of a message."""


class Text(Item, frozen=True, kw_only=True, omit_defaults=True, tag="text"):
    """Words. `synthetic`: of jp, for the user or the model."""

    text: str
    synthetic: bool = False


class Reasoning(Item, frozen=True, kw_only=True, omit_defaults=True, tag="reasoning"):
    """The model's reasoning."""

    text: str


class Data(Item, frozen=True, kw_only=True, omit_defaults=True, tag="data"):
    """Structured output, as JSON text."""

    text: str


class Source(Item, frozen=True, kw_only=True, omit_defaults=True, tag="resource"):
    """A resource as the model sees it: text, or base64 in `data`; without both, a link."""

    uri: str
    name: str | None = None
    mime_type: str | None = msgspec.field(default=None, name="mimeType")
    text: str | None = None
    data: bytes | None = None


class Media(Item, frozen=True, kw_only=True, omit_defaults=True, tag="media"):
    """A picture or sound without an identity."""

    mime_type: str = msgspec.field(name="mimeType")
    data: bytes


class ModelCall(Item, frozen=True, kw_only=True, omit_defaults=True, tag="tool_call"):
    """A call of the model."""

    call_id: str
    name: str
    arguments: JsonObject | str


class Result(Item, frozen=True, kw_only=True, omit_defaults=True, tag="tool_result"):
    """The answer to a call."""

    call_id: str
    name: str
    content: tuple[Text | Source | Media, ...] = ()
    is_error: bool = False

    @property
    def text(self) -> str:
        """What it says in words."""
        return "\n".join(item.text or "" for item in self.content if not isinstance(item, Media))


AnyItem = Text | Reasoning | Data | Source | Media | ModelCall | Result


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """What one side says in one turn without the other coming in between."""

    role: Role
    turn: int
    content: tuple[AnyItem, ...]


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """A request."""

    model: str
    system: tuple[str, ...]
    tools: tuple[ToolDefinition, ...]
    messages: tuple[Message, ...]
    parameters: JsonObject
    schema: JsonObject | None = None


def body_of(thread: Thread) -> Body:
    """The request for `thread`.

    Raises:
        ProviderError: content of the thread was not loaded.
    """
    messages = [
        Message(role=role, turn=turn, content=tuple(map(_item, events)))
        for (role, turn), events in groupby(thread.events, key=_place)
    ]
    return Body(
        model=thread.model,
        system=thread.system,
        tools=thread.tools,
        messages=tuple(messages),
        parameters=set_parameters(thread.parameters),
        schema=thread.schema,
    )


def sections_of(body: Body) -> Sections:
    """The request as a prompt cache would see it."""
    return Sections(
        tools=tuple(_canonical(tool) for tool in body.tools),
        system=tuple(_canonical(part) for part in body.system),
        messages=tuple(
            (_canonical([message.role, message.turn]), *(_canonical(item) for item in message.content))
            for message in body.messages
        ),
    )


def _canonical(value: object) -> bytes:
    return msgspec.json.encode(value, order="sorted")


def _place(event: ViewEvent) -> tuple[Role, int]:
    return _role(event), event.turn


def _role(event: ViewEvent) -> Role:
    match event:
        case UserText() | UserResource() | ToolResult():
            return "user"
        case AssistantText() | AssistantReasoning() | AssistantData() | ToolCall():
            return "assistant"
        case _:
            assert_never(event)


def _item(event: ViewEvent) -> AnyItem:
    match event:
        case UserText() | AssistantText():
            return Text(text=event.text, synthetic=event.synthetic)
        case AssistantReasoning():
            return Reasoning(text=event.text)
        case AssistantData():
            return Data(text=event.text)
        case UserResource():
            return _source(event.resource)
        case ToolCall():
            return ModelCall(call_id=event.call_id, name=event.name, arguments=event.arguments)
        case ToolResult():
            content = tuple(_block(block) for block in event.content)
            return Result(call_id=event.call_id, name=event.name, content=content, is_error=event.is_error)
        case _:
            assert_never(event)


def _block(block: Block) -> Text | Source | Media:
    match block:
        case TextBlock():
            content = _content(block)
            return Text(text=content.text if isinstance(content, TextContent) else "")
        case ResourceBlock():
            return _source(block.resource)
        case ResourceLink():
            return Source(uri=block.uri, name=block.name, mime_type=block.mime_type)
        case ImageBlock() | AudioBlock():
            content = _content(block)
            if block.formatted is not None:
                return Text(text=block.formatted)
            return Media(mime_type=block.mime_type, data=content.data if isinstance(content, BinaryContent) else b"")
        case _:
            assert_never(block)


def _source(resource: Resource) -> Source:
    content = _content(resource)
    return Source(
        uri=resource.uri,
        name=resource.name,
        mime_type=resource.mime_type,
        text=content.text if isinstance(content, TextContent) else None,
        data=content.data if isinstance(content, BinaryContent) else None,
    )


def _content(carrier: Carrier) -> TextContent | BinaryContent:
    formatted = formatted_of(carrier)
    if formatted is not None:
        return TextContent(formatted)
    content = content_of(carrier)
    if isinstance(content, StoredContent):
        raise ProviderError(f"content {content.sha256!r} was not loaded", kind="other")
    return content
