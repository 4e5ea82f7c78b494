"""Export a conversation: as one JSON document, as Markdown, as a page, as a bundle, or as files of the original JP.

The document is what the first three are made of; its texts are without secrets unless they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, assert_never

import msgspec

from jp.app.conversations import ReadConversation, read_conversation
from jp.app.options import Options
from jp.app.reports import ContextOfTurn, context_by_turn
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
from jp.conversation.resource import (
    BinaryContent,
    Block,
    Payload,
    Resource,
    ResourceBlock,
    ResourceLink,
    TextBlock,
    TextContent,
    content_of,
)
from jp.conversation.turns import Turn, turns_of, undone
from jp.errors import JpError, UsageError

VERSION = 1
"""The version of the JSON document: it changes when a field does, not when one is added."""


class RequestPart(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="request"):
    """A message of the user."""

    text: str
    at: str = ""
    author: str | None = None


class AttachmentPart(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="attachment"):
    """A snapshot: its text, or its bytes (base64 in JSON); neither where it cannot be read."""

    uri: str
    name: str | None = None
    mime_type: str | None = None
    text: str | None = None
    data: bytes | None = None


class MessagePart(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="message"):
    """A message of the model: Markdown; or structured output, as JSON."""

    text: str
    model: str = ""
    is_data: bool = False


class ReasoningPart(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="reasoning"):
    """The model's reasoning."""

    text: str


class ToolPart(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="tool"):
    """A call and its result. `arguments` is JSON, or what the model sent instead; without a result it never ended."""

    name: str
    arguments: str
    has_result: bool = False
    is_error: bool = False
    duration_ms: int | None = None
    result: tuple[TextPart | AttachmentPart, ...] = ()


class TextPart(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="text"):
    """Text that a tool returned."""

    text: str


class NotePart(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="note"):
    """An event beside what was said: a question of a tool, an answer that was cut, a change of settings."""

    text: str
    is_failure: bool = False


class CompactionPart(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="compaction"):
    """A compaction of the turns `from_turn` to `to_turn`, and the tokens that it freed."""

    from_turn: int
    to_turn: int
    source: str
    freed: int | None = None
    summary: str | None = None


_Noted = ToolCallResponse | InquiryRequest | InquiryResponse | CycleEnd | ConfigDelta | Revert | Unknown
Part = RequestPart | AttachmentPart | MessagePart | ReasoningPart | ToolPart | NotePart | CompactionPart


class ExportedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn. `context` counts the tokens of each kind of content after it; empty where that was not measured."""

    number: int
    is_undone: bool
    parts: tuple[Part, ...]
    context: dict[str, int] = {}
    freed: int = 0


class ExportedConversation(msgspec.Struct, frozen=True, kw_only=True):
    """The document. `redacted`: its texts are without secrets."""

    schema: int
    id: str
    title: str
    created_at: str
    labels: dict[str, str]
    models: tuple[str, ...]
    redacted: bool
    turns: tuple[ExportedTurn, ...]


Format = Literal["md", "json", "html", "bundle"]


def export(options: Options, target: str, form: Format, *, with_secrets: bool = False) -> bytes:
    """Return a conversation in a form: UTF-8 text, or for `bundle` a ZIP file, which has everything, secrets too.

    Raises:
        JpError: there is no such conversation, or it cannot be read.
    """
    read = read_conversation(options, target, lenient=True)
    if form == "bundle":
        return _bundle(read)
    found = document(read, with_secrets=with_secrets)
    match form:
        case "json":
            return msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n"
        case "md":
            return "".join(_markdown(found)).encode("utf-8", "replace")
        case "html":
            from jp.render.page import page

            return page(msgspec.to_builtins(found, builtin_types=(bytes,))).encode("utf-8", "replace")
        case _:
            assert_never(form)


class OriginalFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a conversation as the original JP stores it, in the directory `name`; `omitted` is in words."""

    name: str
    files: dict[str, bytes]
    omitted: str


