"""A stored conversation as the parts that are shown of it, in the log's order."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import assert_never

import msgspec

from jp.conversation.carriers import CarrierChange
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
    RequestContext,
    Revert,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
    Unknown,
)
from jp.conversation.reverts import undone
from jp.conversation.turns import Turn, turns_of
from jp.render.amounts import count_text
from jp.render.contents import block_parts, resource_parts
from jp.render.kept import change_text, unknown_text
from jp.render.parts import Data, Heading, Message, Note, Part, Reasoning, Request
from jp.render.tool_call import arguments_text, is_told, result_text

_ENDINGS = {
    "length": "the answer was cut: it reached the longest that the model may give",
    "refused": "the model refused to answer",
    "cancelled": "the answer was stopped",
}


class Extent(msgspec.Struct, frozen=True, kw_only=True):
    """How much is shown. A bound of None shows all lines, 0 none. `turns` are 0-based; None shows all of them.

    `tool_lines` bounds the output of a tool, `attachment_lines` the text of a resource; without a bound on a tool's
    output its arguments are whole too, and so are changes of the configuration.
    """

    turns: Container[int] | None = None
    reasoning: bool = True
    tools: bool = True
    tool_lines: int | None = 10
    attachment_lines: int | None = 0


def transcript(entries: Sequence[AnyEntry], *, load: CarrierChange, extent: Extent) -> Iterator[Part]:
    """The parts of a stream. `load` reads content from where it is stored, and only what is shown is read."""
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
        """The parts of the next entry."""
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
        """A heading where somebody else speaks than before."""
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
                for block in () if is_told(entry) else entry.content:
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
            yield Note(text=change_text(delta, is_whole=is_whole))
        case Compaction():
            yield Note(text=f"compacted turns {entry.from_turn} to {entry.to_turn}: {', '.join(_policies(entry))}")
            if entry.summary is not None:
                yield Reasoning(entry.summary.text)
        case Revert(entries=entries):
            yield Note(text=f"undone: {count_text(len(entries), 'change')}")
        case Unknown():
            yield Note(text=unknown_text(entry, is_whole=is_whole))
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


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
