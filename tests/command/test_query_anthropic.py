"""`jp query` against a server that speaks Anthropic's protocol: recorded streams, errors, what is sent and kept."""

from __future__ import annotations

import json
import os
import random
import socket
from pathlib import Path
from typing import Any

import pytest

from forked import run_jp
from loopback import JSON, Loopback, Reply, sse
from running import Result

DATA = os.environ.get("JP_TEST_DATA", "")
CASES = (
    "test_chat_completion_stream",
    "test_image_attachment",
    "test_opus_4_6_adaptive_thinking",
    "test_request_chaining",
)
KEY = "sk-ant-test-0123456789"


def query(server: Loopback, cwd: Path, *arguments: str) -> Result:
    settings = (f"providers.llm.anthropic.base_url={server.url}", "assistant.request.base_backoff_ms=1")
    cfg = [word for setting in settings for word in ("--cfg", setting)]
    model = ("--model", "anthropic/claude-haiku-4-5")
    return run_jp("query", *cfg, *model, *arguments, cwd=cwd, env={"ANTHROPIC_API_KEY": KEY})


def message(*events: dict[str, Any], stop: str = "end_turn") -> bytes:
    usage = {"input_tokens": 5, "output_tokens": 1}
    head: dict[str, Any] = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "x",
        "content": [],
        "usage": usage,
    }
    return sse(
        {"type": "message_start", "message": {**head, "usage": usage}},
        *events,
        {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    )


def text_block(text: str, index: int = 0) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}},
        {"type": "content_block_stop", "index": index},
    ]


@pytest.mark.skipif(not DATA, reason="JP_TEST_DATA names no recordings")
@pytest.mark.parametrize("case", CASES)
def test_a_recorded_answer_comes_out_as_it_was_expected(case: str, tmp_path: Path) -> None:
    recording = json.loads((Path(DATA) / "recordings" / "anthropic" / f"{case}.json").read_bytes())
    chance = random.Random(case)
    bodies = [exchange["response"]["body"].encode() for exchange in recording["exchanges"]]
    replies = [
        Reply(body=body, cuts=tuple(sorted({chance.randrange(len(body)) for _ in range(40)}))) for body in bodies
    ]

    with Loopback(*replies) as server:
        result = query(server, tmp_path, "--format", "json", "go on")

    lines = [json.loads(line) for line in result.stdout.splitlines()]
    said = "".join(line["message"] for line in lines if line["type"] == "chat_response" and "message" in line)
    thought = "".join(line["reasoning"] for line in lines if line["type"] == "chat_response" and "reasoning" in line)
    (turn,) = recording["expected"]["turns"]
    assert (result.code, result.stderr) == (0, "")
    assert said == turn["message_text"]
    assert thought == (turn["reasoning"]["text"] or "")
    assert len(server.requests) == len(bodies)
    finishes = [line["finish"] for line in lines if line["type"] == "cycle_end"]
    native = {"end_turn": "stop", "max_tokens": "length"}
    assert finishes == [native[name] for name in turn["finish"]["native"]]


def test_an_answer_is_streamed_and_its_request_is_what_was_typed(tmp_path: Path) -> None:
    with Loopback(Reply(body=message(*text_block("Hello")))) as server:
        result = query(server, tmp_path, "Hi")

    body = server.requests[0].json()
    assert result == (0, "Hello\n", "")
    assert server.requests[0].target == "/v1/messages"
    assert server.requests[0].headers["x-api-key"] == KEY
    assert body["model"] == "claude-haiku-4-5"
    assert body["stream"] is True


@pytest.mark.parametrize(
    ("status", "error", "code"),
    [
        (400, ("invalid_request_error", "prompt is too long: 300000 tokens > 200000 maximum"), 7),
        (400, ("invalid_request_error", "messages: something is off"), 5),
        (400, ("invalid_request_error", "Your credit balance is too low to access the API"), 6),
        (401, ("authentication_error", "invalid x-api-key"), 4),
        (404, ("not_found_error", "model: claude-haiku-4-5"), 3),
    ],
    ids=["too long", "invalid", "no credit", "bad key", "no model"],
)
def test_an_error_of_the_provider_has_its_exit_code(
    tmp_path: Path, status: int, error: tuple[str, str], code: int
) -> None:
    body = json.dumps({"type": "error", "error": dict(zip(("type", "message"), error, strict=True))}).encode()

    with Loopback(Reply(status=status, headers=JSON, body=body)) as server:
        result = query(server, tmp_path, "Hi")

    assert (result.code, result.stdout) == (code, "")
    assert result.stderr.startswith("error: ")
    assert KEY not in result.stderr
    assert len(server.requests) == 1


