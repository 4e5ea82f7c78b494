"""Reader of one response: bytes to events to parts, with bounds on everything a server sends. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar, assert_never

import msgspec

from jp.conversation.entries import InputChange, Usage
from jp.provider.base import (
    DataDelta,
    Finished,
    Framing,
    Part,
    ReasoningDelta,
    ResponseDecoder,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallStart,
    UsageReport,
)
from jp.provider.errors import ProviderError

MAX_EVENT_BYTES = 16 * 1024 * 1024
"""Largest event: no provider sends a larger one, and a server that never ends a line must not fill the memory."""

_MOST_DIGITS = 18
"""Longest number of milliseconds in a `retry` field."""

_BOM = b"\xef\xbb\xbf"


class ServerSentEvent(msgspec.Struct, frozen=True):
    """One event. `retry` is in milliseconds; `id` is the last one that the stream has set."""

    event: str
    data: bytes
    id: str = ""
    retry: int | None = None


class Frames(Protocol):
    """A splitter of a response into events."""

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """Return the events that more bytes complete.

        Raises:
            ProviderError: an event is too long (kind `output_limit`), or the bytes are damaged.
        """
        ...

    def close(self) -> list[ServerSentEvent]:
        """Return the unfinished event at the end of the stream; its data may be cut."""
        ...


class _Lines:
    """Splitter of bytes into lines that end with LF, linear in the bytes."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._pieces: list[bytes] = []
        self._held = 0

    def feed(self, data: bytes) -> list[bytes]:
        lines = data.split(b"\n")
        rest = lines.pop()
        if lines and self._pieces:
            lines[0] = b"".join((*self._pieces, lines[0]))
            self._pieces.clear()
            self._held = 0
        if rest:
            self._pieces.append(rest)
            self._held += len(rest)
            check_size(self._held, self._max_bytes)
        return lines

    def close(self) -> bytes:
        """Return the last line if it has no line end."""
        rest = b"".join(self._pieces)
        self._pieces.clear()
        return rest


def check_size(size: int, max_bytes: int) -> None:
    """Check the size of an event.

    Raises:
        ProviderError: it is too long (kind `output_limit`).
    """
    if size > max_bytes:
        message = f"the server sent an event of more than {max_bytes} bytes"
        raise ProviderError(message, kind="output_limit")


class SseDecoder:
    """Server-sent events as the HTML standard defines them.

    Lines end with LF, CRLF or CR. Events without data are skipped. Unlike in the standard, `close` returns the last
    event even if no blank line follows it.
    """

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_event_bytes = max_event_bytes
        self._lines = _Lines(max_event_bytes)
        self._started = False
        self._after_cr = False
        self._event = ""
        self._data: list[bytes] = []
        self._size = 0
        self._id = ""
        self._retry: int | None = None

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """Return the events that more bytes complete.

        Raises:
            ProviderError: an event is too long (kind `output_limit`).
        """
        if data and (self._after_cr or b"\r" in data):
            data = self._unify(data)
        events: list[ServerSentEvent] = []
        for line in self._lines.feed(data):
            self._take(line, events)
        return events

    def close(self) -> list[ServerSentEvent]:
        """Return the unfinished event at the end of the stream; its data may be cut."""
        events: list[ServerSentEvent] = []
        if rest := self._lines.close():
            self._take(rest, events)
        self._dispatch(events)
        return events

    def _unify(self, data: bytes) -> bytes:
        """Return `data` with LF for every line end.

        A CR ends its line at once: the LF after it may arrive much later.
        """
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
        self._after_cr = data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _take(self, line: bytes, events: list[ServerSentEvent]) -> None:
        if not self._started:
            self._started = True
            line = line.removeprefix(_BOM)
        if not line:
            self._dispatch(events)
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
            self._size += len(value)
            check_size(self._size, self._max_event_bytes)
        elif name == b"event":
            self._event = value.decode(errors="replace")
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode(errors="replace")
        elif name == b"retry" and value.isdigit() and len(value) <= _MOST_DIGITS:
            self._retry = int(value)

    def _dispatch(self, events: list[ServerSentEvent]) -> None:
        if self._data:
            events.append(ServerSentEvent(self._event, b"\n".join(self._data), self._id, self._retry))
        self._event = ""
        self._data = []
        self._size = 0
        self._retry = None


class NdjsonDecoder:
    """Newline-delimited JSON: each line is an event without a name. Blank lines are skipped."""

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._lines = _Lines(max_event_bytes)

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """Return the lines that more bytes complete.

        Raises:
            ProviderError: a line is too long (kind `output_limit`).
        """
        return [ServerSentEvent("", line) for raw in self._lines.feed(data) if (line := raw.strip())]

    def close(self) -> list[ServerSentEvent]:
        """Return the unfinished line at the end of the stream, which may be cut."""
        rest = self._lines.close().strip()
        return [ServerSentEvent("", rest)] if rest else []


