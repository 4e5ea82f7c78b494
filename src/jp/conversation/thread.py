"""Thread: what an adapter renders into a request. Provider-neutral, and nothing in it needs reading from disk."""

from __future__ import annotations

from typing import Literal

import msgspec

from jp.conversation.entries import JsonObject
from jp.conversation.resource import Block, Resource, TextBlock

CachePolicy = Literal["off", "short", "long"]
Effort = Literal["none", "xlow", "low", "medium", "high", "xhigh", "max"]
EFFORTS: tuple[Effort, ...] = ("none", "xlow", "low", "medium", "high", "xhigh", "max")


class Parameters(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a model is asked. None means: the provider's default.

    `reasoning` is `off`, `auto`, an effort, or a budget in tokens. `tool_choice` is `auto`, `none`, `required` or a
    tool's name. `other` goes to the provider as it is.
    """

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop_words: tuple[str, ...] = ()
    reasoning: Literal["off", "auto"] | Effort | int | None = None
    tool_choice: str = "auto"
    cache: CachePolicy = "short"
    other: JsonObject = {}


_DEFAULTS = Parameters()


def set_parameters(parameters: Parameters) -> JsonObject:
    """The parameters that differ from their defaults, as JSON.

    Equal ones give equal objects, wherever they came from: msgspec itself leaves out what is identical to a default.
    """
    plain: JsonObject = msgspec.to_builtins(parameters)
    return {name: value for name, value in plain.items() if getattr(parameters, name) != getattr(_DEFAULTS, name)}


class ToolDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as the model sees it. `parameters` is a JSON Schema of type object."""

    name: str
    description: str
    parameters: JsonObject


class NamedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that a text of jp names: the id of its entry, and the id by which the text names it, in backquotes."""

    call: str
    call_id: str


class ReferenceBlock(TextBlock, frozen=True, kw_only=True):
    """A text in place of a snapshot, in a view only. It names the call whose result has the copy."""

    named: NamedCall


class UserText(msgspec.Struct, frozen=True, kw_only=True):
    """Words of the user, or of jp on the user's behalf (`synthetic`: a summary's heading, a request to continue).

    `schema` is what the answer to them has to fit: for adapters that have to say so in words. `named` is the call that
    a reference in place of a snapshot names.
    """

    text: str
    turn: int
    origin: str = ""
    synthetic: bool = False
    schema: JsonObject | None = None
    named: NamedCall | None = None


class UserResource(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot that the user attached."""

    resource: Resource
    turn: int
    origin: str = ""


class AssistantText(msgspec.Struct, frozen=True, kw_only=True):
    """A message of the model, or a summary that stands for turns (`synthetic`)."""

    text: str
    turn: int
    origin: str = ""
    metadata: JsonObject | None = None
    synthetic: bool = False


class AssistantReasoning(msgspec.Struct, frozen=True, kw_only=True):
    """The model's reasoning; `metadata` belongs to the provider and model that it names."""

    text: str
    turn: int
    origin: str = ""
    metadata: JsonObject | None = None


class AssistantData(msgspec.Struct, frozen=True, kw_only=True):
    """Structured output, as JSON text, or as what came where that is not just JSON."""

    text: str
    turn: int
    origin: str = ""
    metadata: JsonObject | None = None


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call of the model. `origin` is the id of its entry: what a `ToolResult` answers."""

    call_id: str
    name: str
    arguments: JsonObject | str
    turn: int
    origin: str
    metadata: JsonObject | None = None


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to the `ToolCall` whose `origin` is `call`; `call_id` and `name` are that call's."""

    call: str
    call_id: str
    name: str
    content: tuple[Block, ...]
    turn: int
    origin: str = ""
    is_error: bool = False


ViewEvent = UserText | UserResource | AssistantText | AssistantReasoning | AssistantData | ToolCall | ToolResult


class Thread(msgspec.Struct, frozen=True, kw_only=True):
    """One request, before an adapter gives it its wire form.

    `tools` are sorted by name. Every resource and block in `events` has its content inline. `schema` is what the answer
    has to fit. `conversation` names the conversation, for providers whose cache routing wants a sticky key.
    """

    model: str
    system: tuple[str, ...]
    tools: tuple[ToolDefinition, ...]
    events: tuple[ViewEvent, ...]
    parameters: Parameters = Parameters()
    schema: JsonObject | None = None
    conversation: str = ""
