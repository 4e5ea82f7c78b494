"""Search in conversations: `jp conversation grep`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forked import Result, prepare, run_jp
from jp.conversation.entries import ChatRequest, Revert, TurnStart, encode
from stage import copied, entries_of, logs, make_workspace

KEY = "sk-" + "a1B2c3D4" * 5
NOTES = "first line\nthe Quokka café is here\nlast line\n"


def grep(root: Path, *arguments: str, code: int = 0) -> Result:
    result = run_jp("conversation", "grep", *arguments, cwd=root)
    assert result.code == code, result
    return result


def targets(result: Result) -> list[str]:
    return [line.split(" ")[0] for line in result.stdout.splitlines()]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with two conversations, of which the second has a label, an attachment and a key."""
    root = make_workspace(tmp_path_factory.mktemp("prepared") / "work")
    (root / "notes.txt").write_text(NOTES, encoding="utf-8")
    prepare(
        ["query", "--new", "how does the parser report an error?"],
        ["query", "--id", ".", f"the wombat has {KEY} in its pouch"],
        ["query", "--new", "--label", "area=docs", "--attach", "notes.txt", "summarize the notes"],
        cwd=root,
    )
    return root


@pytest.fixture
def root(prepared: Path, tmp_path: Path) -> Path:
    return copied(prepared, tmp_path / "work")


def id_of(root: Path, position: int) -> str:
    return f"jp-c{logs(root)[position].parent.name.partition('-')[0]}"


def test_all_words_match_in_any_order_and_case(root: Path) -> None:
    result = grep(root, "ERROR", "parser", "--in", "user")
    assert result.stdout == f"{id_of(root, 0)}:0 user: how does the parser report an error?\n"
    assert not grep(root, "parser", "wombat", code=1).stdout


def test_accents_are_optional(root: Path) -> None:
    assert targets(grep(root, "cafe")) == [f"{id_of(root, 1)}:0"]


def test_no_match_exits_1_with_a_note(root: Path) -> None:
    result = grep(root, "nowhere", code=1)
    assert (result.stdout, result.stderr) == ("", "note: nothing matches 'nowhere'\n")
    assert json.loads(grep(root, "nowhere", "--format", "json", code=1).stdout)["matches"] == []


def test_an_expression_matches_lines(root: Path) -> None:
    result = grep(root, "(?i)quokka|wombat", "--in", "user,attachment")
    assert targets(result) == [f"{id_of(root, 0)}:1", f"{id_of(root, 1)}:0"]
    assert not grep(root, "QUOKKA|WOMBAT", code=1).stdout
    assert grep(root, "QUOKKA|WOMBAT", "--ignore-case").stdout


def test_an_expression_that_is_none_is_refused_or_taken_as_words(root: Path) -> None:
    assert grep(root, "parser(", "--in", "user").stdout
    assert "is no regular expression" in grep(root, "parser(", "--regex", code=2).stderr
    assert "has no word" in grep(root, "--words", "|", code=2).stderr


def test_lines_around_a_match_are_shown(root: Path) -> None:
    name = f"{id_of(root, 1)}:0 attachment"
    lines = grep(root, "quokka", "-C", "1").stdout.splitlines()
    assert lines == [f"{name}- first line", f"{name}: the Quokka café is here", f"{name}- last line"]


def test_a_search_can_be_narrowed_by_kind_label_and_time(root: Path) -> None:
    assert not grep(root, "wombat", "--in", "attachment", code=1).stdout
    assert grep(root, "quokka", "--label", "area=docs", "--since", "1d").stdout
    assert not grep(root, "quokka", "--label", "area=code", code=1).stdout
    assert not grep(root, "quokka", "--since", "2999-01-01", code=1).stdout
    assert "--in cannot be 'model'" in grep(root, "quokka", "--in", "model", code=2).stderr
    assert "--since cannot be 'soon'" in grep(root, "quokka", "--since", "soon", code=2).stderr


