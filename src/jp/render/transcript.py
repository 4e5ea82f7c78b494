"""The parts that are shown of a stored conversation or of its view, whatever the format.

Texts are raw: the printer sanitizes them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any, Literal, assert_never, cast

import msgspec

from jp.compaction.projection import ProjectedTurn, Projection, SummaryOrigin, TurnOrigin
from jp.context.estimate import estimate_tokens, estimate_tokens_of_bytes
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    Compaction,
    ConfigDelta,
    CycleEnd,
    Header,
    InquiryRequest,
    InquiryResponse,
    JsonObject,
    RequestContext,
    Revert,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
    Unknown,
)
from jp.conversation.resource import (
    BinaryContent,
    Block,
    Carrier,
    Resource,
    ResourceBlock,
    ResourceLink,
    StoredContent,
    TextBlock,
    TextContent,
    as_shown,
    content_of,
    resource_as_shown,
    size_in_bytes,
)
from jp.conversation.thread import (
    AssistantData,
    AssistantReasoning,
    AssistantText,
    CarrierChange,
    ToolCall,
    ToolResult,
    UserResource,
    UserText,
    ViewEvent,
    map_view_carriers,
)
from jp.conversation.turns import Turn, turns_of, undone
from jp.errors import StorageError
from jp.render.json_lines import SCHEMA, escape_controls
from jp.render.sanitize import one_line
from jp.render.tables import count_text, size_text, truncate
from jp.render.tool_calls import arguments_text, is_one_line_failure, result_text


class Heading(msgspec.Struct, frozen=True, kw_only=True):
    """The beginning of a speaker's part in turn `turn` (0-based). An unknown `name` is empty.

    The name is the author's or the model's. With a `last_turn` it heads all turns from the one to the other.
    """

    turn: int
    last_turn: int | None = None
    role: Literal["user", "assistant"]
    name: str = ""
    at: str = ""
    is_undone: bool = False


class Request(msgspec.Struct, frozen=True):
    """A user message."""

    text: str


class Message(msgspec.Struct, frozen=True):
    """A message of the model: Markdown."""

    text: str


class Data(msgspec.Struct, frozen=True):
    """Structured output: JSON."""

    text: str


class Reasoning(msgspec.Struct, frozen=True):
    """The model's reasoning."""

    text: str


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A line about something that happened."""

    text: str
    is_failure: bool = False


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """Lines that a tool or a file brought; `omitted` more are not shown."""

    lines: tuple[str, ...]
    omitted: int = 0


Part = Heading | Request | Message | Data | Reasoning | Note | Output


def resource_parts(resource: Resource, said: str, *, load: CarrierChange, lines: int | None) -> Iterator[Note | Output]:
    """Yield a line about a resource that begins with `said`, and `lines` of its text; None shows all."""
    names = [name for name in (resource.name, resource.mime_type) if name]
    yield Note(text=f"{said} {resource.uri} ({', '.join([*names, *_weight(resource)])})")
    yield from _text(resource, load, lines)


def block_parts(block: Block, *, load: CarrierChange, lines: int | None) -> Iterator[Part]:
    """Yield a tool's result, `lines` of it; None shows all."""
    match block:
        case TextBlock():
            yield from _text(block, load, lines)
        case ResourceBlock(resource=resource):
            yield from resource_parts(resource, "resource", load=load, lines=lines)
        case ResourceLink():
            yield Note(text=f"link {block.uri}")
        case _:
            yield Note(text=f"{block.mime_type}, {size_text(size_in_bytes(block))}")


def _weight(resource: Resource) -> list[str]:
    """Return its lines, size and tokens, as far as they are known without reading it."""
    content = content_of(resource)
    size = size_text(size_in_bytes(resource))
    match content:
        case TextContent(text=text):
            return [count_text(len(text.splitlines()), "line"), size, _tokens(estimate_tokens(text))]
        case StoredContent(chars=None):
            return [size]
        case StoredContent(lines=lines):
            known = [] if lines is None else [count_text(lines, "line")]
            return [*known, size, _tokens(estimate_tokens_of_bytes(content.size))]
        case BinaryContent():
            return [size]
        case _:
            assert_never(content)


def _tokens(count: int) -> str:
    return f"about {count_text(count, 'token')}"


def _text(carrier: Carrier, load: CarrierChange, bound: int | None) -> Iterator[Note | Output]:
    if bound == 0 or _is_binary(carrier):
        return
    try:
        content = content_of(load(carrier))
    except StorageError as error:
        yield Note(text=error.message, is_failure=True)
        return
    if not isinstance(content, TextContent):
        return
    lines = content.text.splitlines()
    shown = lines if bound is None else lines[:bound]
    if shown:
        yield Output(lines=tuple(shown), omitted=len(lines) - len(shown))


