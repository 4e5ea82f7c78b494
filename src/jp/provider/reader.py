"""Read one response: bytes to events to parts, bounded, whatever a server sends. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, assert_never

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
"""More than any provider sends in one event; a server that never ends a line is cut off here."""

_MOST_DIGITS = 18
"""Of the milliseconds in which to come back: nobody means more."""

_BOM = b"\xef\xbb\xbf"


class ServerSentEvent(msgspec.Struct, frozen=True):
    """One event. `retry` is in milliseconds; `id` is the last one that the stream has set."""

    event: str
    data: bytes
    id: str = ""
    retry: int | None = None


class Frames(Protocol):
    """What cuts a response into events."""

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """Take more bytes; the events that they complete.

        Raises:
            ProviderError: an event is too long, of kind `output_limit`, or the bytes are none.
        """
        ...

    def close(self) -> list[ServerSentEvent]:
        """The stream is over: the event that it left unfinished. Its data may be cut."""
        ...


class _Lines:
    """Cuts bytes into lines that end with LF. Linear in the bytes, however they are cut."""

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
        """The last line, where it has no end."""
        rest = b"".join(self._pieces)
        self._pieces.clear()
        return rest


def check_size(size: int, max_bytes: int) -> None:
    """Refuse what is longer than an event may be.

    Raises:
        ProviderError: it is too long, of kind `output_limit`.
    """
    if size > max_bytes:
        message = f"the server sent an event of more than {max_bytes} bytes"
        raise ProviderError(message, kind="output_limit")


class SseDecoder:
    """Server-sent events as the HTML standard defines them.

    Lines end with LF, CRLF or CR. An event without data is not one. In one respect it is more patient than the
    standard: `close` gives the last event although no blank line follows it.
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
        """Take more bytes; the events that they complete.

        Raises:
            ProviderError: an event is too long, of kind `output_limit`.
        """
        if data and (self._after_cr or b"\r" in data):
            data = self._unify(data)
        events: list[ServerSentEvent] = []
        for line in self._lines.feed(data):
            self._take(line, events)
        return events

    def close(self) -> list[ServerSentEvent]:
        """The stream is over: the event that it left unfinished. Its data may be cut."""
        events: list[ServerSentEvent] = []
        if rest := self._lines.close():
            self._take(rest, events)
        self._dispatch(events)
        return events

    def _unify(self, data: bytes) -> bytes:
        """`data` with LF for every line end. A CR ends its line at once: the LF after it may come much later."""
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
    """Newline-delimited JSON: each line is an event without a name. Blank lines are none."""

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._lines = _Lines(max_event_bytes)

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """Take more bytes; the lines that they complete.

        Raises:
            ProviderError: a line is too long, of kind `output_limit`.
        """
        return [ServerSentEvent("", line) for raw in self._lines.feed(data) if (line := raw.strip())]

    def close(self) -> list[ServerSentEvent]:
        """The stream is over: the line that it left unfinished, which may be cut."""
        rest = self._lines.close().strip()
        return [ServerSentEvent("", rest)] if rest else []


class WholeDecoder:
    """A response that is one JSON value: one event, once it has ended."""

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_event_bytes = max_event_bytes
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """Take more bytes; they complete nothing.

        Raises:
            ProviderError: there are too many, of kind `output_limit`.
        """
        self._pieces.append(data)
        self._size += len(data)
        check_size(self._size, self._max_event_bytes)
        return []

    def close(self) -> list[ServerSentEvent]:
        """The whole value, which may be cut."""
        return [ServerSentEvent("", b"".join(self._pieces))] if self._size else []


UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises: at what is no JSON or of another type, no UTF-8, or nested without end."""

_MOST_TOKENS = 2**53 - 1
"""More than anybody counts, and as much as every reader of JSON holds exactly."""


def unreadable(provider: str, what: str = "event") -> ProviderError:
    """The error of an event that has to be understood and cannot be: the next answer may be a better one."""
    article = "an" if what[0] in "aeiou" else "a"
    return ProviderError(f"{provider} sent {article} {what} that cannot be read", kind="transient")


def text_of(raw: msgspec.Raw) -> str:
    """JSON as text. What of it is no UTF-8 is replaced: it has not been looked at yet."""
    return bytes(raw).decode(errors="replace")


def counted(
    *,
    prompt: int | None,
    output: int | None,
    cache_read: int | None = None,
    cache_write: int | None = None,
    reasoning: int | None = None,
) -> Usage:
    """Tokens in classes that do not overlap, of counts in which they do.

    `prompt` is counted with what was read from a cache and written to one, `output` with the reasoning. Counts that
    are missing, or make no sense, are 0.
    """
    read, write, out = _tokens(cache_read), _tokens(cache_write), _tokens(output)
    return Usage(
        input=max(0, _tokens(prompt) - read - write),
        output=out,
        cache_read=read,
        cache_write=write,
        # Some report more than the whole output: what a summary of it would have taken.
        reasoning=min(_tokens(reasoning), out),
    )


def _tokens(count: int | None) -> int:
    return min(max(0, count or 0), _MOST_TOKENS)


def plausible(usage: Usage) -> Usage:
    """`usage` with 0 for what makes no sense."""
    return Usage(**{name: _tokens(getattr(usage, name)) for name in Usage.__struct_fields__})


def input_changes(raw: msgspec.Raw) -> tuple[InputChange, ...] | None:
    """Return the `input_transformations` of a response, None where it has none that can be read.

    Anthropic names a `type` and a `path`, OpenAI a `type`, an `action` and an `id` (their SDKs' types, 2026-11-22).
    """
    try:
        found = msgspec.json.decode(raw, type=list[dict[str, Any]] | None)
    except UNREADABLE:
        return None
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


class CallStarts:
    """The beginnings of the calls of one response, each under an id of its own."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._ids: set[str] = set()

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self._ids)

    def start(self, index: int, *, given: str, name: str, number: int | None = None) -> ToolCallStart:
        """The call that begins in block `index`: a missing id is made up of `number`, a repeated one is told apart.

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
        """The error of a call without a name."""
        return ProviderError(f"{self._provider} sent a call without a name", kind="transient")


def _content(part: Part) -> str:
    match part:
        case TextDelta(text=text) | ReasoningDelta(text=text) | DataDelta(text=text) | ToolArgumentsDelta(text=text):
            return text
        case _:
            return ""


def _is_whole(event: ServerSentEvent) -> bool:
    try:
        msgspec.json.decode(event.data, type=msgspec.Raw)
    except UNREADABLE:
        return False
    return True


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


class Reader:
    """Turns the bytes of one response into parts, up to `Finished`. `begun` says whether there was any event.

    `max_bytes` bounds their content. `frames` goes before `framing`, where a cloud has wrapped the events otherwise.
    """

    def __init__(
        self, decoder: ResponseDecoder, framing: Framing, *, max_bytes: int, frames: Frames | None = None
    ) -> None:
        self._decoder = decoder
        self._frames = _frames(framing) if frames is None else frames
        self._max_bytes = max_bytes
        self._bytes = 0
        self.begun = False
        self.finished = False

    def feed(self, chunk: bytes) -> Iterable[Part]:
        """Take more bytes; the parts that they complete.

        Raises:
            ProviderError: the provider reports an error, or the content is longer than allowed (`output_limit`).
        """
        return self._parts(self._frames.feed(chunk))

    def close(self) -> Iterable[Part]:
        """Read what no line end completed, where it is whole, and what the end of the stream completes."""
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
        """Read one event, and report what an error counted before it is raised."""
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
            yield part
            if isinstance(part, Finished):
                self.finished = True
                return

    def _count(self, part: Part) -> None:
        text = _content(part)
        self._bytes += len(text) if text.isascii() else len(text.encode())
        if self._bytes > self._max_bytes:
            message = f"the answer is longer than {self._max_bytes} bytes"
            hint = "`assistant.request.max_response_bytes` is where jp stops"
            raise ProviderError(message, kind="output_limit", hint=hint)
