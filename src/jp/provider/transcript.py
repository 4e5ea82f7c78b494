"""The events of a thread as every request is rendered from them: in order, with results, in readable form. Pure."""

from __future__ import annotations

import binascii
from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import is_, ne
from typing import Generic, Protocol, Self, TypeVar, assert_never

import msgspec

from jp.conversation.resource import (
    INTERRUPTED_CONTENT,
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
    framed,
    in_one_line,
    mark_of,
)
from jp.conversation.thread import (
    AssistantData,
    AssistantReasoning,
    AssistantText,
    NamedCall,
    ReferenceBlock,
    Thread,
    ToolCall,
    ToolResult,
    UserResource,
    UserText,
    ViewEvent,
    count_unchanged,
)
from jp.provider.errors import ProviderError

_LONGEST_NAME = 128

NOT_SHOWN = "[Earlier messages are not shown.]"
"""First message of a conversation that begins with the assistant, for providers that require the user first."""


class WireCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call under an id that no other call of the request has."""

    wire_id: str
    call: ToolCall


class WireResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a call; of one that has none, that it was interrupted."""

    wire_id: str
    call: ToolCall
    content: tuple[Block, ...]
    is_error: bool


WireEvent = UserText | UserResource | AssistantText | AssistantReasoning | AssistantData | WireCall | WireResult


def thought(text: str) -> str:
    """Return reasoning as text, for servers that are set to be given it so."""
    return f"<think>\n{text}\n</think>\n\n"


def arguments_of(call: ToolCall) -> dict[str, object]:
    """Return a call's arguments; a value that is not an object is wrapped in one."""
    return call.arguments if isinstance(call.arguments, dict) else {"invalid_json": call.arguments}


def request_of(event: UserText | UserResource) -> tuple[str, int]:
    """Return the request of the user that an event belongs to."""
    return event.origin, event.turn


_NO_REQUEST = ("", -1)


def newest_request(events: Sequence[ViewEvent], before: tuple[str, int] = _NO_REQUEST) -> tuple[str, int]:
    """Return the request to be answered, or the one `before`; messages of jp on the user's behalf do not count."""
    for event in reversed(events):
        if isinstance(event, UserResource) or (isinstance(event, UserText) and not event.synthetic):
            return request_of(event)
    return before


def plain_id(call_id: str, number: int = 1) -> str:
    """Return an id of characters that every provider accepts: ASCII letters, digits, `_` and `-`.

    A `number` greater than 1 means that `number - 1` earlier calls had this id.
    """
    return (_plain(call_id) or "call") + ("" if number == 1 else f"_{number}")


def plain_name(name: str) -> str:
    """Return a tool name that every provider accepts, for any name in a log: such a tool may no longer exist."""
    plain = _plain(name) or "tool"
    return (plain if plain[0].isalpha() or plain[0] == "_" else f"_{plain}")[:_LONGEST_NAME]


def _plain(text: str) -> str:
    return "".join(c if c in "_-" or (c.isascii() and c.isalnum()) else "_" for c in text)


class _Builder(Protocol):
    def add(self, event: WireEvent, /) -> None: ...

    def fork(self) -> Self: ...


B = TypeVar("B", bound=_Builder)


class IncrementalMessages(Generic[B]):
    """Builds the messages of a thread that grows: only events that were added are built.

    The messages up to the last answer that followed a tool's result are final. A thread with other settings, or whose
    final events are other objects, is built from its beginning. The result is what a new builder would give.

    Builders get the events in wire order. The resources of a request stand before its text: what is asked comes after
    what it is about. Every call is answered before the user speaks again, in the order of the calls; a result without a
    call is dropped. `valid_id` makes of the id that a model gave one that the provider takes, another one for every
    number: ids that repeat are numbered.
    """

    def __init__(self, valid_id: Callable[[str, int], str] = plain_id) -> None:
        self._valid_id = valid_id
        self._builder: B | None = None
        self._base: tuple[Thread, tuple[str, int]] | None = None
        self._events: tuple[ViewEvent, ...] = ()
        self._newest = _NO_REQUEST  # in the final events
        self._ids = _CallIds(valid_id)
        self._names: dict[str, str] = {}

    def build(self, thread: Thread, create: Callable[[], B]) -> B:
        """Return a builder of its own to which all events of `thread` were added. `create` makes an empty one."""
        builder, events = self._builder, thread.events[len(self._events) :]
        base = (msgspec.structs.replace(thread, events=()), newest_request(events, self._newest))
        self._builder = None  # an event that cannot be built leaves nothing behind
        if builder is None or base != self._base or not self._goes_on(thread.events, events):
            builder, events = create(), thread.events
            self._events, self._newest, self._ids, self._names = (), _NO_REQUEST, _CallIds(self._valid_id), {}
            base = (base[0], newest_request(events))
        final = _final_part(events)
        results = _results_in(events)
        first, names = _wire_ids(events[:final], self._ids)
        self._names.update(names)
        second, names = _wire_ids(events[final:], self._ids.fork())
        names = ChainMap(names, self._names)
        for event in _in_order(events[:final], results, first, names):
            builder.add(event)
        self._builder, self._base, self._events = builder, base, self._events + events[:final]
        self._newest = newest_request(events[:final], self._newest)
        last = builder.fork()
        for event in _in_order(events[final:], results, second, names):
            last.add(event)
        return last

    def _goes_on(self, events: Sequence[ViewEvent], added: Sequence[ViewEvent]) -> bool:
        """Return whether `events` begin with those that are final, and nothing that was added belongs to one."""
        if len(events) < len(self._events) or not all(map(is_, self._events, events)):
            return False
        calls = {event.origin for event in added if isinstance(event, ToolCall)}
        return calls.issuperset([event.call for event in added if isinstance(event, ToolResult)])


