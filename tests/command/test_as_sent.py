"""`jp conversation print --as-sent`: the bytes that a provider received, from the log alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from forked import prepare, run_jp
from loopback import JSON, Loopback, Reply, sse
from stage import copied, logs, make_workspace

KEY = "sk-ant-test-0123456789"
MODEL = ("--model", "anthropic/claude-haiku-4-5")


def said(text: str, *, stop: str = "end_turn") -> Reply:
    head: dict[str, Any] = {"id": "m", "type": "message", "role": "assistant", "model": "x", "content": []}
    return Reply(
        body=sse(
            {"type": "message_start", "message": {**head, "usage": {"input_tokens": 5, "output_tokens": 1}}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 7}},
            {"type": "message_stop"},
        )
    )


def called(**arguments: str) -> Reply:
    head: dict[str, Any] = {"id": "m", "type": "message", "role": "assistant", "model": "x", "content": []}
    block: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "fs_read_file", "input": {}}
    return Reply(
        body=sse(
            {"type": "message_start", "message": {**head, "usage": {"input_tokens": 5, "output_tokens": 1}}},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "input_json_delta", "partial_json": json.dumps(arguments)},
            },
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}},
            {"type": "message_stop"},
        )
    )


OVERLOADED = Reply(
    status=529, headers=JSON, body=b'{"type":"error","error":{"type":"overloaded_error","message":"no"}}'
)


class Sent(NamedTuple):
    """A workspace with a conversation, and the bodies that the server received for it."""

    root: Path
    received: list[bytes]


def ask(server: Loopback, cwd: Path, *lines: tuple[str, ...]) -> None:
    """Run command lines that ask the server."""
    settings = (f"providers.llm.anthropic.base_url={server.url}", "assistant.request.base_backoff_ms=1")
    cfg = [word for setting in settings for word in ("--cfg", setting)]
    prepare(*((*line, *cfg) for line in lines), cwd=cwd, env={"ANTHROPIC_API_KEY": KEY})


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> Sent:
    """Three turns: one that was sent twice, one that was continued, one with a call."""
    root = make_workspace(tmp_path_factory.mktemp("sent") / "work", "")
    (root / "note.txt").write_text("the snow is \u201cwhite\u201d\n" * 400, encoding="utf-8")
    replies = (
        OVERLOADED,
        said("One"),
        said("Two and", stop="max_tokens"),
        said(" a half"),
        called(path="note.txt"),
        said("Three"),
    )
    tool = ("--cfg", "conversation.tools.fs_read_file.enable=true", "--approve-all")
    with Loopback(*replies) as server:
        ask(
            server,
            root,
            ("query", "--new", *MODEL, "--attach", "note.txt", "first"),
            ("query", "--id", "last", "--system", "Be brief.", "-p", "temperature=0.5", "second"),
            ("query", "--id", "last", *tool, "third"),
        )
        return Sent(root, [request.body for request in server.requests])


@pytest.fixture
def changed(sent: Sent, tmp_path: Path) -> Sent:
    """A copy to change."""
    return sent._replace(root=copied(sent.root, tmp_path / "work"))


def as_sent(cwd: Path, chosen: str, *arguments: str) -> bytes:
    result = run_jp("conversation", "print", "last", "--as-sent", chosen, *arguments, cwd=cwd)
    assert (result.code, result.stderr) == (0, "")
    return result.stdout.removesuffix("\n").encode()


def test_every_request_is_printed_as_the_server_received_it(sent: Sent) -> None:
    assert len(sent.received) == 6
    assert sent.received[0] == sent.received[1]
    assert [as_sent(sent.root, name) for name in ("0.0", "1.0", "1.1", "-1", "2.-1")] == sent.received[1:]


def test_a_request_of_a_turn_that_was_compacted_or_undone_since_stays_what_it_was(changed: Sent) -> None:
    (log,) = logs(changed.root)
    start = next(line for line in log.read_bytes().splitlines() if b'"turn_start"' in line)
    revert = {"type": "revert", "id": "zz", "at": "2026-11-20T00:00:00Z", "entries": [json.loads(start)["id"]]}
    omitted = {"from_turn": 0, "to_turn": 2, "tool_calls": {"policy": "omit"}}
    with log.open("a", encoding="utf-8") as file:
        for entry in (revert, {"type": "compaction", "id": "zy", "at": "", **omitted}):
            file.write(json.dumps(entry) + "\n")

    assert [as_sent(changed.root, name) for name in ("0", "2.1")] == [changed.received[0], changed.received[5]]


def test_what_stands_for_old_calls_is_printed_as_the_server_received_it_also_from_a_fork(tmp_path: Path) -> None:
    make_workspace(tmp_path, "")
    stripped = {"policy": "strip", "request": True, "response": True}
    compaction = {"type": "compaction", "id": "zz", "at": "", "from_turn": 0, "to_turn": 0, "tool_calls": stripped}

    with Loopback(called(path="note.txt", why="w" * 900), said("One"), said("Two"), said("Three")) as server:
        tool = ("--cfg", "conversation.tools.fs_read_file.enable=true", "--approve-all")
        ask(server, tmp_path, ("query", "--new", *MODEL, *tool, "first"))
        (log,) = logs(tmp_path)
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(compaction) + "\n")
        ask(
            server,
            tmp_path,
            ("query", "--id", "last", "second"),
            ("conversation", "fork", "last"),
            ("query", "--id", ".", "third"),
        )
        received = [request.body for request in server.requests]

    block = json.loads(received[2])["messages"][1]["content"][0]["input"]
    result = json.loads(received[2])["messages"][2]["content"][0]["content"]
    nonce = json.loads(log.read_bytes().splitlines()[0])["nonce"]
    assert block["path"] == "note.txt"
    assert f"[[cut:{nonce}:" in block["why"]
    assert "[compacted] fs_read_file: error; " in json.dumps(result)
    assert "; recall " in json.dumps(result)
    assert json.loads(received[3])["messages"][1] == json.loads(received[2])["messages"][1]
    for chosen, body in (("0.0", received[0]), ("0.1", received[1]), ("1", received[2]), ("2", received[3])):
        printed = run_jp("conversation", "print", ".", "--as-sent", chosen, cwd=tmp_path)
        assert (printed.stderr, printed.stdout.removesuffix("\n").encode()) == ("", body)


def test_as_data_it_says_where_it_went_and_that_it_is_what_was_sent(sent: Sent) -> None:
    result = run_jp("-F", "json", "conversation", "print", "last", "--as-sent", "0", cwd=sent.root)

    value = json.loads(result.stdout)
    assert {name: value[name] for name in ("turn", "cycle", "attempt", "model", "verified")} == {
        "turn": 0,
        "cycle": 0,
        "attempt": 2,
        "model": "anthropic/claude-haiku-4-5",
        "verified": True,
    }
    assert value["request"]["path"] == "/v1/messages"
    assert KEY not in str(value)


def test_what_is_not_what_was_sent_is_said(changed: Sent) -> None:
    (log,) = logs(changed.root)
    log.write_bytes(log.read_bytes().replace(b'"first"', b'"other"'))

    result = run_jp("conversation", "print", "last", "--as-sent", "0", cwd=changed.root)

    assert result.code == 0
    assert result.stderr == "note: this is not what was sent to the byte: the log was changed since, or is not whole\n"


def test_what_was_made_by_other_rules_is_said(tmp_path: Path) -> None:
    make_workspace(tmp_path, '[[reply]]\ntext = "One"')
    assert run_jp("query", "--new", "first", cwd=tmp_path).code == 0
    (log,) = logs(tmp_path)
    written = log.read_bytes()
    log.write_bytes(written.replace(b'"renderer":4', b'"renderer":3').replace(b'"first"', b'"other"'))

    result = run_jp("conversation", "print", "last", "--as-sent", "0", cwd=tmp_path)

    assert log.read_bytes() != written.replace(b'"first"', b'"other"')
    rules = "it was rendered by version 3 of the rules for 'script', this is version 4"
    assert (result.code, result.stderr) == (0, f"note: this is not what was sent to the byte: {rules}\n")


@pytest.mark.parametrize(
    ("chosen", "message", "hint"),
    [
        ("x", "--as-sent cannot be 'x'", "write TURN or TURN.CYCLE, such as --as-sent 3 or --as-sent -1.2"),
        ("0.", "--as-sent cannot be '0.'", "write TURN or TURN.CYCLE, such as --as-sent 3 or --as-sent -1.2"),
        ("7", "no request of turn 7 is known", "known are those of 0 to 2"),
        ("-5", "no request of turn -2 is known", "known are those of 0 to 2"),
        ("0.4", "turn 0 has no cycle 4", "its cycles are 0"),
    ],
)
def test_a_request_that_is_not_there_is_an_error(chosen: str, message: str, hint: str, sent: Sent) -> None:
    result = run_jp("conversation", "print", "last", f"--as-sent={chosen}", cwd=sent.root)

    assert (result.code, result.stdout) == (2, "")
    assert result.stderr == f"error: {message}\nhint: {hint}\n"


def test_a_conversation_without_requests_has_none(changed: Sent) -> None:
    (log,) = logs(changed.root)
    log.write_bytes(log.read_bytes().splitlines(keepends=True)[0])

    result = run_jp("conversation", "print", "last", "--as-sent", "0", cwd=changed.root)

    assert (result.code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: the log of this conversation does not say what was sent\n")
