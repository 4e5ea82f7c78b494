"""Recorded conversations with agents, as transcripts of `jp.context`. They lie outside of the repository."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from jp.context.types import Block, Call, Message, ReasoningBlock, Role, TextBlock, Transcript


class _Call(msgspec.Struct):
    id: str | None
    name: str
    arguments: object


class _Row(msgspec.Struct):
    role: Role
    text: str | None = None
    reasoning: str | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None


def recorded_transcripts() -> Iterator[tuple[str, Transcript]]:
    """Each with its name; skips the test where there are none."""
    folder = os.environ.get("JP_TEST_DATA")
    if not folder:
        pytest.skip("JP_TEST_DATA is not set")
    decoder = msgspec.json.Decoder(_Row)
    files = [*Path(folder).glob("transcripts/*.jsonl"), *Path(folder).glob("jp_conversations/*/transcript.jsonl")]
    for file in sorted(files):
        rows = decoder.decode_lines(file.read_bytes())
        yield f"{file.parent.name}/{file.name}", tuple(map(_message, rows))


def _message(row: _Row) -> Message:
    text = row.text or ""
    blocks: tuple[Block, ...] = (ReasoningBlock(text=row.reasoning or ""), TextBlock(text=text))
    return Message(
        role=row.role,
        content=blocks if row.reasoning else text,
        calls=tuple(Call(id=call.id or "", name=call.name, arguments=_text(call)) for call in row.tool_calls or ()),
        call_id=row.tool_call_id or "",
    )


def _text(call: _Call) -> str:
    return call.arguments if isinstance(call.arguments, str) else msgspec.json.encode(call.arguments).decode()
