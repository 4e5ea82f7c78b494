"""Many queries on one conversation, and queries that die at any point."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from doubles import kinds
from forked import run_jp, start_jp
from jp.conversation.entries import ChatRequest, ChatResponse
from jp.conversation.turns import turns_of
from running import Result, home_beside
from stage import entries_of, logs, make_workspace, only_log

COUNT = 20

TOOLS = """
[[reply]]
when = { contains = "read" }
times = 1
reasoning = "I need it."
text = "Let me look."
calls = [
  { name = "fs_read_file", arguments = { path = "a.txt" } },
  { name = "fs_read_file", arguments = { path = "b.txt" } },
]

[[reply]]
when = { tool = "*" }
text = "Both are there."

[[reply]]
text = "You said: {{user}}"
"""
READING = '[conversation.tools.fs_read_file]\nenable = true\nrun = "unattended"\n'

DIES = """
import os, signal, sys
from jp.workspace.log import Log

append = Log.append
left = int(sys.argv.pop(1))

def dying(self, entry):
    global left
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    return append(self, entry)

Log.append = dying
from jp.__main__ import main
main()
"""


def test_twenty_queries_that_wait_are_all_in_the_log_whole(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    run_jp("query", "first", cwd=tmp_path)

    def ask(number: int) -> Result:
        return run_jp("query", "--id", "last", "--wait", "60s", f"number {number}", cwd=tmp_path)

    with ThreadPoolExecutor(COUNT) as pool:
        results = list(pool.map(ask, range(COUNT)))

    assert [result.code for result in results] == [0] * COUNT
    turns = turns_of(only_log(tmp_path))
    asked: set[str] = set()
    for turn in turns:
        request = next(entry for entry in turn.entries if isinstance(entry, ChatRequest))
        response = next(entry for entry in turn.entries if isinstance(entry, ChatResponse))
        assert response.message == f"You said: {request.content}"
        asked.add(request.content)
    assert asked == {"first", *(f"number {number}" for number in range(COUNT))}


def test_a_query_that_does_not_wait_writes_nothing(tmp_path: Path) -> None:
    slow = '[[reply]]\nwhen = { contains = "slow" }\ntext = "x"\nwait_ms = 600000\n[[reply]]\ntext = "quick"\n'
    make_workspace(tmp_path, slow)
    run_jp("query", "first", cwd=tmp_path)
    holder = start_jp("query", "--id", "last", "--no-stdin", "-F", "json", "slow", cwd=tmp_path)
    holder.stdout.readline()
    before = logs(tmp_path)[0].read_bytes()

    result = run_jp("query", "--id", "last", "--wait", "0", "second", cwd=tmp_path)

    assert result.code == 11
    assert "lock" in result.stderr
    assert "--wait" in result.stderr
    assert logs(tmp_path)[0].read_bytes().startswith(before)
    assert b"second" not in logs(tmp_path)[0].read_bytes()
    holder.kill()
    holder.communicate()


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a conversation of one turn, and files to read."""
    root = make_workspace(tmp_path_factory.mktemp("begun"), TOOLS)
    for name in ("a.txt", "b.txt"):
        (root / name).write_text(name * 100, encoding="utf-8")
    run_jp("query", "hello", cwd=root)
    return root


@pytest.mark.parametrize("survives", range(12))
def test_a_query_that_is_killed_loses_no_whole_entry_and_the_next_one_goes_on(
    tmp_path: Path, begun: Path, survives: int
) -> None:
    shutil.copytree(begun, tmp_path, dirs_exist_ok=True)
    own = home_beside(tmp_path) / "config"
    own.mkdir()
    (own / "config.toml").write_text(READING, encoding="utf-8")
    before = entries_of(logs(tmp_path)[0])
    script = tmp_path.parent / f"{tmp_path.name}-dies.py"
    script.write_text(DIES, encoding="utf-8")

    died = run_jp(str(survives), "query", "--id", "last", "read both", cwd=tmp_path, script=script)
    after = entries_of(logs(tmp_path)[0])
    result = run_jp("query", "--id", "last", "and now?", cwd=tmp_path)

    assert died.code == (-9 if survives < 11 else 0), died.stderr
    assert after[: len(before)] == before
    assert len(after) == len(before) + min(survives, 11)
    assert (result.code, result.stdout) == (0, "You said: and now?\n")
    healed = kinds(entries_of(logs(tmp_path)[0]))
    assert healed.count("tool_call_response") == healed.count("tool_call_request")
