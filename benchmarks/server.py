"""A loopback model server for timing: it notes when the first byte of each request arrived, then streams an answer."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable

TOKENS = 50


def _sse(*events: dict[str, object], named: bool) -> bytes:
    lines = [f"{_name(event) if named else ''}data: {json.dumps(event)}\n\n" for event in events]
    return "".join(lines).encode()


def _name(event: dict[str, object]) -> str:
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


class TimingServer:
    """Serves requests one after the other until it is closed. `arrivals` are `time.monotonic` of first bytes."""

    def __init__(self) -> None:
        self.arrivals: list[float] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        data = connection.recv(65536)
        self.arrivals.append(time.monotonic())
        head, _, body = data.partition(b"\r\n\r\n")
        length = next(
            (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")), 0
        )
        while len(body) < length:
            body += connection.recv(65536)
        answer = _answer_to(head.split(b"\r\n")[0])
        kind = b"application/x-ndjson" if b"/api/chat" in head else b"text/event-stream"
        connection.sendall(
            b"HTTP/1.1 200 OK\r\ncontent-type: "
            + kind
            + b"\r\nconnection: close\r\n"
            + f"content-length: {len(answer)}\r\n\r\n".encode()
            + answer
        )
