"""What a provider seals goes back to it byte for byte: through its decoder, the log, the projection and the request."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from typing import cast

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import anthropic_wire
import chat_wire
import google_wire
import openai_wire
from jp.compaction.status_lines import PlainStatusFormatter
from jp.config.model import LlmConfig
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    JsonObject,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
    decode,
    encode,
)
from jp.conversation.original import convert
from jp.conversation.resource import TextBlock
from jp.provider.base import Part, WireRequest
from jp.provider.http import Adapter
from jp.provider.reader import Reader
from jp.provider.registry import create_adapter
from jp.turn.builder import EntryBuilder
from jp.turn.request import InlineLoader, RequestSettings, build_thread
from originals import ID, call, encoded, event, result

BLOBS = st.text(min_size=1, max_size=40) | st.binary(min_size=1, max_size=60).map(lambda data: data.hex())
MODELS = {
    "anthropic": "claude-sonnet-5-5",
    "google": "gemini-3-flash",
    "openai": "gpt-5.6",
    "openrouter": "anthropic/claude-opus-5",
}


class Sealed(msgspec.Struct, frozen=True):
    """An answer with sealed reasoning and a call, as it streams, and what has to go back of it."""

    body: bytes
    native: Sequence[JsonObject]


def _anthropic(blob: str) -> Sealed:
    blocks = (
        anthropic_wire.thinking(0, "so", signature=blob),
        anthropic_wire.redacted(1, blob),
        anthropic_wire.tool_use(2, "run", "{}"),
    )
    native: list[JsonObject] = [
        {"type": "thinking", "thinking": "so", "signature": blob},
        {"type": "redacted_thinking", "data": blob},
    ]
    return Sealed(anthropic_wire.answer(*blocks, reason="tool_use"), native)


def _google(blob: str) -> Sealed:
    parts = (
        google_wire.part("so", thought=True, signature=blob),
        google_wire.part("Hi", signature=blob),
        google_wire.call("run", {}, call_id="c", signature=blob),
    )
    function: JsonObject = {"id": "c", "name": "run", "args": {}}
    native: list[JsonObject] = [
        {"text": "so", "thought": True, "thoughtSignature": blob},
        {"text": "Hi", "thoughtSignature": blob},
        {"functionCall": function, "thoughtSignature": blob},
    ]
    return Sealed(google_wire.body(google_wire.chunk(*parts, finish="STOP")), native)


def _openai(blob: str) -> Sealed:
    reasoning = openai_wire.reasoning("so", item_id=f"rs_{blob}", encrypted=blob)
    message = openai_wire.message("Hi", item_id=f"msg_{blob}", phase="commentary")
    items = (reasoning, message, openai_wire.call("run", "{}"))
    native = [
        {name: value for name, value in reasoning.items() if name != "content"},
        {**message, "phase": "commentary"},
    ]
    return Sealed(openai_wire.answer(*items), native)


def _openrouter(blob: str) -> Sealed:
    details: list[JsonObject] = [
        {"type": "reasoning.text", "text": "so", "signature": blob, "format": "anthropic-claude-v1", "index": 0},
        {"type": "reasoning.encrypted", "data": blob, "id": blob, "format": "openai-responses-v1", "index": 1},
    ]
    deltas = ({"reasoning": "so", "reasoning_details": details}, chat_wire.call(0, "{}", id="c", name="run"))
    return Sealed(chat_wire.answer(*deltas, finish="tool_calls"), details)


ANSWERS = {"anthropic": _anthropic, "google": _google, "openai": _openai, "openrouter": _openrouter}


def logged(entries: Sequence[AnyEntry]) -> list[AnyEntry]:
    """Entries as they are read again."""
    return [decode(encode(entry)) for entry in entries]


def recorded(parts: Sequence[Part]) -> Iterator[AnyEntry]:
    """What the log gets of an answer, and results for its calls."""
    builder = EntryBuilder()
    calls: list[ToolCallRequest] = []
    for number, part in enumerate(parts):
        entry = builder.feed(part)
        if entry is not None:
            entry = msgspec.structs.replace(entry, id=f"e-{number:03}")
            calls += [entry] if isinstance(entry, ToolCallRequest) else []
            yield entry
    for made in calls:
        yield ToolCallResponse(id=f"{made.id}r", request=made.id, content=(TextBlock(text="done"),), is_error=False)


def adapter_of(name: str) -> Adapter:
    """The adapter of a provider as nobody has set it up."""
    return create_adapter(LlmConfig(), name, kind=name)


def asked_of(name: str, entries: Sequence[AnyEntry]) -> WireRequest:
    """The request for `entries`."""
    settings = RequestSettings(provider=name, model=MODELS[name], renderer=1)
    return adapter_of(name).render(
        build_thread(entries, settings, loader=InlineLoader(), status_formatter=PlainStatusFormatter())
    )


def sent(name: str, entries: Sequence[AnyEntry]) -> list[JsonObject]:
    """Every object in the body of the request for `entries`, as it goes over the wire."""
    body = msgspec.json.encode(asked_of(name, entries).body)
    return list(objects(msgspec.json.decode(body)))


def objects(value: object) -> Iterator[JsonObject]:
    """Every object in decoded JSON."""
    if isinstance(value, dict):
        yield cast("JsonObject", value)
        for below in cast("JsonObject", value).values():
            yield from objects(below)
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from objects(item)


def missing(native: Sequence[JsonObject], found: Sequence[JsonObject]) -> list[JsonObject]:
    """What is not among what was sent."""
    return [item for item in native if item not in found]


@pytest.mark.parametrize("name", list(ANSWERS))
@given(blob=BLOBS)
@example(blob=" \u00e9\n+/==\u2028 ")
def test_what_was_sealed_goes_back_as_it_came(name: str, blob: str) -> None:
    answer = ANSWERS[name](blob)
    asked: list[AnyEntry] = [TurnStart(id="t-0"), ChatRequest(id="r-0", content="Go")]
    request = asked_of(name, asked)
    reader = Reader(adapter_of(name).decoder(request), request.framing, max_bytes=10**6)
    parts = [*reader.feed(answer.body), *(() if reader.finished else reader.close())]
    entries = logged([*asked, *recorded(parts)])

    assert missing(answer.native, sent(name, entries)) == []


class Original:
    """The settings of a conversation that the original JP had with one provider."""

    attachments: tuple[str, ...] = ()

    def __init__(self, name: str) -> None:
        self.provider = name
        self.model = MODELS[name]

    def change(self, delta: JsonObject) -> JsonObject:
        """The delta as it is."""
        return delta


ORIGINAL_METADATA: dict[str, Callable[[str], list[JsonObject]]] = {
    "anthropic": lambda blob: [
        {"anthropic_thinking_signature": blob},
        {},
        {},
    ],
    "google": lambda blob: [
        {"google_thought_signature": blob},
        {"google_thought_signature": blob},
        {"google_thought_signature": blob},
    ],
    "openai": lambda blob: [
        {"openai_item_id": "rs_1", "openai_encrypted_content": blob},
        {"openai_item_id": "msg_1", "openai_phase": "commentary"},
        {"openai_item_id": "fc_1"},
    ],
}
SEALED = st.binary(min_size=12, max_size=60).map(lambda data: base64.b64encode(b"\xff\xfe" + data).decode())
"""As providers seal: bytes that mean nothing, in base64."""


@pytest.mark.parametrize("name", list(ORIGINAL_METADATA))
@given(blob=SEALED)
def test_what_the_original_stored_goes_back_as_what_it_was(name: str, blob: str) -> None:
    of_thought, of_text, of_call = (
        {key: encoded(value) for key, value in given.items()} for given in ORIGINAL_METADATA[name](blob)
    )
    events = [
        event("turn_start", 1),
        event("chat_request", 2, content="Go"),
        event("chat_response", 3, reasoning="so", metadata=of_thought),
        event("chat_response", 4, message="Hi", metadata=of_text),
        {**call("c", name="run"), "metadata": of_call},
        result("c", "done"),
    ]
    entries = convert(msgspec.json.encode(events), ID, Original(name))
    native: dict[str, list[JsonObject]] = {
        "anthropic": [{"type": "thinking", "thinking": "so", "signature": blob}],
        "google": list(_google(blob).native),
        "openai": [
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "so"}],
                "encrypted_content": blob,
            },
            openai_wire.message("Hi", phase="commentary"),
            {"type": "function_call", "call_id": "c", "name": "run", "arguments": "{}"},
        ],
    }

    assert missing(native[name], sent(name, logged(entries))) == []
