from __future__ import annotations

from collections.abc import Sequence

import pytest

from jp.conversation.entries import Usage
from jp.provider.base import Finished, KeepAlive, Part, ReasoningDelta, TextDelta, ToolArgumentsDelta, UsageReport
from jp.provider.errors import ProviderError
from jp.provider.reader import Reader


class Scripted:
    """Gives its parts, event after event."""

    def __init__(self, *answers: Sequence[Part]) -> None:
        self._answers = list(answers)
        self.events: list[tuple[str, bytes]] = []

    def feed(self, event: str, data: bytes) -> Sequence[Part]:
        self.events.append((event, data))
        return self._answers.pop(0)

    def close(self) -> Sequence[Part]:
        return self._answers.pop(0) if self._answers else []


def test_server_sent_events_are_given_by_name() -> None:
    decoder = Scripted([TextDelta(0, "a")])
    reader = Reader(decoder, "sse", max_bytes=9)

    assert list(reader.feed(b"event: x\ndata: 1\n\n")) == [TextDelta(0, "a")]
    assert decoder.events == [("x", b"1")]
    assert not reader.finished


def test_lines_of_json_have_no_name() -> None:
    decoder = Scripted([KeepAlive()], [Finished("stop")])
    reader = Reader(decoder, "ndjson", max_bytes=9)

    assert list(reader.feed(b'{"a":1}\n{"b"')) == [KeepAlive()]
    assert list(reader.feed(b":2}")) == []
    assert list(reader.close()) == [Finished("stop")]
    assert decoder.events == [("", b'{"a":1}'), ("", b'{"b":2}')]


def test_nothing_is_read_after_the_end() -> None:
    decoder = Scripted([Finished("stop"), KeepAlive()], [KeepAlive()])
    reader = Reader(decoder, "sse", max_bytes=9)

    assert list(reader.feed(b"data: 1\n\ndata: 2\n\n")) == [Finished("stop")]
    assert reader.finished
    assert len(decoder.events) == 1


def test_an_event_that_is_cut_in_half_is_not_read() -> None:
    reader = Reader(Scripted(), "sse", max_bytes=9)
    list(reader.feed(b'data: {"a":'))

    assert list(reader.close()) == []


def test_the_end_of_the_stream_may_complete_the_answer() -> None:
    reader = Reader(Scripted([KeepAlive()], [Finished("stop"), KeepAlive()]), "sse", max_bytes=9)
    list(reader.feed(b"data: 1\n\n"))

    assert list(reader.close()) == [Finished("stop")]
    assert reader.finished


def test_an_answer_as_a_whole_is_one_event() -> None:
    decoder = Scripted([Finished("stop")])
    reader = Reader(decoder, "json", max_bytes=9)

    assert list(reader.feed(b'{"a":\n')) == []
    assert list(reader.feed(b"1}")) == []
    assert list(reader.close()) == [Finished("stop")]
    assert decoder.events == [("", b'{"a":\n1}')]


def test_what_is_said_is_counted_in_bytes_whatever_it_is() -> None:
    parts = [TextDelta(0, "ab"), ReasoningDelta(1, "é"), ToolArgumentsDelta(2, "{}"), KeepAlive(), Finished("stop")]
    enough = Reader(Scripted(parts), "sse", max_bytes=6)
    scarce = Reader(Scripted(parts), "sse", max_bytes=5)

    assert list(enough.feed(b"data: 1\n\n")) == parts
    with pytest.raises(ProviderError, match="longer than 5 bytes") as caught:
        list(scarce.feed(b"data: 1\n\n"))
    assert caught.value.kind == "output_limit"
    assert not caught.value.is_retryable


class Failing:
    """Reports an error that says what was counted."""

    def feed(self, event: str, data: bytes) -> Sequence[Part]:
        error = ProviderError("down", kind="transient")
        error.usage = Usage(input=7, output=3)
        raise error

    def close(self) -> Sequence[Part]:
        return []


def test_what_an_error_counted_is_reported_before_it_is_raised() -> None:
    parts = Reader(Failing(), "sse", max_bytes=9).feed(b"data: 1\n\n")
    found = iter(parts)

    assert next(found) == UsageReport(Usage(input=7, output=3))
    with pytest.raises(ProviderError, match="down"):
        next(found)
