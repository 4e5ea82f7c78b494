"""Vendors that sign reasoning with a hash of its prefix, and drop or refuse it where that has changed."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast

import msgspec

import anthropic_wire
import openai_wire
from jp.config.model import LlmConfig
from jp.conversation.entries import JsonObject
from jp.conversation.thread import Thread
from jp.provider.base import Part, WireRequest
from jp.provider.errors import ProviderError
from jp.provider.registry import create_adapter
from loopback import JSON, Received, Reply, sse

Vendor = Literal["anthropic", "openai"]
READS: Mapping[str, tuple[str, ...]] = {"claude-fable-5-1": ("claude-opus-5", "claude-opus-5-5")}
BLANK = " "
"""In place of the name of a tool: a message of nothing but white space. An empty name is a message."""

UNCHECKED = frozenset({"claude-opus-5", "gpt-6-sol"})


class Lost(NamedTuple):
    """A piece of reasoning that a model was not shown: where it stands in the request, and why."""

    path: str
    reason: str


class PrefixServer:
    """Answers with reasoning that it signs.

    `moves` are what the next answers do: the names of the tools that each calls, or `BLANK`, or an empty name, which is
    a message. An answer without a move only speaks.
    With `refuses` reasoning behind a changed prefix is an error, else it is dropped and reported. `lost` is all that
    was dropped or refused, `sent` how many pieces of reasoning were taken.
    """

    def __init__(self, vendor: Vendor, *, refuses: bool = False) -> None:
        self.vendor: Vendor = vendor
        self.moves: list[Sequence[str]] = []
        self.lost: list[Lost] = []
        self.sent: list[int] = []
        self.bodies: list[JsonObject] = []
        self._refuses = refuses
        self._count = 0

    def __call__(self, request: Received) -> Reply:
        """Answer over HTTP."""
        body: JsonObject = dict(request.json())
        lost = self.take(body)
        if lost and self._refuses:
            return Reply(status=400, headers=JSON, body=msgspec.json.encode({"type": "error", "error": refusal(lost)}))
        return Reply(body=sse(*self.answer(body, lost)))

    def take(self, body: JsonObject) -> list[Lost]:
        """Check a request, and note what is lost of it."""
        lost = self.check(body)
        self.lost += lost
        self.bodies.append(body)
        self.sent.append(sum(1 for piece in pieces(body) if signature_of(piece.block) is not None) - len(lost))
        return lost

    def check(self, body: JsonObject) -> list[Lost]:
        """Return what is lost of a request: the first piece whose prefix has changed, and all that follow it."""
        model: str = body["model"]
        lost: list[Lost] = []
        changed = False
        state = opening(body)
        for piece in pieces(body):
            signed = signature_of(piece.block)
            if signed is not None:
                maker, _, prefix = signed.partition("|")
                if maker not in {model, *READS.get(model, ())}:
                    lost.append(Lost(piece.path, "model_binding_mismatch"))
                elif model not in UNCHECKED and (changed or prefix != state):
                    changed = True
                    lost.append(Lost(piece.path, "prefix_binding_mismatch"))
            state = grown(state, piece.role, piece.block)
        return lost

    def answer(self, body: JsonObject, lost: Sequence[Lost]) -> Iterator[JsonObject]:
        """The events of an answer: a signed thought before each call, or before what is said."""
        calls = list(self.moves.pop(0)) if self.moves else []
        state = opening(body)
        for piece in pieces(body):
            state = grown(state, piece.role, piece.block)
        blocks: list[JsonObject] = []
        for name in calls or [""]:
            self._count += 1
            thought = thinking_block(self.vendor, self._count, f"{body['model']}|{state}")
            said = spoken_block(self.vendor, self._count, name)
            for block in (thought, said):
                blocks.append(block)
                if name != BLANK or block is thought:
                    state = grown(state, "assistant", sent_back(block))
        return events_of(self.vendor, blocks, lost, calls=bool(calls))


class Piece(NamedTuple):
    """A block of a message, or an item."""

    path: str
    role: str
    block: JsonObject


def opening(body: JsonObject) -> str:
    """The hash of what stands before the messages."""
    reasoning: JsonObject = body.get("reasoning") or {}
    text: JsonObject = body.get("text") or {}
    return digest([body.get("system"), body.get("tools"), reasoning.get("effort"), text.get("format")])


def grown(state: str, role: str, block: JsonObject) -> str:
    """The hash of a prefix with one block more. A mark for the prompt cache is no part of it."""
    content: Any = block.get("content")
    plain = {name: value for name, value in block.items() if name not in {"cache_control", "id", "status"}}
    if "role" in block and isinstance(content, list):
        parts = cast("list[JsonObject]", content)
        plain["content"] = [[part.get("type"), part.get("text")] for part in parts]
    elif "role" in block:
        plain["content"] = [["output_text", content]]
    return digest([state, role, plain])


def digest(value: object) -> str:
    unmarked = msgspec.json.encode(value, order="deterministic").replace(b',"cache_control":{"type":"ephemeral"}', b"")
    unmarked = unmarked.replace(b'"cache_control":{"type":"ephemeral"},', b"")
    return hashlib.sha256(unmarked).hexdigest()[:24]


def pieces(body: JsonObject) -> Iterator[Piece]:
    """What is checked of a request, in order."""
    for number, message in enumerate(body.get("messages", ())):
        for index, block in enumerate(message["content"]):
            yield Piece(f"messages.{number}.content.{index}", message["role"], block)
    for item in body.get("input", ()):
        is_answer = item["type"] in {"reasoning", "function_call"}
        yield Piece(item.get("id", ""), item.get("role", "assistant" if is_answer else item["type"]), item)


def signature_of(block: JsonObject) -> str | None:
    """What reasoning is signed with; None for anything else."""
    return block.get("signature") or block.get("encrypted_content")


def thinking_block(vendor: Vendor, number: int, signature: str) -> JsonObject:
    if vendor == "anthropic":
        return {"type": "thinking", "thinking": f"thought {number}", "signature": signature}
    return openai_wire.reasoning(f"thought {number}", item_id=f"rs_{number}", encrypted=signature)


def spoken_block(vendor: Vendor, number: int, tool: str) -> JsonObject:
    if vendor == "anthropic":
        if tool.strip():
            return {"type": "tool_use", "id": f"toolu_{number}", "name": tool, "input": {"text": "x" * 600}}
        return {"type": "text", "text": " " if tool == BLANK else f"answer {number}"}
    if tool.strip():
        return openai_wire.call(tool, '{"text":"' + "x" * 600 + '"}', call_id=f"call_{number}")
    return openai_wire.message(" " if tool == BLANK else f"answer {number}", item_id=f"msg_{number}")


def sent_back(block: JsonObject) -> JsonObject:
    """A block of an answer as a client sends it back."""
    match block["type"]:
        case "reasoning":
            return {name: value for name, value in block.items() if name not in {"content", "status"}}
        case "function_call" | "message":
            return {name: value for name, value in block.items() if name not in {"id", "status", "annotations"}}
        case _:
            return block


def events_of(
    vendor: Vendor, blocks: Sequence[JsonObject], lost: Sequence[Lost], *, calls: bool
) -> Iterator[JsonObject]:
    """An answer as it streams, with what was done to the request."""
    if vendor == "openai":
        changes = [
            {"type": "reasoning", "action": "removed", "id": path, "reason": "prefix_mismatch"} for path, _ in lost
        ]
        yield from openai_wire.start()
        for index, item in enumerate(blocks):
            yield from openai_wire.item(index, item)
        yield openai_wire.ending("completed", *blocks, input_transformations=changes)
        return
    start = anthropic_wire.start()
    message: Any = start["message"]
    message["input_transformations"] = [
        {"type": "thinking_dropped", "path": path, "reason": reason} for path, reason in lost
    ]
    yield start
    for index, block in enumerate(blocks):
        yield from _streamed(index, block)
    yield from anthropic_wire.ending("tool_use" if calls else "end_turn")


def _streamed(index: int, block: JsonObject) -> list[JsonObject]:
    match block["type"]:
        case "thinking":
            return anthropic_wire.thinking(index, block["thinking"], signature=block["signature"])
        case "tool_use":
            arguments = msgspec.json.encode(block["input"]).decode()
            return anthropic_wire.tool_use(index, block["name"], arguments, call_id=block["id"])
        case _:
            return anthropic_wire.text(index, block["text"])


def refusal(lost: Sequence[Lost]) -> JsonObject:
    """The error of a vendor that refuses what was lost."""
    path, reason = lost[0]
    return {"type": "invalid_request_error", "message": f"{path}: Invalid `signature` in `thinking` block ({reason})"}


class CheckedProvider:
    """A provider whose requests go to a `PrefixServer`, in the vendor's own form, without a connection."""

    def __init__(self, server: PrefixServer, *, refuses: bool = False) -> None:
        self._server = server
        self._refuses = refuses
        self._adapter = create_adapter(LlmConfig(), server.vendor, kind=server.vendor)
        self.id = server.vendor
        self.renderer = self._adapter.renderer

    def render(self, thread: Thread) -> WireRequest:
        return self._adapter.render(thread)

    def locate_rejected(self, thread: Thread, error: ProviderError) -> tuple[str, ...]:
        return self._adapter.locate_rejected(thread, error)

    async def stream(self, request: WireRequest) -> AsyncGenerator[Part, None]:
        body: JsonObject = msgspec.json.decode(msgspec.json.encode(request.body))
        lost = self._server.take(body)
        if lost and self._refuses:
            raise ProviderError(refusal(lost)["message"], kind="rejected_reasoning")
        decoder = self._adapter.decoder(request)
        for event in self._server.answer(body, lost):
            for part in decoder.feed(event["type"], msgspec.json.encode(event)):
                yield part
