"""What holds of every decoder for answers that are almost right: of wrong types, out of order, too deep, too large."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anthropic_wire
import chat_wire
import google_wire
import openai_wire
from jp.conversation.entries import JsonObject, encode
from jp.provider.anthropic.response import AnthropicDecoder
from jp.provider.base import (
    BlockEnd,
    Finished,
    Framing,
    InputReport,
    KeepAlive,
    Part,
    ResponseDecoder,
    Sections,
    ToolCallStart,
    UsageReport,
    WireRequest,
)
from jp.provider.chat.response import ChatDecoder
from jp.provider.classification import Origin, Reply, classify
from jp.provider.errors import ProviderError
from jp.provider.google.response import GoogleDecoder
from jp.provider.ollama.response import OllamaDecoder
from jp.provider.openai.response import OpenaiDecoder
from jp.provider.reader import Reader
from jp.turn.builder import EntryBuilder

Path = tuple[str | int, ...]

_DEEP = b"[" * 3000 + b"]" * 3000
_MARK = "strange-value-"
RAW = (
    *(b"null", b"true", b"-1", b"0", b"7.5", b"1e400", b"123456789012345678901234567890", b'""', b'"x"', b"[]", b"{}"),
    *(b"[null]", b"[{}]", b'{"a":null}', rb'"\ud800"', b'"\xff\xfe"', b'{"text":1,"text":"two"}', _DEEP, b'"}{"'),
    *(
        b'{"code":null,"message":[],"type":7,"status":{}}',
        b'"' + b"9" * 5000 + b'"',
        b"9" * 5000,
        b'"try again in ' + b"9" * 400 + b's"',
        b"[[[[1]]]]",
    ),
)


class Case(msgspec.Struct, frozen=True):
    """A decoder, and an answer that it reads: events with thoughts, text, two calls and a count.

    `end` is how the event begins, somewhere in it, that says why the answer ends.
    """

    decoder: Callable[[], ResponseDecoder]
    events: Sequence[JsonObject]
    end: bytes


def _request(body: JsonObject) -> WireRequest:
    return WireRequest(path="/", model="m", body=body, sections=Sections())


def _chat() -> list[JsonObject]:
    details = [{"type": "reasoning.text", "text": "hm", "signature": "s", "index": 0}]
    deltas = (
        {"reasoning": "hm", "reasoning_details": details},
        {"content": "<think>so</think>Hi"},
        {"content": [{"type": "text", "text": "there", "thinking": [{"text": "x"}]}], "refusal": None},
        chat_wire.call(0, '{"a":', id="c1", name="run"),
        chat_wire.call(1, '{"b":2}', id="c1", name="look"),
        chat_wire.call(0, "1}"),
    )
    events = [*map(chat_wire.chunk, deltas), chat_wire.chunk(finish="tool_calls"), chat_wire.usage(9, 5, cached=2)]
    return [dict(event) for event in events]


def _openai() -> list[JsonObject]:
    items = (
        openai_wire.reasoning("so", "then"),
        openai_wire.message("Hello there"),
        openai_wire.call("run", '{"a":1}'),
        openai_wire.call("look", '{"b":2}'),
    )
    streamed = [event for index, item in enumerate(items) for event in openai_wire.item(index, item)]
    return [*openai_wire.start(), *streamed, openai_wire.ending("completed", *items)]


def _google() -> list[JsonObject]:
    chunks = (
        google_wire.chunk(google_wire.part("so", thought=True), google_wire.part("", signature="c2ln")),
        google_wire.chunk(google_wire.part("Hi"), google_wire.call("run", {"a": 1}, call_id="c1", signature="c2ln")),
        google_wire.chunk(google_wire.call("look", {"b": 2}, call_id="c1")),
        google_wire.chunk(finish="STOP", message="done", usage={"promptTokenCount": 9, "candidatesTokenCount": 3}),
    )
    return [dict(chunk) for chunk in chunks]


def _ollama() -> list[JsonObject]:
    call: JsonObject = {"id": "c1", "function": {"index": 0, "name": "run", "arguments": {"a": 1}}}
    messages: tuple[JsonObject, ...] = (
        {"content": "", "thinking": "so"},
        {"content": "<think>x</think>Hi"},
        {"content": "", "tool_calls": [call, call]},
    )
    lines: list[JsonObject] = [{"model": "m", "message": message, "done": False} for message in messages]
    counts = {"prompt_eval_count": 9, "eval_count": 3, "load_duration": 5}
    return [*lines, {"model": "m", "message": {}, "done": True, "done_reason": "stop", **counts}]


def _anthropic() -> list[JsonObject]:
    blocks = (
        anthropic_wire.thinking(0, "so", signature="s"),
        anthropic_wire.redacted(1),
        anthropic_wire.text(2, "Hi"),
        anthropic_wire.tool_use(3, "run", '{"a":', "1}"),
        anthropic_wire.tool_use(4, "look", '{"b":2}'),
    )
    events = [
        anthropic_wire.start(),
        *(event for block in blocks for event in block),
        *anthropic_wire.ending("tool_use"),
    ]
    return [cast("JsonObject", event) for event in events]


_STRICT: JsonObject = {
    "tools": [{"name": "run", "strict": True, "parameters": {"type": "object", "properties": {"a": {}}}}],
    "text": {"format": {"name": "answer", "schema": {"type": "object", "properties": {"wrapped_answer": {}}}}},
}
CASES = {
    "anthropic": Case(lambda: AnthropicDecoder(model="m"), _anthropic(), b'"stop_reason":"tool_use"'),
    "chat": Case(lambda: ChatDecoder(model="m", provider="p"), _chat(), b'"finish_reason":"tool_calls"'),
    "google": Case(lambda: GoogleDecoder(model="m"), _google(), b'"finishReason"'),
    "ollama": Case(lambda: OllamaDecoder(_request({"messages": []}), provider="p"), _ollama(), b'"done":true'),
    "openai": Case(lambda: OpenaiDecoder(_request({})), _openai(), b'"response.completed"'),
    "openai, strict": Case(lambda: OpenaiDecoder(_request(_STRICT)), _openai(), b'"response.completed"'),
}


def _paths(value: object, within: Path = ()) -> list[Path]:
    if isinstance(value, dict):
        below = [_paths(item, (*within, name)) for name, item in cast("JsonObject", value).items()]
    elif isinstance(value, list):
        below = [_paths(item, (*within, number)) for number, item in enumerate(cast("list[object]", value))]
    else:
        below = []
    return [within, *(path for paths in below for path in paths)]


def _replaced(value: object, path: Path, new: object) -> object:
    if not path:
        return new
    first, rest = path[0], path[1:]
    if isinstance(value, dict):
        known = cast("dict[str | int, object]", value)
        return {**known, first: _replaced(known[first], rest, new)}
    items = cast("list[object]", value)
    return [_replaced(item, rest, new) if number == first else item for number, item in enumerate(items)]


def _written(event: object) -> bytes:
    data = msgspec.json.encode(event)
    for number, raw in enumerate(RAW):
        data = data.replace(f'"{_MARK}{number:03}"'.encode(), raw)
    return data


@st.composite
def strange(draw: st.DrawFn, events: Sequence[JsonObject]) -> list[bytes]:
    """An answer in which something is of another type, or missing, or in another place."""
    answer: list[object] = list(events)
    for _ in range(draw(st.integers(1, 3))):
        number = draw(st.integers(0, len(answer) - 1))
        match draw(st.sampled_from(["value", "value", "value", "twice", "away", "moved"])):
            case "twice":
                answer.insert(number, answer[number])
            case "away" if len(answer) > 1:
                del answer[number]
            case "moved":
                answer.insert(draw(st.integers(0, len(answer) - 1)), answer.pop(number))
            case _:
                path = draw(st.sampled_from(_paths(answer[number])))
                marked = f"{_MARK}{draw(st.integers(0, len(RAW) - 1)):03}"
                answer[number] = _replaced(answer[number], path, marked)
    return list(map(_written, answer))


def read(decoder: ResponseDecoder, events: Sequence[bytes]) -> list[Part]:
    """What comes of an answer, up to an error or the end of it."""
    parts: list[Part] = []
    try:
        for data in events:
            parts += decoder.feed("", data)
            if parts and isinstance(parts[-1], Finished):
                return parts
        parts += decoder.close()
    except ProviderError:
        pass
    return parts


class _Checker:
    """What of the blocks has begun and ended."""

    def __init__(self) -> None:
        self.open: dict[int, str] = {}
        self.ended: set[int] = set()
        self.call_ids: set[str] = set()

    def hear(self, part: Part) -> None:
        match part:
            case UsageReport(usage=usage):
                assert min(msgspec.structs.astuple(usage)) >= 0
            case ToolCallStart(index=index, call_id=call_id, name=name):
                assert call_id
                assert name
                assert call_id not in self.call_ids
                assert index not in self.ended
                assert index not in self.open
                self.call_ids.add(call_id)
                self.open[index] = "ToolArgumentsDelta"
            case BlockEnd(index=index):
                assert index not in self.ended
                self.open.pop(index, None)
                self.ended.add(index)
            case Finished(reason=reason):
                assert not self.open or reason == "length"
            case KeepAlive() | InputReport():
                pass
            case _:
                assert part.index not in self.ended
                assert self.open.setdefault(part.index, type(part).__name__) == type(part).__name__


def check(parts: Sequence[Part]) -> None:
    """Every block is of one kind and ends once, calls have names and ids of their own, and all can be written down."""
    checker, builder = _Checker(), EntryBuilder()
    for part in parts:
        checker.hear(part)
        entry = builder.feed(part)
        if entry is not None:
            encode(entry)
    for entry in builder.cut():
        encode(entry)


@pytest.mark.parametrize("name", list(CASES))
def test_an_answer_that_is_right_is_read_to_its_end(name: str) -> None:
    case = CASES[name]
    parts = read(case.decoder(), list(map(msgspec.json.encode, case.events)))
    check(parts)

    assert isinstance(parts[-1], Finished)
    assert len([part for part in parts if isinstance(part, ToolCallStart)]) == 2


@pytest.mark.parametrize("name", list(CASES))
@given(data=st.data())
def test_whatever_is_wrong_with_an_answer_only_a_provider_error_comes_of_it(name: str, data: st.DataObject) -> None:
    case = CASES[name]

    check(read(case.decoder(), data.draw(strange(case.events))))


def _breaks(body: bytes) -> list[int]:
    """Lengths at all ends of lines and in all longer characters; of those between, which are alike, every seventh."""
    return [
        length
        for length in range(len(body))
        if length % 7 == 0
        or b"\n" in body[max(length - 3, 0) : length + 3]
        or not body[max(length - 3, 0) : length + 3].isascii()
    ]


@pytest.mark.parametrize("name", list(CASES))
def test_an_answer_that_breaks_off_is_complete_only_where_it_said_why_it_ends(name: str) -> None:
    case = CASES[name]
    framing: Framing = "ndjson" if name == "ollama" else "sse"
    field = b"" if framing == "ndjson" else b"data: "
    body = b"".join(field + msgspec.json.encode(event) + b"\n\n" for event in case.events)
    body = body.replace(b"Hi", "Hé€𝄞".encode())
    for length in _breaks(body):
        reader = Reader(case.decoder(), framing, max_bytes=10**6)
        check([*reader.feed(body[:length]), *(() if reader.finished else reader.close())])

        assert not reader.finished or length > body.index(case.end)


ERRORS: tuple[JsonObject, ...] = (
    {"error": {"code": 429, "message": "slow", "type": "rate_limit_error", "param": None, "status": "UNAVAILABLE"}},
    {
        "error": {
            "message": "no",
            "metadata": {"raw": '{"error":{"message":"in"}}', "provider_name": "x"},
            "details": [{"reason": "API_KEY_INVALID", "violations": [{"quotaId": "PerDay"}]}],
        }
    },
    {"detail": [{"loc": ["body", 0], "msg": "missing"}], "message": {"detail": [{"loc": [], "msg": "so"}]}},
    {"error": '{"error":{"message":"within"}}', "user_id": "u"},
)


@given(st.data())
def test_whatever_an_error_is_told_by_it_is_a_provider_error(data: st.DataObject) -> None:
    for body in data.draw(strange(ERRORS)):
        status = data.draw(st.sampled_from([None, 200, 400, 404, 429, 500]))
        error = classify(Reply(body=body, status=status), Origin(provider="p", model="m"), now=0.0)

        assert error.message.startswith("p ")
        assert len(error.message) < 1000


@given(st.lists(st.sampled_from(RAW), max_size=3), st.sampled_from([b"data: ", b"retry: ", b"id: ", b"event: ", b""]))
def test_whatever_frames_hold_is_framed_and_the_rest_is_left(raws: Sequence[bytes], field: bytes) -> None:
    for framing in ("sse", "ndjson", "json"):
        decoder = CASES["chat"].decoder() if framing == "sse" else CASES["ollama"].decoder()
        reader = Reader(decoder, framing, max_bytes=10**6)
        try:
            for raw in raws:
                list(reader.feed(field + raw + b"\n\n"))
            list(reader.feed(b"data: " + _DEEP))
            list(reader.close())
        except ProviderError as error:
            if not error.message.startswith("p "):
                raise
