"""Conversations as the original JP stores them, written by hand: one of each variant of its format."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from jp.conversation.entries import AnyEntry
from jp.conversation.ids import ConversationId
from jp.conversation.original import convert

Event = dict[str, Any]
ID = ConversationId.parse("jp-c17662304290")
BASE: Event = {
    "inherit": True,
    "extends": [],
    "assistant": {"model": {"id": {"provider": "anthropic", "name": "claude-a"}}},
    "conversation": {"attachments": ["file:///docs/a.md", {"type": "cmd", "path": "ls", "params": {"args": ["-l"]}}]},
    "style": {},
}
DECLARED = ("file:docs/a.md", "cmd://ls?arg=-l")
LARGE = "a line of output, äöü\n" * 400


def encoded(text: str, times: int = 1) -> str:
    """Base64 as it is on disk."""
    for _ in range(times):
        text = base64.b64encode(text.encode()).decode()
    return text


def event(kind: str, second: int = 0, **fields: Any) -> Event:
    """An event; `second` says when."""
    return {"timestamp": f"2025-12-20 11:33:{second:02d}.091877", "type": kind, **fields}


def call(identity: str, name: str = "fs_read_file", **arguments: Any) -> Event:
    """A call of a tool; `arguments` are plain texts."""
    stored = {key: encoded(value) if isinstance(value, str) else value for key, value in arguments.items()}
    return event("tool_call_request", id=identity, name=name, arguments=stored)


def result(identity: str, content: str, *, is_error: bool = False) -> Event:
    """The response to it."""
    return event("tool_call_response", id=identity, content=encoded(content), is_error=is_error)


def current() -> list[Event]:
    """Variant A: turns are marked, the base configuration lies in a file; every type of event, and a large result."""
    return [
        event("turn_start", 1),
        event("chat_request", 2, content="What is in a.txt?", author="Somebody"),
        event("chat_response", 3, reasoning="I look.", metadata={"anthropic_thinking_signature": encoded("c2ln")}),
        {**call("toolu_1", path="a.txt", deep=["x", {"y": 1}]), "metadata": {"rendered_arguments": encoded("ü", 2)}},
        event(
            "inquiry_request",
            5,
            id="toolu_1.overwrite",
            source={"source": "tool", "name": "fs_read_file"},
            question={"text": "Really?", "answer_type": {"type": "boolean"}, "default": True},
        ),
        event("inquiry_response", 6, id="toolu_1.overwrite", answer=True),
        result("toolu_1", LARGE),
        event("chat_response", 8, message="It holds lines."),
        event("config_delta", 9, delta={"assistant": {"model": {"id": "quick"}}}),
        event("turn_start", 10),
        event("chat_request", 11, content="As JSON", schema={"type": "object"}),
        event("chat_response", 12, data={"lines": 400}),
    ]


def write_original(directory: Path, events: Sequence[Event], *, base: Event | None = None, **metadata: Any) -> Path:
    """Store a conversation in `directory`."""
    directory.mkdir(parents=True)
    (directory / "events.json").write_text(f"{json.dumps(events, indent=2)}\n", encoding="utf-8")
    if base is not None:
        (directory / "base_config.json").write_text(f"{json.dumps(base, indent=2)}\n", encoding="utf-8")
    stated = {"title": "A title", "last_activated_at": "2025-12-20 11:33:49.0", **metadata}
    (directory / "metadata.json").write_text(f"{json.dumps(stated, indent=2)}\n", encoding="utf-8")
    return directory


class Fixed:
    """Settings that nothing changes."""

    provider = "anthropic"
    model = "claude-a"
    attachments = ("file:a",)

    def change(self, delta: Event) -> Event:
        """The delta as it is."""
        return delta


def converted(events: Sequence[Event]) -> list[AnyEntry]:
    """The entries after the header."""
    return convert(json.dumps(events).encode(), ID, Fixed())[1:]


def texts_in(value: Any) -> Iterator[str]:
    """Every string in decoded JSON, the names of objects too."""
    match value:
        case str():
            yield value
        case dict():
            for name, below in cast("Event", value).items():
                yield name
                yield from texts_in(below)
        case list():
            for item in cast("list[Any]", value):
                yield from texts_in(item)
        case _:
            pass
