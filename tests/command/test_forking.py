"""Copies of conversations: `jp conversation fork` and `jp query --fork`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from failures import check_failure, json_error
from forked import prepare, run_jp
from jp.conversation.entries import ChatRequest, ConfigDelta, Header, ToolCallResponse
from jp.conversation.ids import ConversationId
from running import home_beside
from stage import copied, entries_of, logs, make_workspace

QUESTIONS = ("zero", "one", "two", "three")
LABELS = {"area": "parser", "odd": ""}


def id_of(log: Path) -> str:
    return ConversationId.parse(log.parent.name.partition("-")[0])


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
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a conversation of four turns and two labels, which is active."""
    root = make_workspace(tmp_path_factory.mktemp("prepared") / "work")
    first = ["query", "--new", "--title", "The lexer", "--label", "area=parser", "--label", "odd", QUESTIONS[0]]
    prepare(first, *(["query", "--id", ".", question] for question in QUESTIONS[1:]), cwd=root)
    return root


@pytest.fixture(scope="module")
def source(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for forks that do not mind each other."""
    return copied(prepared, tmp_path_factory.mktemp("forks") / "work")


@pytest.fixture
def root(prepared: Path, tmp_path: Path) -> Path:
    """One for a single test."""
    return copied(prepared, tmp_path / "work")


def first_id(root: Path) -> str:
    return id_of(logs(root)[0])


def test_a_fork_has_all_turns_under_an_id_that_is_all_of_stdout_and_becomes_active(root: Path) -> None:
    identity = first_id(root)
    before = logs(root)[0].read_bytes()

    result = run_jp("conversation", "fork", cwd=root)

    old, new = logs(root)
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
        "labels": LABELS,
        "parent": {"conversation": identity, "from_turn": 0, "to_turn": 3},
    }
    assert (new.parent / "base_config.json").read_bytes() == (old.parent / "base_config.json").read_bytes()
    run_jp("query", "--id", ".", "four", cwd=root)
    assert questions_in(new)[-1] == "four"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--turn", "1"], ["one"]),
        (["--turn", "..1"], ["zero", "one"]),
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


def test_what_was_set_before_the_first_turn_that_is_copied_holds_in_the_fork(root: Path) -> None:
    identity = first_id(root)
    brief = ["query", "--id", identity, "--system", "Be brief.", "four"]
    prepare(brief, ["query", "--id", identity, "--system", "Be long.", "five"], cwd=root)

    late, early = forked(root, identity, "--turn", "4"), forked(root, identity, "--turn", "..3")
    both = forked(root, identity, "--turn", "3..4")

    def system(log: Path) -> str:
        result = run_jp("query", "--id", id_of(log), "--dry-run", "-F", "json", "and?", cwd=root)
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


def test_a_call_that_nobody_answered_is_answered_in_the_fork(root: Path) -> None:
    identity = first_id(root)
    log = logs(root)[0]
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

    result = run_jp("conversation", "fork", identity, cwd=root)

    last = entries_of(log_of(root, result.stdout.strip()))[-1]
    assert "is not whole" in result.stderr
    assert isinstance(last, ToolCallResponse)
    assert (last.request, last.is_error, len(last.id)) == ("c9", True, 26)
    assert log.read_bytes() == before


def test_a_query_asks_in_a_fork_that_is_active_from_then_on(root: Path) -> None:
    identity = first_id(root)

    whole = run_jp("query", "--fork", "four", cwd=root)
    part = run_jp("query", "--id", identity, "--fork=1", "--title", "Other", "--label", "x", "five", cwd=root)
    without_last = run_jp("query", "--id", identity, "--fork=-2", "six", cwd=root)

    assert [result.stdout for result in (whole, part, without_last)] == [
        "You said: four\n",
        "You said: five\n",
        "You said: six\n",
    ]
    first, *forks = logs(root)
    assert questions_in(first) == list(QUESTIONS)
    assert [questions_in(fork) for fork in forks] == [
        [*QUESTIONS, "four"],
        ["zero", "one", "five"],
        ["zero", "one", "two", "six"],
    ]
    listed = json.loads(run_jp("conversation", "ls", "-F", "json", cwd=root).stdout)["conversations"]
    assert [(one["title"], one["active"], one["labels"]) for one in listed][1:] == [
        ("The lexer", False, LABELS),
        ("Other", False, {**LABELS, "x": ""}),
        ("The lexer", True, LABELS),
    ]


def test_a_fork_for_a_query_that_fails_before_it_is_asked_is_not_there(root: Path) -> None:
    before = logs(root)

    dry = run_jp("query", "--fork=0", "--dry-run", "-F", "json", "x", cwd=root)
    missing = run_jp("query", "--fork", "-a", "nothing.txt", "x", cwd=root)
    nowhere = run_jp("query", "--fork=7", "x", cwd=root)
    both = run_jp("query", "--fork", "--new", "x", cwd=root)
    unsaved = run_jp("query", "--fork=0", "--no-persist", "x", cwd=root)

    assert dry.code == 0
    assert ("zero" in dry.stdout, "one" in dry.stdout) == (True, False)
    check_failure(missing, 10, "nothing.txt")
    check_failure(nowhere, 2, "--fork=7: there is no such turn", "they are 0 to 3")
    check_failure(both, 2, "--new and --fork exclude each other")
    assert unsaved.stdout == "You said: x\n"
    assert logs(root) == before


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
    first = ["query", "--new", "-a", "a.txt", "zero"]
    prepare(first, ["query", "--id", ".", "-a", "b.txt", "one"], cwd=tmp_path)
    identity = first_id(tmp_path)

    run_jp("query", "--id", identity, "--fork=0", "early", cwd=tmp_path)
    run_jp("conversation", "fork", identity, "--turn", "1", cwd=tmp_path)
    run_jp("query", "--id", ".", "late", cwd=tmp_path)

    _, early, late = logs(tmp_path)
    attached = [
        [entry.attachments for entry in entries_of(log) if isinstance(entry, ChatRequest)] for log in (early, late)
    ]
    assert attached == [[("file:a.txt",), ()], [("file:b.txt",), ("file:a.txt",)]]


def test_a_strangers_setting_does_not_become_the_users_own_by_a_fork(root: Path) -> None:
    identity = first_id(root)
    base = logs(root)[0].parent / "base_config.json"
    config = json.loads(base.read_text(encoding="utf-8"))
    config["conversation"]["attachments"] = ["cmd:?cmd=id"]
    base.write_text(json.dumps(config), encoding="utf-8")

    to_own = run_jp("conversation", "fork", identity, "--local", cwd=root)
    by_query = run_jp("query", "--id", identity, "--fork", "--local", "x", cwd=root)
    moved = run_jp("conversation", "edit", identity, "--local", cwd=root)
    here = run_jp("conversation", "fork", identity, cwd=root)
    asked = run_jp("query", "--id", here.stdout.strip(), "x", cwd=root)

    for result in (to_own, by_query, moved, asked):
        check_failure(result, 3, "needs your trust", "cmd:?cmd=id")
    assert list((home_beside(root) / "data").rglob("events.jsonl")) == []
