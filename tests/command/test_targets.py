"""Which conversation a target means, in commands and without a person who could pick one."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from failures import check_failure
from forked import prepare, run_jp
from stage import logs, make_workspace

ARCHIVED = {"archived_at": "2026-01-02T03:04:05Z"}


def conversation(root: Path, number: int, title: str | None, **metadata: object) -> str:
    """A conversation that was used last in the order of the numbers."""
    digits = 17_800_000_000 + number
    directory = root / ".jp" / "conversations" / f"{digits}-old-words"
    directory.mkdir(parents=True)
    (directory / "metadata.json").write_text(json.dumps({"title": title, **metadata}), encoding="utf-8")
    at = "2026-01-02T03:04:05Z"
    header = {"id": "1", "type": "header", "at": at, "format": 1, "created_at": at, "nonce": "n"}
    log = directory / "events.jsonl"
    log.write_text(json.dumps(header) + "\n", encoding="utf-8")
    os.utime(log, (1_700_000_000 + number, 1_700_000_000 + number))
    return f"jp-c{digits}"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make_workspace(tmp_path / "work")
    conversation(root, 1, "The lexer", labels={"area": "parser"})
    conversation(root, 2, "The lexer, again", labels={"area": "cli"})
    conversation(root, 11, None)
    conversation(root, 99, "Old parser", labels={"area": "old"}, **ARCHIVED)
    return root


def shown(root: Path, target: str, command: str = "path") -> str:
    result = run_jp("conversation", command, target, "-F", "json", cwd=root)
    assert (result.code, result.stderr) == (0, ""), result
    return json.loads(result.stdout)["id"]


def failure(root: Path, *arguments: str) -> dict[str, Any]:
    result = run_jp(*arguments, "-F", "json", cwd=root)
    assert (result.code, result.stdout) == (2, ""), result
    return json.loads(result.stderr)["error"]


@pytest.mark.parametrize(
    ("target", "number"),
    [
        ("jp-c1780000001", 11),
        ("1780000009", 99),
        ("THE LEXER", 1),
        ("old words", 11),
        ("last", 11),
        ("@area=cli", 2),
    ],
)
def test_a_target_is_an_id_or_its_start_or_a_title_or_a_label(target: str, number: int, root: Path) -> None:
    assert shown(root, target) == f"jp-c{17_800_000_000 + number}"


def test_several_matches_are_listed_with_title_and_age(root: Path) -> None:
    result = run_jp("conversation", "show", "lexer", cwd=root)

    assert re.sub(r"\d+ y\)", "N y)", result.stderr) == (
        "error: 2 conversations match 'lexer': jp-c17800000002 (The lexer, again, N y), "
        "jp-c17800000001 (The lexer, N y)\n"
        "hint: use one of these ids\n"
    )
    assert (result.code, result.stdout) == (2, "")
    assert failure(root, "conversation", "show", "@area")["kind"] == "ambiguous_target"
    assert failure(root, "conversation", "show", "1780000000")["message"].startswith(
        "2 conversations match '1780000000': jp-c17800000002 ("
    )


def test_a_long_list_of_matches_is_cut(root: Path) -> None:
    for number in range(20, 40):
        conversation(root, number, "One of many")

    message = failure(root, "query", "--id", "many", "hello")["message"]

    assert message.startswith("20 conversations match 'many': jp-c17800000039 (One of many, ")
    assert message.count("jp-c") == 10
    assert message.endswith(", and 10 more")


@pytest.mark.parametrize(
    ("target", "hint"),
    [
        ("the lexxer", "did you mean 'The lexer' (jp-c17800000001) or 'The lexer, again' (jp-c17800000002)?"),
        ("old parser", "one that is archived does: jp-c17800000099 (Old parser, "),
        ("jp-c999", "ids look like 'jp-c17800836875'; list them with `jp conversation ls`"),
        ("@nobody", "list them with `jp conversation ls`"),
    ],
)
def test_what_nothing_matches_is_named_with_what_is_near(target: str, hint: str, root: Path) -> None:
    error = failure(root, "conversation", "show", target)

    assert (error["kind"], error["message"]) == ("unknown_target", f"no conversation matches {target!r}")
    assert error["hint"].startswith(hint)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("@", "the label of a target cannot be ''"),
        (".", "no conversation is active in this terminal"),
        ("prev", "no other conversation was active in this terminal"),
        ("?", "'?' picks a conversation from a list, and there is no terminal for it here"),
    ],
)
def test_what_cannot_be_meant_here_is_said(target: str, words: str, root: Path) -> None:
    check_failure(run_jp("conversation", "show", target, cwd=root), 2, words)


def test_an_empty_workspace_has_no_last_conversation(tmp_path: Path) -> None:
    make_workspace(tmp_path)

    check_failure(run_jp("conversation", "show", "last", cwd=tmp_path), 2, "there are no conversations here yet")


def test_archived_conversations_are_what_unarchive_looks_for(root: Path) -> None:
    refused = failure(root, "conversation", "unarchive", "lexer")
    back = run_jp("conversation", "unarchive", "@area=old", "last", cwd=root)
    none = failure(root, "conversation", "unarchive", "last")

    assert (refused["kind"], refused["message"]) == ("unknown_target", "no conversation matches 'lexer'")
    assert refused["hint"].startswith("one that is not archived does: jp-c17800000002 (The lexer, again, ")
    assert back == (0, "unarchived jp-c17800000099 (Old parser)\n", "")
    assert none["message"] == "no conversation is archived"


def test_commands_take_several_targets_each_once(root: Path) -> None:
    archived = run_jp("conversation", "archive", "the lexer", "jp-c17800000001", "@area=parser", "again", cwd=root)
    removed = run_jp("conversation", "rm", "--yes", "last", "old words", cwd=root)

    assert archived.stdout == "archived jp-c17800000001 (The lexer)\narchived jp-c17800000002 (The lexer, again)\n"
    assert removed.stdout == "deleted jp-c17800000011 (old words)\n"


def test_nothing_is_done_where_one_of_several_targets_means_nothing(root: Path) -> None:
    check_failure(run_jp("conversation", "rm", "--yes", "the lexer", "nobody", cwd=root), 2, "'nobody'")

    assert len(list((root / ".jp" / "conversations").iterdir())) == 4


def test_the_previous_conversation_is_neither_removed_nor_archived(root: Path) -> None:
    ids = [conversation(root, number, f"Number {number}") for number in (51, 52, 53, 54)]
    prepare(*(["conversation", "use", each] for each in ids), cwd=root)
    first, second, third, _ = ids

    assert shown(root, "prev") == third
    run_jp("conversation", "rm", "--yes", third, cwd=root)
    assert shown(root, "prev") == second
    run_jp("conversation", "archive", second, cwd=root)
    assert shown(root, "prev") == first
    run_jp("conversation", "archive", ".", cwd=root)
    check_failure(run_jp("conversation", "show", ".", cwd=root), 2, "no conversation is active")
    assert shown(root, "prev") == first
    assert run_jp("conversation", "unarchive", "prev", cwd=root).stdout == "unarchived jp-c17800000054 (Number 54)\n"
    assert shown(root, "prev") == "jp-c17800000054"


def test_a_conversation_that_is_moved_stays_active_and_an_imported_one_is_not(root: Path, tmp_path: Path) -> None:
    prepare(["conversation", "use", "the lexer"], ["conversation", "edit", ".", "--local"], cwd=root)
    other = make_workspace(tmp_path / "other")
    conversation(other, 70, "From elsewhere")

    imported = run_jp("conversation", "import", str(other / ".jp" / "conversations"), cwd=root)

    assert imported.code == 0, imported
    assert shown(root, ".") == "jp-c17800000001"
    assert shown(root, "elsewhere") == "jp-c17800000070"


def test_a_conversation_is_called_by_its_first_words_as_they_were_typed(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    by_words = ["query", "--new", "Parser: please,\n\x1b[31mhelp" + " me" * 40]
    prepare(by_words, ["query", "--new", "--title", "A title", "Other: words"], cwd=tmp_path)
    run_jp("query", "--new", cwd=tmp_path, stdin="\n  Traceback (most recent call last):\n  more\n")

    typed = run_jp("conversation", "use", "Parser: please", cwd=tmp_path).stdout
    piped = run_jp("conversation", "use", "traceback (most", cwd=tmp_path).stdout
    forked = run_jp("conversation", "fork", "Traceback (", cwd=tmp_path)
    facts = json.loads(run_jp("conversation", "ls", "--format", "json", cwd=tmp_path).stdout)["conversations"]
    listed = run_jp("conversation", "ls", cwd=tmp_path).stdout

    called = "Parser: please, help" + " me" * 20
    assert typed.partition("  ")[2] == f"{called}\n"
    assert piped.partition("  ")[2] == "Traceback (most recent call last):\n"
    fork = next(fact for fact in facts if fact["id"] == forked.stdout.strip())
    assert fork["first_words"] == "Traceback (most recent call last):"
    assert called in listed
    assert "Other" not in listed


def test_a_conversation_that_noted_no_first_words_is_called_by_its_directory(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    run_jp("query", "--new", "Parser: please", cwd=tmp_path)
    (log,) = logs(tmp_path)
    (log.parent / "metadata.json").write_text("{}", encoding="utf-8")

    assert run_jp("conversation", "use", "parser please", cwd=tmp_path).stdout.endswith("  parser please\n")
