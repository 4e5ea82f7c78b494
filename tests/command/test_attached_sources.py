"""Web pages and commands as attachments: on the command line, in configuration files, frozen at their turn."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from failures import check_failure, json_error
from forked import run_jp, start_jp
from jp.conversation.entries import ChatRequest
from loopback import HTML, Loopback, Reply
from running import TIMEOUT_SECS, home_beside
from stage import ECHO, copied, entries_of, logs, make_workspace

PAGE = Reply(body=b"<title>The page</title><p>Hello <b>there</b>", headers=HTML)
TRACE = "sh -c 'echo ran >>trace; echo seen'"
TRACE_URI = "cmd://sh?arg=-c&arg=echo%20ran%20%3E%3Etrace;%20echo%20seen"
SEEN = f"<command>{TRACE}</command>\n<exit_code>0</exit_code>\n<stdout>\nseen\n</stdout>\n"


@pytest.fixture(scope="module")
def asked_before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a conversation."""
    root = make_workspace(tmp_path_factory.mktemp("asked") / "work")
    assert run_jp("query", "one", cwd=root).code == 0
    return root


@pytest.fixture
def root(asked_before: Path, tmp_path: Path) -> Path:
    return copied(asked_before, tmp_path / "work")


def requests_of(root: Path, number: int = -1) -> list[ChatRequest]:
    return [entry for entry in entries_of(logs(root)[number]) if isinstance(entry, ChatRequest)]


def runs(root: Path) -> int:
    """How many times the command has run."""
    trace = root / "trace"
    return len(trace.read_text(encoding="utf-8").splitlines()) if trace.exists() else 0


def everything_stored(root: Path) -> bytes:
    """All that was written into the workspace and into the user's directories."""
    places = (root, home_beside(root))
    return b"\n".join(path.read_bytes() for place in places for path in sorted(place.rglob("*")) if path.is_file())


# Of the web


