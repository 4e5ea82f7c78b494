"""Answers of Ollama that no recording has: errors, broken streams, and counts that betray a cut."""

from __future__ import annotations

from collections.abc import Mapping

import anyio
import msgspec
import pytest

from jp.cli.terminal.wording import worded
from jp.conversation.thread import Thread, UserText
from loopback import HTML, JSON, Loopback, Reply
from provider_at import KEY, Ending, provider_at, receive
from stories import told

NDJSON = (("content-type", "application/x-ndjson"),)
LONG = " ".join(["lorem"] * 4000)
SETTING = "`providers.llm.ollama.context_window`"


def lines(*items: Mapping[str, object] | bytes, end: str = "\n") -> bytes:
    texts = [item if isinstance(item, bytes) else msgspec.json.encode(item) for item in items]
    return b"".join(text + end.encode() for text in texts)


def said(**message: object) -> dict[str, object]:
    return {"model": "m", "message": {"role": "assistant", "content": "", **message}, "done": False}


def done(reason: str = "stop", **counts: object) -> dict[str, object]:
    return {**said(), "done": True, "done_reason": reason, **counts}


def answered(reply: Reply, *, text: str = "Hi", **settings: object) -> Ending:
    thread = Thread(model="m", system=(), tools=(), events=(UserText(text=text, turn=0),))
    with Loopback(reply) as server:
        return anyio.run(receive, provider_at(server.url, provider="ollama", model="m", **settings), thread)


@pytest.mark.parametrize(
    ("status", "error", "kind", "hint"),
    [
        (400, "the input length exceeds the context length", "context_too_long", SETTING),
        (400, '"m" does not support thinking', "invalid_request", "--dry-run"),
        (401, "unauthorized", "authentication", "JP_TEST_KEY"),
        (403, "forbidden", "authentication", "JP_TEST_KEY"),
        (404, 'model "m" not found, try pulling it first', "model_not_found", "`ollama pull m`"),
        (404, "model 'm' not found", "model_not_found", "`ollama pull m`"),
        (413, "request body too large", "context_too_long", SETTING),
        (429, "you have reached your hourly usage limit", "rate_limit", "--model"),
        (500, "llama runner process has terminated: signal: killed", "transient", "--model"),
        (500, "model requires more system memory (5.6 GiB) than is available (3.1 GiB)", "other", "--model"),
        (503, "server busy, please try again. maximum pending requests exceeded", "transient", "--model"),
        (529, "overloaded", "transient", "--model"),
    ],
)
def test_an_error_is_of_its_kind_and_says_what_mends_it(status: int, error: str, kind: str, hint: str) -> None:
    found = answered(Reply(status=status, headers=JSON, body=msgspec.json.encode({"error": error}))).error

    assert found is not None
    assert (found.kind, found.status) == (kind, status)
    assert hint in worded(found.hint)
    assert error in found.message


@pytest.mark.parametrize(("status", "kind"), [(200, "other"), (404, "other"), (502, "transient")])
def test_a_page_is_no_answer(status: int, kind: str) -> None:
    found = answered(Reply(status=status, headers=HTML, body=b"<title>Login</title>")).error

    assert found is not None
    assert found.kind == kind


def test_an_error_in_the_stream_ends_it() -> None:
    ending = answered(Reply(headers=NDJSON, body=lines(said(content="a"), {"error": "unexpected EOF"})))

    assert ending.error is not None
    assert ending.error.message == "ollama reported an error: unexpected EOF"


@pytest.mark.parametrize("ends", ["complete", "close", "reset"])
def test_a_stream_that_stops_is_cut(ends: str) -> None:
    body = lines(said(content="a"))
    reply = Reply(headers=NDJSON, body=body, ends=ends)  # pyright: ignore[reportArgumentType] - each is one of them
    ending = answered(reply)

    assert ending.error is not None
    assert ending.error.kind == "cut"


