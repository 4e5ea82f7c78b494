"""The `jp` scheme: turns of other conversations."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal, Protocol, assert_never
from urllib.parse import unquote

import msgspec
from msgspec.structs import replace

from jp.attachment.base import AttachmentError, Declaration, MissingSourceError, Resolution, ResolveContext, format_size
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    CycleEnd,
    Event,
    InquiryRequest,
    InquiryResponse,
    JsonObject,
    RequestContext,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
    encode,
)
from jp.conversation.resource import (
    Annotations,
    Block,
    Carrier,
    Resource,
    ResourceBlock,
    ResourceLink,
    TextBlock,
    TextContent,
    checksum,
    content_of,
    size_in_bytes,
)
from jp.conversation.thread import CarrierChange, map_carriers
from jp.conversation.turns import Attempt, Turn, cycles_of, is_blank, turns_of, undone
from jp.errors import JpError
from jp.remedies import Show, phrase

Content = Literal["assistant", "user", "reasoning", "tools"]

CONTENTS: tuple[Content, ...] = ("assistant", "user", "reasoning", "tools")
"""The contents of a turn that can be selected, in canonical order."""

_BY_NAME: dict[str, tuple[Content, ...]] = {
    **{name: (name,) for name in CONTENTS},
    **{name[0]: (name,) for name in CONTENTS},
    "*": CONTENTS,
    "all": CONTENTS,
}

Raw = Literal["no", "entries", "all"]
"""Raw output: entries as stored; `all` puts metadata and base configuration before them."""

_URI = re.compile(r"jp:(?://)?(?:jp-c)?(?P<digits>[0-9]{1,18})/?(?:\?(?P<query>.*))?", re.IGNORECASE | re.DOTALL)
_BOUND = r"(-?[0-9]{1,9})"
_SINGLE = re.compile(_BOUND)
_RANGE = re.compile(rf"{_BOUND}?\.\.{_BOUND}?")
_IS_RANGE = re.compile(r"[0-9.-]+")

FORMS = "write 'jp:ID', or 'jp:ID?select=CONTENT:TURNS', such as 'jp:jp-c17800836875?select=user,assistant:0..3'"
_CONTENT_FORMS = "CONTENT is a list of 'user', 'assistant', 'reasoning' and 'tools', or '*' for all of them."
_TURN_FORMS = "TURNS is N, A..B, A.., ..B or '..', counted from 0; '-N' is the last N turns."


class TurnRange(msgspec.Struct, frozen=True):
    """An inclusive range of turn numbers, from 0. A negative bound counts from the last turn that is not undone."""

    start: int
    end: int

    @property
    def text(self) -> str:
        """Return the canonical text."""
        if self.end == -1 and self.start < 0:
            return str(self.start)
        if self.start == self.end:
            return str(self.start) if self.start >= 0 else f"{self.start}..{self.end}"
        return f"{self.start or ''}..{'' if self.end == -1 else self.end}"

    def of(self, numbers: Sequence[int]) -> tuple[int, ...]:
        """Return the `numbers`, which are sorted, that are in the range."""
        if not numbers:
            return ()
        start = self.start if self.start >= 0 else numbers[max(self.start, -len(numbers))]
        end = self.end
        if end < 0:
            end = numbers[end] if -end <= len(numbers) else -1
        return tuple(number for number in numbers if start <= number <= end)


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed `jp` URI. `digits` are those of an id or the beginning of one; `contents` has canonical order."""

    digits: str
    contents: tuple[Content, ...] = ("assistant",)
    turns: TurnRange = TurnRange(-1, -1)
    raw: Raw = "no"

    @property
    def text(self) -> str:
        """Return contents and turns as a selector."""
        names = "*" if self.contents == CONTENTS else ",".join(name[0] for name in self.contents)
        return f"{names}:{self.turns.text}"

    @property
    def uri(self) -> str:
        """Return the canonical URI, without defaults."""
        default = Selection(digits=self.digits).text
        select = [] if self.text == default else [f"select={self.text}"]
        raw = {"no": [], "entries": ["raw"], "all": ["raw=all"]}[self.raw]
        query = "&".join([*select, *raw])
        return f"jp:jp-c{self.digits}" + (f"?{query}" if query else "")


