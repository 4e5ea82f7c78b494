"""Bodies of the Messages API, as its server streams them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loopback import sse

Event = dict[str, object]


def start(*, model: str = "claude-haiku-4-5", usage: Mapping[str, object] | None = None) -> Event:
    counted = {"input_tokens": 10, "output_tokens": 1} if usage is None else dict(usage)
    message: Event = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": counted,
    }
    return {"type": "message_start", "message": message}


def block(index: int, content: Mapping[str, object], *deltas: Mapping[str, object]) -> list[Event]:
    opened: Event = {"type": "content_block_start", "index": index, "content_block": dict(content)}
    grown: list[Event] = [{"type": "content_block_delta", "index": index, "delta": dict(delta)} for delta in deltas]
    return [opened, *grown, {"type": "content_block_stop", "index": index}]


def text(index: int, *pieces: str) -> list[Event]:
    deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
    return block(index, {"type": "text", "text": ""}, *deltas)


def thinking(index: int, *pieces: str, signature: str = "sig") -> list[Event]:
    deltas: list[Event] = [{"type": "thinking_delta", "thinking": piece} for piece in pieces]
    signed: Event = {"type": "signature_delta", "signature": signature}
    return block(index, {"type": "thinking", "thinking": "", "signature": ""}, *deltas, signed)


def redacted(index: int, data: str = "opaque") -> list[Event]:
    return block(index, {"type": "redacted_thinking", "data": data})


def tool_use(index: int, name: str, *arguments: str, call_id: str = "toolu_1") -> list[Event]:
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in arguments]
    return block(index, {"type": "tool_use", "id": call_id, "name": name, "input": {}}, *deltas)


def ending(reason: str | None = "end_turn", **details: object) -> list[Event]:
    delta: Event = {"stop_reason": reason, "stop_sequence": None, **details}
    return [
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ]


PING: Event = {"type": "ping"}


def error(kind: str, message: str) -> Event:
    return {"type": "error", "error": {"type": kind, "message": message}}


def answer(*blocks: Sequence[Event], reason: str = "end_turn", end: str = "\n", **details: object) -> bytes:
    """A whole response."""
    events = [start(), PING, *(event for events in blocks for event in events), *ending(reason, **details)]
    return sse(*events, end=end)


def message(*pieces: str) -> bytes:
    """A whole response that says `pieces`."""
    return answer(text(0, *pieces))


def call(name: str, arguments: str, *, call_id: str = "toolu_1") -> bytes:
    """A whole response that calls a tool."""
    return answer(tool_use(0, name, arguments, call_id=call_id), reason="tool_use")
