"""Transports of MCP sessions, within bounds: the streams of a process (stdio), and the SDK's streamable HTTP.

The SDK's stdio transport is not used: it buffers a line of any length, it starts the process itself (jp confines it and
ends all its descendants), and a request whose response cannot be read waits until its time-out.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
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
    wait_readable,
    wait_writable,
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
"""So many values a message may have, which are about 40 MB in memory."""

MOST_ITEMS = 1000
"""So many blocks a result may have, and so many tools or resources a page of a list."""

MOST_REQUESTS = 100
"""So many requests of a server may wait for an answer at once."""

_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_NO_MARKS = bytes(byte for byte in range(256) if byte not in b'"[{,')
_LISTS = ("content", "contents", "resources", "tools")


class TooManyValuesError(ValueError):
    """A message has more values than `MOST_VALUES`."""

    def __init__(self) -> None:
        super().__init__(f"a message of more than {MOST_VALUES:,} values")


class ValueMeter:
    """Counts the values of a JSON text that comes in pieces, without parsing it: nothing is kept of the text."""

    def __init__(self) -> None:
        self._count = 0
        self._in_string = False
        self._escape = b""

    def reset(self) -> None:
        """Begin with another message."""
        self._count, self._in_string, self._escape = 0, False, b""

    def feed(self, piece: bytes) -> None:
        """Count what is in the next piece.

        Raises:
            TooManyValuesError: the message has too many by now.
        """
        rest = _ESCAPE.sub(b"", self._escape + piece)
        self._escape = b"\\" if rest.endswith(b"\\") else b""
        parts = rest.translate(None, _NO_MARKS).split(b'"')
        self._count += sum(map(len, parts[self._in_string :: 2]))
        self._in_string ^= len(parts) % 2 == 0
        if self._count > MOST_VALUES:
            raise TooManyValuesError


class Transport(Protocol):
    """A transport between a server and a session. `broken` says why jp ended it, and is empty until then."""

    broken: str

    def transport(self) -> AbstractAsyncContextManager[TransportStreams]:
        """Return the two streams of the session."""
        ...

    def stop(self, why: str) -> None:
        """End the session; `why` completes the sentence `it …`."""
        ...


class Excess(msgspec.Struct, frozen=True):
    """The data of an error that stands in the place of a result that jp does not take."""

    sentence: str


class BoundedTransport:
    """The transport of `link`, with what the server sends counted."""

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
        """Return what the session gets in the place of a message of the server; None where the session ends."""
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
        """Note an answer of jp."""
        from mcp_types import JSONRPCError, JSONRPCResponse

        if isinstance(message, (JSONRPCResponse, JSONRPCError)) and message.id is not None:
            self._answered(message.id)

    def _answered(self, number: RequestId) -> None:
        if self._open[number] <= 1:
            del self._open[number]
        else:
            self._open[number] -= 1


class _Reading:
    """Messages from the server, within the bounds."""

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
    """Messages to the server, whose responses are noted."""

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
    """Return an error for a result that has too many items; None where it has not."""
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
"""The start of a response of which nothing else can be read."""


def message_of(line: bytes) -> JSONRPCMessage | None:
    """Return the message that a line is; None where it is none.

    Halves of characters become `?`: programs that count in UTF-16 cut texts between them. What has the id of a
    request and is no answer to it becomes an error, so that nobody waits for one.
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
        return _unreadable({"id": json.loads(found["id"])}, "the answer is nested too deeply") if found else None
    try:
        whole = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        return jsonrpc_message_adapter.validate_json(whole, by_name=False)
    except (ValueError, RecursionError):
        return _unreadable(value)


def _unreadable(value: object, why: str = "the answer is not what the protocol says") -> JSONRPCMessage | None:
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
"""Seconds for a server to end after its input is closed, and again after it is asked to."""


class ServerProcess:
    """A program whose standard input and output are a session. What it says on the third stream is for people."""

    def __init__(self, words: Sequence[str], *, directory: str, environment: Mapping[str, str]) -> None:
        """Start `words[0]`, which is a path.

        Raises:
            OSError: it cannot be started.
        """
        self._process = GuardedProcess(words, directory=directory, environment=environment)
        for descriptor in (self._process.stdin, self._process.stdout, self._process.stderr):
            os.set_blocking(descriptor, False)
        self.last_words = ""

    @property
    def exit_code(self) -> int | None:
        """Return how it ended, the number of a signal being negative; None while it runs."""
        return self._process.exit_code

    async def read(self) -> bytes:
        """Return what it says next on its standard output; nothing at the end."""
        return await _read(self._process.stdout)

    async def write(self, data: bytes) -> None:
        """Write `data` to its standard input.

        Raises:
            OSError: it does not take any more.
        """
        rest = memoryview(data)
        while rest:
            await wait_writable(self._process.stdin)
            with suppress(BlockingIOError):
                rest = rest[os.write(self._process.stdin, rest[:_CHUNK]) :]

    async def listen(self, say: Callable[[str], None]) -> None:
        """Pass on, line by line, what it says for people, and keep the last of it."""
        begun = b""
        while chunk := await _read(self._process.stderr):
            *lines, begun = (begun + chunk).split(b"\n")
            begun = begun[:_LONGEST_LINE]
            for line in lines:
                self._pass_on(line, say)
        self._pass_on(begun, say)

    def _pass_on(self, line: bytes, say: Callable[[str], None]) -> None:
        text = line[:_LONGEST_LINE].decode("utf-8", "replace").rstrip()
        if text:
            self.last_words = text[:_LAST_WORDS]
            say(text)

    def kill(self) -> None:
        """End it and everything that it started at once, unless it has ended."""
        self._process.kill()

    async def end(self) -> None:
        """Let nothing that it started go on. It may end by itself first. Cancelling does not shorten this."""
        with CancelScope(shield=True):
            self._process.close_input()
            with move_on_after(GRACE_SECS):
                await self._process.wait()
            await self._process.end(GRACE_SECS)

    def close_input(self) -> None:
        """Tell it that nothing more comes. Nobody may be writing."""
        self._process.close_input()

    def close(self) -> None:
        """Let go of its outputs. Nobody may be reading them."""
        self._process.close()


