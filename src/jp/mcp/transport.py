"""Transports of MCP sessions: standard streams of a process and the SDK's streamable HTTP, with bounds on messages.

The SDK creates an object for each value, a model for each item and a task for each request, which takes a hundred times
their size, so jp counts them first. Its stdio transport is not used: it buffers lines of any length, starts the process
itself, which jp confines and ends with its descendants, and never answers a request whose response is unreadable.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, closing, suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, cast

import msgspec
from anyio import (
    BrokenResourceError,
    CancelScope,
    ClosedResourceError,
    Event,
    create_memory_object_stream,
    create_task_group,
    move_on_after,
)

from jp.process.guardian import GuardedProcess

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType
    from typing import Self

    import httpx2
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams
    from mcp.shared._stream_protocols import ReadStream, WriteStream
    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCError, JSONRPCMessage, RequestId


MOST_VALUES = 100_000
"""Maximum number of values in a message, about 40 MB in memory."""

MOST_ITEMS = 1000
"""Maximum number of blocks in a result, and of tools or resources in a page of a list."""

MOST_REQUESTS = 100
"""Maximum number of a server's requests without a response."""

_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_NO_MARKS = bytes(byte for byte in range(256) if byte not in b'"[{,')
_LISTS = ("content", "contents", "resources", "tools")


class TooManyValuesError(ValueError):
    """A message with more values than `MOST_VALUES`."""

    def __init__(self) -> None:
        super().__init__(f"a message of more than {MOST_VALUES:,} values")


class ValueMeter:
    """Counts the values of a JSON text in pieces, without parsing or storing it."""

    def __init__(self) -> None:
        self._count = 0
        self._in_string = False
        self._escape = b""

    def reset(self) -> None:
        """Start with the next message."""
        self._count, self._in_string, self._escape = 0, False, b""

    def feed(self, piece: bytes) -> None:
        """Count the values in the next piece.

        Raises:
            TooManyValuesError: the message has too many values.
        """
        rest = _ESCAPE.sub(b"", self._escape + piece)
        self._escape = b"\\" if rest.endswith(b"\\") else b""
        parts = rest.translate(None, _NO_MARKS).split(b'"')
        self._count += sum(map(len, parts[self._in_string :: 2]))
        self._in_string ^= len(parts) % 2 == 0
        if self._count > MOST_VALUES:
            raise TooManyValuesError


class Transport(Protocol):
    """A transport between a server and a session. `broken` says why jp stopped it; empty before."""

    broken: str

    def transport(self) -> AbstractAsyncContextManager[TransportStreams]:
        """Return the two streams of the session."""
        ...

    def stop(self, why: str) -> None:
        """Stop the session. `why` completes the sentence `it …`."""
        ...


class Excess(msgspec.Struct, frozen=True):
    """The data of an error with which jp replaces a result that is too large."""

    sentence: str