def export_original(options: Options, target: str) -> OriginalFiles:
    """Return a conversation as files of the original JP, with its secrets.

    Raises:
        JpError: there is no such conversation, or it cannot be read.
    """
    from jp.config.sources import OriginalSettings
    from jp.conversation.original_writer import write_stream
    from jp.workspace.files import read_optional
    from jp.workspace.layout import BASE_CONFIG, METADATA, ORIGINAL_EVENTS
    from jp.workspace.listing import encode_for_original
    from jp.workspace.store import read_base_config

    read = read_conversation(options, target)
    if read.info is None:
        raise UsageError("there is no conversation to export", hint="name one")
    directory = read.info.directory
    stream = write_stream(read.entries, OriginalSettings(read_base_config(directory)), _reader(read))
    base = read_optional(directory / BASE_CONFIG)
    last = next((entry.at for entry in reversed(read.entries) if entry.at), "")
    files = {ORIGINAL_EVENTS: stream.events, METADATA: encode_for_original(read.info.metadata, last)}
    return OriginalFiles(
        name=directory.name,
        files=files if base is None else {**files, BASE_CONFIG: base},
        omitted=", ".join(f"{name} ({count})" for name, count in stream.omitted.items()),
    )


def _reader(read: ReadConversation) -> Callable[[Block], str]:
    """Return a function that reads the text of a block; of one without text, it names the block."""

    def text_of(block: Block) -> str:
        match block:
            case TextBlock():
                return read.loader.load(block).text or ""
            case ResourceBlock(resource=resource):
                return read.loader.load(resource).text or f"[{resource.mime_type or 'data'}: {resource.uri}]"
            case ResourceLink():
                return f"[{block.mime_type or 'link'}: {block.uri}]"
            case _:
                return f"[{block.mime_type}]"

    return text_of


def _bundle(read: ReadConversation) -> bytes:
    from jp.workspace.importing import pack, read_source

    if read.info is None:
        raise UsageError("there is no conversation to export", hint="name one")
    return pack(read_source(read.info.directory))


def document(read: ReadConversation, *, with_secrets: bool = False) -> ExportedConversation:
    """Return a conversation as a document."""
    from jp.app.targets import title_of

    info = read.info
    writer = _Writer(read, with_secrets=with_secrets)
    contexts = {one.turn: one for one in context_by_turn(read)}
    header = next((entry for entry in read.entries if isinstance(entry, Header)), None)
    turns = tuple(writer.turns(contexts))
    labels = {} if info is None else info.metadata.labels
    return ExportedConversation(
        schema=VERSION,
        id=read.id,
        title=writer.clean("" if info is None else title_of(info)),
        created_at="" if header is None else header.created_at,
        labels={writer.clean(name): writer.clean(value) for name, value in labels.items()},
        models=tuple(dict.fromkeys(_models(turns))),
        redacted=not with_secrets,
        turns=turns,
    )


def _models(turns: Sequence[ExportedTurn]) -> Iterator[str]:
    for turn in turns:
        for part in turn.parts:
            if isinstance(part, MessagePart) and part.model:
                yield part.model