async def _read(descriptor: int) -> bytes:
    while True:
        await wait_readable(descriptor)
        with suppress(BlockingIOError):
            return os.read(descriptor, _CHUNK)


LONGEST_MESSAGE = 16 * 1024 * 1024
"""In bytes: a resource of 10 MiB as base64, and some more."""

_MOST_NOISE = 1024 * 1024
"""So many bytes that are no messages a server may print: a greeting, the output of a program that it runs."""

_SHOWN = 2000
_FLUSH_SECS = 0.5


class StdioTransport:
    """A transport over a process. `broken` says why jp cut it, if neither side ended."""

    def __init__(self, process: ServerProcess, log: Callable[[str], None]) -> None:
        """`process` runs; the link ends it."""
        self.broken = ""
        self.ended = Event()
        self._process = process
        self._log = log
        self._noise = 0
        self._values = ValueMeter()
        self._writing = CancelScope()

    @asynccontextmanager
    async def transport(self) -> AsyncGenerator[TransportStreams]:
        """Yield the two streams of a session. Leaving it ends the process."""
        incoming, read_stream = create_memory_object_stream["SessionMessage | Exception"](0)
        write_stream, outgoing = create_memory_object_stream["SessionMessage"](0)
        # What is closed last is what tasks may still be reading.
        with closing(self._process), incoming, read_stream, write_stream, outgoing:
            async with create_task_group() as tasks:
                written = Event()
                tasks.start_soon(self._read, incoming)
                tasks.start_soon(self._write, outgoing, written)
                tasks.start_soon(self._process.listen, self._log)
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
        """Send what is still to be said, that a call was cancelled perhaps, and end the process."""
        with CancelScope(shield=True):
            # From here on what it says is read and forgotten: it could not end with a full pipe.
            read_stream.close()
            write_stream.close()
            with move_on_after(_FLUSH_SECS):
                await written.wait()
            self._writing.cancel()
            await written.wait()
            await self._process.end()

    async def _read(self, incoming: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        begun = bytearray()
        with incoming:
            while not self.broken and (chunk := await self._process.read()):
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
        """See `jp.mcp.transport.Transport`."""
        self.broken = self.broken or why
        self._process.kill()

    async def _write(self, outgoing: MemoryObjectReceiveStream[SessionMessage], written: Event) -> None:
        try:
            with self._writing, outgoing:
                async for item in outgoing:
                    text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await self._process.write(f"{text}\n".encode())
        except OSError:
            # It does not read any more: whoever waits for an answer hears of it when its output ends.
            self._process.kill()
        finally:
            written.set()


_CONNECT_SECS = 20.0
_EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")


class HttpTransport:
    """A transport over HTTP. `refused` is the status of the last answer that was a refusal.

    `broken` says why the session was ended by jp.
    """

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        """Send `headers` with every request to `url`."""
        self.refused: int | None = None
        self.broken = ""
        self.ended = Event()
        self._url = url
        self._headers = headers

    def stop(self, why: str) -> None:
        """See `jp.mcp.transport.Transport`."""
        self.broken = self.broken or why
        self.ended.set()

    @asynccontextmanager
    async def transport(self) -> AsyncGenerator[TransportStreams]:
        """Yield the two streams of a session. How long an answer may take is the caller's business."""
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        from jp.tls import context_for

        client = httpx2.AsyncClient(
            # What is compressed may be a thousand times as long.
            headers={"accept-encoding": "identity", **self._headers},
            verify=context_for(self._url),
            timeout=httpx2.Timeout(None, connect=_CONNECT_SECS),
            event_hooks={"response": [self._look]},
        )
        async with (
            client,
            streamable_http_client(self._url, http_client=client, max_sse_event_size=LONGEST_MESSAGE) as streams,
        ):
            yield streams

    async def _look(self, response: httpx2.Response) -> None:
        """Note a refusal, and have a body end where it is too long. One of events has its bound in each of them."""
        import httpx2

        if response.is_error and response.request.method == "POST":
            self.refused = response.status_code
        stream = response.stream
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            if isinstance(stream, httpx2.AsyncByteStream):
                response.stream = _bounded_stream(stream, self.stop, of_events=True)
            return
        if response.headers.get("content-encoding", "identity") != "identity":
            message = "the answer is compressed, though that was not asked for"
            raise httpx2.DecodingError(message, request=response.request)
        if isinstance(stream, httpx2.AsyncByteStream):
            response.stream = _bounded_stream(stream, self.stop, of_events=False)


def _bounded_stream(
    stream: httpx2.AsyncByteStream, stop: Callable[[str], None], *, of_events: bool
) -> httpx2.AsyncByteStream:
    """Return `stream`, which fails where it is too long, and which stops the session where it has too many values.

    Of a stream `of_events`, each event is a message, and how long one may be is held elsewhere.
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