class BoundedTransport:
    """The transport of `link`, with bounds on the items and requests that the server sends."""

    def __init__(self, link: Transport) -> None:
        self._link = link
        self._transport = link.transport()
        self._open: Counter[RequestId] = Counter()

    async def __aenter__(self) -> TransportStreams:
        read, write = await self._transport.__aenter__()
        return _Reading(read, self), _Writing(write, self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._transport.__aexit__(kind, error, trace)

    def take(self, message: JSONRPCMessage) -> JSONRPCMessage | None:
        """Return the message for the session, or an error in place of it; None to end the session."""
        from mcp_types import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

        if self._link.broken:
            return None
        if isinstance(message, JSONRPCRequest):
            self._open[message.id] += 1
            if self._open.total() > MOST_REQUESTS:
                self._link.stop(f"it sent more than {MOST_REQUESTS} requests without waiting for answers")
                return None
        elif isinstance(message, JSONRPCResponse):
            return _without_excess(message.id, message.result) or message
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            number = (message.params or {}).get("requestId")
            if isinstance(number, (int, str)):
                self._answered(number)
        return message

    def sent(self, message: JSONRPCMessage) -> None:
        """Count a response of jp."""
        from mcp_types import JSONRPCError, JSONRPCResponse

        if isinstance(message, (JSONRPCResponse, JSONRPCError)) and message.id is not None:
            self._answered(message.id)

    def _answered(self, number: RequestId) -> None:
        if self._open[number] <= 1:
            del self._open[number]
        else:
            self._open[number] -= 1


class _Reading:
    """The stream of messages from the server, within the bounds."""

    def __init__(self, stream: ReadStream[SessionMessage | Exception], bounds: BoundedTransport) -> None:
        self._stream = stream
        self._bounds = bounds

    async def receive(self) -> SessionMessage | Exception:
        from anyio import EndOfStream
        from mcp.shared.message import SessionMessage

        item = await self._stream.receive()
        if isinstance(item, Exception):
            return item
        message = self._bounds.take(item.message)
        if message is None:
            raise EndOfStream
        return item if message is item.message else SessionMessage(message, item.metadata)

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> ReadStream[SessionMessage | Exception]:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        from anyio import EndOfStream

        try:
            return await self.receive()
        except EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(exc_type, exc_val, exc_tb)


class _Writing:
    """The stream of messages to the server, with its responses counted."""

    def __init__(self, stream: WriteStream[SessionMessage], bounds: BoundedTransport) -> None:
        self._stream = stream
        self._bounds = bounds

    async def send(self, item: SessionMessage, /) -> None:
        await self._stream.send(item)
        self._bounds.sent(item.message)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(exc_type, exc_val, exc_tb)


def _without_excess(number: RequestId, result: dict[str, Any]) -> JSONRPCError | None:
    """Return an error for a result with too many items; None for any other."""
    from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError

    for name in _LISTS:
        items: object = result.get(name)
        if _is_list(items) and len(items) > MOST_ITEMS:
            sentence = f"sent a result with {len(items):,} items in {name!r}: at most {MOST_ITEMS:,} are taken"
            error = ErrorData(code=INTERNAL_ERROR, message=sentence, data=Excess(sentence))
            return JSONRPCError(jsonrpc="2.0", id=number, error=error)
    return None


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


_ANSWER = rb'\s*\{(?:\s*"jsonrpc"\s*:\s*"[^"]*"\s*,)?\s*"id"\s*:\s*(?P<id>[0-9]{1,18}|"[^"\\]*")\s*,\s*"result"'
"""The beginning of a response that is otherwise unreadable."""


def message_of(line: bytes) -> JSONRPCMessage | None:
    """Return the message in a line; None if it is not a message.

    Lone surrogates become `?`: programs that count in UTF-16 cut texts between them. An invalid response becomes an
    error with its id, so that the request does not wait.
    """
    from mcp_types import jsonrpc_message_adapter

    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:  # pydantic's errors are ValueErrors
        pass
    try:
        value = json.loads(line.decode("utf-8", "replace"))
    except ValueError:
        return None
    except RecursionError:
        found = re.match(_ANSWER, line)
        return _unreadable({"id": json.loads(found["id"])}, "the response is nested too deeply") if found else None
    try:
        whole = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        return jsonrpc_message_adapter.validate_json(whole, by_name=False)
    except (ValueError, RecursionError):
        return _unreadable(value)


def _unreadable(value: object, why: str = "the response is not valid in the protocol") -> JSONRPCMessage | None:
    from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError

    answer = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    number = answer.get("id")
    if "method" in answer or isinstance(number, bool) or not isinstance(number, (int, str)):
        return None
    error = ErrorData(code=PARSE_ERROR, message=why)
    return JSONRPCError(jsonrpc="2.0", id=number, error=error)


_CHUNK = 64 * 1024
_LONGEST_LINE = 2000
_LAST_WORDS = 300

GRACE_SECS = 0.3
"""Seconds for a server to exit after its input is closed, and again after SIGTERM."""


class ServerProcess(GuardedProcess):
    """A program whose standard input and output are a session. Its standard error is its log."""

    last_words = ""
    """Last line of the log."""

    async def follow_log(self, write: Callable[[str], None]) -> None:
        """Pass the lines of the log to `write`."""
        begun = b""
        while chunk := await self.read(self.stderr):
            *lines, begun = (begun + chunk).split(b"\n")
            begun = begun[:_LONGEST_LINE]
            for line in lines:
                self._pass_on(line, write)
        self._pass_on(begun, write)

    def _pass_on(self, line: bytes, write: Callable[[str], None]) -> None:
        text = line[:_LONGEST_LINE].decode("utf-8", "replace").rstrip()
        if text:
            self.last_words = text[:_LAST_WORDS]
            write(text)

    async def leave(self) -> None:
        """Close the standard input, give the program time to exit, and end its descendants. Not canceled early."""
        with CancelScope(shield=True):
            self.close_input()
            with move_on_after(GRACE_SECS):
                await self.wait()
            await self.end(GRACE_SECS)


LONGEST_MESSAGE = 16 * 1024 * 1024
"""Maximum bytes of a message: a resource of 10 MiB as base64, and some more."""

_MOST_NOISE = 1024 * 1024
"""Maximum bytes of other output, such as a greeting or that of a program that the server runs."""

_SHOWN = 2000
_FLUSH_SECS = 0.5


class StdioTransport:
    """A transport over the standard streams of a process."""

    def __init__(self, process: ServerProcess, log: Callable[[str], None]) -> None:
        """Take over `process`, which runs; this ends it."""
        self.broken = ""
        self.ended = Event()
        self._process = process
        self._log = log
        self._noise = 0
        self._values = ValueMeter()
        self._writing = CancelScope()

    @asynccontextmanager
    async def transport(self) -> AsyncGenerator[TransportStreams]:
        """Yield the two streams of a session. The process ends with the context."""
        incoming, read_stream = create_memory_object_stream["SessionMessage | Exception"](0)
        write_stream, outgoing = create_memory_object_stream["SessionMessage"](0)
        # The process is closed last: tasks may still be reading its outputs.
        with closing(self._process), incoming, read_stream, write_stream, outgoing:
            async with create_task_group() as tasks:
                written = Event()
                tasks.start_soon(self._read, incoming)
                tasks.start_soon(self._write, outgoing, written)
                tasks.start_soon(self._process.follow_log, self._log)
                try:
                    yield read_stream, write_stream
                finally:
                    await self._leave(read_stream, write_stream, written)
                    tasks.cancel_scope.cancel()

    async def _leave(
        self,
        read_stream: MemoryObjectReceiveStream[SessionMessage | Exception],
        write_stream: MemoryObjectSendStream[SessionMessage],
        written: Event,
    ) -> None:
        """Send pending messages, such as a canceled call, and end the process."""
        with CancelScope(shield=True):
            # Output is read and dropped from now on: with a full pipe the process could not exit.
            read_stream.close()
            write_stream.close()
            with move_on_after(_FLUSH_SECS):
                await written.wait()
            self._writing.cancel()
            await written.wait()
            await self._process.leave()

    async def _read(self, incoming: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        begun = bytearray()
        with incoming:
            while not self.broken and (chunk := await self._process.read(self._process.stdout)):
                *lines, rest = chunk.split(b"\n")
                for line in lines:
                    self._count(line)
                    await self._take(bytes(begun + line), incoming)
                    begun.clear()
                    self._values.reset()
                begun += rest
                self._count(rest)
                if len(begun) > LONGEST_MESSAGE:
                    self.stop(f"it sent a message of more than {LONGEST_MESSAGE:,} bytes")
        self.ended.set()

    def _count(self, piece: bytes) -> None:
        try:
            self._values.feed(piece)
        except TooManyValuesError as error:
            self.stop(f"it sent {error}")

    async def _take(self, line: bytes, incoming: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        from mcp.shared.message import SessionMessage

        if self.broken:
            return
        message = message_of(line)
        if message is not None:
            with suppress(BrokenResourceError, ClosedResourceError):
                await incoming.send(SessionMessage(message))
            return
        self._noise += len(line) + 1
        if line.strip() and self._noise <= _SHOWN:
            self._log(line[:_SHOWN].decode("utf-8", "replace"))
        if self._noise > _MOST_NOISE and not self.broken:
            self.stop(f"it printed more than {_MOST_NOISE:,} bytes that are no messages")

    def stop(self, why: str) -> None:
        """Stop the session. See `Transport.stop`."""
        self.broken = self.broken or why
        self._process.kill()

    async def _write(self, outgoing: MemoryObjectReceiveStream[SessionMessage], written: Event) -> None:
        try:
            with self._writing, outgoing:
                async for item in outgoing:
                    text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await self._process.write(f"{text}\n".encode())
        except OSError:
            # The server does not read any more. Pending requests fail at the end of its output.
            self._process.kill()
        finally:
            written.set()


_CONNECT_SECS = 20.0
_EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")


class HttpTransport:
    """A transport over HTTP. `refused` is the status of the last error response."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        """Send `headers` with every request to `url`."""
        self.refused: int | None = None
        self.broken = ""
        self.ended = Event()
        self._url = url
        self._headers = headers

    def stop(self, why: str) -> None:
        """Stop the session. See `Transport.stop`."""
        self.broken = self.broken or why
        self.ended.set()

    @asynccontextmanager
    async def transport(self) -> AsyncGenerator[TransportStreams]:
        """Yield the two streams of a session. Time limits of responses are those of the caller."""
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        from jp.tls import context_for

        client = httpx2.AsyncClient(
            # A compressed body may expand a thousand times.
            headers={"accept-encoding": "identity", **self._headers},
            verify=context_for(self._url),
            timeout=httpx2.Timeout(None, connect=_CONNECT_SECS),
            event_hooks={"response": [self._check_response]},
        )
        async with (
            client,
            streamable_http_client(self._url, http_client=client, max_sse_event_size=LONGEST_MESSAGE) as streams,
        ):
            yield streams

    async def _check_response(self, response: httpx2.Response) -> None:
        """Note an error status, and bound the body. In an event stream the bound is for each event."""
        import httpx2

        if response.is_error and response.request.method == "POST":
            self.refused = response.status_code
        stream = response.stream
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            if isinstance(stream, httpx2.AsyncByteStream):
                response.stream = _bounded_stream(stream, self.stop, of_events=True)
            return
        if response.headers.get("content-encoding", "identity") != "identity":
            message = "the response is compressed, although that was not requested"
            raise httpx2.DecodingError(message, request=response.request)
        if isinstance(stream, httpx2.AsyncByteStream):
            response.stream = _bounded_stream(stream, self.stop, of_events=False)


def _bounded_stream(
    stream: httpx2.AsyncByteStream, stop: Callable[[str], None], *, of_events: bool
) -> httpx2.AsyncByteStream:
    """Return `stream` with bounds: it fails if it is too long, and stops the session if it has too many values.

    Each event of a stream `of_events` is a message, whose length the SDK bounds.
    """
    import httpx2

    values = ValueMeter()

    def count(chunk: bytes) -> None:
        *events, rest = _EVENT_END.split(chunk) if of_events else [chunk]
        for event in events:
            values.feed(event)
            values.reset()
        values.feed(rest)

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            received = 0
            async for chunk in stream:
                received += len(chunk)
                if received > LONGEST_MESSAGE and not of_events:
                    raise httpx2.ReadError(f"the answer has more than {LONGEST_MESSAGE:,} bytes")
                try:
                    count(chunk)
                except TooManyValuesError as error:
                    stop(f"it sent {error}")
                    raise httpx2.ReadError(str(error)) from None
                yield chunk

        async def aclose(self) -> None:
            await stream.aclose()

    return Bounded()
