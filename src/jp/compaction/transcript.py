"""A projected view as the messages that `jp.context` works on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, assert_never

import msgspec

from jp.compaction.projection import Projection, project
from jp.compaction.status_lines import PlainStatusFormatter
from jp.context.budget import PER_MESSAGE, PER_RESULT, estimate_block, estimate_call
from jp.context.estimate import estimate_tokens
from jp.context.types import Answered, Call, Digested, Facts, Message, Meta, ReasoningBlock, StoredBlock, Transcript
from jp.context.types import Block as MessageBlock
from jp.context.types import TextBlock as MessageText
from jp.conversation.entries import AnyEntry, Compaction, InquiryRequest, InquiryResponse, ToolCallResponse
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
    checksum,
    content_of,
    formatted_of,
    size_in_bytes,
)
from jp.conversation.thread import (
    AssistantData,
    AssistantReasoning,
    AssistantText,
    ToolCall,
    ToolResult,
    UserResource,
    UserText,
    ViewEvent,
    carriers_in,
)


def block_of_resource(resource: Resource, origin: str) -> MessageBlock:
    """Return a snapshot as a model sees it: `formatted` if it has one."""
    return _block_of(resource, resource.mime_type or "", resource.uri, origin)


def block_of_result(block: Block, origin: str) -> MessageBlock:
    """Return a block of a tool's result as a model sees it."""
    match block:
        case TextBlock():
            return _block_of(block, "", "", origin)
        case ResourceBlock(resource=resource):
            return block_of_resource(resource, origin)
        case ImageBlock(mime_type=mime_type) | AudioBlock(mime_type=mime_type):
            return _block_of(block, mime_type, "", origin)
        case ResourceLink():
            words = (block.uri, block.title or block.name, block.description)
            return MessageText(text="\n".join(filter(None, words)), uri=block.uri, origin=origin)
        case _:
            assert_never(block)


def _block_of(carrier: Carrier, mime_type: str, uri: str, origin: str) -> MessageBlock:
    formatted = formatted_of(carrier)
    if formatted is not None:
        return MessageText(text=formatted, uri=uri, origin=origin)
    content = content_of(carrier)
    match content:
        case TextContent(text=text):
            return MessageText(text=text, uri=uri, origin=origin)
        case BinaryContent(data=data):
            return StoredBlock(sha256=checksum(carrier), size=len(data), mime_type=mime_type, uri=uri, origin=origin)
        case StoredContent(sha256=sha256, size=size, chars=chars, lines=lines):
            return StoredBlock(
                sha256=sha256, size=size, mime_type=mime_type, chars=chars, lines=lines, uri=uri, origin=origin
            )
        case _:
            assert_never(content)


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The source of an `origin`: an event of the view, or its `block`."""

    event: ViewEvent
    block: int | None = None


class ViewTranscript(msgspec.Struct, frozen=True, kw_only=True):
    """A view as messages, and the source of each `origin` in them.

    An origin is the id of an entry and a number: one entry has several pieces, and damaged logs contain ids twice. It
    is the same in every view that begins alike.
    """

    messages: Transcript
    records: Mapping[str, Record]


class _Row:
    """A message as it grows."""

    def __init__(self, role: Literal["user", "assistant"], request: str, meta: Meta) -> None:
        self.role: Literal["user", "assistant"] = role
        self.request = request
        self.meta = meta
        self.blocks: list[MessageBlock] = []
        self.calls: list[Call] = []
        self.origin = ""

    def message(self) -> Message:
        return Message(
            role=self.role, content=tuple(self.blocks), calls=tuple(self.calls), meta=self.meta, origin=self.origin
        )


class _CallIds:
    """The ids of calls in messages: those that the provider gave, numbered where they repeat, as in requests."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._open: dict[str, list[str]] = {}

    def new(self, event: ToolCall) -> str:
        """Return the id of the next call."""
        base = event.call_id or "call"
        number = self._numbers[base] = self._numbers.get(base, 0) + 1
        found = base if number == 1 else f"{base}_{number}"
        self._open.setdefault(event.origin, []).append(found)
        return found

    def answered(self, event: ToolResult) -> str:
        """Return the id of the call that the next result is for."""
        waiting = self._open.get(event.call)
        return waiting.pop(0) if waiting else event.call_id