def test_line_ends_and_unknown_lines_and_fields_do_not_matter() -> None:
    body = lines(b"", {"status": "loading", "progress": 1}, said(content="a", mood="good"), done(new=[1]), end="\r\n")

    story = told(answered(Reply(headers=NDJSON, body=body)).parts)

    assert [(block.kind, block.text) for block in story.blocks] == [("message", "a")]
    assert story.finish == "stop"


def test_a_last_line_without_an_end_counts() -> None:
    ending = answered(Reply(headers=NDJSON, body=lines(said(content="a"), done()).rstrip()))

    assert told(ending.parts).finish == "stop"


def test_calls_in_one_line_and_in_several_are_calls() -> None:
    one = {"function": {"name": "look", "arguments": {"a": "é"}}}
    body = lines(said(tool_calls=[one, one]), said(tool_calls=[{**one, "id": "x"}]), done())

    story = told(answered(Reply(headers=NDJSON, body=body)).parts)

    assert [(block.call_id, block.arguments) for block in story.blocks] == [
        ("call_0", {"a": "é"}),
        ("call_1", {"a": "é"}),
        ("x", {"a": "é"}),
    ]
    assert story.finish == "tools"


def test_a_prompt_that_was_cut_is_no_ground_for_an_answer() -> None:
    body = lines(said(content="a"), done(prompt_eval_count=2050, eval_count=1))
    ending = answered(Reply(headers=NDJSON, body=body), text=LONG, context_window=4096)

    assert ending.error is not None
    assert ending.error.kind == "context_too_long"
    assert "it has read 2050 tokens of about 6000" in ending.error.message
    assert "`providers.llm.ollama.context_window` higher than 4096" in ending.error.hint


def test_a_prompt_that_the_server_had_in_its_cache_is_no_cut() -> None:
    ending = answered(
        Reply(headers=NDJSON, body=lines(said(content="a"), done(prompt_eval_count=3, eval_count=1))),
        text=LONG,
        context_window=8192,
    )

    assert ending.error is None


def test_a_prompt_that_cannot_fit_is_not_sent() -> None:
    thread = Thread(model="m", system=(), tools=(), events=(UserText(text=LONG, turn=0),))
    with Loopback() as server:
        ending = anyio.run(receive, provider_at(server.url, provider="ollama", model="m", context_window=1000), thread)

    assert ending.error is not None
    assert ending.error.kind == "context_too_long"
    assert server.requests == []


def test_a_key_is_sent_where_there_is_one() -> None:
    thread = Thread(model="m", system=(), tools=(), events=(UserText(text="Hi", turn=0),))
    with Loopback(Reply(headers=NDJSON, body=lines(done()))) as server:
        anyio.run(receive, provider_at(server.url, provider="ollama", model="m"), thread)

    (request,) = server.requests
    assert request.target == "/api/chat"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["accept"] == "application/x-ndjson"


def test_a_server_that_does_not_run_is_looked_for_where_the_setting_says() -> None:
    with Loopback() as server:
        url = server.url
    thread = Thread(model="m", system=(), tools=(), events=(UserText(text="Hi", turn=0),))
    ending = anyio.run(receive, provider_at(url, provider="ollama", model="m"), thread)

    assert ending.error is not None
    assert ending.error.kind == "connect"
    assert "is the server running? `providers.llm.ollama.base_url`" in ending.error.hint


def test_a_server_of_the_users_own_may_speak_as_ollama_does() -> None:
    thread = Thread(model="m", system=(), tools=(), events=(UserText(text="Hi", turn=0),))
    with Loopback(Reply(headers=NDJSON, body=lines(said(thinking="hm"), done()))) as server:
        provider = provider_at(server.url, provider="den", model="m", kind="ollama", context_window=99, keep_alive="1h")
        ending = anyio.run(receive, provider, thread)

    body = server.requests[0].json()
    assert (body["options"], body["keep_alive"]) == ({"num_ctx": 99}, "1h")
    assert told(ending.parts).blocks[0].text == "hm"