class WholeDecoder:
    """A response that is one JSON value: one event at the end."""

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_event_bytes = max_event_bytes
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """Add more bytes; they complete nothing.

        Raises:
            ProviderError: the response is too long (kind `output_limit`).
        """
        self._pieces.append(data)
        self._size += len(data)
        check_size(self._size, self._max_event_bytes)
        return []

    def close(self) -> list[ServerSentEvent]:
        """Return the whole value, which may be cut."""
        return [ServerSentEvent("", b"".join(self._pieces))] if self._size else []


UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Exceptions of decoding: not JSON, another type, not UTF-8, or nested too deeply."""

T = TypeVar("T")

_changes = msgspec.json.Decoder(list[dict[str, Any]] | None)
_raws = msgspec.json.Decoder(msgspec.Raw)


def decode_or_none(decoder: msgspec.json.Decoder[T], data: bytes | str | msgspec.Raw) -> T | None:
    """Return the value in JSON, None if it is malformed or of another type."""
    try:
        return decoder.decode(data)
    except UNREADABLE:
        return None


_MOST_TOKENS = 2**53 - 1
"""Largest count of tokens: every JSON parser reads it exactly."""


def unreadable_error(provider: str, what: str = "event") -> ProviderError:
    """Return the error for a needed event that cannot be read; a retry may help."""
    article = "an" if what[0] in "aeiou" else "a"
    return ProviderError(f"{provider} sent {article} {what} that cannot be read", kind="transient")


def text_of(raw: msgspec.Raw) -> str:
    """Return JSON as text, with bytes that are not UTF-8 replaced: it has not been validated yet."""
    return bytes(raw).decode(errors="replace")


_texts = msgspec.json.Decoder(str)


def arguments_text(raw: msgspec.Raw) -> str:
    """Return the text of arguments that were sent as a string, as JSON, or not at all."""
    if bytes(raw) == b"null":
        return ""
    text = decode_or_none(_texts, raw)
    return text_of(raw) if text is None else text


def usage_from_counts(
    *,
    prompt: int | None,
    output: int | None,
    cache_read: int | None = None,
    cache_write: int | None = None,
    reasoning: int | None = None,
) -> Usage:
    """Return tokens in classes that do not overlap, from counts that do.

    Args:
        prompt: the input, including cache reads and writes.
        output: the output, including reasoning.
        cache_read: tokens read from a cache.
        cache_write: tokens written to a cache.
        reasoning: tokens of reasoning.

    Missing and implausible counts are 0.
    """
    read, write, out = _tokens(cache_read), _tokens(cache_write), _tokens(output)
    return Usage(
        input=max(0, _tokens(prompt) - read - write),
        output=out,
        cache_read=read,
        cache_write=write,
        # Some report more reasoning than output: the count before summarizing it.
        reasoning=min(_tokens(reasoning), out),
    )


def _tokens(count: int | None) -> int:
    return min(max(0, count or 0), _MOST_TOKENS)


def bounded_usage(usage: Usage) -> Usage:
    """Return `usage` with 0 for implausible counts."""
    return Usage(**{name: _tokens(getattr(usage, name)) for name in Usage.__struct_fields__})


def input_changes(raw: msgspec.Raw) -> tuple[InputChange, ...] | None:
    """Return the `input_transformations` of a response, None if it has none that are valid.

    Anthropic has a `type` and a `path`, OpenAI a `type`, an `action` and an `id` (their SDKs' types, 2026-11-22).
    """
    found = decode_or_none(_changes, raw)
    if found is None:
        return None
    return tuple(
        InputChange(
            type="_".join(str(each[name]) for name in ("type", "action") if each.get(name)),
            path=str(each.get("path") or each.get("id") or ""),
            reason=str(each.get("reason") or ""),
        )
        for each in found
    )


_OPENING, _CLOSING = "<think>", "</think>"


class Split(msgspec.Struct, frozen=True):
    """The reasoning and the message in a piece of text."""

    reasoning: str = ""
    text: str = ""


def _partial_tag_length(text: str, tag: str) -> int:
    """Return the length of the longest end of `text` that may begin `tag`."""
    return next((size for size in range(min(len(tag) - 1, len(text)), 0, -1) if text.endswith(tag[:size])), 0)


class ThinkSplitter:
    """Splitter of one streamed text into reasoning and message. Only tags at the very beginning count."""

    def __init__(self) -> None:
        self._held = ""
        self._state = self._at_start

    def feed(self, text: str) -> Split:
        """Add to the text, and return the part that can be assigned."""
        self._held += text
        return self._state()

    def finish(self) -> Split:
        """Return the rest of the text; reasoning without an end tag is still reasoning."""
        rest, self._held = self._held, ""
        return Split(reasoning=rest) if self._state == self._inside else Split(text=rest)

    def _at_start(self) -> Split:
        begun = self._held.lstrip()
        if begun.startswith(_OPENING):
            self._held = begun.removeprefix(_OPENING)
            self._state = self._at_thought
            return self._state()
        if _OPENING.startswith(begun):
            return Split()
        self._state = self._after
        return self._state()

    def _at_thought(self) -> Split:
        self._held = self._held.lstrip()
        if not self._held:
            return Split()
        self._state = self._inside
        return self._state()

    def _inside(self) -> Split:
        thought, closed, rest = self._held.partition(_CLOSING)
        if closed:
            self._held = rest
            self._state = self._at_text
            then = self._state()
            return Split(reasoning=thought.rstrip(), text=then.text)
        # White space before the tag belongs to it, so it is held until something else follows.
        size = len(self._held) - _partial_tag_length(self._held, _CLOSING)
        size = len(self._held[:size].rstrip())
        thought, self._held = self._held[:size], self._held[size:]
        return Split(reasoning=thought)

    def _at_text(self) -> Split:
        self._held = self._held.lstrip()
        if not self._held:
            return Split()
        self._state = self._after
        return self._state()

    def _after(self) -> Split:
        text, self._held = self._held, ""
        return Split(text=text)


class CallStarts:
    """The starts of the calls of one response, each with a unique id."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._ids: set[str] = set()

    def __bool__(self) -> bool:
        """Return whether there is any call."""
        return bool(self._ids)

    def start(self, index: int, *, given: str, name: str, number: int | None = None) -> ToolCallStart:
        """Return the call that begins in block `index`, with an id that is unique in the response.

        A missing id is made from `number`.

        Raises:
            ProviderError: it has no name.
        """
        if not name:
            raise self.nameless()
        mark = index if number is None else number
        call_id = given or f"call_{mark}"
        while call_id in self._ids:
            call_id = f"{call_id}_{mark}"
        self._ids.add(call_id)
        return ToolCallStart(index, call_id, name)

    def nameless(self) -> ProviderError:
        """Return the error for a call without a name."""
        return ProviderError(f"{self._provider} sent a call without a name", kind="transient")


def _content(part: Part) -> str:
    match part:
        case TextDelta(text=text) | ReasoningDelta(text=text) | DataDelta(text=text) | ToolArgumentsDelta(text=text):
            return text
        case _:
            return ""


def _is_whole(event: ServerSentEvent) -> bool:
    return decode_or_none(_raws, event.data) is not None


def _frames(framing: Framing) -> Frames:
    match framing:
        case "sse":
            return SseDecoder()
        case "ndjson":
            return NdjsonDecoder()
        case "json":
            return WholeDecoder()
        case _:
            assert_never(framing)


def _ignore(usage: Usage) -> None:
    del usage


class Reader:
    """Decoder of the bytes of one response into parts, up to `Finished`. `begun` is true after the first event.

    `max_bytes` limits their content. `frames` overrides `framing` for a cloud that wraps the events in its own format.
    `counted` is told the tokens when the answer ends, if the provider reports them.
    """

    def __init__(
        self,
        decoder: ResponseDecoder,
        framing: Framing,
        *,
        max_bytes: int,
        frames: Frames | None = None,
        counted: Callable[[Usage], None] = _ignore,
    ) -> None:
        self._tell_usage = counted
        self._usage: Usage | None = None
        self._decoder = decoder
        self._frames = _frames(framing) if frames is None else frames
        self._max_bytes = max_bytes
        self._bytes = 0
        self.begun = False
        self.finished = False

    def feed(self, chunk: bytes) -> Iterable[Part]:
        """Return the parts that more bytes complete.

        Raises:
            ProviderError: the provider reports an error, or the content is too long (`output_limit`).
        """
        return self._parts(self._frames.feed(chunk))

    def close(self) -> Iterable[Part]:
        """Return the parts of a last event without a line end if it is complete, and those that the end completes."""
        yield from self._parts([event for event in self._frames.close() if _is_whole(event)])
        if not self.finished:
            yield from self._counted(self._decoder.close())

    def _parts(self, events: list[ServerSentEvent]) -> Iterable[Part]:
        self.begun = self.begun or bool(events)
        for event in events:
            yield from self._counted(self._read(event))
            if self.finished:
                return

    def _read(self, event: ServerSentEvent) -> Iterable[Part]:
        """Yield the parts of one event; for an error, first the tokens that it counted."""
        try:
            parts = self._decoder.feed(event.event, event.data)
        except ProviderError as error:
            if error.usage is not None:
                yield UsageReport(error.usage)
            raise
        yield from parts

    def _counted(self, parts: Iterable[Part]) -> Iterable[Part]:
        for part in parts:
            self._count(part)
            if isinstance(part, UsageReport):
                self._usage = part.usage
            elif isinstance(part, Finished) and self._usage is not None:
                self._tell_usage(self._usage)
            yield part
            if isinstance(part, Finished):
                self.finished = True
                return

    def _count(self, part: Part) -> None:
        text = _content(part)
        self._bytes += len(text) if text.isascii() else len(text.encode())
        if self._bytes > self._max_bytes:
            message = f"the answer is longer than {self._max_bytes} bytes"
            hint = "`assistant.request.max_response_bytes` sets the limit"
            raise ProviderError(message, kind="output_limit", hint=hint)