def test_secrets_are_redacted(root: Path) -> None:
    result = grep(root, "wombat", "--in", "user")
    assert KEY not in result.stdout
    assert "[redacted:" in result.stdout
    assert not grep(root, KEY, code=1).stdout


def test_what_was_said_since_the_last_search_is_found(root: Path) -> None:
    assert not grep(root, "numbat", code=1).stdout
    run_jp("query", "--id", id_of(root, 0), "a numbat", cwd=root)
    assert targets(grep(root, "numbat", "--in", "user")) == [f"{id_of(root, 0)}:2"]


def test_undone_turns_and_deleted_conversations_are_not_found(root: Path) -> None:
    assert grep(root, "wombat", "--in", "user").stdout
    log = logs(root)[0]
    turn = next(entry.id for entry in reversed(entries_of(log)) if isinstance(entry, TurnStart))
    with log.open("ab") as file:
        file.write(encode(Revert(id="undo", entries=(turn,))) + b"\n")
    assert not grep(root, "wombat", code=1).stdout
    assert run_jp("conversation", "rm", "--yes", id_of(root, 1), cwd=root).code == 0
    assert not grep(root, "quokka", code=1).stdout


def test_a_result_can_be_printed_attached_and_forked(root: Path) -> None:
    (target,) = targets(grep(root, "parser", "--in", "user"))
    printed = run_jp("conversation", "print", target, cwd=root).stdout
    assert "parser" in printed
    assert "wombat" not in printed
    assert run_jp("query", "--new", "--attach", target, "what was that?", cwd=root).code == 0
    (request,) = (entry for entry in entries_of(logs(root)[-1]) if isinstance(entry, ChatRequest))
    assert "how does the parser" in (request.resources[0].text or "")
    assert run_jp("query", f"--fork={target}", "and now?", cwd=root).code == 0
    asked = [entry.content for entry in entries_of(logs(root)[-1]) if isinstance(entry, ChatRequest)]
    assert asked == ["how does the parser report an error?", "and now?"]
    assert run_jp("conversation", "fork", target, cwd=root).code == 0
    assert sum(isinstance(entry, TurnStart) for entry in entries_of(logs(root)[-1])) == 1
    both = run_jp("query", "--id", "last", f"--fork={target}", "x", cwd=root)
    assert (both.code, "both name a conversation" in both.stderr) == (2, True)


def test_other_workspaces_are_searched_with_all(root: Path) -> None:
    grep(root, "parser")
    other = make_workspace(root.parent / "other")
    assert not run_jp("conversation", "grep", "parser", "--workspace", str(other), cwd=root).stdout
    found = json.loads(
        grep(root, "parser", "--workspace", str(other), "--all", "--in", "user", "--format", "json").stdout
    )["matches"]
    assert [match["path"] for match in found] == [str(logs(root)[0].parent)]


def test_json_has_every_field(root: Path) -> None:
    value = json.loads(grep(root, "quokka", "--format", "json").stdout)
    (match,) = value["matches"]
    assert match == {
        "target": f"{id_of(root, 1)}:0",
        "id": id_of(root, 1),
        "turn": 0,
        "kind": "attachment",
        "about": match["about"],
        "title": "summarize the notes",
        "path": str(logs(root)[1].parent),
        "lines": [{"text": "the Quokka café is here", "matches": True}],
    }
    assert match["about"].endswith("/notes.txt")


def test_a_log_that_cannot_be_read_does_not_hide_the_others(root: Path) -> None:
    logs(root)[0].write_text("no log\n" * 3, encoding="utf-8")
    result = grep(root, "quokka", "-v")
    assert targets(result) == [f"{id_of(root, 1)}:0"]
    assert "is not searched" in result.stderr


def test_nothing_is_written_with_no_persist(root: Path) -> None:
    assert grep(root, "quokka", "--no-persist").stdout
    assert not list(root.parent.rglob("index.sqlite3"))