def parse_selection(uri: str) -> Selection:
    """Parse a URI such as `jp:jp-c17800836875?select=u,a:0..3&raw`, also with `//` after the scheme.

    The selector is that of JP, but turns count from 0 as everywhere in jp.

    Raises:
        AttachmentError: `uri` is malformed.
    """
    match = _URI.fullmatch(uri)
    if match is None:
        raise AttachmentError(f"{uri!r} names no conversation", hint=FORMS)
    selection = Selection(digits=match["digits"])
    seen: set[str] = set()
    for parameter in (match["query"] or "").split("&"):
        if not parameter:
            continue
        name, equals, value = parameter.partition("=")
        if name in seen:
            raise AttachmentError(f"{uri!r} has {name!r} twice", hint=FORMS)
        seen.add(name)
        selection = _with(selection, uri, name, unquote(value) if equals else None)
    return selection


def _with(selection: Selection, uri: str, name: str, value: str | None) -> Selection:
    if name == "select" and value is not None:
        contents, turns = _selector(value, uri)
        return msgspec.structs.replace(selection, contents=contents, turns=turns)
    if name == "raw" and (value or "") in {"", "all"}:
        return msgspec.structs.replace(selection, raw="all" if value else "entries")
    written = name if value is None else f"{name}={value}"
    hint = "'select=CONTENT:TURNS', 'raw' and 'raw=all' are supported"
    raise AttachmentError(f"{uri!r} has {written!r}, which is not supported", hint=hint)


def _selector(text: str, uri: str) -> tuple[tuple[Content, ...], TurnRange]:
    default = Selection(digits="")
    content, colon, turns = text.partition(":")
    if colon:
        return _contents(content, uri), _turns(turns, uri)
    if _IS_RANGE.fullmatch(text):
        return default.contents, _turns(text, uri)
    return _contents(text, uri), default.turns


def _contents(text: str, uri: str) -> tuple[Content, ...]:
    wanted: set[Content] = set()
    for name in text.split(","):
        found = _BY_NAME.get(name.strip().lower())
        if found is None:
            raise AttachmentError(f"{uri!r} selects {name!r}, which no turn has", hint=_CONTENT_FORMS)
        wanted.update(found)
    return tuple(content for content in CONTENTS if content in wanted)


def _turns(text: str, uri: str) -> TurnRange:
    written = text.strip()
    if (single := _SINGLE.fullmatch(written)) is not None:
        number = int(single[1])
        return TurnRange(number, number if number >= 0 else -1)
    if (match := _RANGE.fullmatch(written)) is None:
        raise AttachmentError(f"{uri!r} has {text!r} for its turns", hint=_TURN_FORMS)
    start, end = int(match[1] or 0), int(match[2] or -1)
    if start > end and (start < 0) == (end < 0):
        raise AttachmentError(f"{uri!r} has a range that ends before it begins: {text!r}", hint=_TURN_FORMS)
    return TurnRange(start, end)


_BACKTICKS = re.compile("`+")
_SHORTEST_FENCE = 3
_LINE_FEED = "\n"


class Excerpt(msgspec.Struct, frozen=True, kw_only=True):
    """Selected turns. `load` reads stored content; only content that is shown is loaded."""

    turns: Sequence[Turn]
    contents: Collection[Content]
    load: CarrierChange


def markdown(excerpt: Excerpt) -> Iterator[str]:
    """Yield the Markdown of turns with selected contents, in pieces. Attached resources are only named."""
    shown: set[tuple[str, str]] = set()
    for turn in excerpt.turns:
        pieces = _TurnFormatter(turn, excerpt, shown).pieces()
        first = next(pieces, None)
        if first is not None:
            yield f"\n## Turn {turn.number}\n"
            yield first
            yield from pieces


def fenced(text: str, language: str = "") -> str:
    """Return `text` as a code block whose fence is longer than any in it."""
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(longest + 1, _SHORTEST_FENCE)
    return f"{fence}{language}\n{text.rstrip(_LINE_FEED)}\n{fence}\n"


