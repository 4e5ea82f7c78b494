"""`jp query` where an answer breaks off: its text comes once and whole, or the query says that it failed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import anthropic_wire
import chat_wire
from doubles import messages
from forked import run_jp
from jp.conversation.entries import CycleEnd
from loopback import JSON, Loopback, Received, Reply, sse
from running import Result
from stage import make_workspace, only_log

KEYS = {"ANTHROPIC_API_KEY": "sk-ant-test-0123456789", "OPENROUTER_API_KEY": "sk-or-test-0123456789"}
MODELS = {"anthropic": "anthropic/claude-haiku-4-5", "openrouter": "openrouter/m"}


def query(server: Loopback, cwd: Path, *arguments: str, provider: str = "anthropic") -> Result:
    if not (cwd / ".jp").exists():
        make_workspace(cwd)
    settings = (f"providers.llm.{provider}.base_url={server.url}", "assistant.request.base_backoff_ms=1")
    cfg = [word for setting in settings for word in ("--cfg", setting)]
    return run_jp("query", *cfg, "--model", MODELS[provider], *arguments, "Hi", cwd=cwd, env=KEYS)


def cut(text: str, *, is_complete: bool = False) -> Reply:
    """An answer whose connection breaks after `text`, or after the end of its block."""
    events = [anthropic_wire.start(), *anthropic_wire.text(0, text)]
    return Reply(body=sse(*(events if is_complete else events[:-1])), ends="close")


def anchor_in(request: Received) -> str:
    last = json.loads(request.body)["messages"][-1]["content"][-1]["text"]
    return last.partition("\n<anchor>")[2].removesuffix("</anchor>")


@pytest.mark.parametrize("starts_over", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 70])
def test_an_answer_that_is_cut_is_not_doubled(tmp_path: Path, size: int, *, starts_over: bool) -> None:
    text = "1337 is the sum of all that was counted, and nothing was counted twice or left out of it."

    def answer(request: Received) -> Reply:
        anchor = anchor_in(request)
        assert text[:size].endswith(anchor)
        return Reply(body=anthropic_wire.message(text if starts_over else anchor + text[size:]))

    with Loopback(cut(text[:size]), answer) as server:
        result = query(server, tmp_path)

    assert (result.code, result.stdout) == (0, f"{text}\n")
    assert "".join(messages(only_log(tmp_path))) == text


def test_other_words_are_a_failure_and_what_came_is_kept(tmp_path: Path) -> None:
    other = Reply(body=anthropic_wire.message("Let me think again: 42"))

    with Loopback(cut("13"), otherwise=other) as server:
        result = query(server, tmp_path, "--cfg", "assistant.request.max_retries=2")

    assert (result.code, result.stdout.strip()) == (5, "13")
    assert "error: anthropic did not continue the answer where it was cut\n" in result.stderr
    assert len(server.requests) == 3
    assert messages(only_log(tmp_path)) == ["13"]


def test_a_message_that_is_complete_is_not_continued(tmp_path: Path) -> None:
    with Loopback(cut("1337", is_complete=True)) as server:
        result = query(server, tmp_path, "--no-tool")

    assert (result.code, result.stdout) == (0, "1337\n")
    assert "note: the connection broke after the answer had come to its end" in result.stderr
    assert len(server.requests) == 1


def test_after_a_complete_message_only_what_follows_it_is_asked_for(tmp_path: Path) -> None:
    with Loopback(cut("1337", is_complete=True), Reply(body=anthropic_wire.message("END"))) as server:
        result = query(server, tmp_path, "--tool=fs_read_file")

    assert (result.code, result.stdout) == (0, "1337\n")
    assert messages(only_log(tmp_path)) == ["1337"]
    assert "<anchor>" not in server.requests[1].body.decode()


@pytest.mark.parametrize("ends", ["close", "reset"])
def test_an_answer_that_said_why_it_ends_is_complete(tmp_path: Path, ends: str) -> None:
    whole = anthropic_wire.message("1337")
    body = whole[: whole.index(b"event: message_stop")]
    reply = Reply(body=body, ends="close" if ends == "close" else "reset")

    with Loopback(reply) as server:
        result = query(server, tmp_path)

    assert (result.code, result.stdout) == (0, "1337\n")
    assert len(server.requests) == 1


FAILED_CALL = {
    "error": {
        "message": "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
        "type": "invalid_request_error",
        "code": "tool_use_failed",
        "failed_generation": "<function=fs_read_file>{",
    }
}


@pytest.mark.parametrize("status", [400, 200])
def test_a_call_that_the_model_formed_wrongly_is_tried_again(tmp_path: Path, status: int) -> None:
    failing = Reply(body=chat_wire.stream(FAILED_CALL, done=False))
    if status != 200:
        failing = Reply(status=status, headers=JSON, body=json.dumps(FAILED_CALL).encode())

    with Loopback(failing, Reply(body=chat_wire.answer(*chat_wire.says("done")))) as server:
        result = query(server, tmp_path, provider="openrouter")

    assert (result.code, result.stdout) == (0, "done\n")
    assert len(server.requests) == 2


def test_what_an_error_counted_is_counted(tmp_path: Path) -> None:
    failing = {**chat_wire.usage(1000, 7), **FAILED_CALL}

    with Loopback(Reply(body=chat_wire.stream(failing, done=False))) as server:
        result = query(server, tmp_path, "--cfg", "assistant.request.max_retries=0", provider="openrouter")

    assert result.code == 5
    assert [(end.usage.input, end.usage.output) for end in only_log(tmp_path) if isinstance(end, CycleEnd)] == [
        (1000, 7)
    ]


def test_an_error_after_the_longest_answer_is_the_cap(tmp_path: Path) -> None:
    said = [chat_wire.chunk(delta) for delta in chat_wire.says("as far as ", "it goes")]
    body = chat_wire.stream(*said, chat_wire.chunk(finish="length"), FAILED_CALL, done=False)

    with Loopback(Reply(body=body)) as server:
        result = query(server, tmp_path, provider="openrouter")

    assert (result.code, result.stdout) == (14, "as far as it goes\n")
    assert len(server.requests) == 1
