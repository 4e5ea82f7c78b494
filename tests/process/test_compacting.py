"""Compacting with a real model at the other end: what it is sent, who else writes, and what a Ctrl-C leaves."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import anthropic_wire as wire
from forked import Started, prepare, run_jp, start_jp
from jp.compaction.fact_lines import NO_NONCE
from loopback import Loopback, Reply, sse
from originals import BASE, ID, current, write_original
from running import Result
from stage import copied, logs, make_workspace

DATA = os.environ.get("JP_TEST_DATA", "")
SHARED = ("17727496665", "17800836875")
ENVIRONMENT = {"ANTHROPIC_API_KEY": "sk-ant-test-0123456789"}
MODEL = ("--model", "anthropic/claude-haiku-4-5")
ACCOUNT = '{"goal": "look at lines", "next_step": "look on", "requirements": []}'


def says(text: str) -> Reply:
    return Reply(body=sse(wire.start(), *wire.text(0, text), *wire.ending()))


def settings(server: Loopback) -> list[str]:
    values = (
        f"providers.llm.anthropic.base_url={server.url}",
        "conversation.compaction.keep_last=1",
        "assistant.request.base_backoff_ms=1",
    )
    return [word for value in values for word in ("--cfg", value)]


def run(server: Loopback, root: Path, *words: str) -> Result:
    return run_jp(*words, *settings(server), cwd=root, env=ENVIRONMENT)


def files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def check_compaction_of_an_original(root: Path, identity: str, directory: Path) -> None:
    """A dry run touches nothing, and tells the request that is then sent; `events.json` stays what it was.

    An original has no nonce before something is added to it.
    """
    before = files(directory)
    run_jp("workspace", "trust", "--yes", "--id", identity, cwd=root)
    question = ("--id", identity, *MODEL, "and now?")

    with Loopback(says("Lines.")) as server:
        told = run(server, root, "conversation", "compact", "--dry-run", "-F", "json", identity)
        asked = run(server, root, "query", "--compact", "--dry-run", "-F", "json", *question)
        assert files(directory) == before
        done = run(server, root, "conversation", "compact", "-F", "json", identity)
        answered = run(server, root, "query", *question)
        (received,) = server.requests

    assert (told.code, asked.code, done.code, answered.code, answered.stdout) == (0, 0, 0, 0, "Lines.\n"), (
        told,
        answered,
    )
    predicted = json.loads(told.stdout)["tokens"]
    assert json.loads(done.stdout)["tokens"] == {name: predicted[name] for name in ("before", "after", "freed")}
    nonce = json.loads((directory / "events.jsonl").read_bytes().partition(b"\n")[0])["nonce"]
    predicted_body = json.dumps(json.loads(asked.stdout)["request"]["body"])
    assert received.json() == json.loads(predicted_body.replace(f"[[cut:{NO_NONCE}:", f"[[cut:{nonce}:"))
    after = files(directory)
    assert "events.jsonl" in after
    assert {name: content for name, content in after.items() if name in before and name != "metadata.json"} == {
        name: content for name, content in before.items() if name != "metadata.json"
    }


def test_an_original_is_compacted_beside_its_file_and_the_model_gets_what_was_predicted(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "work")
    directory = write_original(root / ".jp/conversations" / f"{ID.digits}-a-title", current(), base=BASE)

    check_compaction_of_an_original(root, str(ID), directory)


@pytest.mark.skipif(not DATA, reason="JP_TEST_DATA names no conversations")
@pytest.mark.parametrize("digits", SHARED)
def test_so_is_a_shared_one(tmp_path: Path, digits: str) -> None:
    root = make_workspace(tmp_path / "work")
    (stored,) = (Path(DATA) / "jp_conversations").glob(f"{digits}-*")
    directory = root / ".jp" / "conversations" / stored.name
    shutil.copytree(stored, directory, copy_function=shutil.copyfile)

    check_compaction_of_an_original(root, f"jp-c{digits}", directory)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a conversation of two turns, the first of them long."""
    root = make_workspace(tmp_path_factory.mktemp("prepared") / "work")
    long = "a line of much that is to be looked at\n" * 400
    prepare(["query", long], ["query", "--id", "last", "and another"], cwd=root)
    return root


