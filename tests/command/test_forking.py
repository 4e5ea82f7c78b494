"""Copies of conversations: `jp conversation fork` and `jp query --fork`."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from failures import check_failure, json_error
from forked import run_jp
from jp.conversation.entries import ChatRequest, ConfigDelta, Header, ToolCallResponse
from jp.conversation.ids import ConversationId
from running import home_beside
from stage import entries_of, logs, make_workspace

DATA = os.environ.get("JP_TEST_DATA", "")
ORIGINALS = sorted((Path(DATA) / "jp_conversations").glob("*/events.json")) if DATA else []
QUESTIONS = ("zero", "one", "two", "three")


def id_of(log: Path) -> str:
    return ConversationId.parse(log.parent.name.partition("-")[0])


def make_conversation(root: Path, *options: str, settings: str = "") -> str:
    """The id of a conversation of four turns, which is active in a new workspace."""
    make_workspace(root, settings=settings)
    run_jp("query", "--new", *options, QUESTIONS[0], cwd=root)
    for question in QUESTIONS[1:]:
        run_jp("query", "--id", ".", question, cwd=root)
    (log,) = (root / ".jp" / "conversations").glob("*/events.jsonl")
    return id_of(log)


def questions_in(log: Path) -> list[str]:
    return [entry.content for entry in entries_of(log) if isinstance(entry, ChatRequest)]


def log_of(root: Path, identity: str) -> Path:
    return next(log for log in logs(root) if id_of(log) == identity)


def forked(root: Path, *arguments: str) -> Path:
    """The log of the fork that a command makes."""
    result = run_jp("conversation", "fork", *arguments, "--quiet", cwd=root)
    assert (result.code, result.stderr) == (0, ""), result
    return log_of(root, result.stdout.strip())


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a conversation of four turns and two labels, for forks that do not mind each other."""
    root = tmp_path_factory.mktemp("forks") / "work"
    root.mkdir()
    make_conversation(root, "--title", "The lexer", "--label", "area=parser", "--label", "odd")
    return root


def first_id(root: Path) -> str:
    return id_of(logs(root)[0])


def test_a_fork_has_all_turns_under_an_id_that_is_all_of_stdout_and_becomes_active(tmp_path: Path) -> None:
    identity = make_conversation(tmp_path, "--title", "The lexer", "--label", "area=parser")
    before = logs(tmp_path)[0].read_bytes()

    result = run_jp("conversation", "fork", cwd=tmp_path)

    old, new = logs(tmp_path)
    assert result == (
        0,
        f"{id_of(new)}\n",
        f"note: copied turns 0 to 3 of {identity} (The lexer); the fork is active now\n",
    )
    assert old.read_bytes() == before
    assert questions_in(new) == list(QUESTIONS)
    header, *copied = entries_of(new)
    own, *rest = entries_of(old)
    assert copied == rest
    assert isinstance(header, Header)
    assert isinstance(own, Header)
    assert header.id != own.id
    assert header.nonce == own.nonce  # what is shown of the copied turns has it in it
    assert json.loads((new.parent / "metadata.json").read_text(encoding="utf-8")) == {
        "title": "The lexer",
        "first_words": "zero",
        "labels": {"area": "parser"},
        "parent": {"conversation": identity, "from_turn": 0, "to_turn": 3},
    }
    assert (new.parent / "base_config.json").read_bytes() == (old.parent / "base_config.json").read_bytes()
    run_jp("query", "--id", ".", "four", cwd=tmp_path)
    assert questions_in(new)[-1] == "four"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--turn", "1"], ["one"]),
        (["--turn", "..1"], ["zero", "one"]),
        (["--turn", "1..2"], ["one", "two"]),
        (["--turn", "2.."], ["two", "three"]),
        (["--turn", "-2..9"], ["two", "three"]),
        (["--last", "1"], ["three"]),
        (["--last", "9"], ["zero", "one", "two", "three"]),
    ],
)
def test_a_fork_has_the_turns_that_are_named(source: Path, options: list[str], expected: list[str]) -> None:
    assert questions_in(forked(source, first_id(source), "--no-use", *options)) == expected


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--turn", "4"], ["--turn 4: there is no such turn", "they are 0 to 3"]),
        (["--turn", "2..1"], ["--turn 2..1: the range is reversed", "--turn 1..2"]),
        (["--turn", "x"], ["--turn cannot be 'x'", "A..B"]),
        (["--turn", "1", "--last", "2"], ["--turn and --last exclude each other"]),
        (["--local", "--no-local"], ["--local and --no-local exclude each other"]),
        (["--label", "a b"], ["--label cannot be 'a b'"]),
        (["--no-persist"], ["--no-persist leaves nothing"]),
    ],
)
def test_a_fork_that_is_not_possible_is_refused_and_leaves_nothing(
    source: Path, options: list[str], words: list[str]
) -> None:
    before = len(logs(source))

    check_failure(run_jp("conversation", "fork", first_id(source), *options, cwd=source), 2, *words)

    assert len(logs(source)) == before


