"""Thread: what an adapter renders into a request, and walking the content in threads and entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import compress, count, islice
from operator import is_, is_not
from typing import Generic, Literal, Protocol, TypeVar, assert_never

import msgspec
from msgspec.structs import replace

from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    Compaction,
    JsonObject,
    RequestContext,
    SummaryPolicy,
    ToolCallResponse,
)
from jp.conversation.resource import (
    AudioBlock,
    Block,
    Carrier,
    ImageBlock,
    Resource,
    ResourceBlock,
    ResourceLink,
    TextBlock,
)

CachePolicy = Literal["off", "short", "long"]
Effort = Literal["none", "xlow", "low", "medium", "high", "xhigh", "max"]


class Parameters(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Parameters of a request. None means the provider's default.

    `reasoning` is `off`, `auto`, an effort, or a budget in tokens. `tool_choice` is `auto`, `none`, `required` or a
    tool's name. `other` goes to the provider as it is. `abilities` are those of the model that the provider listed
    otherwise than jp's own table has them when the request was made: recorded, so that it can be made again.
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
    abilities: JsonObject = {}


_DEFAULTS = Parameters()


def set_parameters(parameters: Parameters) -> JsonObject:
    """Return the parameters that differ from their defaults, as JSON.

    Equal ones give equal objects, wherever they came from: msgspec itself omits only values identical to a default.
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
    """A message of the model, or a summary that replaces turns (`synthetic`)."""

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


C = TypeVar("C", bound=Carrier)


class CarrierChange(Protocol):
    """A function from a carrier to the same carrier with its content in another form."""

    def __call__(self, carrier: C, /) -> C:
        """Change one carrier."""
        ...


def _map_block(block: Block, change: CarrierChange) -> Block:
    match block:
        case ResourceBlock(resource=resource):
            return replace(block, resource=change(resource))
        case TextBlock() | ImageBlock() | AudioBlock():
            return change(block)
        case ResourceLink():
            return block
        case _:
            assert_never(block)


def _block_carriers(block: Block) -> Iterator[Carrier]:
    match block:
        case ResourceBlock(resource=resource):
            yield resource
        case TextBlock() | ImageBlock() | AudioBlock():
            yield block
        case ResourceLink():
            pass
        case _:
            assert_never(block)


def _hold_content(blocks: tuple[Block, ...]) -> bool:
    return not all(isinstance(block, ResourceLink) for block in blocks)


def carriers_in(entry: AnyEntry) -> Iterator[Carrier]:
    """Yield the carriers of content in `entry`."""
    match entry:
        case ChatRequest(resources=resources):
            yield from resources
        case ToolCallResponse(content=blocks):
            for block in blocks:
                yield from _block_carriers(block)
        case RequestContext(system=system, tools=tools):
            yield from system
            if tools is not None:
                yield tools
        case Compaction(summary=SummaryPolicy(kept=kept)):
            yield from kept
        case _:
            pass


def map_carriers(entry: AnyEntry, change: CarrierChange) -> AnyEntry:
    """Return `entry` with every carrier changed; the same object where it has none."""
    match entry:
        case ChatRequest(resources=resources) if resources:
            return replace(entry, resources=tuple(change(resource) for resource in resources))
        case ToolCallResponse(content=blocks) if _hold_content(blocks):
            return replace(entry, content=tuple(_map_block(block, change) for block in blocks))
        case RequestContext(system=system, tools=tools) if system or tools:
            return replace(
                entry,
                system=tuple(change(part) for part in system),
                tools=None if tools is None else change(tools),
            )
        case Compaction(summary=SummaryPolicy(kept=kept) as summary) if kept:
            return replace(entry, summary=replace(summary, kept=tuple(change(text) for text in kept)))
        case _:
            return entry


def map_view_carriers(event: ViewEvent, change: CarrierChange) -> ViewEvent:
    """Return `event` with every carrier changed; the same object where it has none."""
    match event:
        case UserResource(resource=resource):
            return replace(event, resource=change(resource))
        case ToolResult(content=blocks) if _hold_content(blocks):
            return replace(event, content=tuple(_map_block(block, change) for block in blocks))
        case _:
            return event


def count_unchanged(
    before: Sequence[object], after: Sequence[object], differs: Callable[[object, object], bool] = is_not
) -> int:
    """Return the number of leading items that are the same in both: the same objects, unless `differs` compares them.

    Long sequences are compared without a step of Python for each item.
    """
    return next(compress(count(), map(differs, before, after)), min(len(before), len(after)))


class LogCursor:
    """A place in a log that grows, behind the entries that were read."""

    def __init__(self) -> None:
        self._log: Sequence[AnyEntry] = ()
        self._count = 0

    def advance(self, log: Sequence[AnyEntry]) -> tuple[Sequence[AnyEntry], bool]:
        """Return the entries to read, and whether they only add to those that were read before.

        Args:
            log: All entries; those that were read before are the same objects, or everything is read again. A sequence
                that is passed again must have changed at its end only: its earlier entries are not compared.
        """
        read = self._count
        is_longer = len(log) >= read
        only_adds = is_longer and (log is self._log or all(map(is_, islice(self._log, read), log)))
        self._log, self._count = log, len(log)
        return (log[read:] if read else log, True) if only_adds else (log, False)


A = TypeVar("A")
B = TypeVar("B")


class IncrementalMap(Generic[A, B]):
    """Maps the items of sequences that grow at their end: items that have not changed are not mapped again."""

    def __init__(self, function: Callable[[A], B]) -> None:
        self._function = function
        self._items: Sequence[A] = ()
        self._results: list[B] = []

    def map(self, items: Sequence[A]) -> list[B]:
        """Return the results for `items`; items are the same only if they are the same objects."""
        same = count_unchanged(self._items, items)
        self._results = [*self._results[:same], *map(self._function, items[same:])]
        self._items = items
        return self._results
