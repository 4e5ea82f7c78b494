"""Responses that no recording has: what the API may send, and what it sends when it fails."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from typing import Any

import anthropic
import anyio
import msgspec
import pytest

import anthropic_wire as wire
from certificates import WITHOUT_CERTIFICATES
from jp.conversation.entries import JsonObject
from jp.conversation.thread import Thread, UserText
from jp.provider.base import Finished, Part, TextDelta
from jp.provider.errors import ProviderError
from loopback import HTML, JSON, SSE, Loopback, Reply, sse
from provider_at import Ending, provider_at, receive
from stories import Told, told

ASKED = Thread(model="claude-opus-5.5", system=(), tools=(), events=(UserText(text="Hi", turn=0),))
OWN = "claude-opus-5.5"


def answered(*replies: Reply, **request: Any) -> list[Ending]:
    """What came of one request for each reply."""
    with Loopback(*replies) as server:
        provider = provider_at(server.url, **request)
        return [anyio.run(receive, provider, ASKED) for _ in replies]


def parts_of(body: bytes, cuts: Sequence[int] = ()) -> list[Part]:
    (ending,) = answered(Reply(body=body, cuts=tuple(cuts)))
    assert ending.error is None
    return ending.parts


def failure(reply: Reply, **request: Any) -> ProviderError:
    (ending,) = answered(reply, **request)
    assert ending.error is not None
    return ending.error


def failed(status: int, kind: str, message: str, *headers: tuple[str, str]) -> ProviderError:
    error = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    return failure(Reply(status=status, headers=(*JSON, *headers), body=msgspec.json.encode(error)))


@pytest.mark.parametrize(
    ("status", "native", "kind"),
    [
        (400, "invalid_request_error", "invalid_request"),
        (401, "authentication_error", "authentication"),
        (403, "permission_error", "authentication"),
        (404, "not_found_error", "model_not_found"),
        (413, "request_too_large", "context_too_long"),
        (429, "rate_limit_error", "rate_limit"),
        (500, "api_error", "transient"),
        (529, "overloaded_error", "transient"),
    ],
)
def test_every_status_has_a_kind_and_a_sentence(status: int, native: str, kind: str) -> None:
    error = failed(status, native, "model: claude-opus-5.5")

    assert error.kind == kind
    assert error.status == status
    assert error.message == f"anthropic answered {status}: model: claude-opus-5.5"
    assert error.retry_after is None


@pytest.mark.parametrize("status", [429, 529])
def test_a_pause_in_seconds_is_kept(status: int) -> None:
    assert failed(status, "rate_limit_error", "slow down", ("retry-after", "17")).retry_after == 17.0


def test_a_pause_until_a_date_is_kept() -> None:
    wait = failed(429, "rate_limit_error", "slow down", ("retry-after", "Fri, 01 Jan 2100 00:00:00 GMT")).retry_after

    assert wait is not None
    assert wait > 1_000_000


def test_an_unknown_model_is_told_its_neighbours() -> None:
    assert "'anthropic/claude-opus-5-5'" in failed(404, "not_found_error", "model: claude-opus-5.5").hint


def test_an_error_in_a_stream_comes_after_what_was_said() -> None:
    body = sse(wire.start(), *wire.text(0, "Hel", "lo"), wire.error("overloaded_error", "Overloaded"))
    (ending,) = answered(Reply(body=body))

    assert [part.text for part in ending.parts if isinstance(part, TextDelta)] == ["Hel", "lo"]
    assert ending.error is not None
    assert ending.error.kind == "transient"
    assert (ending.error.retry_after, ending.error.least_wait) == (None, 3.0)


@pytest.mark.parametrize("ends", ["close", "reset"])
def test_a_stream_that_breaks_off_inside_a_character_keeps_what_was_whole(ends: str) -> None:
    whole = sse(wire.start(), *wire.text(0, "one", "twö"))
    offset = whole.index("ö".encode()) + 1
    reply = msgspec.convert({"body": b"", "ends": ends}, Reply)
    (ending,) = answered(msgspec.structs.replace(reply, body=whole[:offset], cuts=(offset - 40,)))

    assert ending.error is not None
    assert ending.error.kind == "cut"
    if ends == "close":
        assert [part.text for part in ending.parts if isinstance(part, TextDelta)] == ["one"]


def test_a_stream_that_ends_too_early_is_cut() -> None:
    (ending,) = answered(Reply(body=sse(wire.start(), wire.PING)))

    assert ending.error is not None
    assert ending.error.kind == "cut"
    assert "before it was complete" in ending.error.message


def test_the_last_event_needs_no_blank_line_but_has_to_be_whole() -> None:
    whole = wire.message("Hello")
    body = whole[: whole.index(b"event: message_stop")].rstrip(b"\n")

    assert parts_of(body)[-1] == Finished("stop")
    assert failure(Reply(body=body[:-1])).kind == "cut"


def test_a_refusal_is_explained() -> None:
    details = {"type": "refusal", "category": "bio", "explanation": "No."}

    assert parts_of(wire.answer(wire.text(0, "I"), reason="refusal", stop_details=details))[-1] == Finished(
        "refused", "No."
    )


def test_redacted_and_split_thinking_keep_their_seals() -> None:
    body = wire.answer(
        wire.thinking(0, "The ans", signature="s1"),
        wire.redacted(1, "sealed"),
        wire.thinking(2, "wer", signature="s2"),
        wire.text(3, "42"),
    )

    assert told(parts_of(body)).blocks == [
        Told("reasoning", "The ans", "s1"),
        Told("reasoning", "", "sealed"),
        Told("reasoning", "wer", "s2"),
        Told("message", "42"),
    ]


def test_parallel_calls_come_apart() -> None:
    body = wire.answer(
        wire.tool_use(0, "run", '{"a"', ":1}", call_id="t1"), wire.tool_use(1, "look", call_id="t2"), reason="tool_use"
    )
    story = told(parts_of(body))

    assert [(block.call_id, block.name, block.arguments) for block in story.blocks] == [
        ("t1", "run", {"a": 1}),
        ("t2", "look", {}),
    ]
    assert story.finish == "tools"


def test_what_is_unknown_is_skipped() -> None:
    strange: list[wire.Event] = [{"type": "message_whisper", "text": "psst"}]
    chart = wire.block(1, {"type": "chart", "data": {"x": 1}}, {"type": "text_delta", "text": "no"})

    assert told(parts_of(wire.answer(strange, wire.text(0, "a"), chart))).blocks == [Told("message", "a")]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_may_end_in_any_way(end: str) -> None:
    body = wire.answer(wire.text(0, "a", "b"), end=end)

    assert told(parts_of(body, range(0, len(body), 3))).blocks == [Told("message", "ab")]


def test_a_compressed_response_is_read() -> None:
    reply = Reply(body=gzip.compress(wire.message("Hello")), headers=(*SSE, ("content-encoding", "gzip")), cuts=(9, 40))
    (ending,) = answered(reply)

    assert told(ending.parts).blocks == [Told("message", "Hello")]


def test_a_response_that_is_compressed_wrongly_is_worth_a_retry() -> None:
    assert failure(Reply(body=b"not gzip", headers=(*SSE, ("content-encoding", "gzip")))).kind == "transient"


def test_a_page_of_a_proxy_is_told_by_its_title() -> None:
    page = b"<html><head><title>Bad\n gateway</title></head><body>p</body></html>"

    assert failure(Reply(status=502, headers=HTML, body=page)).message == "anthropic answered 502: Bad gateway"
    answered = failure(Reply(headers=HTML, body=page))
    assert answered.message == "anthropic answered 200: Bad gateway"
    assert "`providers.llm.anthropic.base_url`" in answered.hint


def test_json_in_place_of_a_stream_is_an_error() -> None:
    error = failure(Reply(headers=JSON, body=b'{"error":{"message":"streaming is off"}}'))

    assert error.message == "anthropic answered 200: streaming is off"


def test_a_redirect_is_explained_and_not_followed() -> None:
    with Loopback(Reply(status=307, headers=(("location", "https://example.org/x?k=v"),))) as server:
        error = anyio.run(receive, provider_at(server.url), ASKED).error

        assert len(server.requests) == 1
    assert error is not None
    assert "'https://example.org/x'" in error.message
    assert "providers.llm.anthropic.base_url" in error.hint


def test_a_broken_error_body_leaves_the_status() -> None:
    assert failure(Reply(status=500, body=b"half", ends="close")).message == "anthropic answered 500: half"
    assert failure(Reply(status=500, body=b"x" * 200_000)).status == 500


def test_an_answer_that_is_too_long_is_stopped() -> None:
    body = wire.message(*["12345678é"] * 10)
    error = failure(Reply(body=body), max_response_bytes=99)

    assert error.kind == "output_limit"
    assert "longer than 99 bytes" in error.message
    assert "max_response_bytes" in error.hint
    (ending,) = answered(Reply(body=body), max_response_bytes=100)
    assert ending.error is None


def test_bytes_that_say_nothing_are_bounded_too() -> None:
    assert failure(Reply(body=b": keep-alive\n" * 1000), max_response_bytes=100).kind == "output_limit"


def test_no_key_is_in_any_error() -> None:
    for status in (400, 401, 500):
        error = failed(status, "api_error", "you sent test-key-0123456789")

        assert "test-key" not in error.message + error.hint


def test_the_request_carries_the_key_and_the_thread() -> None:
    with Loopback(Reply(body=wire.message("Hello"))) as server:
        anyio.run(receive, provider_at(server.url + "/v1/", beta_headers=["b1", "b2"]), ASKED)
        (request,) = server.wait_for_requests(1)

    body: JsonObject = request.json()
    assert (request.method, request.target) == ("POST", "/v1/messages")
    assert request.headers["x-api-key"] == "test-key-0123456789"
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert request.headers["anthropic-beta"] == "b1,b2"
    assert request.headers["user-agent"].startswith("jp/")
    assert body["stream"] is True
    assert body["model"] == OWN


def test_the_sdk_reads_the_same_from_what_we_made_up() -> None:
    body = wire.answer(
        wire.thinking(0, "hm", signature="s"),
        wire.redacted(1, "sealed"),
        wire.text(2, "a", "b"),
        wire.tool_use(3, "run", '{"a":1}'),
        reason="tool_use",
    )
    reaching = anthropic.DefaultHttpxClient(verify=WITHOUT_CERTIFICATES)
    with (
        Loopback(otherwise=Reply(body=body)) as server,
        anthropic.Anthropic(api_key="test", base_url=server.url, max_retries=0, http_client=reaching) as client,
        client.messages.stream(
            model="claude-haiku-4-5", max_tokens=9, messages=[{"role": "user", "content": "Hi"}]
        ) as stream,
    ):
        content = [msgspec.convert(block.model_dump(), JsonObject) for block in stream.get_final_message().content]

    ours = told(parts_of(body)).blocks
    assert [block["type"] for block in content] == ["thinking", "redacted_thinking", "text", "tool_use"]
    assert (content[0]["thinking"], content[0]["signature"]) == (ours[0].text, ours[0].opaque)
    assert content[1]["data"] == ours[1].opaque
    assert content[2]["text"] == ours[2].text
    assert content[3]["input"] == ours[3].arguments