@pytest.fixture
def root(prepared: Path, tmp_path: Path) -> Path:
    return copied(prepared, tmp_path / "work")


COMPACT = ("conversation", "compact", "--summarize", *MODEL, "last")
QUERY = ("query", "--compact=heavy", *MODEL, "--id", "last", "--no-stdin", "and now?")


def summarise(server: Loopback, root: Path, words: Sequence[str] = COMPACT) -> Started:
    return start_jp(*words, *settings(server), cwd=root, env=ENVIRONMENT)


@pytest.mark.parametrize(
    ("words", "number", "code"),
    [(COMPACT, signal.SIGINT, 130), (COMPACT, signal.SIGTERM, 143), (QUERY, signal.SIGINT, 130)],
)
def test_a_summary_that_is_interrupted_leaves_nothing_in_the_log(
    root: Path, words: Sequence[str], number: int, code: int
) -> None:
    before = logs(root)[0].read_bytes()
    with Loopback(Reply(body=sse(wire.start()), ends="hang")) as server:
        process = summarise(server, root, words)
        server.wait_for_requests(1)
        process.send_signal(number)
        out, _ = process.communicate()

        assert (process.returncode, out) == (code, b"")
        after = logs(root)[0].read_bytes()
        assert after.startswith(before)
        # Settings of a query stick, whatever becomes of it.
        assert {json.loads(line)["type"] for line in after[len(before) :].splitlines()} <= {"config_delta"}
        assert run_jp("conversation", "compact", "--dry-run", "-r", "last", cwd=root).code == 12


def test_a_second_process_waits_for_the_first_and_sees_what_it_did(root: Path) -> None:
    with Loopback(Reply(body=sse(wire.start()), ends="hang"), says(ACCOUNT)) as server:
        first = summarise(server, root)
        server.wait_for_requests(1)
        second = summarise(server, root)
        waiting = second.stderr.readline()
        first.send_signal(signal.SIGINT)
        first.communicate()
        out, _ = second.communicate()

    assert b"waiting for conversation" in waiting
    assert (first.returncode, second.returncode) == (130, 0)
    assert out.startswith(b"compacted turn 0: summary\n")


def test_what_is_applied_is_what_was_proposed_and_what_is_sent(root: Path) -> None:
    ask = ("query", *MODEL, "--id", "last", "and now?")
    with Loopback(says(ACCOUNT), says("Much.")) as server:
        proposed = run(server, root, "conversation", "compact", "--propose", "-s", *MODEL, "-F", "json", "last")
        proposal = json.loads(proposed.stdout)
        applied = run(server, root, "conversation", "compact", "--apply", proposal["proposal"], "-F", "json", "last")
        told = run(server, root, *ask, "--dry-run", "-F", "json")
        answered = run(server, root, *ask)
        _, received = server.requests

    value = json.loads(applied.stdout)
    assert (value["tokens"], value["overlays"]) == (proposal["tokens"], proposal["overlays"])
    assert answered.stdout == "Much.\n"
    assert received.json() == json.loads(told.stdout)["request"]["body"]
    (overlay,) = proposal["overlays"]
    assert overlay["summary"]["text"] in [
        block.get("text") for message in json.loads(received.body)["messages"] for block in message["content"]
    ]