class _Builder:
    def __init__(self, responses: Mapping[str, ToolCallResponse], said: Mapping[str, tuple[Answered, ...]]) -> None:
        self.messages: list[Message] = []
        self.records: dict[str, Record] = {}
        self._responses = responses
        self._said = said
        self._row: _Row | None = None
        self._numbers: dict[str, int] = {}
        self._ids = _CallIds()

    def add(self, event: ViewEvent) -> None:
        """Take the next event; the last one is not written before `close`."""
        match event:
            case UserText(text=text):
                meta = Meta(kind="synthetic", hidden=True) if event.synthetic else Meta()
                origin = self._new_origin(event)
                self._ask(event, meta, MessageText(text=text, origin=origin))
            case UserResource(resource=resource):
                self._ask(event, Meta(), block_of_resource(resource, self._new_origin(event)))
            case AssistantText(text=text) | AssistantData(text=text):
                is_summary = isinstance(event, AssistantText) and event.synthetic
                meta = Meta(kind="summary", hidden=True) if is_summary else Meta()
                self._say(event, MessageText(text=text, origin=self._new_origin(event)), meta)
            case AssistantReasoning(text=text):
                self._say(event, ReasoningBlock(text=text, origin=self._new_origin(event)), Meta())
            case ToolCall():
                self._call(event)
            case ToolResult():
                self._answer(event)
            case _:
                assert_never(event)

    def close(self) -> None:
        """End the message, so that the next event begins another one."""
        if self._row is not None:
            self.messages.append(self._row.message())
            self._row = None

    def _ask(self, event: UserText | UserResource, meta: Meta, block: MessageBlock) -> None:
        row = self._open_row("user", event.origin, meta)
        if meta.kind == "real":
            # A note in place of an attachment is part of what the person asked.
            row.meta = meta
        self._append(row, event, block)

    def _say(self, event: ViewEvent, block: MessageBlock, meta: Meta) -> None:
        self._append(self._open_row("assistant", "", meta), event, block)

    def _append(self, row: _Row, event: ViewEvent, block: MessageBlock) -> None:
        row.blocks.append(block)
        row.origin = row.origin or block.origin
        self.records[block.origin] = Record(event=event)

    def _call(self, event: ToolCall) -> None:
        row = self._open_row("assistant", "", Meta())
        call = _call_of(event, self._ids.new(event), self._new_origin(event))
        row.calls.append(call)
        row.origin = row.origin or call.origin
        self.records[call.origin] = Record(event=event)

    def _answer(self, event: ToolResult) -> None:
        self.close()
        origin = self._new_origin(event)
        blocks: list[MessageBlock] = []
        for number, block in enumerate(event.content):
            shown = block_of_result(block, f"{origin}:{number}")
            blocks.append(shown)
            self.records[shown.origin] = Record(event=event, block=number)
        self.records[origin] = Record(event=event)
        self.messages.append(
            Message(
                role="tool",
                content=tuple(blocks),
                call_id=self._ids.answered(event),
                is_error=event.is_error,
                meta=_result_meta(event, self._responses.get(event.origin), self._said),
                origin=origin,
            )
        )

    def _open_row(self, role: Literal["user", "assistant"], request: str, meta: Meta) -> _Row:
        row = self._row
        if row is None or (row.role, row.request) != (role, request):
            self.close()
            row = self._row = _Row(role, request, meta)
        return row

    def _new_origin(self, event: ViewEvent) -> str:
        number = self._numbers[event.origin] = self._numbers.get(event.origin, -1) + 1
        return f"{event.origin}.{number}"


def transcript_of(view: Projection, entries: Iterable[AnyEntry] = ()) -> ViewTranscript:
    """Return the messages of `view`, which was made of `entries`, where the tools' facts are.

    A person's request with its attachments is one message, a model's answer until its calls run another, and each
    result one. Results follow their calls, whose ids are unique.
    """
    known = tuple(entries)
    responses = {entry.id: entry for entry in known if isinstance(entry, ToolCallResponse)}
    builder = _Builder(responses, _answers_in(known))
    for turn in view.turns:
        builder.close()
        for event in turn.events:
            builder.add(event)
    builder.close()
    return ViewTranscript(messages=tuple(builder.messages), records=builder.records)