def test_a_page_is_attached_once_and_kept_as_it_was(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    with Loopback(PAGE) as server:
        first = run_jp("query", "-a", f"{server.url}/a#b", "one", cwd=tmp_path)
        second = run_jp("query", "--id", "last", "two", cwd=tmp_path)

        assert len(server.requests) == 1
    assert (first, second) == ((0, "You said: one\n", ""), (0, "You said: two\n", ""))
    asked, followed = requests_of(tmp_path)
    assert (asked.attachments, followed.attachments) == ((f"{server.url}/a",), ())
    (resource,) = asked.resources
    assert (resource.uri, resource.title, resource.text) == (f"{server.url}/a", "The page", "Hello **there**")
    assert resource.mime_type == "text/markdown"


def test_a_page_that_is_attached_again_is_fetched_again(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    with Loopback(PAGE, Reply(body=b"<p>Changed", headers=HTML)) as server:
        run_jp("query", "-a", server.url, "one", cwd=tmp_path)
        run_jp("query", "--id", "last", "-a", server.url, "two", cwd=tmp_path)

    assert [request.resources[0].text for request in requests_of(tmp_path)] == ["Hello **there**", "Changed"]


def test_a_page_is_declared_listed_printed_and_taken_out(root: Path) -> None:
    with Loopback(otherwise=PAGE) as server:
        uri = f"{server.url}/"
        added = run_jp("attachment", "add", "--id", "last", server.url, cwd=root)
        listed = run_jp("attachment", "ls", "--id", "last", cwd=root)
        printed = run_jp("attachment", "print", "--id", "last", cwd=root)
        asked = run_jp("query", "--id", "last", "two", cwd=root)
        after = run_jp("attachment", "ls", "--id", "last", cwd=root)
        removed = run_jp("attachment", "rm", "--id", "last", f"{server.url}/#x", cwd=root)

    assert added == (0, f"{uri}\n", "")
    assert listed.stdout == f"pending   {uri}\n"
    assert printed == (0, f"── {uri} (15 bytes, text/markdown)\nHello **there**\n", "")
    assert asked.code == 0
    assert after.stdout == f"sent      turn 1, 15 B, 4 tokens, not checked  {uri}\n"
    assert removed == (0, "", "note: nothing is attached\n")


def test_a_dry_run_shows_a_page_and_writes_nothing(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    with Loopback(PAGE) as server:
        result = run_jp("query", "--dry-run", "-a", server.url, "one", cwd=tmp_path)

    assert result.code == 0
    assert f"attached   {server.url}/ (15 bytes)\n" in result.stdout
    assert logs(tmp_path) == []


def test_a_page_that_a_file_declares_needs_trust(tmp_path: Path) -> None:
    with Loopback(PAGE) as server:
        make_workspace(tmp_path, ECHO, settings=f'[conversation]\nattachments = ["{server.url}"]')
        refused = run_jp("query", "one", cwd=tmp_path)

        assert not server.requests
        run_jp("workspace", "trust", "--yes", cwd=tmp_path)
        asked = run_jp("query", "one", cwd=tmp_path)
    check_failure(refused, 3, server.url)
    assert asked.code == 0
    assert requests_of(tmp_path)[0].resources[0].uri == f"{server.url}/"


def test_a_page_that_cannot_be_had_fails_before_anything_is_written(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    with Loopback(otherwise=Reply(status=404)) as server:
        result = run_jp("query", "-a", f"{server.url}/x", "one", cwd=tmp_path)
        error = json_error(run_jp("query", "--format", "json", "-a", f"{server.url}/x", "one", cwd=tmp_path))

    check_failure(result, 10, f"'{server.url}/x' answered 404 Not Found", "check the address")
    assert (error["exit_code"], error["message"]) == (10, f"'{server.url}/x' answered 404 Not Found")
    assert logs(tmp_path) == []


def test_a_password_is_sent_and_left_nowhere(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    with Loopback(PAGE, PAGE, PAGE, otherwise=Reply(status=403)) as server:
        secret = server.url.replace("//", "//user:s3cret@")
        results = [
            run_jp("query", "--new", "-vv", "-a", secret, "one", cwd=tmp_path),
            run_jp("attachment", "print", secret, cwd=tmp_path),
            run_jp("query", "--new", "--dry-run", "--format", "json", "-a", secret, "two", cwd=tmp_path),
            run_jp("query", "--new", "-vv", "-a", secret, "three", cwd=tmp_path),
            run_jp("attachment", "add", "--id", "last", f"{secret}/b", cwd=tmp_path),
            run_jp("attachment", "rm", "--id", "last", f"{secret}/c", cwd=tmp_path),
            run_jp("query", "--new", "-a", secret.replace("s3cret@", "s3/cret@"), "four", cwd=tmp_path),
            run_jp("query", "--new", "-c", f"conversation.attachments+={secret}/d", "five", cwd=tmp_path),
        ]
        sent = [request.headers.get("authorization") for request in server.requests]

    assert [result.code for result in results] == [0, 0, 0, 10, 0, 2, 10, 10]
    assert sent == ["Basic dXNlcjpzM2NyZXQ="] * 4
    for result in results:
        assert "s3" not in result.stdout + result.stderr
    assert b"s3cret" not in everything_stored(tmp_path)


# Commands


def test_a_command_is_run_once_and_kept_as_it_was(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    first = run_jp("query", "-a", f"cmd:{TRACE}", "one", cwd=tmp_path)
    second = run_jp("query", "--id", "last", "two", cwd=tmp_path)

    assert (first, second) == ((0, "You said: one\n", ""), (0, "You said: two\n", ""))
    assert runs(tmp_path) == 1
    asked, followed = requests_of(tmp_path)
    assert (asked.attachments, followed.attachments) == ((TRACE_URI,), ())
    assert [(item.uri, item.name, item.text) for item in asked.resources] == [(TRACE_URI, TRACE, SEEN)]


def test_a_command_is_declared_listed_printed_and_taken_out(root: Path) -> None:
    added = run_jp("attachment", "add", "--id", "last", f"cmd:{TRACE}", cwd=root)
    listed = run_jp("attachment", "ls", "--id", "last", cwd=root)
    printed = run_jp("attachment", "print", "--id", "last", cwd=root)
    before = runs(root)
    asked = run_jp("query", "--id", "last", "two", cwd=root)
    removed = run_jp("attachment", "rm", "--id", "last", f"cmd:{TRACE}", cwd=root)

    assert added == (0, f"{TRACE_URI}\n", "")
    assert listed.stdout == f"pending   {TRACE_URI}\n"
    assert printed == (0, f"── {TRACE} ({len(SEEN)} bytes, text/plain)\n{SEEN}", "")
    assert (before, runs(root)) == (1, 2)
    assert asked.code == 0
    assert removed == (0, "", "note: nothing is attached\n")


def test_what_a_command_answers_is_no_failure(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    result = run_jp("query", "-a", "cmd:sh -c 'exit 3'", "one", cwd=tmp_path)

    assert (result.code, result.stdout) == (0, "You said: one\n")
    assert result.stderr == "note: \"sh -c 'exit 3'\" ended with exit code 3; its output is attached\n"


def test_a_command_does_not_read_what_is_piped(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    result = run_jp("query", "-a", "cmd:cat", "one", cwd=tmp_path, stdin="piped")

    assert result == (0, "You said: one\n\npiped\n", "")
    assert requests_of(tmp_path)[0].resources[0].text == "<command>cat</command>\n<exit_code>0</exit_code>\n"
    printed = run_jp("attachment", "print", "cmd:cat", cwd=tmp_path, stdin="piped")
    assert "piped" not in printed.stdout


def test_a_command_that_is_not_there_fails_before_anything_is_written(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    result = run_jp("query", "-a", "cmd:no-such-program-x y", "one", cwd=tmp_path)

    check_failure(result, 10, "there is no command 'no-such-program-x'")
    assert logs(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "reading"),
    [
        (f"cmd:{TRACE}", ("query", "one")),
        (TRACE_URI, ("query", "--dry-run", "one")),
        (f"CMD:{TRACE}?description=Innocent", ("attachment", "print")),
    ],
)
def test_a_command_that_a_file_declares_needs_trust(text: str, reading: tuple[str, ...], tmp_path: Path) -> None:
    make_workspace(tmp_path, ECHO, settings=f"[conversation]\nattachments = [{json.dumps(text)}]")
    refused = run_jp(*reading, cwd=tmp_path)
    before = runs(tmp_path)
    shown = run_jp("workspace", "trust", "--yes", cwd=tmp_path)
    asked = run_jp("query", "one", cwd=tmp_path)

    check_failure(refused, 3, text, "jp workspace trust")
    assert before == 0
    assert "conversation.attachments" in shown.stdout
    assert (asked.code, runs(tmp_path)) == (0, 1)


def test_a_command_that_a_strangers_conversation_declares_needs_trust(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    run_jp("query", "one", cwd=tmp_path)
    base = logs(tmp_path)[0].parent / "base_config.json"
    config = json.loads(base.read_bytes())
    config["conversation"]["attachments"]["value"] = [TRACE_URI]
    base.write_text(json.dumps(config), encoding="utf-8")

    refused = run_jp("query", "--id", "last", "two", cwd=tmp_path)
    before = runs(tmp_path)
    run_jp("workspace", "trust", "--yes", "--id", "last", cwd=tmp_path)
    asked = run_jp("query", "--id", "last", "two", cwd=tmp_path)

    check_failure(refused, 3, TRACE_URI)
    assert (before, asked.code, runs(tmp_path)) == (0, 0, 1)


@contextmanager
def pipe_in(directory: Path) -> Generator[int]:
    """A pipe called `alive`; at its end once no process has it open for writing any more."""
    os.mkfifo(directory / "alive")
    descriptor = os.open(directory / "alive", os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


STUCK = "cmd:sh -c 'exec 3>alive; printf x >&3; sleep 1000'"


@pytest.mark.parametrize(
    ("number", "code", "arguments"),
    [
        (signal.SIGINT, 130, ("query", "-a", STUCK, "one")),
        (signal.SIGTERM, 143, ("query", "-a", STUCK, "one")),
        (signal.SIGINT, 130, ("attachment", "print", STUCK)),
        (signal.SIGTERM, 143, ("attachment", "print", STUCK)),
    ],
)
def test_a_signal_stops_a_command_at_once(
    number: signal.Signals, code: int, arguments: tuple[str, ...], tmp_path: Path
) -> None:
    make_workspace(tmp_path)
    with pipe_in(tmp_path) as alive:
        process = start_jp(*arguments, cwd=tmp_path)
        process.stdin.close()
        wait_for_writer(alive)
        process.send_signal(number)
        out, err = process.communicate()
        assert os.read(alive, 1) == b""
    assert (process.returncode, out) == (code, b"")
    assert b"Traceback" not in err
    assert logs(tmp_path) == []


def wait_for_writer(descriptor: int) -> None:
    """Wait until a command has said that it runs, then let reads wait."""
    import select

    readable, _, _ = select.select([descriptor], [], [], TIMEOUT_SECS)
    assert readable
    assert os.read(descriptor, 1) == b"x"
    os.set_blocking(descriptor, True)


def test_a_deadline_stops_a_command_and_a_page(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    with Loopback(Reply(headless=True, ends="hang")) as server:
        of_web = run_jp("query", "--deadline", "100ms", "-a", server.url, "one", cwd=tmp_path)
    of_command = run_jp("query", "--deadline", "100ms", "-a", "cmd:sleep 1000", "one", cwd=tmp_path)

    assert (of_web.code, of_command.code) == (124, 124)
    assert logs(tmp_path) == []
