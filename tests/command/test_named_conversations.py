"""Conversations that scripts name: made where there is none, and told by their id."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from doubles import messages
from forked import run_jp
from running import Result
from stage import entries_of, logs, make_workspace

NAMED = ("query", "--id", "@topic=lexer", "--or-new")


def metadata(root: Path) -> list[dict[str, object]]:
    paths = sorted((root / ".jp" / "conversations").glob("*/metadata.json"))
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_workspace(tmp_path / "work")


def test_a_label_names_a_conversation_that_is_made_once_and_then_continued(root: Path) -> None:
    for words in ("one", "two"):
        assert run_jp(*NAMED, words, cwd=root).code == 0

    assert [messages(entries_of(log)) for log in logs(root)] == [["You said: one", "You said: two"]]
    assert [found["labels"] for found in metadata(root)] == [{"topic": "lexer"}]


def test_a_title_names_a_conversation_too(root: Path) -> None:
    for words in ("one", "two"):
        assert run_jp("query", "--id", "The lexer", "--or-new", words, cwd=root).code == 0

    assert [found["title"] for found in metadata(root)] == ["The lexer"]


def test_what_a_new_one_is_like_matters_only_where_it_is_new(root: Path) -> None:
    options = ("--label", "by=hook", "--title", "Reviews", "--tmp=2h", "--compact")
    for words in ("one", "two"):
        assert run_jp(*NAMED, *options, words, cwd=root).code == 0

    (found,) = metadata(root)
    assert (found["labels"], found["title"]) == ({"by": "hook", "topic": "lexer"}, "Reviews")
    assert found["expires_at"]


def test_several_with_the_label_are_still_an_error(root: Path) -> None:
    for _ in range(2):
        run_jp("query", "--new", "--label", "topic=lexer", "hello", cwd=root)

    result = run_jp(*NAMED, "go on", cwd=root)

    assert result.code == 2
    assert "2 conversations match '@topic=lexer'" in result.stderr


def test_a_dry_run_makes_none(root: Path) -> None:
    assert run_jp(*NAMED, "--dry-run", "hello", cwd=root).code == 0
    assert logs(root) == []


def test_two_at_once_make_one(root: Path) -> None:
    def ask(words: str) -> Result:
        return run_jp(*NAMED, words, cwd=root)

    with ThreadPoolExecutor() as pool:
        results = list(pool.map(ask, ("one", "two", "three")))

    assert [result.code for result in results] == [0, 0, 0]
    (log,) = logs(root)
    assert sorted(messages(entries_of(log))) == ["You said: one", "You said: three", "You said: two"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--or-new",), "--or-new needs a name"),
        (("--id", ".", "--or-new"), "--or-new needs a name"),
        (("--id", "jp-c17800836875", "--or-new"), "--or-new needs a name"),
        (("--id", "@topic", "--or-new"), "--or-new needs a name"),
        (("--id", "@topic=x", "--or-new", "--fork"), "--or-new and --fork exclude each other"),
        (("--id", "Lexer", "--or-new", "--title", "Parser"), "both give the new conversation a title"),
        (("--print-id", "--dry-run"), "--print-id and --dry-run exclude each other"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: tuple[str, ...], message: str, root: Path) -> None:
    result = run_jp("query", *options, "hello", cwd=root)

    assert (result.code, result.stdout) == (2, "")
    assert message in result.stderr
    assert logs(root) == []


@pytest.mark.parametrize("more", [(), ("--no-stream",), ("--quiet",)])
def test_the_id_is_a_line_before_the_answer(more: tuple[str, ...], root: Path) -> None:
    result = run_jp("query", "--print-id", *more, "hello", cwd=root)
    told, _, answer = result.stdout.partition("\n")

    assert answer == "You said: hello\n"
    assert run_jp("conversation", "print", told, cwd=root).stdout.endswith("You said: hello\n")
    assert run_jp("query", "--print-id", "--id", told, "again", cwd=root).stdout.startswith(f"{told}\n")


def test_as_json_the_first_line_has_the_id_already(root: Path) -> None:
    lines = run_jp("query", "--print-id", "--format", "json", "hello", cwd=root).stdout.splitlines()

    assert json.loads(lines[0])["conversation"].startswith("jp-c")
    assert [json.loads(line).get("type") for line in lines].count("header") == 1


def test_the_id_is_told_of_a_query_that_fails(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "work", '[[reply]]\nerror = { kind = "invalid_request" }\n')
    result = run_jp("query", "--print-id", "hello", cwd=root)

    assert result.code != 0
    assert result.stdout.startswith("jp-c")
