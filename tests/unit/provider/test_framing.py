from __future__ import annotations

import pytest

from jp.provider.errors import ProviderError
from jp.provider.reader import NdjsonDecoder, ServerSentEvent, SseDecoder


def events_of(*chunks: bytes) -> list[ServerSentEvent]:
    decoder = SseDecoder()
    return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.close()


def test_an_event_has_a_name_and_data() -> None:
    assert events_of(b"event: ping\ndata: {}\n\n") == [ServerSentEvent("ping", b"{}")]


def test_data_lines_are_joined_and_lose_one_space_each() -> None:
    assert events_of(b"data:a\ndata:  b\ndata\n\n") == [ServerSentEvent("", b"a\n b\n")]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_end_in_any_of_three_ways(end: bytes) -> None:
    body = end.join([b"event: a", b"data: 1", b"", b"data: 2", b"", b""])

    assert events_of(body) == [ServerSentEvent("a", b"1"), ServerSentEvent("", b"2")]


def test_a_carriage_return_ends_its_line_at_once() -> None:
    decoder = SseDecoder()

    assert decoder.feed(b"data: 1\r\r") == [ServerSentEvent("", b"1")]
    assert decoder.feed(b"") == []
    assert decoder.feed(b"\ndata: 2\r\n") == []
    assert decoder.feed(b"\r") == [ServerSentEvent("", b"2")]
    assert decoder.feed(b"\n") == []
    assert decoder.feed(b"data: 3\n\n") == [ServerSentEvent("", b"3")]


def test_comments_and_unknown_fields_are_skipped() -> None:
    assert events_of(b": keep-alive\n\nfoo: bar\ndata: 1\n\n") == [ServerSentEvent("", b"1")]


def test_an_event_without_data_is_none() -> None:
    assert events_of(b"event: a\n\ndata: 1\n\n") == [ServerSentEvent("", b"1")]


def test_the_id_stays_and_the_retry_time_does_not() -> None:
    body = b"id: 7\nretry: 250\ndata: 1\n\nretry: soon\nid: 8\0\ndata: 2\n\n"

    assert events_of(body) == [ServerSentEvent("", b"1", "7", 250), ServerSentEvent("", b"2", "7", None)]


def test_a_byte_order_mark_is_dropped_wherever_it_is_cut() -> None:
    assert events_of(b"\xef", b"\xbb\xbfda", b"ta: 1\n\n") == [ServerSentEvent("", b"1")]


def test_a_character_may_be_cut() -> None:
    assert events_of("data: é".encode()[:7], b"\xa9\n\n") == [ServerSentEvent("", "é".encode())]


def test_the_last_event_needs_no_blank_line() -> None:
    assert events_of(b"data: 1\n\ndata: 2") == [ServerSentEvent("", b"1"), ServerSentEvent("", b"2")]
    assert events_of(b"data: 1\n") == [ServerSentEvent("", b"1")]


@pytest.mark.parametrize("chunks", [(b"data: " + b"x" * 20,), (b"data: x\n" * 12,), (b"data:", b"x" * 9, b"x" * 9)])
def test_an_event_is_bounded(chunks: tuple[bytes, ...]) -> None:
    decoder = SseDecoder(max_event_bytes=10)

    with pytest.raises(ProviderError, match="more than 10 bytes") as caught:
        list(map(decoder.feed, chunks))

    assert caught.value.kind == "output_limit"


def test_many_small_events_are_not_one_large_one() -> None:
    decoder = SseDecoder(max_event_bytes=10)

    assert len([event for _ in range(50) for event in decoder.feed(b"data: 12345\n\n")]) == 50


def test_lines_of_json_are_events_without_names() -> None:
    decoder = NdjsonDecoder()

    assert decoder.feed(b'{"a":1}\r\n\n{"b"') == [ServerSentEvent("", b'{"a":1}')]
    assert decoder.feed(b":2}\n") == [ServerSentEvent("", b'{"b":2}')]
    assert decoder.close() == []


def test_the_last_line_of_json_needs_no_end() -> None:
    decoder = NdjsonDecoder()
    decoder.feed(b'{"a":1}')

    assert decoder.close() == [ServerSentEvent("", b'{"a":1}')]
    assert decoder.close() == []


def test_a_line_of_json_is_bounded() -> None:
    with pytest.raises(ProviderError, match="more than 4 bytes"):
        NdjsonDecoder(max_event_bytes=4).feed(b"12345")