def test_a_fork_as_json_says_what_it_is(source: Path) -> None:
    result = run_jp(
        "conversation", "fork", first_id(source), "--turn", "1..2", "--title", "Other", "--label", "odd=2", "--no-use",
        "-F", "json", cwd=source,
    )  # fmt: skip

    value = json.loads(result.stdout)
    log = log_of(source, value["id"])
    assert value == {
        "schema": 1,
        "id": id_of(log),
        "title": "Other",
        "local": False,
        "path": str(log.parent),
        "parent": {"conversation": first_id(source), "from_turn": 1, "to_turn": 2},
        "active": False,
    }
    shown = run_jp("conversation", "show", value["id"], cwd=source).stdout
    assert re.search(r"^labels +area=parser, odd=2$", shown, re.MULTILINE)
    assert re.search(rf"^parent +{first_id(source)}, turns 1 to 2$", shown, re.MULTILINE)


def test_what_was_set_before_the_first_turn_that_is_copied_holds_in_the_fork(tmp_path: Path) -> None:
    identity = make_conversation(tmp_path)
    run_jp("query", "--id", identity, "--system", "Be brief.", "four", cwd=tmp_path)
    run_jp("query", "--id", identity, "--system", "Be long.", "five", cwd=tmp_path)

    late, early = forked(tmp_path, identity, "--turn", "4"), forked(tmp_path, identity, "--turn", "..3")
    both = forked(tmp_path, identity, "--turn", "3..4")

    def system(log: Path) -> str:
        result = run_jp("query", "--id", id_of(log), "--dry-run", "-F", "json", "and?", cwd=tmp_path)
        return str(json.loads(result.stdout)["request"]["body"])

    assert "Be brief." in system(late)
    assert "Be brief." not in system(early)
    assert "Be brief." in system(both)
    assert [isinstance(entry, ConfigDelta) for log in (late, early) for entry in entries_of(log)].count(True) == 0