def _is_binary(carrier: Carrier) -> bool:
    content = content_of(carrier)
    return isinstance(content, BinaryContent) or (isinstance(content, StoredContent) and content.chars is None)


_LINE_WIDTH = 120
_PATH_WIDTH = 60
_VALUE_WIDTH = 40
_NOTHING: Sequence[Any] = (None, "", [], {})
_SHOWN = 3
_FIRST = "assistant.model."


class _Remainder(msgspec.Struct, frozen=True):
    """A line of the type `original`: an event, whole, or fields of another line."""

    event: JsonObject | None = None
    fields: JsonObject | None = None


def config_change_text(delta: JsonObject, *, is_whole: bool) -> str:
    """Return a change of the configuration as JSON; of a long one, unless `is_whole`, some values and their number."""
    text = _json(delta)
    if is_whole or len(text) <= _LINE_WIDTH:
        return f"configuration {text}"
    # Which model answers is what a reader looks for.
    found = sorted(_leaves(delta), key=lambda leaf: (leaf[1] in _NOTHING, not leaf[0].startswith(_FIRST)))
    shown = [f"{truncate(one_line(path), _PATH_WIDTH)}={_short(_json(value))}" for path, value in found[:_SHOWN]]
    return f"configuration {_with_count(shown, len(found), 'value')}"


def unknown_entry_text(entry: Unknown, *, is_whole: bool) -> str:
    """Return a description of an entry of unknown type: the content of the original JP's, whole if `is_whole`."""
    from jp.conversation.original import REMAINDER

    remainder = _remainder(entry) if entry.type == REMAINDER else _Remainder()
    if remainder.event is not None:
        kind = remainder.event.get("type")
        return _kept(f"an event of type {_short(repr(kind))}", remainder.event, is_whole=is_whole)
    if remainder.fields is not None:
        return _kept(_named(remainder.fields), remainder.fields, is_whole=is_whole)
    return f"an entry of type {entry.type!r}, which this version does not know"


def _remainder(entry: Unknown) -> _Remainder:
    try:
        return msgspec.json.decode(entry.raw, type=_Remainder)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _Remainder()


def _kept(what: str, value: JsonObject, *, is_whole: bool) -> str:
    said = f"kept from the original JP, without a place of its own here: {what}"
    return f"{said}: {_json(value)}" if is_whole else said


def _named(fields: JsonObject) -> str:
    if isinstance(delta := fields.get("delta"), dict) and len(fields) == 1:
        spelled = sum(1 for _ in _leaves(cast("JsonObject", delta)))
        return f"the spelling of {count_text(spelled, 'value')} of the configuration"
    return _with_count([_short(repr(name)) for name in list(fields)[:_SHOWN]], len(fields), "field")


def _with_count(shown: Sequence[str], count: int, noun: str) -> str:
    more = count - len(shown)
    return ", ".join([*shown, *([f"and {count_text(more, f'more {noun}')}"] if more else [])])


def _leaves(value: JsonObject, above: str = "") -> Iterator[tuple[str, Any]]:
    for name, below in value.items():
        if isinstance(below, dict) and below:
            yield from _leaves(cast("JsonObject", below), f"{above}{name}.")
        else:
            yield f"{above}{name}", below


def _short(text: str) -> str:
    return truncate(one_line(text), _VALUE_WIDTH)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


_ENDINGS = {
    "length": "the answer was cut: it reached the longest that the model may give",
    "refused": "the model refused to answer",
    "cancelled": "the answer was stopped",
}


