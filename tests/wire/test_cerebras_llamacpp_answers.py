"""Answers of Cerebras and of llama.cpp that no recording has: errors, broken streams, reasoning left in the text."""

from __future__ import annotations

from typing import Literal

import anyio
import msgspec
import pytest

from jp.conversation.entries import Usage
from jp.conversation.thread import Thread, UserText
from loopback import HTML, JSON, Loopback, Reply
from provider_at import KEY, Ending, provider_at, receive
from stories import Story, told

BOTH = pytest.mark.parametrize("name", ["cerebras", "llamacpp"])
ASKED = Thread(model="m", system=(), tools=(), events=(UserText(text="Hi", turn=0),))


def stream(*chunks: object, done: bool = True, end: str = "\n") -> bytes:
    texts = [f"data: {msgspec.json.encode(chunk).decode()}" for chunk in chunks]
    return "".join(f"{text}{end}{end}" for text in (*texts, *(["data: [DONE]"] if done else []))).encode()


def delta(reason: str | None = None, **fields: object) -> dict[str, object]:
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": fields, "finish_reason": reason}]}


def call(index: int, arguments: str, **fields: object) -> dict[str, object]:
    return {"index": index, "type": "function", "function": {"name": "run", "arguments": arguments}, **fields}


def answered(name: str, reply: Reply) -> Ending:
    with Loopback(reply) as server:
        return anyio.run(receive, provider_at(f"{server.url}/v1", provider=name, model="m"), ASKED)


def story(name: str, *chunks: object, end: str = "\n") -> Story:
    ending = answered(name, Reply(body=stream(*chunks, end=end)))
    assert ending.error is None
    return told(ending.parts)


@pytest.mark.parametrize(
    ("name", "status", "error", "kind"),
    [
        (
            "cerebras",
            400,
            {"message": "bad", "type": "invalid_request_error", "code": "wrong_api_format"},
            "invalid_request",
        ),
        (
            "cerebras",
            400,
            {"message": "Please reduce the length of the messages", "code": "context_length_exceeded"},
            "context_too_long",
        ),
        ("cerebras", 401, {"message": "Wrong API Key", "code": "wrong_api_key"}, "authentication"),
        ("cerebras", 402, {"message": "Payment required"}, "quota"),
        ("cerebras", 403, {"message": "Forbidden"}, "authentication"),
        (
            "cerebras",
            404,
            {"message": "Model m does not exist or you do not have access to it.", "code": "model_not_found"},
            "model_not_found",
        ),
        ("cerebras", 413, {"message": "too large"}, "context_too_long"),
        (
            "cerebras",
            429,
            {"message": "Requests per minute limit exceeded", "code": "request_quota_exceeded"},
            "rate_limit",
        ),
        ("cerebras", 500, {"message": "Encountered a server error"}, "transient"),
        ("cerebras", 503, {"message": "We're experiencing high traffic right now!"}, "transient"),
        ("cerebras", 529, {"message": "overloaded"}, "transient"),
        (
            "llamacpp",
            400,
            {
                "code": 400,
                "message": "request (9 tokens) exceeds the available context size (8 tokens), try increasing it",
            },
            "context_too_long",
        ),
        (
            "llamacpp",
            401,
            {"code": 401, "message": "Invalid API Key", "type": "authentication_error"},
            "authentication",
        ),
        ("llamacpp", 403, {"code": 403, "message": "Forbidden", "type": "permission_error"}, "authentication"),
        ("llamacpp", 413, {"code": 413, "message": "Payload too large"}, "context_too_long"),
        ("llamacpp", 429, {"code": 429, "message": "No slot is free"}, "rate_limit"),
        ("llamacpp", 529, {"code": 529, "message": "Overloaded"}, "transient"),
        ("llamacpp", 404, {"code": 404, "message": "File Not Found", "type": "not_found_error"}, "invalid_request"),
        ("llamacpp", 500, {"code": 500, "message": "tools param requires --jinja flag"}, "other"),
        ("llamacpp", 500, {"code": 500, "message": "image input is not supported - hint: …"}, "other"),
        ("llamacpp", 503, {"code": 503, "message": "Loading model", "type": "unavailable_error"}, "transient"),
    ],
)
def test_an_error_is_of_its_kind(name: str, status: int, error: dict[str, object], kind: str) -> None:
    found = answered(name, Reply(status=status, headers=JSON, body=msgspec.json.encode({"error": error}))).error

    assert found is not None
    assert (found.kind, found.status) == (kind, status)
    assert str(error["message"]) in found.message


