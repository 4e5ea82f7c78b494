"""Responses that no recording has: what Gemini may send, and what it sends when it fails."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

import google_wire as wire
from google_oracle import told_by_sdk
from jp.config.assignment import read_partial
from jp.config.layers import config_of
from jp.conversation.thread import Thread, UserText
from jp.provider.base import Finished, Part, TextDelta
from jp.provider.errors import ProviderError
from jp.provider.registry import create_provider, parse_model_id
from loopback import HTML, JSON, Loopback, Reply
from provider_at import KEY, Ending, provider_at, receive
from stories import Told, told

MODEL = "gemini-3.8-flash"
ASKED = Thread(model=MODEL, system=(), tools=(), events=(UserText(text="Hi", turn=0),))


def answered(*replies: Reply, thread: Thread = ASKED, **request: Any) -> list[Ending]:
    """What came of one request for each reply."""
    with Loopback(*replies) as server:
        provider = provider_at(server.url + "/v1beta", provider="google", model=MODEL, **request)
        return [anyio.run(receive, provider, thread) for _ in replies]


def parts_of(body: bytes, cuts: Sequence[int] = ()) -> list[Part]:
    (ending,) = answered(Reply(body=body, cuts=tuple(cuts)))
    assert ending.error is None
    return ending.parts


def failure(reply: Reply, **request: Any) -> ProviderError:
    (ending,) = answered(reply, **request)
    assert ending.error is not None
    return ending.error


def failed(code: int, status: str, message: str, *details: wire.Event) -> ProviderError:
    error: wire.Event = {"error": {"code": code, "message": message, "status": status, "details": list(details)}}
    return failure(Reply(status=code, headers=JSON, body=msgspec.json.encode(error)))


INFO: wire.Event = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "domain": "googleapis.com"}
LIMIT: wire.Event = {"violations": [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel"}]}
PAUSE: wire.Event = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17s"}


@pytest.mark.parametrize(
    ("code", "status", "message", "kind"),
    [
        (400, "INVALID_ARGUMENT", "Unsupported MIME type: image/gif", "invalid_request"),
        (400, "INVALID_ARGUMENT", "Corrupted thought signature.", "rejected_reasoning"),
        (400, "FAILED_PRECONDITION", "User location is not supported for the API use.", "invalid_request"),
        (401, "UNAUTHENTICATED", "Request had invalid authentication credentials.", "authentication"),
        (403, "PERMISSION_DENIED", "Your API key was reported as leaked.", "authentication"),
        (404, "NOT_FOUND", f"models/{MODEL} is no longer available to new users.", "model_not_found"),
        (413, "INVALID_ARGUMENT", "Too large.", "context_too_long"),
        (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.", "quota"),
        (500, "INTERNAL", "An internal error has occurred.", "transient"),
        (503, "UNAVAILABLE", "The model is overloaded.", "transient"),
        (529, "UNAVAILABLE", "Overloaded.", "transient"),
    ],
)
def test_every_status_has_a_kind_and_a_sentence(code: int, status: str, message: str, kind: str) -> None:
    error = failed(code, status, message)

    assert (error.kind, error.status, error.retry_after) == (kind, code, None)
    assert error.message == f"google answered {code}: {message}"


def test_a_limit_of_a_minute_is_waited_for() -> None:
    error = failed(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.", LIMIT, PAUSE)

    assert (error.kind, error.retry_after) == ("rate_limit", 17.0)


def test_a_key_that_is_not_valid_says_where_it_came_from() -> None:
    error = failed(400, "INVALID_ARGUMENT", "API key not valid.", {**INFO, "reason": "API_KEY_INVALID"})

    assert error.kind == "authentication"
    assert "JP_TEST_KEY" in error.hint


def test_an_unknown_model_is_told_its_neighbours() -> None:
    assert "'google/gemini-3.7-flash'" in failed(404, "NOT_FOUND", "models/x is not found").hint


@pytest.mark.parametrize(("status", "kind"), [(502, "transient"), (503, "transient"), (200, "other"), (404, "other")])
def test_a_page_of_a_proxy_is_told_by_its_title(status: int, kind: str) -> None:
    page = b"<html><head><title>Error 502\n(Server Error)</title></head></html>"
    error = failure(Reply(status=status, headers=HTML, body=page))

    assert (error.kind, error.message) == (kind, f"google answered {status}: Error 502 (Server Error)")


def test_an_error_in_a_stream_comes_after_what_was_said() -> None:
    body = wire.body(wire.chunk(wire.part("Hel")), wire.error(503, "UNAVAILABLE", "The model is overloaded."))
    (ending,) = answered(Reply(body=body))

    assert ending.parts == [TextDelta(0, "Hel")]
    assert ending.error is not None
    assert (ending.error.kind, ending.error.least_wait) == ("transient", 3.0)


@pytest.mark.parametrize("ends", ["close", "reset", "complete"])
def test_a_stream_without_a_reason_of_its_end_is_cut(ends: str) -> None:
    whole = wire.body(wire.chunk(wire.part("one")), wire.chunk(wire.part("twö"), finish="STOP"))
    offset = whole.index("ö".encode()) + 1
    reply = msgspec.convert({"body": b"", "ends": ends}, Reply)
    (ending,) = answered(msgspec.structs.replace(reply, body=whole[:offset], cuts=(offset - 40,)))

    assert ending.error is not None
    assert ending.error.kind == "cut"


@pytest.mark.parametrize("ends", ["close", "reset"])
def test_an_answer_that_said_why_it_ends_is_complete_however_the_connection_ends(ends: str) -> None:
    body = wire.message("Hello")
    reply = msgspec.convert({"ends": ends}, Reply)
    (ending,) = answered(msgspec.structs.replace(reply, body=body))

    assert ending.error is None
    assert ending.parts[-1] == Finished("stop")


def test_the_last_chunk_needs_no_blank_line_but_has_to_be_whole() -> None:
    body = wire.message("Hello").rstrip(b"\r\n")

    assert parts_of(body)[-1] == Finished("stop")
    assert failure(Reply(body=body[:-1])).kind == "cut"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_may_end_in_any_way(end: str) -> None:
    body = wire.body(wire.chunk(wire.part("a")), wire.chunk(wire.part("b"), finish="STOP"), end=end)
    body = b": a comment" + end.encode() * 2 + body

    assert told(parts_of(body, range(0, len(body), 3))).blocks == [Told("message", "ab")]


@pytest.mark.parametrize("reason", ["SAFETY", "PROHIBITED_CONTENT", "RECITATION", "BLOCKLIST", "SPII"])
def test_a_safety_stop_is_a_refusal(reason: str) -> None:
    body = wire.body(wire.chunk(wire.part("I")), wire.chunk(finish=reason))

    assert parts_of(body)[-1] == Finished("refused", reason)


def test_a_question_that_is_blocked_is_refused() -> None:
    assert parts_of(wire.body(wire.blocked("SAFETY")))[-1] == Finished("refused", "SAFETY")


def test_a_call_that_the_model_spoiled_is_asked_for_again() -> None:
    body = wire.body(wire.chunk(finish="MALFORMED_FUNCTION_CALL", message="Malformed function call: print("))
    error = failure(Reply(body=body))

    assert error.is_retryable
    assert "malformed function call: Malformed function call: print(" in error.message


def test_calls_may_be_made_at_once() -> None:
    first = wire.call("run", {"a": 1}, signature="czE=")
    body = wire.body(wire.chunk(first, wire.call("run", {"a": 2})), wire.chunk(finish="STOP"))
    story = told(parts_of(body))

    assert story.finish == "tools"
    assert [(block.call_id, block.opaque) for block in story.blocks] == [("call_r1_0", "czE="), ("call_r1_1", "")]


def test_json_in_place_of_a_stream_is_an_error() -> None:
    assert failure(Reply(headers=JSON, body=b"[]")).message == (
        "google answered 200: expected a stream, got application/json"
    )


def test_the_request_carries_the_key_in_a_header_and_the_model_in_the_address() -> None:
    with Loopback(Reply(body=wire.message("Hello"))) as server:
        anyio.run(receive, provider_at(server.url + "/v1beta/", provider="google", model=MODEL), ASKED)
        (request,) = server.wait_for_requests(1)

    assert (request.method, request.target) == ("POST", f"/v1beta/models/{MODEL}:streamGenerateContent?alt=sse")
    assert request.headers["x-goog-api-key"] == KEY
    assert KEY not in request.target
    assert request.json()["contents"] == [{"role": "user", "parts": [{"text": "Hi"}]}]


def test_no_key_is_in_any_error() -> None:
    for code in (400, 401, 500):
        error = failed(code, "INTERNAL", f"you sent {KEY}")

        assert KEY not in error.message + error.hint


def test_a_server_of_the_user_s_own_may_speak_as_google() -> None:
    body = wire.body(wire.chunk(wire.part("hm", thought=True, signature="cw=="), wire.part("Hello"), finish="STOP"))
    with Loopback(Reply(body=body)) as server:
        own = {"kind": "google", "base_url": server.url, "headers": {"x-team": "a"}}
        config = config_of(read_partial({"providers": {"llm": {"mine": own}}}))
        model = parse_model_id("mine/some-model", config.providers.llm)
        provider = create_provider(config, model, environ={}, root=Path())
        ending = anyio.run(receive, provider, msgspec.structs.replace(ASKED, model="some-model"))
        (request,) = server.wait_for_requests(1)

    assert ending.error is None
    assert provider.id == "mine"
    assert request.target == "/models/some-model:streamGenerateContent?alt=sse"
    assert "x-goog-api-key" not in request.headers
    assert request.headers["x-team"] == "a"
    assert told(ending.parts).blocks == [Told("reasoning", "hm", "cw=="), Told("message", "Hello")]


def test_the_sdk_reads_the_same_from_what_we_made_up() -> None:
    body = wire.body(
        wire.chunk(wire.part("hm", thought=True)),
        wire.chunk(wire.part("a"), usage={"promptTokenCount": 7}),
        wire.chunk(wire.part("", signature="czE=")),
        wire.chunk(wire.call("run", {"a": 1}, signature="czI="), wire.call("run", {"a": 2})),
        wire.chunk(finish="STOP", usage={"promptTokenCount": 7, "candidatesTokenCount": 3, "thoughtsTokenCount": 2}),
    )
    with Loopback(otherwise=Reply(body=body)) as server:
        theirs = told_by_sdk(server.url, MODEL)
    ours = told(parts_of(body))
    for block in ours.blocks:
        block.call_id = ""

    assert ours == theirs
