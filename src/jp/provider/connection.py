"""Connections to servers over HTTP/1.1, which the requests of one query share.

A thread resolves the name, connects and shakes hands while the query is still being prepared; requests then run on the
event loop. h11 reads and writes the protocol. Addresses and proxies that are unusual are left to httpx2: importing it
takes longer than everything that is done here.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
import sys
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from threading import Thread
from time import monotonic
from typing import NamedTuple

import h11
from anyio import move_on_after, wait_readable, wait_writable
from anyio.lowlevel import checkpoint

_READ_BYTES = 64 * 1024
_MOST_HEADER_BYTES = 100 * 1024
_END_SECS = 0.25
"""Seconds that a request waits for the end of the response before it: connecting usually takes longer."""

_MOST_IDLE_SECS = 55.0
"""Seconds after which a connection is not used again: many load balancers drop one after a minute, some in silence."""

_HEAD_START_SECS = 0.25
"""Seconds that an address has before the next one is tried beside it (RFC 8305, section 5)."""

_GZIP_OR_ZLIB = 47
"""Window bits with which zlib accepts either header."""

_USUAL_URL = re.compile(
    r"(https?)://([a-z0-9.-]+|\[[0-9a-f:.]+\])(?::(\d{1,5}))?((?:/(?!\.)[\w!$&'()*+,;=:@%?~.-]*)*)",
    re.IGNORECASE | re.ASCII,
)


class Origin(NamedTuple):
    """A server that a connection leads to."""

    scheme: str
    host: str
    port: int


class Address(NamedTuple):
    """The parts of a URL: `authority` is the value of the header `host`, `target` the path with the query."""

    origin: Origin
    authority: str
    target: str


def address_of(url: str) -> Address | None:
    """Return the parts of a URL; None if it, or a proxy that may be in between, needs httpx2."""
    found = _USUAL_URL.fullmatch(url)
    if found is None or _may_have_proxy():
        return None
    scheme, host, port, target = found.groups()
    scheme, host = scheme.lower(), host.lower()
    default = 443 if scheme == "https" else 80
    number = default if port is None else int(port)
    authority = host if number == default else f"{host}:{number}"
    return Address(Origin(scheme, host.strip("[]"), number), authority, target or "/")


def _may_have_proxy() -> bool:
    """Return whether the environment, or on macOS the system, names a proxy."""
    if sys.platform == "darwin":
        from urllib.request import getproxies

        return bool(getproxies())
    names = {name.lower() for name, value in os.environ.items() if value}
    return any(name.endswith("_proxy") for name in names - {"no_proxy"})


class Connection:
    """A connected socket, plain or with TLS, with the state of HTTP on it.

    `is_reused` says that it has had a response before; `has_answered`, that a byte of the present one has come.
    """

    def __init__(self, origin: Origin, connected: socket.socket) -> None:
        self.origin = origin
        self.is_reused = False
        self.has_answered = False
        self._socket = connected
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MOST_HEADER_BYTES)
        self._idle_since = monotonic()

    async def send(self, *events: h11.Event) -> None:
        """Send parts of a request together.

        Raises:
            OSError: the server does not take them.
            h11.LocalProtocolError: they are no HTTP.
        """
        rest = memoryview(b"".join([self._http.send(event) or b"" for event in events]))
        while rest:
            try:
                rest = rest[self._socket.send(rest) :]
            except OSError as error:
                await self._wait(error, wait_writable)

    async def receive(self) -> object:
        """Return the next event of the response, as h11 has it.

        Raises:
            OSError: the connection broke off.
            h11.RemoteProtocolError: the response ended too soon, or is no HTTP.
        """
        while (event := self._http.next_event()) is h11.NEED_DATA:
            try:
                data = self._socket.recv(_READ_BYTES)
            except OSError as error:
                await self._wait(error, wait_readable)
                continue
            self.has_answered = self.has_answered or bool(data)
            self._http.receive_data(data)
            await checkpoint()
        return event

    async def _wait(self, error: OSError, wait: Callable[[socket.socket], Awaitable[None]]) -> None:
        """Wait until the socket is ready, if that is what `error` is about; else raise it again."""
        match error:
            case BlockingIOError():
                await wait(self._socket)
            case ssl.SSLWantReadError():
                await wait_readable(self._socket)
            case ssl.SSLWantWriteError():
                await wait_writable(self._socket)
            case _:
                raise error

    async def body(self) -> AsyncIterator[bytes]:
        """Yield the body of the response as it arrives; see `receive`."""
        while not isinstance(event := await self.receive(), h11.EndOfMessage):
            if isinstance(event, h11.Data):
                yield bytes(event.data)

    def leave_idle(self) -> None:
        """Count the time from now on as idle."""
        self.is_reused = True
        self._idle_since = monotonic()

    async def ready(self) -> bool:
        """Return whether it takes a request: the last response has ended, and the server has not left.

        The end of the last response, which nobody may have waited for, is read here.
        """
        if monotonic() - self._idle_since > _MOST_IDLE_SECS:
            return False
        try:
            with move_on_after(_END_SECS):
                while self._http.their_state is h11.SEND_BODY:
                    await self.receive()
            return self._is_silent() and self._begin()
        except (OSError, h11.RemoteProtocolError):
            return False

    def _is_silent(self) -> bool:
        """Return whether the server has nothing to say, and has not left."""
        try:
            data = self._socket.recv(_READ_BYTES)
        except (BlockingIOError, ssl.SSLWantReadError):
            return True
        self._http.receive_data(data)
        return False

    def _begin(self) -> bool:
        if self._http.trailing_data[0] or self._http.their_state is h11.SEND_BODY:
            return False
        self.has_answered = False
        if self._http.our_state is self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
        return self._http.our_state is h11.IDLE

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


async def decoded(chunks: AsyncIterator[bytes], encoding: str) -> AsyncIterator[bytes]:
    """Yield a body as it was before the server compressed it.

    Raises:
        zlib.error: it is damaged, incomplete, or of an encoding that was not asked for.
    """
    if encoding in {"", "identity"}:
        async for chunk in chunks:
            yield chunk
        return
    if encoding not in {"gzip", "x-gzip", "deflate"}:
        raise zlib.error(f"{encoding!r} was not asked for")
    decompressor = zlib.decompressobj(_GZIP_OR_ZLIB)
    async for chunk in chunks:
        if data := decompressor.decompress(chunk):
            yield data
    if not decompressor.eof:
        raise zlib.error("the end is missing")


class _Dial:
    """A connection in the making, in a thread: name resolution, TCP and TLS."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._made: Future[Connection] = Future()
        self._made.set_running_or_notify_cancel()
        Thread(target=self._run, name="connect", daemon=True).start()

    def _run(self) -> None:
        try:
            self._made.set_result(self._connect())
        except BaseException as error:  # noqa: BLE001 - it is raised where the connection is waited for
            self._made.set_exception(error)

    async def connection(self) -> Connection:
        try:
            return await asyncio.wrap_future(self._made)
        except asyncio.CancelledError:
            self.abandon()
            raise

    def abandon(self) -> None:
        """Close the connection once it is made."""
        self._made.add_done_callback(lambda made: None if made.exception() else made.result().close())


