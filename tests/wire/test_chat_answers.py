"""Responses of servers that speak Chat Completions which no recording has: what they may send, and how they fail."""

from __future__ import annotations

from typing import Any

import anyio
import msgspec
import pytest
from msgspec.structs import replace

import chat_wire as wire
from jp.conversation.thread import Parameters, Thread, UserText
from jp.provider.base import Finished, Part, TextDelta
from jp.provider.errors import ProviderError
from loopback import HTML, JSON, Loopback, Reply
from provider_at import KEY, Ending, provider_at, receive
from stories import Told, told

ASKED = Thread(model="openai/gpt-5.6", system=(), tools=(), events=(UserText(text="Hi", turn=0),))


def answered(*replies: Reply, provider: str = "openrouter", **settings: Any) -> list[Ending]:
    """What came of one request for each reply."""
    with Loopback(*replies) as server:
        asked = provider_at(f"{server.url}/api/v1", provider=provider, model="m", **settings)
        return [anyio.run(receive, asked, ASKED) for _ in replies]


def parts_of(body: bytes, cuts: tuple[int, ...] = ()) -> list[Part]:
    (ending,) = answered(Reply(body=body, cuts=cuts))
    assert ending.error is None
    return ending.parts


def failure(reply: Reply, **settings: Any) -> ProviderError:
    (ending,) = answered(reply, **settings)
    assert ending.error is not None
    return ending.error


def refused(status: int, body: object, *headers: tuple[str, str], provider: str = "openrouter") -> ProviderError:
    reply = Reply(status=status, headers=(*JSON, *headers), body=msgspec.json.encode(body))
    return failure(reply, provider=provider)


def routed(code: int, message: str, **metadata: object) -> dict[str, object]:
    return {"error": {"code": code, "message": message, "metadata": metadata}, "user_id": "user_1"}


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (400, "Invalid parameter: top_a", "invalid_request"),
        (400, "openai/gpt-5.6 is not a valid model ID", "model_not_found"),
        (400, "This endpoint's maximum context length is 8192 tokens. However, you requested 9000", "context_too_long"),
        (401, "No auth credentials found", "authentication"),
        (402, "This request requires more credits, or fewer max_tokens", "quota"),
        (403, "openai/gpt-5.6 requires moderation. Your input was flagged", "other"),
        (403, "Key disabled", "authentication"),
        (404, "No endpoints found for openai/gpt-5.6.", "model_not_found"),
        (408, "Your request timed out", "transient"),
        (413, "Request too large", "context_too_long"),
        (429, "Rate limit exceeded: limit_rpm", "rate_limit"),
        (500, "Internal Server Error", "transient"),
        (502, "Provider returned error", "transient"),
        (503, "There is no available model provider that meets your routing requirements", "transient"),
        (529, "Provider is overloaded", "transient"),
    ],
)
def test_every_status_of_openrouter_has_a_kind_and_a_sentence(status: int, message: str, kind: str) -> None:
    error = refused(status, routed(status, message))

    assert (error.kind, error.status) == (kind, status)
    assert error.message == f"openrouter answered {status}: {message}"


@pytest.mark.parametrize(
    ("status", "body", "kind", "text"),
    [
        (400, {"error": {"message": "context_length_exceeded", "code": "x"}}, "context_too_long", "context_length_"),
        (400, {"object": "error", "message": "max_tokens too large", "code": 400}, "invalid_request", "max_tokens too"),
        (401, {"error": {"message": "Invalid API Key", "code": "invalid_api_key"}}, "authentication", "Invalid API"),
        (402, {"error": {"message": "Insufficient Balance"}}, "quota", "Insufficient Balance"),
        (404, {"detail": "Not Found"}, "invalid_request", "Not Found"),
        (
            404,
            {"error": {"message": "The model `m` does not exist", "code": "model_not_found"}},
            "model_not_found",
            "T",
        ),
        (422, {"detail": [{"loc": ["body"], "msg": "Extra"}]}, "invalid_request", "body: Extra"),
        (429, {"error": {"message": "Please try again in 2.5s.", "code": "rate_limit_exceeded"}}, "rate_limit", "Ple"),
        (403, {"error": {"message": "Not in your plan", "code": "forbidden"}}, "authentication", "Not in"),
        (413, {"detail": "Payload Too Large"}, "context_too_long", "Payload"),
        (500, {"error": "boom"}, "transient", "boom"),
        (529, {"object": "error", "message": "Engine overloaded"}, "transient", "Engine"),
        (503, {}, "transient", ""),
    ],
)
def test_errors_of_other_servers_are_told_apart_as_well(status: int, body: object, kind: str, text: str) -> None:
    error = refused(status, body, provider="mine")

    assert error.kind == kind
    assert error.message.startswith(f"mine answered {status}: {text}" if text else f"mine answered {status}")


def test_a_pause_is_kept_and_a_key_is_never_told() -> None:
    assert refused(429, routed(429, "slow down"), ("retry-after", "17")).retry_after == 17.0
    assert refused(503, routed(503, "busy"), ("retry-after", "5")).retry_after == 5.0
    assert KEY not in refused(401, routed(401, f"the key {KEY} is unknown")).message


def test_what_mends_an_error_is_said() -> None:
    near = refused(404, routed(404, "No endpoints found for openai/gpt-5.6."))

    assert "'openrouter/openai/gpt-5.5'" in near.hint
    assert "JP_TEST_KEY" in refused(401, routed(401, "no")).hint
    assert "`providers.llm.mine.base_url`" in refused(404, {"detail": "Not Found"}, provider="mine").hint


