"""Conversations that two branches of git continued."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forked import run_jp
from jp.conversation.entries import ChatRequest, ConfigDelta
from jp.workspace.importing import merge_sides
from jp.workspace.store import parse_log
from stage import entries_of, logs, make_workspace

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def git(root: Path, *arguments: str, code: int = 0) -> str:
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=root, capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert done.returncode == code, done
    return done.stdout


def ask(root: Path, *words: str) -> None:
    result = run_jp("query", *words, cwd=root)
    assert result.code == 0, result


def asked(log: Path) -> list[str]:
    return [entry.content for entry in entries_of(log) if isinstance(entry, ChatRequest)]


def branches(root: Path) -> None:
    """Make two branches that continue one conversation, `main` being checked out."""
    git(root, "init", "-q", "-b", "main")
    ask(root, "--new", "first")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    git(root, "checkout", "-qb", "other")
    ask(root, "--id", "last", "of the other")
    git(root, "commit", "-qam", "other")
    git(root, "checkout", "-q", "main")
    ask(root, "--id", "last", "of main")
    ask(root, "--id", "last", "of main again")
    git(root, "commit", "-qam", "main")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make_workspace(tmp_path / "work")
    assert run_jp("init", "--commit-conversations", cwd=root).code == 0
    return root


def without_union(root: Path) -> None:
    (root / ".jp/.gitattributes").write_text("/conversations/** -text\n", encoding="utf-8")


def test_git_merges_the_turns_of_both_branches(root: Path) -> None:
    branches(root)
    git(root, "merge", "-q", "other", "-m", "merged")
    assert asked(logs(root)[0]) == ["first", "of main", "of main again", "of the other"]
    refused = run_jp("conversation", "merge", "last", cwd=root)
    assert (refused.code, "has no conflict" in refused.stderr, "--fork" in refused.stderr) == (2, True, True)
    ask(root, "--id", "last", "and now?")
    assert asked(logs(root)[0])[-1] == "and now?"
    refused = run_jp("conversation", "merge", "--fork", "last", cwd=root)
    assert (refused.code, "it opens with all its turns" in refused.stderr) == (2, True)


def test_it_is_said_that_git_merged_a_log_until_the_next_turn(root: Path) -> None:
    branches(root)
    git(root, "merge", "-q", "other", "-m", "merged")
    told = "note: git merged 2 branches of this conversation: turns 1 to 2 and turn 3; "

    shown = run_jp("conversation", "show", "last", cwd=root)
    assert (shown.code, told in shown.stderr) == (0, True)
    assert told not in run_jp("conversation", "show", "-q", "last", cwd=root).stderr
    data = run_jp("conversation", "show", "last", "--format", "json", cwd=root)
    assert json.loads(data.stdout)["schema"] == 1
    asked_on = run_jp("query", "--id", "last", "and now?", cwd=root)
    assert (asked_on.code, told in asked_on.stderr, "git merged" in asked_on.stdout) == (0, True, False)
    assert "git merged" not in run_jp("query", "--id", "last", "and then?", cwd=root).stderr
    assert "git merged" not in run_jp("conversation", "show", "last", cwd=root).stderr


def test_a_branch_that_begins_with_another_setting_is_told_and_takes_it_along(root: Path) -> None:
    git(root, "init", "-q", "-b", "main")
    ask(root, "--new", "first")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    git(root, "checkout", "-qb", "other")
    ask(root, "--id", "last", "--reasoning", "high", "of the other")
    git(root, "commit", "-qam", "other")
    git(root, "checkout", "-q", "main")
    ask(root, "--id", "last", "of main")
    git(root, "commit", "-qam", "main")
    git(root, "merge", "-q", "other", "-m", "merged")
    assert "git merged 2 branches of this conversation: turn 1 and turn 2; " in run_jp("c", "show", cwd=root).stderr

    assert run_jp("conversation", "merge", "--fork", "last", cwd=root).code == 0

    fork = max(logs(root))
    assert asked(fork) == ["first", "of the other"]
    assert any(isinstance(entry, ConfigDelta) for entry in entries_of(fork))


def test_the_side_that_git_merged_last_can_become_a_conversation(root: Path) -> None:
    branches(root)
    git(root, "merge", "-q", "other", "-m", "merged")
    (command,) = re.findall(r"`jp (conversation merge jp-c\d+ --fork)`", run_jp("c", "show", "last", cwd=root).stderr)

    result = run_jp(*command.split(), "--format", "json", cwd=root)

    assert result.code == 0, result
    report = json.loads(result.stdout)
    assert report["turns"] == 3
    first, other = sorted(logs(root))
    assert asked(other) == ["first", "of the other"]
    assert "git merged" not in run_jp("conversation", "show", report["id"], cwd=root).stderr
    printed = run_jp("conversation", "print", "--compacted", report["id"], cwd=root).stdout
    assert ("of main again" in printed, "of the other" in printed) == (True, False)
    assert asked(first) == ["first", "of main", "of main again", "of the other"]
    assert run_jp("conversation", "undo", report["id"], cwd=root).code == 0
    assert "of the other" in run_jp("conversation", "print", report["id"], cwd=root).stdout
    ask(root, "--id", report["fork"], "and now?")


def test_a_line_that_git_writes_twice_counts_once(root: Path) -> None:
    ask(root, "--new", "first")
    (log,) = logs(root)
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([*lines, *lines[1:]]))

    ask(root, "--id", "last", "and now?")

    requests = [entry.content for entry in parse_log(log.read_bytes(), log).entries if isinstance(entry, ChatRequest)]
    assert requests == ["first", "and now?"]
    assert run_jp("conversation", "print", "last", cwd=root).stdout.count("You said: first") == 1


def conflicted(root: Path) -> Path:
    without_union(root)
    branches(root)
    git(root, "merge", "-q", "other", code=1)
    (log,) = logs(root)
    result = run_jp("conversation", "print", "last", cwd=root)
    assert (result.code, "jp conversation merge jp-c" in result.stderr) == (1, True), result
    assert "with `--fork` it makes the other side a conversation of its own" in result.stderr
    return log


def test_a_conflict_becomes_the_turns_of_both(root: Path) -> None:
    log = conflicted(root)
    result = run_jp("conversation", "merge", "last", "--format", "json", cwd=root)
    assert result.code == 0, result
    assert json.loads(result.stdout)["turns"] == 4
    assert asked(log) == ["first", "of main", "of main again", "of the other"]
    ask(root, "--id", "last", "and now?")


def test_the_other_side_can_become_a_conversation(root: Path) -> None:
    log = conflicted(root)
    result = run_jp("conversation", "merge", "last", "--fork", "--format", "json", cwd=root)
    assert result.code == 0, result
    fork = json.loads(result.stdout)["fork"]
    assert asked(log) == ["first", "of main", "of main again"]
    (other,) = (found for found in logs(root) if found != log)
    assert f"jp-c{other.parent.name.partition('-')[0]}" == fork
    assert asked(other) == ["first", "of the other"]
    ask(root, "--id", fork, "and now?")


LINES = st.lists(st.integers(0, 99), max_size=6, unique=True)


@given(base=LINES, ours=LINES, theirs=LINES, shows_base=st.booleans())
def test_no_line_of_either_side_is_lost_doubled_or_out_of_order(
    base: list[int], ours: list[int], theirs: list[int], *, shows_base: bool
) -> None:
    def text(side: str, lines: list[int]) -> bytes:
        return b"".join(b'{"id":"%s%d"}\n' % (side.encode(), line) for line in lines)

    # A line that both sides have, such as one that was cherry-picked, is there once.
    both = [line for line in ours if line in theirs]
    ours_text = text("o", [line for line in ours if line not in both]) + text("b", both)
    theirs_text = text("b", both) + text("t", [line for line in theirs if line not in both])
    middle = b"||||||| base\n" if shows_base else b""
    data = text("x", base) + b"<<<<<<< HEAD\n" + ours_text + middle + b"=======\n" + theirs_text + b">>>>>>> other\n"
    sides = merge_sides(data)
    assert sides is not None
    assert (sides.ours, sides.theirs) == (text("x", base) + ours_text, text("x", base) + theirs_text)
    lines = sides.both.splitlines()
    assert len(lines) == len(set(lines))
    assert set(lines) == {*sides.ours.splitlines(), *sides.theirs.splitlines()}
    assert sides.both.startswith(sides.ours)
    rest = lines[len(sides.ours.splitlines()) :]
    assert rest == [line for line in sides.theirs.splitlines() if line in rest]
    assert merge_sides(sides.both) is None