class _TurnFormatter:
    """Formats one turn. `shown` are the resources that the excerpt has already."""

    def __init__(self, turn: Turn, excerpt: Excerpt, shown: set[tuple[str, str]]) -> None:
        self._turn = turn
        self._selected = excerpt.contents
        self._load = excerpt.load
        self._shown = shown
        self._names = {entry.id: entry.name for entry in turn.entries if isinstance(entry, ToolCallRequest)}
        self._speaker = ""
        self._message = ""  # not shown yet, as the next attempt may continue it
        self._is_cut = False

    def pieces(self) -> Iterator[str]:
        for cycle in cycles_of(self._turn):
            if "user" in self._selected:
                for request in cycle.requests:
                    yield from self._request(request)
            for attempt in cycle.attempts:
                yield from self._attempt(attempt)
            if "tools" in self._selected:
                for response in cycle.responses:
                    yield from self._response(response)
        yield from self._pending()

    def _heading(self, speaker: str) -> Iterator[str]:
        if self._speaker != speaker:
            self._speaker = speaker
            yield f"\n### {speaker}\n"

    def _pending(self) -> Iterator[str]:
        """Yield the message that is not shown yet."""
        message, self._message, self._is_cut = self._message, "", False
        if "assistant" in self._selected and not is_blank(message):
            yield from self._heading("Assistant")
            yield f"\n{message.strip(_LINE_FEED)}\n"

    def _request(self, request: ChatRequest) -> Iterator[str]:
        yield from self._pending()
        yield from self._heading(f"User: {_line(request.author)}" if request.author else "User")
        yield f"\n{request.content.strip(_LINE_FEED)}\n"
        if request.resources:
            names = ", ".join(_code(resource.name or resource.uri) for resource in request.resources)
            yield f"\nAttached: {names}\n"

    def _attempt(self, attempt: Attempt) -> Iterator[str]:
        """Yield the model's output, without calls of a failed attempt, which never ran, and without refused output."""
        finish = None if attempt.end is None else attempt.end.finish
        if finish == "refused":
            return
        for answer in attempt.answers:
            if isinstance(answer, ChatResponse):
                yield from self._answer(answer)
            elif "tools" in self._selected and finish != "error":
                yield from self._call(answer)
        last = attempt.answers[-1] if attempt.answers else None
        is_message = isinstance(last, ChatResponse) and last.message is not None
        self._is_cut = is_message and finish in {"length", "error", "cancelled"}

    def _answer(self, answer: ChatResponse) -> Iterator[str]:
        if answer.reasoning is not None:
            if "reasoning" in self._selected and not is_blank(answer.reasoning):
                yield from () if self._is_cut else self._pending()
                yield from self._heading("Reasoning")
                yield f"\n{answer.reasoning.strip(_LINE_FEED)}\n"
        elif answer.message is not None:
            yield from () if self._is_cut else self._pending()
            self._message, self._is_cut = self._message + answer.message, False
        elif answer.data is not msgspec.UNSET and "assistant" in self._selected:
            yield from self._pending()
            yield from self._heading("Assistant")
            yield "\n" + fenced(_json(answer.data), "json")

    def _call(self, call: ToolCallRequest) -> Iterator[str]:
        yield from self._pending()
        yield from self._heading(f"Call of {_code(call.name)}")
        self._speaker = ""
        arguments = call.arguments if isinstance(call.arguments, str) else _json(call.arguments)
        yield "\n" + fenced(arguments, "json")

    def _response(self, response: ToolCallResponse) -> Iterator[str]:
        yield from self._pending()
        name = self._names.get(response.request, "a tool")
        yield from self._heading(f"{'Error' if response.is_error else 'Result'} of {_code(name)}")
        self._speaker = ""
        for block in response.content:
            yield "\n" + self._block(block)

    def _block(self, block: Block) -> str:
        if isinstance(block, ResourceLink):
            return f"Link: {_code(block.uri)}\n"
        if isinstance(block, TextBlock):
            return self._content(block, "")
        if not isinstance(block, ResourceBlock):
            return self._content(block, block.mime_type)
        resource = block.resource
        identity = (resource.uri, checksum(resource))
        if identity in self._shown:
            return f"{_code(resource.uri)}, unchanged: it stands above\n"
        self._shown.add(identity)
        return f"{_code(resource.uri)}\n\n" + self._content(resource, resource.mime_type or "binary")

    def _content(self, carrier: Carrier, kind: str) -> str:
        content = content_of(self._load(carrier)) if _may_be_text(carrier) else None
        if isinstance(content, TextContent):
            return fenced(content.text)
        return f"({_line(kind)}, {size_in_bytes(carrier):,} bytes)\n"


def _may_be_text(carrier: Carrier) -> bool:
    """Return whether the content may be text; a stored one without a number of characters is not."""
    if isinstance(content_of(carrier), TextContent):
        return True
    return getattr(carrier, "chars", None) is not None


def _line(text: str) -> str:
    return " ".join(text.split())


