"""The tests' own MCP server over streamable HTTP: an answer is one JSON value, or a stream of one event."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import mcp_server

if TYPE_CHECKING:
    from mcp_server import Json

SESSION = "session-7"


class HttpServer:
    """What was asked of it. `status` is what it answers with, 200 unless it is to refuse; `padding` makes it wordy."""

    def __init__(self, *, status: int = 200, padding: int = 0, encoding: str = "") -> None:
        self.status = status
        self.padding = padding
        self.encoding = encoding
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.url = ""

    def answer(self, message: Json) -> Json:
        """The answer to a request."""
        answer: Json = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            return {**answer, "result": mcp_server.respond(message["method"], message.get("params", {}))}
        except LookupError:
            return {**answer, "error": {"code": -32601, "message": "Method not found"}}


class Listening(ThreadingHTTPServer):
    """A socket, and what answers there."""

    daemon_threads = True

    def __init__(self, behaviour: HttpServer) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.behaviour = behaviour

    def handle_error(self, request: object, client_address: object) -> None:
        """Whoever was sent too much has left."""


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"

    @property
    def behaviour(self) -> HttpServer:
        assert isinstance(self.server, Listening)
        return self.server.behaviour

    def do_POST(self) -> None:
        message: Json = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.note(str(message.get("method")))
        answer = b"" if "id" not in message else json.dumps(self.behaviour.answer(message)).encode()
        if self.behaviour.status != HTTPStatus.OK:
            self.reply(self.behaviour.status, b"go away", "text/plain")
        elif not answer:
            self.reply(HTTPStatus.ACCEPTED, b"", "application/json")
        elif message["method"] == "tools/call":
            self.reply(HTTPStatus.OK, b"event: message\ndata: " + answer + b"\n\n", "text/event-stream")
        else:
            self.reply(HTTPStatus.OK, answer + b" " * self.behaviour.padding, "application/json")

    def do_GET(self) -> None:
        self.reply(HTTPStatus.METHOD_NOT_ALLOWED, b"", "text/plain")

    def do_DELETE(self) -> None:
        self.note("")
        self.reply(HTTPStatus.OK, b"", "text/plain")

    def note(self, method: str) -> None:
        heard = {name.lower(): value for name, value in self.headers.items()}
        self.behaviour.requests.append((self.command, method, heard))

    def reply(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        for name, value in (
            ("content-type", kind),
            ("content-length", str(len(body))),
            ("mcp-session-id", SESSION),
            ("content-encoding", self.behaviour.encoding),
            ("location", "https://example.com/mcp" if status == HTTPStatus.TEMPORARY_REDIRECT else ""),
        ):
            if value:
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that it has there
        del format, args


@contextmanager
def serving(behaviour: HttpServer) -> Generator[HttpServer]:
    """`behaviour` while the context lasts; its address is in `url`."""
    listening = Listening(behaviour)
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    behaviour.url = f"http://127.0.0.1:{listening.server_address[1]}/mcp"
    try:
        yield behaviour
    finally:
        listening.shutdown()
        thread.join()
        listening.server_close()
