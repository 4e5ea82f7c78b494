"""Bodies of Chat Completions, as servers stream them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

Chunk = Mapping[str, object]

DONE = b"data: [DONE]\n\n"


def chunk(delta: Mapping[str, object] | None = None, finish: str | None = None, **more: object) -> Chunk:
    """One event with one choice; `more` stands beside the choices."""
    choice = {"index": 0, "delta": {} if delta is None else dict(delta), "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice], **more}


def usage(prompt: int = 10, output: int = 5, *, cached: int = 0, reasoning: int = 0) -> Chunk:
    """The event that only counts tokens."""
    counted = {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [], "usage": counted}


def call(index: int | None = 0, arguments: object = None, **more: object) -> dict[str, Any]:
    """A delta with a piece of a call: `name`, `id` and `type` as given, nothing else."""
    function = {key: value for key, value in (("name", more.pop("name", None)), ("arguments", arguments)) if value}
    piece = {**more, "function": function}
    return {"tool_calls": [piece if index is None else {"index": index, **piece}]}


def stream(*chunks: Chunk, end: str = "\n", done: bool = True) -> bytes:
    """Chunks as they come over the wire; `end` ends the lines."""
    lines: list[str] = []
    for each in chunks:
        lines += [f"data: {msgspec.json.encode(each).decode()}", ""]
    if done:
        lines += ["data: [DONE]", ""]
    return "".join(line + end for line in lines).encode()


def answer(*deltas: Mapping[str, object], finish: str = "stop", end: str = "\n") -> bytes:
    """A whole response."""
    return stream(*(chunk(delta) for delta in deltas), chunk(finish=finish), usage(), end=end)


def says(*pieces: str) -> Sequence[Mapping[str, object]]:
    """The deltas of a message."""
    return [{"role": "assistant", "content": piece} for piece in pieces]