def _code(text: str) -> str:
    line = _line(text)
    longest = max(map(len, _BACKTICKS.findall(line)), default=0)
    ticks = "`" * (longest + 1)
    return f"{ticks} {line} {ticks}" if longest else f"`{line}`"


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def entries(excerpt: Excerpt) -> Iterator[str]:
    """Yield the selected entries, one a line.

    A provider's opaque `metadata` is removed: it may contain reasoning that was not selected. Attached resources are
    not loaded.
    """
    for turn in excerpt.turns:
        for entry in turn.entries:
            if _is_selected(entry, excerpt.contents):
                yield encode(_plain(entry, excerpt.load)).decode() + "\n"


def _is_selected(entry: Event, wanted: Collection[Content]) -> bool:
    match entry:
        case ChatRequest():
            return "user" in wanted
        case ChatResponse(reasoning=reasoning):
            return ("assistant" if reasoning is None else "reasoning") in wanted
        case ToolCallRequest() | ToolCallResponse() | InquiryRequest() | InquiryResponse():
            return "tools" in wanted
        case TurnStart() | RequestContext() | CycleEnd():
            return len(wanted) == len(CONTENTS)
        case _:
            assert_never(entry)


def _plain(entry: Event, load: CarrierChange) -> Event:
    if isinstance(entry, (ChatResponse, ToolCallRequest)):
        return replace(entry, metadata=None)
    if isinstance(entry, ToolCallResponse):
        loaded = map_carriers(entry, load)
        return loaded if isinstance(loaded, ToolCallResponse) else entry
    return entry


_LISTED = 10
_LIST = phrase("list the conversations with `", Show("conversations"), "`")


class StoredConversation(msgspec.Struct, frozen=True, kw_only=True):
    """A stored conversation with all turns that can be attached. `modified` is in RFC 3339, UTC.

    `load` reads content from the blob store. `metadata` is that of its file.
    """

    title: str
    modified: str
    entries: Sequence[AnyEntry]
    load: CarrierChange
    metadata: JsonObject


class ConversationReader(Protocol):
    """Reads the conversations of a workspace. Its methods block, and are called in a thread."""

    def ids(self) -> Collection[str]:
        """Return the ids of all conversations, such as `jp-c17800836875`.

        Raises:
            JpError: they cannot be listed.
        """
        ...

    def read(self, conversation: str) -> StoredConversation:
        """Return the conversation with this id; of the current one, only the turns before the current turn.

        Raises:
            JpError: it does not exist, or is not readable.
        """
        ...

    def base_config(self, conversation: str) -> JsonObject:
        """Return the configuration with which it was created.

        Raises:
            JpError: it cannot be read.
        """
        ...


class ConversationHandler:
    """The handler of `jp`: selected turns of a conversation, as Markdown or as stored, without compaction."""

    def __init__(self, reader: ConversationReader) -> None:
        self._reader = reader

    def canonical(self, uri: str, context: ResolveContext) -> str:
        """Return the URI with the whole id and the shortest selector.

        Raises:
            AttachmentError: `uri` is malformed, or several ids begin with its digits.
        """
        selection = parse_selection(uri)
        found = self._matching(selection, uri)
        digits = found[0] if found else selection.digits
        return msgspec.structs.replace(selection, digits=digits).uri

    def _matching(self, selection: Selection, written: str) -> list[str]:
        """Return the digits of the selected id; none if there is no such conversation."""
        try:
            digits = [conversation.removeprefix("jp-c") for conversation in self._reader.ids()]
        except JpError as error:
            raise _failure(written, error) from error
        if selection.digits in digits:
            return [selection.digits]
        found = sorted((one for one in digits if one.startswith(selection.digits)), key=int, reverse=True)
        if len(found) > 1:
            names = ", ".join(f"jp-c{one}" for one in found[:_LISTED])
            more = f", and {len(found) - _LISTED:,} more" if len(found) > _LISTED else ""
            message = f"{written!r} is the beginning of {len(found):,} conversations: {names}{more}"
            raise AttachmentError(message, hint="give the whole id")
        return found

    async def resolve(
        self, declaration: Declaration, context: ResolveContext, *, excludes: Sequence[Declaration] = ()
    ) -> Resolution:
        """Read the conversation in a thread, as a log may be large.

        Raises:
            AttachmentError: see `AttachmentHandler.resolve`.
        """
        exclude = next((exclude for exclude in excludes if exclude.uri == declaration.uri), None)
        if exclude is not None:
            notice = f"{declaration.written!r} attaches nothing: {exclude.written!r} excludes it"
            return Resolution(resources=(), notices=(notice,))

        from anyio.to_thread import run_sync

        def read() -> Resource:
            return self._read(declaration, context)

        return Resolution(resources=(await run_sync(read, abandon_on_cancel=True),))

    def _read(self, declaration: Declaration, context: ResolveContext) -> Resource:
        selection = parse_selection(declaration.uri)
        written = declaration.written
        found = self._matching(selection, written)
        if not found:
            message = f"{written!r}: there is no conversation 'jp-c{selection.digits}' here"
            raise MissingSourceError(message, hint=_LIST)
        conversation = f"jp-c{found[0]}"
        try:
            stored = self._reader.read(conversation)
            excerpt = _excerpt(stored, selection, conversation, written)
            head = self._head(stored, selection, conversation)
            text = _bounded(_pieces(head, excerpt, selection), declaration, context)
        except AttachmentError:
            raise
        except JpError as error:
            raise _failure(written, error) from error
        if not text:
            raise _nothing(excerpt, selection, conversation, written)
        return Resource(
            uri=msgspec.structs.replace(selection, digits=found[0]).uri,
            mime_type="text/markdown" if selection.raw == "no" else "application/x-ndjson",
            annotations=Annotations(last_modified=stored.modified),
            name=f"{conversation} {selection.text}",
            title=stored.title,
            text=text,
        )

    def _head(self, stored: StoredConversation, selection: Selection, conversation: str) -> str:
        """Return the text before the turns."""
        if selection.raw == "no":
            title = f"# {' '.join(stored.title.split())}\n\n" if stored.title else ""
            return f"{title}Turns of the conversation {conversation}.\n"
        if selection.raw == "entries":
            return ""
        head = {"id": conversation, "metadata": stored.metadata, "base_config": self._reader.base_config(conversation)}
        return msgspec.json.encode(head).decode() + "\n"