def test_a_fork_in_another_place_brings_its_content_along(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    (tmp_path / "big.txt").write_text("line\n" * 2000, encoding="utf-8")
    run_jp("query", "--new", "one", "-a", "big.txt", cwd=tmp_path)

    result = run_jp("conversation", "fork", "last", "--local", cwd=tmp_path)
    (home_beside(tmp_path) / "aside").mkdir()
    (tmp_path / ".jp" / "blobs").rename(home_beside(tmp_path) / "aside" / "blobs")
    printed = run_jp("conversation", "print", ".", "--full", cwd=tmp_path)
    back = run_jp("conversation", "fork", ".", "--no-local", "-F", "json", cwd=tmp_path)

    assert result.code == 0
    assert printed.stdout.count("line\n") == 2000
    assert json.loads(back.stdout)["local"] is False
    assert len(list((tmp_path / ".jp" / "blobs").rglob("*/*/*"))) == 1


def test_missing_content_is_no_hindrance_in_the_same_place_and_an_error_in_another(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    (tmp_path / "big.txt").write_text("line\n" * 2000, encoding="utf-8")
    run_jp("query", "--new", "one", "-a", "big.txt", cwd=tmp_path)
    (tmp_path / ".jp" / "blobs").rename(tmp_path / "gone")

    here = run_jp("conversation", "fork", "last", "--no-use", cwd=tmp_path)
    there = run_jp("conversation", "fork", here.stdout.strip(), "--local", cwd=tmp_path)

    assert here.code == 0
    check_failure(there, 1, "blob", "is missing")
    assert list((home_beside(tmp_path) / "data").rglob("events.jsonl")) == []


def test_a_call_that_nobody_answered_is_answered_in_the_fork(tmp_path: Path) -> None:
    identity = make_conversation(tmp_path)
    log = logs(tmp_path)[0]
    lines: list[dict[str, object]] = [
        {"type": "turn_start", "id": "t9", "at": "2026-01-01T00:00:00Z"},
        {"type": "chat_request", "id": "q9", "at": "2026-01-01T00:00:00Z", "content": "run"},
        {
            "type": "tool_call_request", "id": "c9", "at": "2026-01-01T00:00:00Z",
            "call_id": "x", "name": "run", "arguments": {},
        },
    ]  # fmt: skip
    with log.open("a", encoding="utf-8") as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines) + '{"type":"chat_resp')
    before = log.read_bytes()

    result = run_jp("conversation", "fork", identity, cwd=tmp_path)

    last = entries_of(log_of(tmp_path, result.stdout.strip()))[-1]
    assert "is not whole" in result.stderr
    assert isinstance(last, ToolCallResponse)
    assert (last.request, last.is_error, len(last.id)) == ("c9", True, 26)
    assert log.read_bytes() == before


def test_a_query_asks_in_a_fork_that_is_active_from_then_on(tmp_path: Path) -> None:
    identity = make_conversation(tmp_path, "--title", "The lexer")

    whole = run_jp("query", "--fork", "four", cwd=tmp_path)
    part = run_jp("query", "--id", identity, "--fork=1", "--title", "Other", "--label", "x", "five", cwd=tmp_path)
    without_last = run_jp("query", "--id", identity, "--fork=-2", "six", cwd=tmp_path)

    assert [result.stdout for result in (whole, part, without_last)] == [
        "You said: four\n",
        "You said: five\n",
        "You said: six\n",
    ]
    first, *forks = logs(tmp_path)
    assert questions_in(first) == list(QUESTIONS)
    assert [questions_in(fork) for fork in forks] == [
        [*QUESTIONS, "four"],
        ["zero", "one", "five"],
        ["zero", "one", "two", "six"],
    ]
    listed = json.loads(run_jp("conversation", "ls", "-F", "json", cwd=tmp_path).stdout)["conversations"]
    assert [(one["title"], one["active"], one["labels"]) for one in listed][1:] == [
        ("The lexer", False, {}),
        ("Other", False, {"x": ""}),
        ("The lexer", True, {}),
    ]


def test_a_fork_for_a_query_that_fails_before_it_is_asked_is_not_there(tmp_path: Path) -> None:
    make_conversation(tmp_path)
    before = logs(tmp_path)

    dry = run_jp("query", "--fork=0", "--dry-run", "-F", "json", "x", cwd=tmp_path)
    missing = run_jp("query", "--fork", "-a", "nothing.txt", "x", cwd=tmp_path)
    nowhere = run_jp("query", "--fork=7", "x", cwd=tmp_path)
    both = run_jp("query", "--fork", "--new", "x", cwd=tmp_path)
    unsaved = run_jp("query", "--fork=0", "--no-persist", "x", cwd=tmp_path)

    assert dry.code == 0
    assert ("zero" in dry.stdout, "one" in dry.stdout) == (True, False)
    check_failure(missing, 10, "nothing.txt")
    check_failure(nowhere, 2, "--fork=7: there is no such turn", "they are 0 to 3")
    check_failure(both, 2, "--new and --fork exclude each other")
    assert unsaved.stdout == "You said: x\n"
    assert logs(tmp_path) == before


