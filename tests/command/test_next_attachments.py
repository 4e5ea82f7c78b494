"""Attachments that are declared before there is a conversation: the next one that the session starts gets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from failures import check_failure
from forked import Result, run_jp
from jp.conversation.entries import ChatRequest
from stage import entries_of, logs, make_workspace

NOTE = "note: no conversation is active: the next one that this terminal starts gets this\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make_workspace(tmp_path / "work")
    (root / "notes.txt").write_text("some notes\n", encoding="utf-8")
    (tmp_path / "outside.txt").write_text("from elsewhere\n", encoding="utf-8")
    return root


def jp(root: Path, *arguments: str, session: str = "one") -> Result:
    return run_jp(*arguments, cwd=root, env={"JP_SESSION": session})


def read(root: Path, number: int) -> list[list[str | None]]:
    """The texts that each request of a conversation brought."""
    requests = [entry for entry in entries_of(logs(root)[number]) if isinstance(entry, ChatRequest)]
    return [[resource.text for resource in request.resources] for request in requests]


def listed(root: Path) -> list[tuple[str, str]]:
    found = json.loads(jp(root, "attachment", "ls", "--format", "json").stdout)
    return [(item["uri"], item["state"]) for item in found["attachments"]]


def test_the_next_conversation_gets_them_and_the_one_after_does_not(root: Path) -> None:
    added = jp(root, "attachment", "add", "notes.txt")
    assert added == (0, "file:notes.txt\n", NOTE)
    first = jp(root, "query", "what are these?")
    assert first == (0, "You said: what are these?\n", "note: attached as declared before: file:notes.txt\n")
    assert jp(root, "query", "and now?").stderr == ""
    assert jp(root, "query", "--new", "another").stderr == ""
    assert read(root, 0) == [["some notes\n"], []]
    assert read(root, 1) == [[]]


def test_they_are_declared_in_that_conversation(root: Path) -> None:
    jp(root, "attachment", "add", "notes.txt")
    assert listed(root) == [("file:notes.txt", "pending")]
    jp(root, "query", "what are these?")
    assert listed(root) == [("file:notes.txt", "sent")]


def test_they_add_up_and_can_be_removed(root: Path) -> None:
    jp(root, "attachment", "add", "notes.txt")
    both = jp(root, "attachment", "add", "*.md", "--format", "json")
    assert json.loads(both.stdout) == {"schema": 1, "id": None, "attachments": ["file:notes.txt", "file:*.md"]}
    assert jp(root, "attachment", "rm", "notes") == (0, "file:*.md\n", "note: no longer attached: 'file:notes.txt'\n")
    assert jp(root, "attachment", "rm", "*.md").stdout == ""
    assert listed(root) == []
    assert jp(root, "query", "nothing").stderr == ""
    assert read(root, 0) == [[]]


def test_a_typed_path_may_lie_outside_of_the_workspace(root: Path) -> None:
    jp(root, "attachment", "add", "../outside.txt")
    printed = jp(root, "attachment", "print")
    assert (printed.code, "from elsewhere" in printed.stdout) == (0, True), printed
    assert [state for _, state in listed(root)] == ["pending"]
    assert jp(root, "query", "x").code == 0
    assert read(root, 0) == [["from elsewhere\n"]]
    assert jp(root, "query", "y").code == 0


def test_another_session_does_not_get_them(root: Path) -> None:
    jp(root, "attachment", "add", "notes.txt")
    assert jp(root, "query", "x", session="two").stderr == ""
    assert jp(root, "query", "x", session="").stderr == ""
    assert jp(root, "query", "x").stderr != ""
    assert [read(root, number) for number in range(3)] == [[[]], [[]], [["some notes\n"]]]


def test_they_wait_while_an_older_conversation_is_continued_or_nothing_is_written(root: Path) -> None:
    jp(root, "query", "x", session="two")
    jp(root, "attachment", "add", "notes.txt")
    assert jp(root, "query", "--dry-run", "x").code == 0
    assert jp(root, "query", "--no-persist", "x").code == 0
    assert listed(root) == [("file:notes.txt", "pending")]
    assert jp(root, "query", "--id", "last", "y").stderr == ""
    assert jp(root, "query", "--new", "z").stderr == "note: attached as declared before: file:notes.txt\n"
    assert [read(root, number) for number in range(2)] == [[[], []], [["some notes\n"]]]


def test_a_missing_one_is_noted_and_stays_when_the_query_fails(root: Path) -> None:
    missing = jp(root, "attachment", "add", "later.txt")
    assert "there is no file" in missing.stderr
    check_failure(jp(root, "query", "x"), 10, "later.txt", "hint:")
    assert not logs(root)
    assert listed(root) == [("file:later.txt", "missing")]
    (root / "later.txt").write_text("now\n", encoding="utf-8")
    assert jp(root, "query", "x").code == 0
    assert read(root, 0) == [["now\n"]]


def test_without_a_session_nothing_tells_which_conversation_is_next(root: Path) -> None:
    check_failure(jp(root, "attachment", "add", "notes.txt", session=""), 2, "no conversation is active", "hint:")