R = TypeVar("R")

_POOLED = 2


class CachePool(Generic[R]):
    """Keeps a render cache for each of two threads that grow.

    They are the thread of a conversation, and the one without the reasoning that a vendor would refuse.
    """

    def __init__(self, create: Callable[[], R]) -> None:
        self._create = create
        self._pool: list[tuple[Sequence[ViewEvent], R]] = []

    def take(self, thread: Thread) -> R:
        """Return the cache of the thread that `thread` goes on with, or a new one in place of the older one."""
        found = next((item for item in self._pool if _goes_on(item[0], thread.events)), None)
        cache = self._create() if found is None else found[1]
        self._pool = [(thread.events, cache), *(item for item in self._pool if item is not found)][:_POOLED]
        return cache


def _goes_on(before: Sequence[ViewEvent], events: Sequence[ViewEvent]) -> bool:
    """Return whether `events` begin as those before them; a request to continue is only at their end."""
    same = count_unchanged(before, events)
    return same + count_unchanged(before[same:], events[same:], ne) >= len(before) - 1


def _final_part(events: Sequence[ViewEvent]) -> int:
    """Return the position after which only the last answer to tools' results, and what follows it, are."""
    for position in range(len(events) - 1, 0, -1):
        if isinstance(events[position - 1], ToolResult) and not isinstance(events[position], ToolResult):
            return position
    return 0


def _results_in(events: Iterable[ViewEvent]) -> dict[str, list[ToolResult]]:
    results: dict[str, list[ToolResult]] = {}
    for event in events:
        if isinstance(event, ToolResult):
            results.setdefault(event.call, []).append(event)
    return results


def _in_order(
    events: Sequence[ViewEvent],
    results: Mapping[str, list[ToolResult]],
    wire_ids: Iterable[str],
    names: Mapping[str, str],
) -> Iterator[WireEvent]:
    upcoming = iter(wire_ids)
    pending: list[WireCall] = []
    for event in _ordered(events):
        if isinstance(event, (UserText, UserResource, ToolResult)):
            yield from _answers(pending, results, names)
            pending.clear()
        if isinstance(event, ToolCall):
            pending.append(WireCall(wire_id=next(upcoming), call=_named(event)))
            yield pending[-1]
        elif isinstance(event, UserText) and event.named is not None:
            yield msgspec.structs.replace(event, text=_renamed(event.text, event.named, names))
        elif not isinstance(event, ToolResult):
            yield event
    yield from _answers(pending, results, names)


def _named(call: ToolCall) -> ToolCall:
    name = plain_name(call.name)
    return call if name == call.name else msgspec.structs.replace(call, name=name)


def _renamed(text: str, named: NamedCall, wire_ids: Mapping[str, str]) -> str:
    """Return `text` with the id that a call has on the wire; a URI, which may look like one, stands before it."""
    before, found, after = text.rpartition(f"`{named.call_id}`")
    return f"{before}`{wire_ids[named.call]}`{after}" if found and named.call in wire_ids else text


def _content(blocks: Sequence[Block], wire_ids: Mapping[str, str]) -> tuple[Block, ...]:
    return tuple(
        msgspec.structs.replace(block, text=_renamed(block.text, block.named, wire_ids))
        if isinstance(block, ReferenceBlock) and block.text is not None
        else block
        for block in blocks
    )