def estimate_view(view: Projection) -> int:
    """Return the estimated tokens of the messages of `view`, which `transcript_of` would give."""
    tokens, ids = 0, _CallIds()
    for turn in view.turns:
        row: tuple[str, str] | None = None
        for event in turn.events:
            before = row
            match event:
                case UserText(text=text, origin=origin):
                    row, tokens = ("user", origin), tokens + estimate_tokens(text)
                case UserResource(resource=resource, origin=origin):
                    row, tokens = ("user", origin), tokens + estimate_block(block_of_resource(resource, ""))
                case AssistantText(text=text) | AssistantData(text=text) | AssistantReasoning(text=text):
                    row, tokens = ("assistant", ""), tokens + estimate_tokens(text)
                case ToolCall():
                    row, tokens = ("assistant", ""), tokens + estimate_call(_call_of(event, ids.new(event), ""))
                case ToolResult():
                    row, tokens = None, tokens + _result_tokens(event, ids.answered(event))
                case _:
                    assert_never(event)
            tokens += PER_MESSAGE if row != before or row is None else 0
    return tokens


def _result_tokens(event: ToolResult, call_id: str) -> int:
    blocks = [estimate_block(block_of_result(block, "")) for block in event.content]
    return PER_RESULT + estimate_tokens(call_id) + sum(blocks)


def _call_of(event: ToolCall, call_id: str, origin: str) -> Call:
    return Call(id=call_id, name=event.name, arguments=arguments_text(event), origin=origin)


def whole_transcript(entries: Sequence[AnyEntry]) -> ViewTranscript:
    """Return the messages of a stream as if it had never been compacted."""
    whole = [entry for entry in entries if not isinstance(entry, Compaction)]
    return transcript_of(project(whole, PlainStatusFormatter()), whole)


def arguments_text(call: ToolCall) -> str:
    """Return a call's arguments as JSON, or the text that the model sent in place of an object."""
    return call.arguments if isinstance(call.arguments, str) else msgspec.json.encode(call.arguments).decode()


def _answers_in(entries: Iterable[AnyEntry]) -> dict[str, tuple[Answered, ...]]:
    """Return what the person answered while tools ran, by the id of the call's entry."""
    asked: dict[str, InquiryRequest] = {}
    said: dict[str, tuple[Answered, ...]] = {}
    for entry in entries:
        if isinstance(entry, InquiryRequest):
            asked[entry.id] = entry
        elif isinstance(entry, InquiryResponse) and entry.answered_by == "user" and entry.request in asked:
            inquiry = asked[entry.request]
            answered = Answered(question=inquiry.question.text, answer=_answer_text(entry.answer))
            said[inquiry.request] = (*said.get(inquiry.request, ()), answered)
    return said


def _answer_text(answer: object) -> str:
    if isinstance(answer, bool):
        return "yes" if answer else "no"
    return answer if isinstance(answer, str) else msgspec.json.encode(answer).decode()


def _result_meta(
    event: ToolResult, response: ToolCallResponse | None, answers: Mapping[str, tuple[Answered, ...]]
) -> Meta:
    if response is None:
        return Meta()
    said = answers.get(response.request, ())
    facts = response.facts
    digested = None
    if event.content is not response.content and _has_stand_in(event.content, response.content):
        carriers = sorted(carriers_in(response), key=size_in_bytes)
        digested = Digested(sha256=checksum(carriers[-1]) if carriers else "")
    if facts is None and response.duration_ms is None:
        return Meta(digested=digested, said=said)
    told = (
        {}
        if facts is None
        else {name: value for name, value in msgspec.structs.asdict(facts).items() if value is not None}
    )
    return Meta(facts=Facts(**told, duration_ms=response.duration_ms), digested=digested, said=said)


def _has_stand_in(shown: Sequence[Block], original: Sequence[Block]) -> bool:
    """Return whether the view shows a text in place of the tool's content."""
    if len(shown) != len(original):
        return True
    return any(
        isinstance(one, TextBlock) and not (isinstance(other, TextBlock) and _is_same(one, other))
        for one, other in zip(shown, original, strict=True)
    )


def _is_same(one: TextBlock, other: TextBlock) -> bool:
    """Return whether both have the same content; contents of other sizes are not hashed."""
    return one is other or (size_in_bytes(one) == size_in_bytes(other) and checksum(one) == checksum(other))
