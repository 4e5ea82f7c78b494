"""An HTTP server on the loopback interface whose every byte, pause and fault is scripted.

It runs in threads, so it serves tests in the same event loop, in another thread and in subprocesses alike. Nothing
in it sleeps: who waits, waits for an event.
"""

from __future__ import annotations

import itertools
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Literal, Self

import msgspec

SSE = (("content-type", "text/event-stream; charset=utf-8"),)
JSON = (("content-type", "application/json"),)
HTML = (("content-type", "text/html; charset=utf-8"),)

PATIENCE = 20.0
"""Seconds after which a test that waits for something is stuck."""


class Received(msgspec.Struct, frozen=True, kw_only=True):
    """A request. Header names are lower case; `target` is what stands in the request line."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> dict[str, object]:
        return msgspec.json.decode(self.body, type=dict[str, object])


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What is answered.

    The body is sent in pieces, cut at the offsets `cuts`; each is one HTTP chunk, so that a client reads them apart.
    Before it sends what begins at an offset in `gates`, the server waits for that event. All of it is sent `times`
    times. Where the headers have a `content-length`, true or not, there are no chunks. At the end the server
    `complete`s the response, or drops the connection: in order (`close`), with a reset, or never (`hang`: it waits for
    the client to leave). With `headless` the same happens before anything was sent.
    """

    body: bytes = b""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = SSE
    cuts: tuple[int, ...] = ()
    times: int = 1
    gates: Mapping[int, threading.Event] = {}
    ends: Literal["complete", "close", "reset", "hang"] = "complete"
    headless: bool = False

    @property
    def is_chunked(self) -> bool:
        return all(name.lower() != "content-length" for name, _ in self.headers)


Answer = Reply | Callable[[Received], Reply]

_NOT_SCRIPTED = Reply(status=500, headers=JSON, body=b'{"error":{"message":"no reply is scripted for this request"}}')


def sse(*events: Mapping[str, object], end: str = "\n") -> bytes:
    """Server-sent events, named after the `type` of their data; `end` ends the lines."""
    lines: list[str] = []
    for event in events:
        data = msgspec.json.encode(event).decode()
        lines += [f"event: {event['type']}", f"data: {data}", ""]
    return "".join(line + end for line in lines).encode()


class Loopback:
    """A server that gives `replies` in order, then `otherwise` for every further request.

    `requests` are those that came, over so many `connections`. `client_left` is set once a client has closed a
    connection that hangs, or has left one in the middle of an answer.
    """

    def __init__(self, *replies: Answer, otherwise: Answer = _NOT_SCRIPTED, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[Received] = []
        self.client_left = threading.Event()
        self._replies = list(replies)
        self._otherwise = otherwise
        self._tls = tls
        self._changed = threading.Condition()
        self._connections: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._port: int = self._listener.getsockname()[1]
        self._closing = False

    @property
    def port(self) -> int:
        return self._port

    @property
    def connections(self) -> int:
        return len(self._connections)

    @property
    def url(self) -> str:
        return f"{'http' if self._tls is None else 'https'}://127.0.0.1:{self.port}"

    def add(self, *replies: Answer) -> None:
        """Script more replies."""
        with self._changed:
            self._replies += replies

    def wait_for_requests(self, count: int) -> list[Received]:
        """Wait until `count` requests have come."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.requests) >= count, PATIENCE), "no request came"
            return list(self.requests)

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing = True
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(PATIENCE)

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._closing:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._connections.append(connection)
            self._start(self._serve, connection)

    def _serve(self, raw: socket.socket) -> None:
        try:
            connection = raw if self._tls is None else self._tls.wrap_socket(raw, server_side=True)
        except (OSError, ssl.SSLError):
            raw.close()
            return
        with connection:
            try:
                self._converse(connection)
            except OSError:
                self.client_left.set()

    def _converse(self, connection: socket.socket) -> None:
        while (request := _read(connection)) is not None:
            if not self._answer(connection, self._reply_to(request)):
                return

    def _reply_to(self, request: Received) -> Reply:
        with self._changed:
            self.requests.append(request)
            answer = self._replies.pop(0) if self._replies else self._otherwise
            self._changed.notify_all()
        return answer if isinstance(answer, Reply) else answer(request)

    def _answer(self, connection: socket.socket, reply: Reply) -> bool:
        """Send `reply`. The result tells whether the connection can be used again."""
        if not reply.headless:
            _send(connection, reply)
        match reply.ends:
            case "complete":
                if reply.is_chunked:
                    connection.sendall(b"0\r\n\r\n")
                return True
            case "close":
                pass
            case "reset":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            case "hang":
                while connection.recv(65536):
                    pass
                self.client_left.set()
        return False


_TLS_RECORD = b"\x16\x03"


def _read(connection: socket.socket) -> Received | None:
    """One request, None where the client has gone."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if more.startswith(_TLS_RECORD) and not data:
            connection.sendall(b"HTTP/1.1 400 This is no TLS server\r\n\r\n")
            return None
        if not more:
            return None
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    length = int(headers.get("content-length", "0"))
    while len(body) < length:
        more = connection.recv(65536)
        if not more:
            return None
        body += more
    return Received(method=method, target=target, headers=headers, body=body)


def _head(reply: Reply) -> bytes:
    lines = [f"HTTP/1.1 {reply.status} Scripted", *(f"{name}: {value}" for name, value in reply.headers)]
    framing = ["transfer-encoding: chunked"] if reply.is_chunked else []
    return "\r\n".join([*lines, *framing, "", ""]).encode("latin-1")


def _send(connection: socket.socket, reply: Reply) -> None:
    waiting = _head(reply)
    for start, end in [*_pieces(reply), (len(reply.body), len(reply.body))]:
        if (gate := reply.gates.get(start)) is not None:
            connection.sendall(waiting)
            waiting = b""
            assert gate.wait(PATIENCE), "nobody opened the gate"
        if start < end and reply.is_chunked:
            waiting += _chunk(reply.body[start:end])
        elif start < end:
            connection.sendall(waiting)
            waiting = reply.body[start:end]
    connection.sendall(waiting)
    for _ in range(reply.times - 1):
        connection.sendall(_chunk(reply.body) if reply.is_chunked else reply.body)


def _pieces(reply: Reply) -> list[tuple[int, int]]:
    marks = sorted({0, len(reply.body), *reply.cuts, *reply.gates} & set(range(len(reply.body) + 1)))
    return list(itertools.pairwise(marks))


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)