def test_what_is_proposed_for_an_original_has_the_marks_of_the_log_that_it_gets(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "work")
    directory = write_original(root / ".jp/conversations" / f"{ID.digits}-a-title", current(), base=BASE)
    before = files(directory)
    run_jp("workspace", "trust", "--yes", "--id", str(ID), cwd=root)

    with Loopback(says(ACCOUNT)) as server:
        proposed = run(server, root, "conversation", "compact", "--propose", "-s", *MODEL, "-F", "json", str(ID))
    assert files(directory) == before
    applied = run_jp("conversation", "compact", "--apply", json.loads(proposed.stdout)["proposal"], str(ID), cwd=root)

    assert applied.code == 0, applied
    log = (directory / "events.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(log[-1])["summary"]["text"].startswith(f"[[summary:{json.loads(log[0])['nonce']}:")


def test_an_account_that_cannot_be_used_is_an_error_and_writes_nothing(root: Path) -> None:
    before = logs(root)[0].read_bytes()
    cut = Reply(body=sse(wire.start(), *wire.text(0, ACCOUNT), *wire.ending("max_tokens")))
    refused = Reply(body=sse(wire.start(), *wire.ending("refusal")))
    for reply, words in ((cut, "gave no summary that can be used"), (refused, "error: "), (says(""), "error: ")):
        with Loopback(otherwise=reply) as server:
            done = run(server, root, "conversation", "compact", "-s", *MODEL, "last")

        assert (done.code, done.stdout) == (5, ""), done
        assert words in done.stderr
        assert logs(root)[0].read_bytes() == before


def test_the_price_of_failure_is_told_as_json_too(root: Path) -> None:
    rejected: dict[str, Any] = {"type": "error", "error": {"type": "authentication_error", "message": "bad key"}}
    body = json.dumps(rejected).encode()
    with Loopback(otherwise=Reply(status=401, headers=(("content-type", "application/json"),), body=body)) as server:
        done = run(server, root, "conversation", "compact", "-s", *MODEL, "-F", "json", "last")

    assert (done.code, done.stdout) == (4, "")
    assert json.loads(done.stderr.splitlines()[-1])["error"]["exit_code"] == 4


def active_in(root: Path) -> str:
    listed = json.loads(run_jp("conversation", "ls", "-F", "json", cwd=root, env=SESSION).stdout)
    return next((one["id"] for one in listed["conversations"] if one["active"]), "")


SESSION = {**ENVIRONMENT, "JP_SESSION": "here"}


def test_a_fork_whose_summary_fails_is_not_there_and_the_active_one_stays(root: Path) -> None:
    run_jp("conversation", "use", "last", cwd=root, env=SESSION)
    before = active_in(root)

    cfg = ("--cfg", "conversation.compaction.keep_last=1")
    forked = run_jp("conversation", "fork", "--compact=heavy", *cfg, cwd=root, env=SESSION)

    assert (forked.code, forked.stdout) == (5, "")
    assert "gave no summary that can be used" in forked.stderr
    assert "copied" not in forked.stderr
    assert len(logs(root)) == 1
    assert before
    assert active_in(root) == before


def test_compacting_before_a_query_takes_the_session_s_conversation_without_a_terminal(root: Path) -> None:
    run_jp("conversation", "use", "last", cwd=root, env=SESSION)

    asked = run_jp("query", "--compact=light", "and now?", cwd=root, env=SESSION)
    then = run_jp("query", "and then?", cwd=root, env=SESSION)

    assert (asked.code, then.code) == (0, 0)
    assert len(logs(root)) == 1
    assert logs(root)[0].read_bytes().count(b'"chat_request"') == 4


@pytest.mark.parametrize("words", [(), ("--new",), ("--dry-run",)])
def test_compacting_before_a_query_needs_a_conversation(root: Path, words: Sequence[str]) -> None:
    session = {"JP_SESSION": "another" if words else ""}

    refused = run_jp("query", "--compact", *words, "and now?", cwd=root, env=session)

    assert (refused.code, refused.stdout) == (2, "")
    assert refused.stderr == (
        "error: --compact needs a conversation, and none is active here\n"
        "hint: name one with `--id`, or set JP_SESSION to the name of its session\n"
    )
    assert len(logs(root)) == 1
