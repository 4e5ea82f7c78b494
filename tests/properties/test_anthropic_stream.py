"""However a stream of events is cut, what comes out is the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import anthropic_wire as wire
from jp.provider.anthropic.response import AnthropicDecoder
from jp.provider.base import Finished, Part, TextDelta
from jp.provider.reader import NdjsonDecoder, Reader, ServerSentEvent, SseDecoder

LINE = st.sampled_from([
    "data: 1",
    "data:é",
    "data",
    ": comment",
    "event: a",
    "id: 7",
    "retry: 3",
    "retry: x",
    "other: y",
    "",
    "\ufeffdata: 2",
])
ENDS = st.sampled_from(["\n", "\r\n", "\r"])


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    lines = draw(st.lists(st.tuples(LINE, ENDS), max_size=12))
    return "".join(line + end for line, end in lines).encode()


@st.composite
def cut(draw: st.DrawFn, data: bytes) -> list[bytes]:
    marks = sorted(draw(st.lists(st.integers(0, len(data)), max_size=8)))
    return [data[start:end] for start, end in zip([0, *marks], [*marks, len(data)], strict=True)]


def framed(chunks: list[bytes]) -> list[ServerSentEvent]:
    decoder = SseDecoder()
    return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.close()


@given(st.data(), streams())
def test_events_do_not_depend_on_the_cuts(data: st.DataObject, stream: bytes) -> None:
    whole = framed([stream])

    assert framed(data.draw(cut(stream))) == whole
    assert framed([bytes([byte]) for byte in stream]) == whole


@given(st.data(), st.lists(st.sampled_from([b'{"a":1}', b"", b" ", b'{"b":"\xc3\xa9"}']), max_size=6))
def test_lines_of_json_do_not_depend_on_the_cuts(data: st.DataObject, lines: list[bytes]) -> None:
    whole, pieces = NdjsonDecoder(), NdjsonDecoder()
    stream = b"\n".join(lines)
    events = [event for chunk in data.draw(cut(stream)) for event in pieces.feed(chunk)]

    assert events + pieces.close() == whole.feed(stream) + whole.close()
    assert len(events) <= len([line for line in lines if line.strip()])


@given(st.data(), st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=5), ENDS)
def test_parts_do_not_depend_on_the_cuts(data: st.DataObject, pieces: list[str], end: str) -> None:
    body = wire.answer(wire.thinking(0, "hm"), wire.text(1, *pieces), wire.tool_use(2, "run", '{"a":', "1}"), end=end)
    reader = Reader(AnthropicDecoder(model="m"), "sse", max_bytes=10_000)
    parts: list[Part] = []
    for chunk in data.draw(cut(body)):
        parts += reader.feed(chunk)

    assert [part.text for part in parts if isinstance(part, TextDelta)] == pieces
    assert parts[-1] == Finished("tools")
    assert reader.finished