def _failure(written: str, error: JpError) -> AttachmentError:
    return AttachmentError(phrase(f"{written!r} cannot be read: ", error.message), hint=error.hint or _LIST)


def _excerpt(stored: StoredConversation, selection: Selection, conversation: str, written: str) -> Excerpt:
    """Return the selected turns that are not undone.

    Raises:
        AttachmentError: there is no such turn.
    """
    gone = undone(stored.entries)
    present = [turn for turn in turns_of(stored.entries) if turn.id not in gone]
    if not present:
        message = f"{written!r}: the conversation {conversation!r} has no turn that could be attached"
        raise AttachmentError(message, hint=phrase("a turn cannot attach itself. ", _LIST))
    chosen = set(selection.turns.of([turn.number for turn in present]))
    if not chosen:
        message = f"{written!r}: the conversation {conversation!r} has no turns {selection.turns.text!r}"
        raise AttachmentError(message, hint=f"its turns are {present[0].number} to {present[-1].number}")
    turns = [turn for turn in present if turn.number in chosen]
    return Excerpt(turns=turns, contents=selection.contents, load=stored.load)


def _pieces(head: str, excerpt: Excerpt, selection: Selection) -> Iterator[str]:
    """Yield the whole text; nothing if the turns have none of the selected contents."""
    pieces = markdown(excerpt) if selection.raw == "no" else entries(excerpt)
    first = next(pieces, None)
    if first is not None:
        yield head
        yield first
        yield from pieces


def _bounded(pieces: Iterable[str], declaration: Declaration, context: ResolveContext) -> str:
    """Return the pieces as one text.

    Raises:
        AttachmentError: the text has more than the maximum of one resource.
    """
    taken: list[str] = []
    size = 0
    for piece in pieces:
        taken.append(piece)
        size += len(piece.encode())
        if size > context.max_bytes:
            message = (
                f"{declaration.written!r} has more than {format_size(context.max_bytes)}, the most of an attachment"
            )
            raise AttachmentError(message, hint="select fewer turns: '?select=user,assistant:-3' takes the last three")
    return "".join(taken)


def _nothing(excerpt: Excerpt, selection: Selection, conversation: str, written: str) -> AttachmentError:
    numbers = [turn.number for turn in excerpt.turns]
    which = f"turn {numbers[0]}" if len(numbers) == 1 else f"turns {numbers[0]} to {numbers[-1]}"
    wanted = ", ".join(selection.contents)
    message = f"{written!r} selects nothing: of {wanted} there is nothing in {which} of {conversation!r}"
    return AttachmentError(message, hint="'?select=*:..' takes everything of every turn")
