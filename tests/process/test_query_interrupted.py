"""Signals, deadlines, readers that leave: the output so far is kept, and the exit code says why it ended."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

import anthropic_wire
import running
from doubles import messages
from forked import Forked, Started, fork, run_jp, start_jp
from jp.conversation.entries import CycleEnd, ToolCallResponse
from jp.conversation.resource import NOT_STARTED_CONTENT
from loopback import Loopback, Reply, sse
from running import home_beside, isolated_environment
from stage import entries_of, logs, make_workspace, only_log

SLOW = """
[[reply]]
text = "one two three four"
chunk = 4
delay_ms = 50
error = { kind = "timeout", after = 14 }
"""

HANGING = """
[[reply]]
text = "one two three four"
chunk = 4
delay_ms = 600000
"""


def started(cwd: Path, *arguments: str) -> Started:
    process = start_jp("query", *arguments, cwd=cwd)
    process.stdin.close()
    return process


def first_bytes(process: Started) -> bytes:
    return os.read(process.stdout.fileno(), 4)


def finished(process: Started) -> tuple[int, bytes, bytes]:
    out, err = process.stdout.read(), process.stderr.read()
    code = process.wait(30)
    process.stdout.close()
    process.stderr.close()
    return code, out, err


LONG = """
[[reply]]
text = "{text}"
chunk = 4
delay_ms = 20
""".replace("{text}", "word " * 2000)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)])
def test_a_signal_stops_and_keeps_what_came(tmp_path: Path, number: signal.Signals, code: int) -> None:
    make_workspace(tmp_path, LONG)
    process = started(tmp_path, "hi")
    first = first_bytes(process)

    process.send_signal(number)
    ended, rest, err = finished(process)

    kept = messages(only_log(tmp_path))
    assert ended == code
    assert b"Traceback" not in err
    assert len(kept) == 1
    assert (first + rest).decode().rstrip("\n") == kept[0]
    assert [entry.finish for entry in only_log(tmp_path) if isinstance(entry, CycleEnd)] == ["cancelled"]


def test_a_deadline_stops_and_keeps_what_came(tmp_path: Path) -> None:
    make_workspace(tmp_path, LONG)

    result = run_jp("query", "--deadline", "500ms", "hi", cwd=tmp_path)

    assert result.code == 124
    assert result.stdout.rstrip("\n") == "".join(messages(only_log(tmp_path)))
    assert "deadline" in result.stderr


def test_a_deadline_counts_while_a_pipe_is_idle(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    process = start_jp("query", "--deadline", "300ms", "hi", cwd=tmp_path)

    assert process.wait(30) == 124
    out, _ = process.communicate()
    assert out == b""
    assert logs(tmp_path) == []


def test_a_reader_that_leaves_is_no_error_and_costs_no_text(tmp_path: Path) -> None:
    make_workspace(tmp_path, LONG)
    process = started(tmp_path, "hi")
    first_bytes(process)
    process.stdout.close()

    err = process.stderr.read()
    process.stderr.close()

    assert process.wait(30) == 141
    assert err == b""
    assert "".join(messages(only_log(tmp_path))).startswith("word")


def test_a_conversation_goes_on_after_an_interruption(tmp_path: Path) -> None:
    make_workspace(tmp_path, LONG + '[[reply]]\ntext = "never"\n')
    process = started(tmp_path, "hi")
    first_bytes(process)
    process.send_signal(signal.SIGINT)
    finished(process)
    scenario = tmp_path / ".jp" / "scenarios" / "test.toml"
    scenario.write_text('[[reply]]\ntext = "Going on."\n', encoding="utf-8")

    result = run_jp("query", "--id", "last", "go on", cwd=tmp_path)

    assert (result.code, result.stdout) == (0, "Going on.\n")
    assert len(entries_of(logs(tmp_path)[0])) > 8


def test_closed_standard_streams_do_not_break_a_query(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    shell = ("/bin/sh", "-c", 'exec "$@" <&-', "sh")

    result = running.run_jp("query", "hi", cwd=tmp_path, program=(*shell, *("python", "-m", "jp")))

    assert (result.code, result.stdout) == (0, "You said: hi\n")


def test_a_full_standard_output_is_an_error_and_the_answer_is_kept(tmp_path: Path) -> None:
    make_workspace(tmp_path)

    with Path("/dev/full").open("wb") as full, (tmp_path / "said").open("w+b") as said:
        streams = (said.fileno(), full.fileno(), said.fileno())
        environment = isolated_environment(home_beside(tmp_path))
        code = Forked(fork("query", "--no-stdin", "hi", cwd=tmp_path, env=environment, streams=streams)).wait()

    assert code == 1
    assert "stdout" in (tmp_path / "said").read_text(encoding="utf-8")
    assert messages(only_log(tmp_path)) == ["You said: hi"]


def calling(server: Loopback, cwd: Path) -> Started:
    """A query whose model has called a tool, and goes on with its answer for ever."""
    settings = (f"providers.llm.anthropic.base_url={server.url}", "conversation.tools.fs_read_file.enable=true")
    cfg = [word for setting in settings for word in ("--cfg", setting)]
    words = ("query", *cfg, "--model", "anthropic/claude-haiku-4-5", "hi")
    process = start_jp(*words, cwd=cwd, env={"ANTHROPIC_API_KEY": "sk-ant-test-0123456789"})
    process.stdin.close()
    said = b""
    while b"fs_read_file" not in said:
        said += (more := os.read(process.stderr.fileno(), 1000))
        assert more, said
    return process


CALLED = sse(anthropic_wire.start(), *anthropic_wire.tool_use(0, "fs_read_file", '{"path":"a.txt"}'))


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143), (signal.SIGKILL, -9)]
)
def test_a_call_that_was_not_started_is_known_to_have_had_no_effects(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    make_workspace(tmp_path)
    with Loopback(Reply(body=CALLED, ends="hang")) as server:
        process = calling(server, tmp_path)
        process.send_signal(number)
        ended, _, err = finished(process)

    assert ended == code
    assert b"Traceback" not in err
    if number != signal.SIGKILL:
        assert isinstance(response := only_log(tmp_path)[-1], ToolCallResponse)
        assert response.content == NOT_STARTED_CONTENT

    after = run_jp("query", "--id", "last", "--model", "script/test", "go on", cwd=tmp_path)

    assert (after.code, after.stdout) == (0, "You said: go on\n")
    assert "unknown" not in after.stderr
    answered = [entry for entry in only_log(tmp_path) if isinstance(entry, ToolCallResponse)]
    assert [entry.content for entry in answered] == [NOT_STARTED_CONTENT]