class Connections:
    """Connections that wait for their next request, by origin."""

    def __init__(self) -> None:
        self._is_closed = False
        self._idle: dict[Origin, list[Connection]] = {}
        self._dials: dict[Origin, _Dial] = {}
        self._context: ssl.SSLContext | None = None

    def begin(self, origin: Origin, timeout_secs: float | None) -> None:
        """Begin to connect, for a request that is still being prepared."""
        if origin not in self._dials and not self._idle.get(origin):
            self._dials[origin] = self._dial(origin, timeout_secs)

    async def take(self, origin: Origin, timeout_secs: float | None) -> Connection:
        """Return a connection for one request.

        Raises:
            OSError: there is none.
            ConfigurationError: a certificate variable cannot be used.
        """
        waiting = self._idle.get(origin, [])
        while waiting:
            found = waiting.pop()
            if await found.ready():
                return found
            found.close()
        begun = self._dials.pop(origin, None)
        if begun is not None:
            found = await begun.connection()
            if await found.ready():
                return found
            found.close()
        return await self._dial(origin, timeout_secs).connection()

    def give_back(self, connection: Connection) -> None:
        """Keep a connection whose response was read in order."""
        connection.leave_idle()
        if self._is_closed:
            connection.close()
        else:
            self._idle.setdefault(connection.origin, []).append(connection)

    def close(self) -> None:
        """Close what is idle or in the making."""
        self._is_closed = True
        for dial in self._dials.values():
            dial.abandon()
        for connection in [each for idle in self._idle.values() for each in idle]:
            connection.close()
        self._idle.clear()
        self._dials.clear()

    def _dial(self, origin: Origin, timeout_secs: float | None) -> _Dial:
        return _Dial(lambda: Connection(origin, self._connected(origin, timeout_secs)))

    def _connected(self, origin: Origin, timeout_secs: float | None) -> socket.socket:
        """Return a connected socket that does not block. Runs in a thread."""
        from aiohappyeyeballs import start_connection  # pyright: ignore[reportUnknownVariableType] - socket addresses

        context = self._trusting() if origin.scheme == "https" else None
        host = origin.host.encode()  # text would be encoded by IDNA, whose tables take milliseconds to import
        addresses = socket.getaddrinfo(host, origin.port, type=socket.SOCK_STREAM)
        connected = asyncio.run(start_connection(addresses, happy_eyeballs_delay=_HEAD_START_SECS))
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is not None:
            connected.settimeout(timeout_secs)
            connected = context.wrap_socket(connected, server_hostname=host)
        connected.settimeout(0)
        return connected

    def _trusting(self) -> ssl.SSLContext:
        from jp.tls import trusting_context

        if self._context is None:
            self._context = trusting_context()
            self._context.set_alpn_protocols(["http/1.1"])
        return self._context