def test_an_overloaded_provider_is_asked_again(tmp_path: Path) -> None:
    overloaded = json.dumps({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}).encode()
    failing = Reply(status=529, headers=(*JSON, ("retry-after", "0")), body=overloaded)

    with Loopback(failing, failing, Reply(body=message(*text_block("Hello")))) as server:
        result = query(server, tmp_path, "Hi")

    assert (result.code, result.stdout) == (0, "Hello\n")
    assert "retry 1 of 5" in result.stderr
    assert server.requests[0].body == server.requests[1].body == server.requests[2].body


def test_a_wait_that_is_too_long_is_left_to_the_user(tmp_path: Path) -> None:
    limited = json.dumps({"type": "error", "error": {"type": "rate_limit_error", "message": "Slow down"}}).encode()

    with Loopback(Reply(status=429, headers=(*JSON, ("retry-after", "3600")), body=limited)) as server:
        result = query(server, tmp_path, "Hi")

    assert result.code == 6
    assert "hint: the provider asks to wait 3,600 s: try again then" in result.stderr
    assert len(server.requests) == 1


def test_a_stream_that_is_cut_in_a_character_is_continued(tmp_path: Path) -> None:
    whole = message(*text_block("The answer is forty-twö"))
    cut = whole.index("ö".encode()) + 1

    with Loopback(
        Reply(body=message(*text_block("The answer is for"))[: -len(message()) // 2], ends="close"),
        Reply(body=whole[:cut], ends="close"),
        Reply(body=message(*text_block("swer is forty-twö."))),
    ) as server:
        result = query(server, tmp_path, "Hi")

    assert result.code == 0
    assert result.stdout == "The answer is forty-twö.\n"
    assert len(server.requests) == 3


def test_a_refusal_leaves_no_answer_in_the_next_request(tmp_path: Path) -> None:
    with Loopback(
        Reply(body=message(*text_block("I could"), stop="refusal")), Reply(body=message(*text_block("Hello")))
    ) as server:
        refused = query(server, tmp_path, "one")
        answered = query(server, tmp_path, "--id", ".", "two")

    assert (refused.code, answered.code) == (13, 0)
    assert b"I could" not in server.requests[1].body


def test_the_second_request_starts_with_the_first(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("content " * 200, encoding="utf-8")

    with Loopback(Reply(body=message(*text_block("One"))), Reply(body=message(*text_block("Two")))) as server:
        query(server, tmp_path, "--attach", "a.txt", "first")
        query(server, tmp_path, "--id", ".", "--attach", "a.txt", "second")

    def messages(number: int) -> list[Any]:
        body: Any = json.loads(server.requests[number].body, object_hook=without_marker)
        return body["messages"]

    def without_marker(value: dict[str, Any]) -> dict[str, Any]:
        value.pop("cache_control", None)
        return value

    assert messages(1)[: len(messages(0))] == messages(0)
    assert server.requests[1].body.count(b"content content") == server.requests[0].body.count(b"content content")


def test_a_file_that_the_provider_cannot_take_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "archive.zip").write_bytes(b"PK\x03\x04" + bytes(100))

    with Loopback() as server:
        result = query(server, tmp_path, "--attach", "archive.zip", "Hi")

    assert result.code in {5, 10}
    assert "archive.zip" in result.stderr
    assert server.requests == []
    assert not (tmp_path.parent / f".home-of-{tmp_path.name}" / "data" / "conversations").exists()


def test_a_parameter_that_cannot_be_sent_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with Loopback() as server:
        result = query(server, tmp_path, "--param", "other.model=x", "Hi")

    assert result.code == 5
    assert "model" in result.stderr
    assert server.requests == []
    assert not (tmp_path.parent / f".home-of-{tmp_path.name}" / "data" / "conversations").exists()


def test_an_unreachable_server_is_a_provider_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    address = ("--cfg", f"providers.llm.anthropic.base_url=http://127.0.0.1:{port}")
    patience = ("--cfg", "assistant.request.max_retries=1", "--cfg", "assistant.request.base_backoff_ms=1")

    result = run_jp(
        "query", *address, *patience, "-m", "anthropic/x", "Hi", cwd=tmp_path, env={"ANTHROPIC_API_KEY": KEY}
    )

    assert (result.code, result.stdout) == (5, "")
    assert "127.0.0.1" in result.stderr