def _answers(
    calls: Iterable[WireCall], results: Mapping[str, list[ToolResult]], wire_ids: Mapping[str, str]
) -> Iterator[WireResult]:
    for called in calls:
        waiting = results.get(called.call.origin)
        result = waiting.pop(0) if waiting else None
        yield WireResult(
            wire_id=called.wire_id,
            call=called.call,
            content=INTERRUPTED_CONTENT if result is None else _content(result.content, wire_ids),
            is_error=result is None or result.is_error,
        )


def _ordered(events: Iterable[ViewEvent]) -> Iterator[ViewEvent]:
    held: list[UserText] = []
    for event in events:
        is_request = isinstance(event, (UserText, UserResource))
        if held and not (is_request and request_of(event) == request_of(held[0])):
            yield from held
            held.clear()
        if isinstance(event, UserText):
            held.append(event)
        else:
            yield event
    yield from held


def _wire_ids(events: Iterable[ViewEvent], ids: _CallIds) -> tuple[list[str], dict[str, str]]:
    """Return the ids of the calls in order, and by their origins: a note can name a call that comes after it."""
    calls = [event for event in events if isinstance(event, ToolCall)]
    wire_ids = [ids.take(call.call_id) for call in calls]
    return wire_ids, dict(zip((call.origin for call in calls), wire_ids, strict=True))


class _CallIds:
    """Ids on the wire: the provider's own where they are valid and new."""

    def __init__(self, valid_id: Callable[[str, int], str]) -> None:
        self._valid_id = valid_id
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}

    def take(self, call_id: str) -> str:
        base = self._valid_id(call_id, 1)
        # Counting on from where the last one of this name ended: an id may repeat in every turn of a long stream.
        number = self._numbers.get(base, 0) + 1
        while (wire_id := self._valid_id(call_id, number)) in self._taken:
            number += 1
        self._numbers[base] = number
        self._taken.add(wire_id)
        return wire_id

    def fork(self) -> _CallIds:
        """Return the same ids; those taken from the fork are not taken here."""
        found = _CallIds(self._valid_id)
        found._taken, found._numbers = set(self._taken), dict(self._numbers)
        return found


PDF = "application/pdf"
IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_SPELLINGS = {"image/jpg": "image/jpeg"}

SILENT_FAILURE = "The tool failed without saying why."


class TextPart(msgspec.Struct, frozen=True):
    """Text as the model reads it."""

    text: str


class Media(msgspec.Struct, frozen=True, kw_only=True):
    """An image, a document or other data that is not text, of a type that the model accepts."""

    data: bytes
    media_type: str
    name: str

    @property
    def base64(self) -> str:
        """The data in base64."""
        return binascii.b2a_base64(self.data, newline=False).decode()

    @property
    def data_url(self) -> str:
        """The data as a `data:` URL."""
        return f"data:{self.media_type};base64,{self.base64}"


ContentPart = TextPart | Media


def media_type_of(mime_type: str | None) -> str:
    """Return a media type in lower case without its parameters."""
    bare = (mime_type or "").partition(";")[0].strip().lower()
    return _SPELLINGS.get(bare, bare)


def at_hand(carrier: Carrier, name: str) -> str | bytes:
    """Return the content of a resource or a block.

    Raises:
        ProviderError: the content has not been loaded.
    """
    content = content_of(carrier)
    match content:
        case TextContent(text=text):
            return text
        case BinaryContent(data=data):
            return data
        case StoredContent():
            message = f"the content of {name!r} has not been read"
            raise ProviderError(message, kind="other")
        case _:
            assert_never(content)


def shown_of(resource: Resource) -> str | bytes:
    """Return the content of a resource for the model: `formatted` before the content itself."""
    return at_hand(resource, resource.uri) if resource.formatted is None else resource.formatted


def title_of(resource: Resource) -> str:
    """Return the title of a resource, in one line."""
    return in_one_line(resource.title or resource.name or resource.uri)


def empty_attachment(resource: Resource) -> str:
    """Return the note for an attachment without content, which no provider accepts."""
    return f"{title_of(resource)} ({in_one_line(resource.uri)}) is attached and empty."


def not_shown(name: str, mime_type: str | None, size: int) -> str:
    """Return the note in place of content that the model cannot be shown; `size` is in bytes."""
    return f"[{in_one_line(name)}: {in_one_line(mime_type or 'binary')}, {size} bytes, cannot be shown to this model]"


