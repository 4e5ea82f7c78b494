"""Bytes to server-sent events, or to lines of JSON: incremental, cut anywhere, without I/O."""

from __future__ import annotations

from typing import Protocol

import msgspec

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