def test_a_page_of_a_proxy_is_told_by_its_title() -> None:
    page = b"<html><head><title>Bad gateway</title></head></html>"
    error = failure(Reply(status=502, headers=HTML, body=page))

    assert (error.message, error.kind) == ("openrouter answered 502: Bad gateway", "transient")
    assert "base_url" in failure(Reply(headers=HTML, body=page)).hint


def test_json_in_place_of_a_stream_is_an_error() -> None:
    quota = failure(Reply(headers=JSON, body=b'{"error":{"code":402,"message":"pay"}}'))

    assert (quota.message, quota.kind) == ("openrouter answered 200: pay", "quota")


def test_comments_keep_the_connection_and_say_nothing() -> None:
    comment = b": OPENROUTER PROCESSING\n\n"
    body = comment * 3 + wire.stream(wire.chunk({"content": "a"}), done=False) + comment + wire.answer({"content": "b"})

    assert told(parts_of(body, (5, 30, 60))).blocks == [Told("message", "ab")]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_may_end_in_any_way(end: str) -> None:
    body = wire.answer(*wire.says("ä", "b"), end=end)

    assert told(parts_of(body, tuple(range(0, len(body), 3)))).blocks == [Told("message", "äb")]


def test_an_error_in_a_stream_comes_after_what_was_said() -> None:
    broken = wire.chunk({"content": ""}, "error", error={"code": 429, "message": "Provider is overloaded"})
    (ending,) = answered(Reply(body=wire.stream(*map(wire.chunk, wire.says("Hel", "lo")), broken)))

    assert [part.text for part in ending.parts if isinstance(part, TextDelta)] == ["Hel", "lo"]
    assert ending.error is not None
    assert (ending.error.kind, ending.error.least_wait) == ("rate_limit", 3.0)
    assert ending.error.message == "openrouter reported an error: Provider is overloaded"


@pytest.mark.parametrize("ends", ["close", "reset", "complete"])
def test_a_stream_that_ends_before_it_says_why_is_cut(ends: str) -> None:
    body = wire.stream(*map(wire.chunk, wire.says("one", "two")), done=False)
    reply = msgspec.convert({"ends": ends}, Reply)
    (ending,) = answered(replace(reply, body=body))

    assert ending.error is not None
    assert ending.error.kind == "cut"


@pytest.mark.parametrize("ends", ["close", "reset"])
def test_a_connection_that_breaks_after_done_breaks_nothing(ends: str) -> None:
    reply = msgspec.convert({"ends": ends}, Reply)
    body = wire.answer({"content": "a"})
    late = wire.stream({"error": {"message": "late"}})
    (ending,) = answered(replace(reply, body=body + late, cuts=(len(body),)))

    assert ending.error is None
    assert ending.parts[-1] == Finished("stop")


@pytest.mark.parametrize("ends", ["close", "reset", "hang"])
def test_an_answer_that_said_why_it_ends_is_complete_however_the_connection_ends(ends: str) -> None:
    body = wire.stream(wire.chunk({"content": "a"}), wire.chunk(finish="stop"), done=False)
    reply = msgspec.convert({"ends": ends}, Reply)
    (ending,) = answered(replace(reply, body=body + b'data: {"usage', cuts=(len(body),)), stream_idle_timeout_secs=0.2)

    assert ending.error is None
    assert ending.parts[-1] == Finished("stop")


def test_a_stream_may_end_without_done_once_it_said_why() -> None:
    assert parts_of(wire.stream(wire.chunk({"content": "a"}, "stop"), wire.usage(), done=False))[-1] == Finished("stop")


def test_an_answer_that_is_too_long_is_stopped() -> None:
    body = wire.answer(*wire.says(*["123456789"] * 10))

    assert failure(Reply(body=body), max_response_bytes=50).kind == "output_limit"


def test_a_key_goes_into_one_header_and_an_app_has_a_name() -> None:
    with Loopback(Reply(body=wire.answer({"content": "a"}), times=2)) as server:
        for provider, settings in (("mine", {}), ("openrouter", {"app_name": "docs", "app_referrer": "https://e.org"})):
            anyio.run(receive, provider_at(f"{server.url}/v1", provider=provider, model="m", **settings), ASKED)

        mine, router = server.requests
    assert (mine.target, mine.headers["authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
    assert "x-title" not in mine.headers
    assert (router.headers["x-title"], router.headers["http-referer"]) == ("docs", "https://e.org")
    assert KEY.encode() not in router.body


def test_every_setting_of_a_server_reaches_the_wire() -> None:
    settings = {
        "max_tokens_name": "max_completion_tokens",
        "system_role": "developer",
        "reasoning": "effort",
        "stream_usage": False,
        "headers": {"x-team": "docs"},
    }
    thread = replace(ASKED, system=("Be brief.",), parameters=Parameters(max_tokens=9, reasoning="high"))
    with Loopback(Reply(body=wire.answer({"content": "a"}))) as server:
        anyio.run(receive, provider_at(server.url, provider="mine", model="m", **settings), thread)

        (request,) = server.requests
    assert request.headers["x-team"] == "docs"
    assert request.json() == {
        "model": "openai/gpt-5.6",
        "stream": True,
        "max_completion_tokens": 9,
        "reasoning_effort": "high",
        "messages": [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
    }
