"""However a Chat Completions stream is cut and its calls are interleaved, what comes out is the same."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

import chat_wire as wire
from jp.provider.base import Finished, Part, ReasoningDelta, TextDelta
from jp.provider.chat.response import ChatDecoder
from jp.provider.errors import ProviderError
from jp.provider.reader import Reader, ThinkSplitter
from stories import told

PIECES = st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=5)


@st.composite
def cut(draw: st.DrawFn, data: bytes) -> list[bytes]:
    marks = sorted(draw(st.lists(st.integers(0, len(data)), max_size=8)))
    return [data[start:end] for start, end in zip([0, *marks], [*marks, len(data)], strict=True)]


def read(chunks: list[bytes]) -> list[Part]:
    reader = Reader(ChatDecoder(model="m", provider="p", think_tags=False), "sse", max_bytes=10_000)
    parts = [part for chunk in chunks for part in reader.feed(chunk)]
    return [*parts, *([] if reader.finished else reader.close())]


@given(st.data(), PIECES, st.sampled_from(["\n", "\r\n", "\r"]))
def test_parts_do_not_depend_on_the_cuts(data: st.DataObject, pieces: list[str], end: str) -> None:
    call = wire.call(0, '{"a":1}', id="c1", name="run")
    body = wire.answer({"reasoning": "hm"}, *wire.says(*pieces), call, finish="tool_calls", end=end)
    parts = read(data.draw(cut(body)))

    assert [part.text for part in parts if isinstance(part, TextDelta)] == pieces
    assert [part.text for part in parts if isinstance(part, ReasoningDelta)] == ["hm"]
    assert parts[-1] == Finished("tools")


@given(st.data(), PIECES)
def test_what_breaks_off_before_the_reason_to_finish_is_never_complete(data: st.DataObject, pieces: list[str]) -> None:
    whole = wire.stream(*map(wire.chunk, wire.says(*pieces)), done=False)
    parts = read([whole[: data.draw(st.integers(0, len(whole)))]])

    assert not any(isinstance(part, Finished) for part in parts)


@given(st.data(), st.lists(st.text(max_size=6), min_size=1, max_size=4))
def test_calls_that_come_in_turns_come_apart(data: st.DataObject, values: list[str]) -> None:
    texts = [msgspec.json.encode({"v": value}).decode() for value in values]
    pieces = [(number, character) for number, text in enumerate(texts) for character in text]
    order = data.draw(st.permutations([number for number, _ in pieces]))
    rest = [iter(text) for text in texts]
    opening = [wire.call(number, id=f"c{number}", name="run") for number in range(len(texts))]
    body = wire.answer(*opening, *(wire.call(number, next(rest[number])) for number in order), finish="tool_calls")
    story = told(read([body]))

    assert [block.text for block in story.blocks] == texts
    assert [block.call_id for block in story.blocks] == [f"c{number}" for number in range(len(texts))]


values = st.recursive(st.none() | st.text() | st.integers(), lambda inner: st.lists(inner, max_size=4), max_leaves=9)


@given(st.binary(max_size=200) | values.map(msgspec.json.encode))
def test_whatever_a_server_sends_only_a_provider_error_is_raised(data: bytes) -> None:
    decoder = ChatDecoder(model="m", provider="p")
    try:
        decoder.feed("", data)
        decoder.close()
    except ProviderError as error:
        if not error.message.startswith("p "):
            raise


SPLIT = st.lists(st.sampled_from(["<think>", "</think>", "<", "think>", "</", " ", "\n", "a", "bc"]), max_size=8)


@given(st.data(), SPLIT)
def test_tags_of_thoughts_do_not_depend_on_the_cuts(data: st.DataObject, pieces: list[str]) -> None:
    text = "".join(pieces)
    chunks = [chunk.decode() for chunk in data.draw(cut(text.encode()))]

    assert split(chunks) == split([text])
    assert split(chunks)[0] == "" or text.lstrip().startswith("<think>")


def split(chunks: list[str]) -> tuple[str, str]:
    splitter = ThinkSplitter()
    found = [*(splitter.feed(chunk) for chunk in chunks), splitter.finish()]
    return "".join(each.reasoning for each in found), "".join(each.text for each in found)