class Extent(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of what is shown. A bound of None shows all lines, 0 none. `turns` (0-based) of None are all.

    `tool_lines` bounds the output of a tool, `attachment_lines` the text of a resource; without a bound on a tool's
    output its arguments are whole too, and so are changes of the configuration.
    """

    turns: Container[int] | None = None
    reasoning: bool = True
    tools: bool = True
    tool_lines: int | None = 10
    attachment_lines: int | None = 0


def transcript(entries: Sequence[AnyEntry], *, load: CarrierChange, extent: Extent) -> Iterator[Part]:
    """Yield the parts of a stream. `load` reads content from its place, and only for parts that are shown."""
    reader = _Reader(entries, load, extent)
    for entry in entries:
        yield from reader.read(entry)


class _Reader:
    """Remembers what the next entry needs of those before it."""

    def __init__(self, entries: Sequence[AnyEntry], load: CarrierChange, extent: Extent) -> None:
        self._load = load
        self._extent = extent
        self._gone = undone(entries)
        self._turns = {id(entry): turn for turn in turns_of(entries) for entry in turn.entries}
        self._numbers: dict[str, int] = {}
        self._calls: dict[str, ToolCallRequest] = {}
        self._model = ""
        self._answering = -1  # the turn whose answer has its heading

    def read(self, entry: AnyEntry) -> Iterator[Part]:
        """Yield the parts of the next entry."""
        turn = self._turns.get(id(entry))
        self._remember(entry, turn)
        wanted = self._extent.turns
        if wanted is not None and (turn is None or turn.number not in wanted):
            return
        parts = list(self._parts(entry))
        if turn is not None and parts:
            yield from self._heading(entry, turn)
        yield from parts

    def _remember(self, entry: AnyEntry, turn: Turn | None) -> None:
        if turn is not None:
            self._numbers[entry.id] = turn.number
        if isinstance(entry, ToolCallRequest):
            self._calls[entry.id] = entry
        elif isinstance(entry, RequestContext):
            self._model = f"{entry.provider}/{entry.model}"

    def _heading(self, entry: AnyEntry, turn: Turn) -> Iterator[Heading]:
        """Yield a heading if the speaker changes."""
        is_undone = turn.id in self._gone
        if isinstance(entry, ChatRequest):
            self._answering = -1
            yield Heading(turn=turn.number, role="user", name=entry.author or "", at=entry.at, is_undone=is_undone)
        elif self._answering != turn.number:
            self._answering = turn.number
            yield Heading(turn=turn.number, role="assistant", name=self._model, is_undone=is_undone)

    def _parts(self, entry: AnyEntry) -> Iterable[Part]:
        match entry:
            case ChatRequest():
                return self._request(entry)
            case ChatResponse():
                return self._response(entry)
            case ToolCallRequest() | ToolCallResponse() | InquiryRequest() | InquiryResponse():
                return self._tool(entry) if self._extent.tools else ()
            case CycleEnd():
                return _ending(entry)
            case ConfigDelta() | Compaction() | Revert() | Unknown():
                return _overlay(entry, is_whole=self._extent.tool_lines is None)
            case Header() | TurnStart() | RequestContext():
                return ()
            case _:
                assert_never(entry)

    def _request(self, request: ChatRequest) -> Iterator[Part]:
        yield Request(request.content)
        if request.schema is not None:
            yield Note(text=f"the answer has to fit {_json(request.schema)}")
        for resource in request.resources:
            yield from resource_parts(resource, "attached", load=self._load, lines=self._extent.attachment_lines)

    def _response(self, response: ChatResponse) -> Iterator[Part]:
        if response.message is not None:
            yield Message(response.message)
        if response.reasoning is not None and self._extent.reasoning:
            yield Reasoning(response.reasoning) if response.reasoning else Note(text="reasoning that is not shown")
        if response.text is not None:
            yield Message(response.text)
        elif response.data is not msgspec.UNSET:
            yield Data(msgspec.json.format(_json(response.data), indent=2))

    def _tool(self, entry: ToolCallRequest | ToolCallResponse | InquiryRequest | InquiryResponse) -> Iterator[Part]:
        match entry:
            case ToolCallRequest():
                arguments = arguments_text(entry.arguments, is_whole=self._extent.tool_lines is None)
                yield Note(text=f"call {entry.name}({arguments})")
            case ToolCallResponse():
                call = self._calls.get(entry.request) or _missing_call(entry)
                yield Note(
                    text=f"result {result_text(call, entry, turn_of=self._numbers.get)}", is_failure=entry.is_error
                )
                for block in () if is_one_line_failure(entry) else entry.content:
                    yield from block_parts(block, load=self._load, lines=self._extent.tool_lines)
            case InquiryRequest(question=question):
                options = f" ({', '.join(question.options)})" if question.options else ""
                yield Note(text=f"question {question.text}{options}")
            case InquiryResponse():
                yield Note(text=f"answer {_json(entry.answer)}, by {entry.answered_by}")
            case _:
                assert_never(entry)


def _missing_call(response: ToolCallResponse) -> ToolCallRequest:
    return ToolCallRequest(id=response.request, call_id="", name="a call that is not in the log", arguments={})


def _ending(end: CycleEnd) -> Iterator[Part]:
    if end.finish == "error":
        yield Note(text=f"attempt {end.attempt} failed: {end.error or 'no reason is known'}", is_failure=True)
    elif end.finish in _ENDINGS:
        yield Note(text=_ENDINGS[end.finish])


def _overlay(entry: ConfigDelta | Compaction | Revert | Unknown, *, is_whole: bool) -> Iterator[Part]:
    match entry:
        case ConfigDelta(delta=delta):
            yield Note(text=config_change_text(delta, is_whole=is_whole))
        case Compaction():
            yield Note(text=f"compacted turns {entry.from_turn} to {entry.to_turn}: {', '.join(_policies(entry))}")
            if entry.summary is not None:
                yield Reasoning(entry.summary.text)
        case Revert(entries=entries):
            yield Note(text=f"undone: {count_text(len(entries), 'change')}")
        case Unknown():
            yield Note(text=unknown_entry_text(entry, is_whole=is_whole))
        case _:
            assert_never(entry)


def _policies(compaction: Compaction) -> Iterator[str]:
    if compaction.summary is not None:
        yield "summary"
    if compaction.reasoning is not None:
        yield "reasoning"
    if compaction.tool_calls is not None:
        yield f"tools {compaction.tool_calls.policy}"
    if compaction.resources is not None:
        yield f"resources {compaction.resources}"


def view_parts(view: Projection, *, load: CarrierChange, extent: Extent) -> Iterator[Part]:
    """Yield the parts of a view. `load` reads content from its place, and only for parts that are shown."""
    for turn in _chosen(view, extent):
        number, last = _numbers(turn)
        role = ""
        for event in turn.events:
            parts = list(_parts(event, load, extent))
            speaker = "user" if isinstance(event, UserText | UserResource) else "assistant"
            if parts and speaker != role:
                role = speaker
                yield Heading(turn=number, last_turn=last, role=speaker)
            yield from parts


def view_lines(view: Projection, *, load: CarrierChange, extent: Extent) -> Iterator[str]:
    """Yield the events of a view as lines of JSON, content inline, each with the turns that it covers."""
    for turn in _chosen(view, extent):
        number, last = _numbers(turn)
        for event in turn.events:
            fields: dict[str, Any] = msgspec.to_builtins(map_view_carriers(event, load))
            fields = {name: value for name, value in fields.items() if value is not None and name != "turn"}
            if "schema" in fields:
                fields["output_schema"] = fields.pop("schema")
            head = {"schema": SCHEMA, "type": _TYPES[type(event)], "from_turn": number, "to_turn": last or number}
            yield f"{escape_controls(msgspec.json.encode({**head, **fields}).decode())}\n"


_TYPES: dict[type[ViewEvent], str] = {
    UserText: "user_text",
    UserResource: "user_resource",
    AssistantText: "assistant_text",
    AssistantReasoning: "assistant_reasoning",
    AssistantData: "assistant_data",
    ToolCall: "tool_call",
    ToolResult: "tool_result",
}


def _chosen(view: Projection, extent: Extent) -> Iterable[ProjectedTurn]:
    """Return the requested turns; a summary if it covers one of them."""
    for turn in view.turns:
        first, last = _numbers(turn)
        if extent.turns is None or any(number in extent.turns for number in range(first, (last or first) + 1)):
            yield turn


def _numbers(turn: ProjectedTurn) -> tuple[int, int | None]:
    """Return the first turn of the stream that it covers, and the last one if that is another."""
    match turn.origin:
        case TurnOrigin(number=number):
            return number, None
        case SummaryOrigin(from_turn=first, to_turn=last):
            return first, last if last > first else None
        case _:
            assert_never(turn.origin)


def _parts(event: ViewEvent, load: CarrierChange, extent: Extent) -> Iterator[Part]:
    match event:
        case UserText(text=text):
            yield Request(text)
        case UserResource(resource=resource):
            shown = resource_as_shown(resource)
            yield from resource_parts(shown, "attached", load=load, lines=extent.attachment_lines)
        case AssistantText(text=text):
            yield Message(text)
        case AssistantData(text=text):
            yield Data(text)
        case AssistantReasoning() if not extent.reasoning:
            pass
        case AssistantReasoning(text=text):
            yield Reasoning(text) if text else Note(text="reasoning that is not shown")
        case ToolCall() | ToolResult():
            yield from _tool(event, load, extent) if extent.tools else ()
        case _:
            assert_never(event)


def _tool(event: ToolCall | ToolResult, load: CarrierChange, extent: Extent) -> Iterator[Part]:
    match event:
        case ToolCall(name=name, arguments=arguments):
            shown = arguments_text(arguments, is_whole=extent.tool_lines is None)
            yield Note(text=f"call {name}({shown})")
        case ToolResult(name=name, content=content):
            yield Note(text=f"{'error' if event.is_error else 'result'} of {name}", is_failure=event.is_error)
            for block in content:
                yield from block_parts(as_shown(block), load=load, lines=extent.tool_lines)
        case _:
            assert_never(event)
