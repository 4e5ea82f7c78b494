"""Small logs for tests, entry by entry."""

from __future__ import annotations

from msgspec.structs import replace

from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    CycleEnd,
    Finish,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
)
from jp.conversation.resource import TextBlock

LONG = "line of output\n" * 40


def log(*entries: AnyEntry) -> list[AnyEntry]:
    """Entries as a writer stamps them; those that have an id keep it."""
    return [entry if entry.id else replace(entry, id=f"e{number}") for number, entry in enumerate(entries)]


def start(number: int) -> TurnStart:
    return TurnStart(id=f"t{number}")


def ask(text: str) -> ChatRequest:
    return ChatRequest(content=text)


def say(text: str, *, signature: str | None = None) -> ChatResponse:
    return ChatResponse(message=text, metadata=None if signature is None else {"signature": signature})


def think(text: str, *, signature: str | None = "signed") -> ChatResponse:
    return ChatResponse(reasoning=text, metadata=None if signature is None else {"signature": signature})


def call(identity: str, name: str = "run", *, signature: str | None = None) -> ToolCallRequest:
    """A call whose entry has id `identity`, and `call_id` "call_0" as those before it."""
    return ToolCallRequest(
        id=identity,
        call_id="call_0",
        name=name,
        arguments={"command": "make test"},
        metadata=None if signature is None else {"signature": signature},
    )


def respond(identity: str, text: str = LONG, *, is_error: bool = False) -> ToolCallResponse:
    """The response to the call whose entry has id `identity`."""
    return ToolCallResponse(request=identity, content=(TextBlock(text=text),), is_error=is_error)


def end(finish: Finish = "stop", *, attempt: int = 1) -> CycleEnd:
    return CycleEnd(attempt=attempt, finish=finish)


def whole_turn(number: int, *, tool: str = "run", is_error: bool = False) -> list[AnyEntry]:
    """A turn with everything: the question, reasoning, a call, its response, and an answer."""
    return [
        start(number),
        ask(f"question {number}"),
        think(f"thought {number}"),
        call(f"c{number}", tool),
        end("tools"),
        respond(f"c{number}", f"output {number} " * 40, is_error=is_error),
        say(f"answer {number}"),
        end(),
    ]