class _Writer:
    """Writes the turns, each with what stands before the next one."""

    def __init__(self, read: ReadConversation, *, with_secrets: bool) -> None:
        self._entries = read.entries
        self._load = read.loader.load
        self.clean: Callable[[str], str] = str if with_secrets else _redacted
        self._responses = {entry.request: entry for entry in read.entries if isinstance(entry, ToolCallResponse)}
        self._calls = {entry.id for entry in read.entries if isinstance(entry, ToolCallRequest)}
        self._model = ""
        self._freed: dict[str, int] = {}

    def turns(self, contexts: dict[int, ContextOfTurn]) -> Iterator[ExportedTurn]:
        gone = undone(self._entries)
        turns = turns_of(self._entries)
        self._freed = {name: count for one in contexts.values() for name, count in one.freed_by.items()}
        for turn, entries in _with_overlays(self._entries, turns):
            context = contexts.get(turn.number)
            yield ExportedTurn(
                number=turn.number,
                is_undone=turn.id in gone,
                parts=tuple(part for entry in entries for part in self._parts(entry)),
                context={} if context is None else dict(context.tokens),
                freed=0 if context is None else sum(context.freed_by.values()),
            )

    def _parts(self, entry: AnyEntry) -> Iterator[Part]:
        match entry:
            case ChatRequest():
                yield RequestPart(text=self.clean(entry.content), at=entry.at, author=self._maybe(entry.author))
                yield from (self._attachment(resource) for resource in entry.resources)
            case ChatResponse():
                yield from self._answer(entry)
            case ToolCallRequest():
                yield self._tool(entry)
            case RequestContext():
                self._model = self.clean(f"{entry.provider}/{entry.model}")
            case Compaction():
                yield self._compaction(entry)
            case Header() | TurnStart():
                pass
            case _:
                text, is_failure = self._note(entry)
                if text:
                    yield NotePart(text=self.clean(text), is_failure=is_failure)

    def _note(self, entry: _Noted) -> tuple[str, bool]:
        """Return what is said of an entry, and whether it is a failure; no text where nothing is."""
        text, is_failure = "", False
        match entry:
            case ToolCallResponse():
                is_failure = entry.request not in self._calls
                text = "a result without its call" if is_failure else ""
            case InquiryRequest(question=question):
                text = f"question: {question.text}"
            case InquiryResponse():
                text = f"answer by {entry.answered_by}: {_json(entry.answer)}"
            case CycleEnd(finish=finish, error=error):
                is_failure = error is not None
                text = "" if finish in {"stop", "tools"} else f"{finish} {error or ''}".strip()
            case ConfigDelta(delta=delta):
                text = f"settings: {_json(delta)}"
            case Revert(entries=entries):
                text = f"undone: {len(entries)}"
            case Unknown():
                text = f"an entry of the unknown type {entry.type!r}"
            case _:
                assert_never(entry)
        return text, is_failure

    def _compaction(self, entry: Compaction) -> CompactionPart:
        return CompactionPart(
            from_turn=entry.from_turn,
            to_turn=entry.to_turn,
            source=entry.source,
            freed=self._freed.get(entry.id),
            summary=None if entry.summary is None else self.clean(entry.summary.text),
        )

    def _answer(self, entry: ChatResponse) -> Iterator[Part]:
        if entry.reasoning:
            yield ReasoningPart(text=self.clean(entry.reasoning))
        if entry.message or entry.text:
            yield MessagePart(text=self.clean(entry.message or entry.text or ""), model=self._model)
        elif entry.data is not msgspec.UNSET:
            text = msgspec.json.format(_json(entry.data), indent=2)
            yield MessagePart(text=self.clean(text), model=self._model, is_data=True)

    def _tool(self, call: ToolCallRequest) -> ToolPart:
        arguments = call.arguments
        text = arguments if isinstance(arguments, str) else msgspec.json.format(_json(arguments), indent=2)
        response = self._responses.get(call.id)
        return ToolPart(
            name=self.clean(call.name),
            arguments=self.clean(text),
            has_result=response is not None,
            is_error=response is not None and response.is_error,
            duration_ms=None if response is None else response.duration_ms,
            result=() if response is None else tuple(map(self._block, response.content)),
        )

    def _block(self, block: Block) -> TextPart | AttachmentPart:
        match block:
            case TextBlock():
                return TextPart(text=self._text(block) or "")
            case ResourceBlock(resource=resource):
                return self._attachment(resource)
            case ResourceLink():
                return AttachmentPart(
                    uri=self.clean(block.uri), name=self._maybe(block.name), mime_type=self._maybe(block.mime_type)
                )
            case _:
                try:
                    data = self._load(block).blob
                except JpError:
                    data = None
                return AttachmentPart(uri="", mime_type=self.clean(block.mime_type), data=data)

    def _attachment(self, resource: Resource) -> AttachmentPart:
        try:
            content = content_of(self._load(resource))
        except JpError:
            content = None
        return AttachmentPart(
            uri=self.clean(resource.uri),
            name=self._maybe(resource.name),
            mime_type=self._maybe(resource.mime_type),
            text=self.clean(content.text) if isinstance(content, TextContent) else None,
            data=content.data if isinstance(content, BinaryContent) else None,
        )

    def _text(self, block: Payload) -> str | None:
        try:
            return self.clean(self._load(block).text or "")
        except JpError:
            return None

    def _maybe(self, text: str | None) -> str | None:
        return None if text is None else self.clean(text)


