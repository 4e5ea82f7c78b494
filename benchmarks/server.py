"""A loopback model server: it notes when each request arrived and on which connection, then streams an answer."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

TOKENS = 50
LINES = 2000
"""The lines of the file `lines.txt`, of which each scripted tool call reads another one."""


def _sse(*events: Mapping[str, object], named: bool) -> bytes:
    lines = [f"{_name(event) if named else ''}data: {json.dumps(event)}\n\n" for event in events]
    return "".join(lines).encode()


def _name(event: Mapping[str, object]) -> str:
    return f"event: {event['type']}\n"


def _anthropic() -> bytes:
    usage = {"input_tokens": 5, "output_tokens": 1}
    head: dict[str, object] = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "x",
        "content": [],
        "usage": usage,
    }
    deltas: list[dict[str, object]] = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": f"word{number} "}}
        for number in range(TOKENS)
    ]
    return _sse(
        {"type": "message_start", "message": head},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *deltas,
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": TOKENS}},
        {"type": "message_stop"},
        named=True,
    )


def _chat_completions() -> bytes:
    def chunk(delta: dict[str, object], finish: str | None) -> dict[str, object]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "x", "choices": [choice]}

    deltas = [chunk({"role": "assistant", "content": f"word{number} "}, None) for number in range(TOKENS)]
    return _sse(*deltas, chunk({}, "stop"), named=False) + b"data: [DONE]\n\n"


def _responses() -> bytes:
    part: dict[str, object] = {"type": "output_text", "text": "", "annotations": []}
    item: dict[str, object] = {"id": "msg", "type": "message", "role": "assistant", "status": "completed"}
    where: dict[str, object] = {"item_id": "msg", "output_index": 0, "content_index": 0}
    words = [f"word{number} " for number in range(TOKENS)]
    whole = {**part, "text": "".join(words)}
    usage = {"input_tokens": 5, "output_tokens": TOKENS, "total_tokens": TOKENS + 5}
    response: dict[str, object] = {"id": "r", "object": "response", "model": "x", "status": "in_progress", "output": []}
    done = {**response, "status": "completed", "output": [{**item, "content": [whole]}], "usage": usage}
    return _sse(
        {"type": "response.created", "response": response},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        {"type": "response.content_part.added", **where, "part": part},
        *({"type": "response.output_text.delta", **where, "delta": word} for word in words),
        {"type": "response.output_text.done", **where, "text": whole["text"]},
        {"type": "response.content_part.done", **where, "part": whole},
        {"type": "response.output_item.done", "output_index": 0, "item": {**item, "content": [whole]}},
        {"type": "response.completed", "response": done},
        named=True,
    )


def _google() -> bytes:
    def chunk(text: str, **more: object) -> dict[str, object]:
        return {"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": text}]}, **more}]}

    words = [f"word{number} " for number in range(TOKENS)]
    usage = {"promptTokenCount": 5, "candidatesTokenCount": TOKENS, "totalTokenCount": TOKENS + 5}
    last = {**chunk(words[-1], finishReason="STOP"), "usageMetadata": usage}
    return _sse(*map(chunk, words[:-1]), last, named=False)


def _ollama() -> bytes:
    def line(text: str, *, done: bool) -> dict[str, object]:
        ending = {"done_reason": "stop", "prompt_eval_count": 5, "eval_count": TOKENS} if done else {}
        message = {"role": "assistant", "content": text}
        return {"model": "x", "created_at": "2026-01-01T00:00:00Z", "message": message, "done": done, **ending}

    lines = [line(f"word{number} ", done=False) for number in range(TOKENS)]
    return b"".join(json.dumps(each).encode() + b"\n" for each in [*lines, line("", done=True)])


_ANSWERS: tuple[tuple[bytes, Callable[[], bytes]], ...] = (
    (b"/v1/messages", _anthropic),
    (b"/responses", _responses),
    (b":streamGenerateContent", _google),
    (b"/api/chat", _ollama),
)
"""Answers by what stands in the request line; all others are Chat Completions."""


def _answer_to(request_line: bytes) -> bytes:
    return next((answer for word, answer in _ANSWERS if word in request_line), _chat_completions)()


def tool_calls(first: int, count: int) -> bytes:
    """Return an answer of Anthropic's with `count` calls, each of which reads another line of `lines.txt`."""
    usage = {"input_tokens": 5, "output_tokens": 1}
    head: dict[str, object] = {
        "id": f"m{first}",
        "type": "message",
        "role": "assistant",
        "model": "x",
        "content": [],
        "usage": usage,
    }
    events: list[dict[str, object]] = [{"type": "message_start", "message": head}]
    for index in range(count):
        line = (first + index) % LINES + 1
        arguments = json.dumps({"path": "lines.txt", "start_line": line, "end_line": line})
        call: dict[str, object] = {
            "type": "tool_use",
            "id": f"call{first + index}",
            "name": "fs_read_file",
            "input": {},
        }
        delta: dict[str, object] = {"type": "input_json_delta", "partial_json": arguments}
        block: list[dict[str, object]] = [
            {"type": "content_block_start", "index": index, "content_block": call},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
        events += block
    ending: dict[str, object] = {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use"},
        "usage": {"output_tokens": TOKENS},
    }
    return _sse(*events, ending, {"type": "message_stop"}, named=True)


class Connection(Protocol):
    """A connection, encrypted or not."""

    def recv(self, size: int, /) -> bytes:
        """Return what has come; nothing once the client has left."""
        ...

    def sendall(self, data: bytes, /) -> None:
        """Send all of it."""
        ...


class TlsConnection:
    """A connection whose handshake is counted: `flights` are the answers that the client has to wait for in it."""

    def __init__(self, raw: socket.socket, context: ssl.SSLContext) -> None:
        self._raw = raw
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self.flights = 0
        while not self._shaken():
            self._receive()

    def _shaken(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self.flights += self._flush()
            return False
        waits = self._tls.version() != "TLSv1.3"  # with that, only tickets come after the client's last message
        self.flights += self._flush() and waits
        return True

    def _flush(self) -> bool:
        data = self._outgoing.read()
        self._raw.sendall(data)
        return bool(data)

    def _receive(self) -> None:
        data = self._raw.recv(65536)
        if not data:
            raise ConnectionResetError
        self._incoming.write(data)

    def recv(self, size: int, /) -> bytes:
        """See the protocol."""
        while True:
            try:
                return self._tls.read(size)
            except ssl.SSLWantReadError:
                self._receive()
            except ssl.SSLZeroReturnError:
                return b""

    def sendall(self, data: bytes, /) -> None:
        """See the protocol."""
        self._tls.write(data)
        self._flush()


class TimingServer:
    """Serve each connection in a thread until it is closed.

    The answers in `scripted` are given first, in order; then each request gets an answer of its protocol. `arrivals`
    and `ends` are `time.monotonic` of the first bytes of requests and the last of answers, `connections` the number of
    those that were accepted, and `flights` the answers to wait for in handshakes: of TCP one, of TLS more.
    """

    def __init__(self, scripted: Sequence[bytes] = (), tls: ssl.SSLContext | None = None) -> None:
        self.arrivals: list[float] = []
        self.ends: list[float] = []
        self.connections = 0
        self.flights = 0
        self._tls = tls
        self._scripted = iter(scripted)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """The address that it listens on."""
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self._listener.getsockname()[1]}"

    def script(self, answers: Sequence[bytes]) -> None:
        """Give these answers to the next requests."""
        self._scripted = iter(answers)

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections += 1
            self.flights += 1
            threading.Thread(target=self._converse, args=(connection,), daemon=True).start()

    def _converse(self, connection: socket.socket) -> None:
        with connection:
            try:
                opened = self._opened(connection)
                while self._answer(opened):
                    pass
            except OSError:
                return

    def _opened(self, raw: socket.socket) -> Connection:
        if self._tls is None:
            return raw
        connection = TlsConnection(raw, self._tls)
        self.flights += connection.flights
        return connection

    def _answer(self, connection: Connection) -> bool:
        """Answer one request; False once the client has left."""
        data = connection.recv(65536)
        if not data:
            return False
        self.arrivals.append(time.monotonic())
        while b"\r\n\r\n" not in data:
            data += connection.recv(65536)
        head, _, body = data.partition(b"\r\n\r\n")
        length = next(
            (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")), 0
        )
        received = len(body)
        while received < length:
            received += len(connection.recv(1 << 20))
        answer = next(self._scripted, None) or _answer_to(head.split(b"\r\n")[0])
        kind = b"application/x-ndjson" if b"/api/chat" in head else b"text/event-stream"
        head = b"HTTP/1.1 200 OK\r\ncontent-type: " + kind + b"\r\ntransfer-encoding: chunked\r\n\r\n"
        connection.sendall(head + b"%x\r\n%b\r\n" % (len(answer), answer))
        connection.sendall(b"0\r\n\r\n")  # apart, as from servers that learn only then that it was all
        self.ends.append(time.monotonic())
        return True
