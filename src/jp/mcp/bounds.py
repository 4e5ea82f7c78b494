"""Bounds of what a server may send: values in a message, items in a result, requests that wait for an answer.

The SDK makes an object of each value, a model of each item and a task of each request, which takes a hundred times the
memory that they take on the wire. So they are counted before the SDK sees them.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

import msgspec

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType
    from typing import Self

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


class Link(Protocol):
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

    def __init__(self, link: Link) -> None:
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