def not_taken(resource: Resource, provider: str, types: str) -> ProviderError:
    """Return the error for a new attachment that has none of the `types` that a provider accepts, in words."""
    message = f"{resource.uri!r} is {resource.mime_type or 'binary'!r}, which {provider} does not accept"
    return ProviderError(message, kind="unsupported", hint=f"{types} can be attached: ask again without it")


def attachment(resource: Resource, *, takes: Collection[str]) -> Iterator[ContentPart] | None:
    """Yield an attached resource for providers without documents of their own, with its text between tags.

    `takes` are the media types that the model accepts besides text. None if this one has no such type.
    """
    shown = shown_of(resource)
    if not shown.strip():
        return iter((TextPart(empty_attachment(resource)),))
    if isinstance(shown, str):
        return iter((TextPart(_tagged(resource, shown)),))
    media_type = media_type_of(resource.mime_type)
    if media_type not in takes:
        return None
    media = Media(data=shown, media_type=media_type, name=title_of(resource))
    return iter((TextPart(f"{title_of(resource)} ({in_one_line(resource.uri)}):"), media))


def _tagged(resource: Resource, text: str) -> str:
    title = resource.title or resource.name
    # Always an entity: earlier requests of a conversation must keep their bytes.
    named = {"uri": resource.uri, "title": title, "description": resource.description}
    return framed(
        "attachment", {key: (value or "").replace("&", "&amp;") for key, value in named.items()}, text, mark_of((text,))
    )


def result(content: Sequence[Block], *, takes: Collection[str], is_error: bool) -> list[ContentPart]:
    """Return the content of a tool result, possibly empty, with notes in place of what the model cannot be shown.

    `takes` are the media types that a result may contain besides text; an error contains only text.
    """
    mark = None if len(content) == 1 else mark_of([*_texts(content)])
    pieces = [piece for block in content for piece in _block(block, takes=takes, mark=mark)]
    if is_error:
        pieces = [
            piece if isinstance(piece, TextPart) else TextPart(f"[{_kind(piece.media_type)}]") for piece in pieces
        ]
    seen = [piece for piece in pieces if isinstance(piece, Media) or piece.text.strip()]
    return seen or ([TextPart(SILENT_FAILURE)] if is_error else [])


def _kind(media_type: str) -> str:
    return "document" if media_type == PDF else media_type.partition("/")[0]


def _texts(content: Sequence[Block]) -> Iterator[str]:
    """Yield every text of a result as the model reads it."""
    for block in content:
        match block:
            case TextBlock():
                yield str(at_hand(block, "text")) if block.formatted is None else block.formatted
            case ResourceBlock(resource=resource):
                shown = shown_of(resource)
                yield shown if isinstance(shown, str) else ""
            case ImageBlock() | AudioBlock():
                yield block.formatted or ""
            case ResourceLink():
                pass
            case _:
                assert_never(block)


def _block(block: Block, *, takes: Collection[str], mark: str | None) -> Iterator[ContentPart]:
    match block:
        case TextBlock():
            yield TextPart(str(at_hand(block, "text")) if block.formatted is None else block.formatted)
        case ResourceBlock(resource=resource):
            yield from _delivered(resource, takes=takes, mark=mark)
        case ImageBlock(formatted=None) | AudioBlock(formatted=None):
            yield _media(at_hand(block, block.mime_type), block.mime_type, "content", takes)
        case ImageBlock(formatted=words) | AudioBlock(formatted=words):
            yield TextPart(words or "")
        case ResourceLink():
            name = in_one_line(block.title or block.name or "")
            uri = in_one_line(block.uri)
            yield TextPart(f"[resource {name}: {uri}]" if name else f"[resource {uri}]")
        case _:
            assert_never(block)


def _delivered(resource: Resource, *, takes: Collection[str], mark: str | None) -> Iterator[ContentPart]:
    """Yield a resource that a tool returned; beside other blocks (`mark`) with its name."""
    shown = shown_of(resource)
    if isinstance(shown, str):
        yield TextPart(shown if mark is None else framed("resource", {"uri": resource.uri}, shown, mark))
        return
    if mark is not None:
        yield TextPart(f"{in_one_line(resource.uri)}:")
    yield _media(shown, resource.mime_type, in_one_line(resource.uri), takes)


def _media(data: str | bytes, mime_type: str | None, name: str, takes: Collection[str]) -> ContentPart:
    """Return an image or a document that a tool returned, or a note in place of any other type.

    A tool's output must not make a conversation unsendable.
    """
    media_type = media_type_of(mime_type)
    if isinstance(data, bytes) and data and media_type in takes:
        return Media(data=data, media_type=media_type, name=name)
    return TextPart(not_shown(name, mime_type, len(data)))