def _redacted(text: str) -> str:
    from jp.context.redaction import redact

    return redact(text).text


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _with_overlays(entries: Sequence[AnyEntry], turns: Sequence[Turn]) -> Iterator[tuple[Turn, list[AnyEntry]]]:
    """Yield each turn with its entries and the overlays that stand before the next one."""
    by_entry = {id(entry): turn for turn in turns for entry in turn.entries}
    found: dict[int, list[AnyEntry]] = {turn.number: [] for turn in turns}
    current: int | None = None
    for entry in entries:
        turn = by_entry.get(id(entry))
        current = current if turn is None else turn.number
        if current is not None:
            found[current].append(entry)
    return ((turn, found[turn.number]) for turn in turns)


def _markdown(found: ExportedConversation) -> Iterator[str]:
    yield f"# {' '.join(found.title.split())}\n"
    for turn in found.turns:
        yield f"\n## Turn {turn.number}{' (undone)' if turn.is_undone else ''}\n"
        for part in turn.parts:
            yield f"\n{_as_markdown(part)}"


def _as_markdown(part: Part | TextPart) -> str:  # noqa: C901 - one case for each kind of part
    from jp.attachment.conversation import fenced

    match part:
        case RequestPart():
            text = f"### User\n\n{part.text}\n"
        case MessagePart():
            text = f"### Assistant\n\n{_answer_as_markdown(part)}\n"
        case ReasoningPart():
            text = "### Reasoning\n\n> " + part.text.replace("\n", "\n> ") + "\n"
        case AttachmentPart():
            text = _attachment_as_markdown(part)
        case TextPart():
            text = fenced(part.text)
        case ToolPart():
            text = _tool_as_markdown(part)
        case NotePart():
            text = f"_{part.text}_\n"
        case CompactionPart():
            text = _compaction_as_markdown(part)
        case _:
            assert_never(part)
    return text


def _answer_as_markdown(part: MessagePart) -> str:
    from jp.attachment.conversation import fenced

    return fenced(part.text, "json") if part.is_data else part.text


def _attachment_as_markdown(part: AttachmentPart) -> str:
    from jp.attachment.conversation import fenced

    content = fenced(part.text) if part.text is not None else f"{len(part.data or b''):,} bytes\n"
    return f"Attachment `{part.uri or part.mime_type}`:\n\n{content}"


def _tool_as_markdown(part: ToolPart) -> str:
    from jp.attachment.conversation import fenced

    result = "\n".join(map(_as_markdown, part.result))
    said = "Error" if part.is_error else "Result" if part.has_result else "No result"
    return f"### Tool `{part.name}`\n\n{fenced(part.arguments, 'json')}\n{said}:\n\n{result}"


def _compaction_as_markdown(part: CompactionPart) -> str:
    freed = "" if part.freed is None else f", {part.freed:,} tokens freed"
    summary = "" if part.summary is None else f"\n{part.summary}\n"
    return f"_Compacted turns {part.from_turn} to {part.to_turn}{freed}_\n{summary}"
