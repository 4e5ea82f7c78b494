"""Chunks of `streamGenerateContent`, as its server streams them: with CRLF, without names, without an end."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

Event = dict[str, object]


def part(text: str, *, thought: bool = False, signature: str | None = None) -> Event:
    said: Event = {"text": text, "thought": True} if thought else {"text": text}
    return said if signature is None else {**said, "thoughtSignature": signature}


def call(
    name: str, arguments: Mapping[str, object], *, call_id: str | None = None, signature: str | None = None
) -> Event:
    function: Event = {"name": name, "args": dict(arguments)}
    called: Event = {"functionCall": function if call_id is None else {**function, "id": call_id}}
    return called if signature is None else {**called, "thoughtSignature": signature}


def chunk(
    *parts: Event, finish: str | None = None, message: str | None = None, usage: Mapping[str, int] | None = None
) -> Event:
    """One chunk; with `finish`, the last one."""
    candidate: Event = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    if message is not None:
        candidate["finishMessage"] = message
    counted: Event = {} if usage is None else {"usageMetadata": dict(usage)}
    return {"candidates": [candidate], "modelVersion": "gemini-3.8-flash", "responseId": "r1", **counted}


def blocked(reason: str) -> Event:
    return {"promptFeedback": {"blockReason": reason}, "responseId": "r1", "usageMetadata": {"promptTokenCount": 5}}


def error(code: int, status: str, message: str) -> Event:
    return {"error": {"code": code, "message": message, "status": status}}


def body(*events: Event, end: str = "\r\n") -> bytes:
    """A response of these chunks."""
    return b"".join(b"data: " + msgspec.json.encode(event) + (end * 2).encode() for event in events)


def message(*pieces: str) -> bytes:
    """A whole response that says `pieces`."""
    *first, last = pieces
    return body(*(chunk(part(piece)) for piece in first), chunk(part(last), finish="STOP"))