def test_a_fork_needs_something_to_fork(tmp_path: Path) -> None:
    make_workspace(tmp_path)

    check_failure(run_jp("conversation", "fork", cwd=tmp_path), 2, "no conversation is active")
    check_failure(run_jp("query", "--fork", "x", cwd=tmp_path), 2, "no conversation is active")
    assert (
        "no conversation is active" in json_error(run_jp("conversation", "fork", "-F", "json", cwd=tmp_path))["message"]
    )


def test_a_fork_reads_only_what_none_of_its_requests_has_attached(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(f"content of {name}\n", encoding="utf-8")
    run_jp("query", "--new", "-a", "a.txt", "zero", cwd=tmp_path)
    run_jp("query", "--id", ".", "-a", "b.txt", "one", cwd=tmp_path)
    identity = first_id(tmp_path)

    run_jp("query", "--id", identity, "--fork=0", "early", cwd=tmp_path)
    run_jp("conversation", "fork", identity, "--turn", "1", cwd=tmp_path)
    run_jp("query", "--id", ".", "late", cwd=tmp_path)

    _, early, late = logs(tmp_path)
    attached = [
        [entry.attachments for entry in entries_of(log) if isinstance(entry, ChatRequest)] for log in (early, late)
    ]
    assert attached == [[("file:a.txt",), ()], [("file:b.txt",), ("file:a.txt",)]]


def test_a_strangers_setting_does_not_become_the_users_own_by_a_fork(tmp_path: Path) -> None:
    identity = make_conversation(tmp_path)
    base = logs(tmp_path)[0].parent / "base_config.json"
    config = json.loads(base.read_text(encoding="utf-8"))
    config["conversation"]["attachments"] = ["cmd:?cmd=id"]
    base.write_text(json.dumps(config), encoding="utf-8")

    to_own = run_jp("conversation", "fork", identity, "--local", cwd=tmp_path)
    by_query = run_jp("query", "--id", identity, "--fork", "--local", "x", cwd=tmp_path)
    moved = run_jp("conversation", "edit", identity, "--local", cwd=tmp_path)
    here = run_jp("conversation", "fork", identity, cwd=tmp_path)
    asked = run_jp("query", "--id", here.stdout.strip(), "x", cwd=tmp_path)

    for result in (to_own, by_query, moved, asked):
        check_failure(result, 3, "needs your trust", "cmd:?cmd=id")
    assert list((home_beside(tmp_path) / "data").rglob("events.jsonl")) == []


@pytest.mark.skipif(not DATA, reason="JP_TEST_DATA names no conversations")
@pytest.mark.parametrize("stored", ORIGINALS, ids=[path.parent.name.partition("-")[0] for path in ORIGINALS])
def test_a_conversation_of_the_originals_is_forked_and_stays_as_it_is(tmp_path: Path, stored: Path) -> None:
    root = make_workspace(tmp_path / "work")
    directory = root / ".jp" / "conversations" / stored.parent.name
    shutil.copytree(stored.parent, directory, copy_function=shutil.copyfile)
    identity = f"jp-c{directory.name.partition('-')[0]}"

    part = run_jp("conversation", "fork", identity, "--last", "1", cwd=root)
    untrusted = run_jp("query", "--id", ".", "--model", "script/test", "and now?", cwd=root)
    run_jp("workspace", "trust", "--yes", "--id", identity, cwd=root)
    asked = run_jp("query", "--id", identity, "--fork", "--model", "script/test", "and now?", cwd=root)

    assert part.code == 0
    check_failure(untrusted, 3, "needs your trust", part.stdout.strip())
    assert (asked.code, asked.stdout) == (0, "You said: and now?\n")
    _, new = logs(root)
    assert questions_in(new)[-1] == "and now?"
    attached = run_jp("attachment", "ls", "--id", id_of(new), "-F", "json", cwd=root)
    assert {one["state"] for one in json.loads(attached.stdout)["attachments"]} == {"sent"}
    assert {path.name for path in directory.iterdir()} == {path.name for path in stored.parent.iterdir()}
    assert (directory / "events.json").read_bytes() == stored.read_bytes()
