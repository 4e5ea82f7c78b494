"""Function calls of whole commands: what grows with a turn or a workspace grows no faster than it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from forked import run_jp
from stage import make_workspace

COUNTING = """
import os, sys, threading
from jp.cli.app import run

count = 0

def look(frame, event, argument):
    global count
    count += event in ("call", "c_call")

threading.setprofile(look)
sys.setprofile(look)
code = run(sys.argv[2:])
sys.setprofile(None)
with open(sys.argv[1], "w") as file:
    file.write(str(count))
os._exit(code)
"""
SETTINGS = """
[conversation.tools.fs_read_file]
enable = true
"""
IN_TURN = """
[[reply]]
times = {count}
calls = [{{ name = "fs_read_file", arguments = {{ path = "notes.txt" }} }}]

[[reply]]
text = "Done."
"""


def count_calls(root: Path, *arguments: str) -> int:
    """Return how many functions a command calls in all of its threads."""
    found, script = root / "calls", root.with_suffix(".py")
    script.write_text(COUNTING, encoding="utf-8")
    result = run_jp(str(found), *arguments, cwd=root, script=script)
    assert result.code == 0, result.stderr
    return int(found.read_text(encoding="ascii"))


def in_cycles(count: int) -> str:
    return IN_TURN.format(count=count)


def at_once(count: int) -> str:
    """A model that calls tools with different results, all in one response."""
    call = '{{ name = "fs_read_file", arguments = {{ path = "notes.txt", start_line = {} }} }}'
    calls = ", ".join(call.format(number + 1) for number in range(count))
    return f'[[reply]]\ntimes = 1\ncalls = [{calls}]\n\n[[reply]]\ntext = "Done."\n'


@pytest.mark.parametrize("scenario", [in_cycles, at_once])
def test_a_turn_of_twice_as_many_calls_takes_at_most_twice_as_many_steps(
    tmp_path: Path, scenario: Callable[[int], str]
) -> None:
    counts: list[int] = []

    for count in (40, 80, 160):
        root = make_workspace(tmp_path / str(count), scenario(count), settings=SETTINGS)
        (root / "notes.txt").write_text("".join(f"note {number}\n" for number in range(400)), encoding="utf-8")
        counts.append(count_calls(root, "query", "--new", "--max-cycles", "1000", "--approve", "fs_read_file", "Read"))

    assert counts[2] - counts[1] <= 2.1 * (counts[1] - counts[0]), counts


def with_conversations(root: Path, count: int) -> Path:
    """A workspace with so many conversations, one of which is this terminal's."""
    make_workspace(root)
    for number in range(count):
        directory = root / ".jp" / "conversations" / f"{number + 1}-some-words"
        directory.mkdir(parents=True)
        (directory / "events.jsonl").write_text('{"type":"header","format":1}\n', encoding="utf-8")
        (directory / "metadata.json").write_text('{"title":"Some words"}\n', encoding="utf-8")
    assert run_jp("query", "--new", "Hello", cwd=root).code == 0
    return root


@pytest.mark.parametrize("target", ["--new", "--id=."])
def test_a_query_does_not_look_at_each_of_the_other_conversations(tmp_path: Path, target: str) -> None:
    few, many = (count_calls(with_conversations(tmp_path / str(n), n), "query", target, "Hello") for n in (100, 400))

    assert many - few <= 10 * 300  # for each one a few comparisons of its name


def test_a_list_of_twice_as_many_conversations_takes_at_most_twice_as_many_steps(tmp_path: Path) -> None:
    counts = [
        count_calls(with_conversations(tmp_path / str(count), count), "conversation", "ls") for count in (50, 100, 200)
    ]

    assert counts[2] - counts[1] <= 2.1 * (counts[1] - counts[0])
    assert counts[2] - counts[1] <= 190 * 100  # 181 on Python 3.13, whose pathlib calls more than that of 3.11