def test_a_server_of_llama_cpp_gets_its_window_where_it_starts() -> None:
    body = msgspec.json.encode({"error": {"code": 400, "type": "exceed_context_size_error", "message": "too long"}})
    found = answered("llamacpp", Reply(status=400, headers=JSON, body=body)).error

    assert found is not None
    assert "`llama-server --ctx-size" in found.hint


@BOTH
def test_a_page_is_no_answer(name: str) -> None:
    found = answered(name, Reply(headers=HTML, body=b"<title>Login</title>")).error

    assert found is not None
    assert "not from the API" in found.hint


@BOTH
def test_an_error_in_the_stream_ends_it(name: str) -> None:
    error = {"error": {"message": "slot is gone", "type": "server_error", "code": 500}}
    ending = answered(name, Reply(body=stream(delta(content="a"), error)))

    assert ending.error is not None
    assert (ending.error.kind, ending.error.message) == ("transient", f"{name} reported an error: slot is gone")


@BOTH
@pytest.mark.parametrize("ends", ["complete", "close", "reset"])
def test_a_stream_that_stops_without_a_reason_is_cut(name: str, ends: Literal["complete", "close", "reset"]) -> None:
    ending = answered(name, Reply(body=stream(delta(content="a"), done=False), ends=ends))

    assert ending.error is not None
    assert ending.error.kind == "cut"


@BOTH
@pytest.mark.parametrize("ends", ["close", "reset"])
def test_what_breaks_after_the_end_is_not_missed(name: str, ends: Literal["close", "reset"]) -> None:
    body = stream(delta(content="a"), delta("stop"))

    assert told(answered(name, Reply(body=body, ends=ends)).parts).finish == "stop"


@BOTH
def test_line_ends_comments_and_unknown_events_do_not_matter(name: str) -> None:
    odd: list[dict[str, object]] = [{"choices": []}, {"mood": "good"}, {"choices": None}]

    found = story(name, *odd, delta(role="assistant", content=None), delta(content="é"), delta("stop"), end="\r\n")

    assert [(block.kind, block.text) for block in found.blocks] == [("message", "é")]


@BOTH
def test_parallel_calls_come_apart_and_a_missing_id_is_made(name: str) -> None:
    found = story(
        name,
        delta(tool_calls=[call(0, "", id="x"), call(1, '{"b":')]),
        delta(
            tool_calls=[{"index": 1, "function": {"arguments": "2}"}}, {"index": 0, "function": {"arguments": "{}"}}]
        ),
        delta("tool_calls"),
    )

    assert [(block.call_id, block.arguments) for block in found.blocks] == [("x", {}), ("call_1", {"b": 2})]
    assert found.finish == "tools"


@BOTH
def test_a_call_that_the_longest_output_cut_does_not_exist(name: str) -> None:
    ending = answered(name, Reply(body=stream(delta(tool_calls=[call(0, '{"a":', id="x")]), delta("length"))))

    assert not any(type(part).__name__ == "BlockEnd" for part in ending.parts)
    assert ending.error is None


@BOTH
def test_reasoning_that_is_left_in_the_text_is_taken_out_of_it(name: str) -> None:
    found = story(name, delta(content="<thi"), delta(content="nk>hm</think>\n\nYes"), delta("stop"))

    assert [(block.kind, block.text) for block in found.blocks] == [("reasoning", "hm"), ("message", "Yes")]


@BOTH
def test_a_refusal_is_one(name: str) -> None:
    assert story(name, delta(content="a"), delta("content_filter")).finish == "refused"


@BOTH
def test_tokens_come_after_the_end(name: str) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}
    counted: dict[str, object] = {"choices": [], "usage": usage}

    assert story(name, delta(content="a"), delta("stop"), counted).usage == Usage(input=5, output=2, cache_read=4)


@BOTH
def test_a_key_is_sent_and_the_version_stands_in_the_address_once(name: str) -> None:
    with Loopback(Reply(body=stream(delta("stop")))) as server:
        anyio.run(receive, provider_at(f"{server.url}/v1", provider=name, model="m"), ASKED)

    (request,) = server.requests
    assert request.target == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"


def test_a_server_of_the_users_own_may_speak_as_llama_cpp_does() -> None:
    with Loopback(Reply(body=stream(delta(reasoning_content="hm"), delta("stop")))) as server:
        provider = provider_at(f"{server.url}/v1", provider="den", kind="llamacpp", reasoning_format="deepseek")
        ending = anyio.run(receive, provider, ASKED)

    assert server.requests[0].json()["reasoning_format"] == "deepseek"
    assert told(ending.parts).blocks[0].text == "hm"
