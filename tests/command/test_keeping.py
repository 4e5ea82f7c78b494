"""What is noted about conversations, where they lie, and how long they stay: edit, label, archive, `--tmp`, ls."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from failures import check_failure
from forked import prepare, run_jp
from jp.app.drafts import drafts_directory, open_draft
from jp.conversation.ids import ConversationId
from jp.workspace.workspace import Workspace, find_workspace
from running import home_beside
from stage import ECHO, copied, logs, make_workspace
from workspaces import no_waiting

PAST = "2020-01-01T00:00:00.000Z"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with two conversations, the second of which is active."""
    root = make_workspace(tmp_path_factory.mktemp("prepared") / "work")
    first = ["query", "--new", "--title", "The first", "one"]
    prepare(first, ["query", "--new", "--title", "The second", "two"], cwd=root)
    return root


@pytest.fixture
def root(prepared: Path, tmp_path: Path) -> Path:
    return copied(prepared, tmp_path / "work")


def two(root: Path) -> tuple[str, str]:
    """The ids of the two."""
    first, second = (ConversationId.parse(log.parent.name.partition("-")[0]) for log in logs(root))
    return first, second


def conversations(root: Path, *options: str) -> dict[str, dict[str, Any]]:
    """What `ls` prints, by id."""
    result = run_jp("conversation", "ls", *options, "-F", "json", cwd=root)
    assert (result.code, result.stderr) == (0, ""), result
    return {one["id"]: one for one in json.loads(result.stdout)["conversations"]}


def workspace_of(root: Path) -> Workspace:
    return find_workspace(root, user_data=home_beside(root) / "data")


def kept(root: Path) -> set[str]:
    """The ids of all conversations that there are."""
    return {str(info.id) for info in workspace_of(root).conversations()}


def set_fields(root: Path, identity: str, **fields: object) -> None:
    """Write metadata by hand, and have the next command look for what has expired."""
    (log,) = [log for log in logs(root) if log.parent.name.startswith(identity.removeprefix("jp-c"))]
    path = log.parent / "metadata.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | fields), encoding="utf-8")
    for mark in (home_beside(root) / "data").rglob("swept"):
        mark.unlink()


def test_title_labels_pin_and_expiry_are_changed_and_taken_back(root: Path) -> None:
    first, second = two(root)

    edited = run_jp(
        "conversation", "edit", first, "--title", "Lexer \n\x1b[31m ", "--label", "area=parser", "--label", "odd",
        "--pin", "--expires", "3h", cwd=root,
    )  # fmt: skip
    again = run_jp("conversation", "edit", first, "--title", "Lexer", cwd=root)
    listed = run_jp("conversation", "ls", cwd=root)
    after = conversations(root)[first]
    back = run_jp(
        "conversation", "edit", first, "--no-title", "--no-label", "odd", "--unpin", "--expires", "never", "-F", "json",
        cwd=root,
    )  # fmt: skip

    changes = (
        "  title: The first → Lexer\n  labels: none → area=parser, odd\n  pinned: no → yes\n"
        "  expiry: never → expires in "
    )
    assert (edited.code, edited.stderr) == (0, "")
    assert edited.stdout.startswith(f"{first}  Lexer\n{changes}")
    assert "nothing changed" in again.stdout
    assert re.sub(r"  \d+ (s|min) +", "  N s  ", listed.stdout).splitlines()[1] == (
        f"   {first}  N s  pinned, area=parser, odd  Lexer"
    )
    assert (after["title"], after["labels"]) == ("Lexer", {"area": "parser", "odd": ""})
    assert None not in (after["pinned_at"], after["expires_at"])
    value = json.loads(back.stdout)
    assert (value["title"], value["labels"], value["pinned_at"], value["expires_at"], value["active"]) == (
        None,
        {"area": "parser"},
        None,
        None,
        False,
    )
    assert conversations(root)[second]["title"] == "The second"


def test_a_label_that_is_not_there_cannot_be_taken_away(root: Path) -> None:
    first, _ = two(root)

    failed = run_jp("conversation", "edit", first, "--no-label", "nosuch", "--title", "x", cwd=root)

    check_failure(failed, 2, "there is no label 'nosuch'", "jp conversation label ls")
    assert conversations(root)[first]["title"] == "The first"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], ["nothing says what to change", "--help"]),
        (["--title", " "], ["a title has words in it", "--no-title"]),
        (["--title", "x", "--no-title"], ["--title and --no-title exclude each other"]),
        (["--pin", "--unpin"], ["--pin and --unpin exclude each other"]),
        (["--local", "--no-local"], ["--local and --no-local exclude each other"]),
        (["--label", "=x"], ["--label cannot be '=x'", "K=V"]),
        (["--no-label", "a=b"], ["--no-label cannot be 'a=b'"]),
        (["--expires", "soon"], ["--expires cannot be 'soon'", "30s"]),
        (["--expires", "99999w"], ["longer than a hundred years"]),
        (["--pin", "--no-persist"], ["--no-persist leaves nothing"]),
    ],
)
def test_an_edit_that_says_nothing_or_too_much_is_refused(tmp_path: Path, options: list[str], words: list[str]) -> None:
    make_workspace(tmp_path)

    check_failure(run_jp("conversation", "edit", *options, cwd=tmp_path), 2, *words)


def test_labels_are_added_listed_and_taken_away(root: Path) -> None:
    first, _ = two(root)

    added = run_jp("conversation", "label", "add", "b=1", "a", "--id", first, cwd=root)
    changed = run_jp("conversation", "label", "add", "b=2", "--id", first, "-F", "json", cwd=root)
    removed = run_jp("conversation", "label", "rm", "a", "--id", first, cwd=root)
    unknown = run_jp("conversation", "label", "rm", "a", "--id", first, cwd=root)
    unnamed = run_jp("conversation", "label", "rm", "--id", first, cwd=root)
    emptied = run_jp("conversation", "label", "rm", "--all", "--id", first, cwd=root)
    listed = run_jp("conversation", "label", "ls", cwd=root)

    assert added == (0, "a\nb=1\n", "")
    assert json.loads(changed.stdout) == {"schema": 1, "id": first, "labels": {"a": "", "b": "2"}}
    assert removed == (0, "b=2\n", "")
    check_failure(unknown, 2, "there is no label 'a'", "label ls")
    check_failure(unnamed, 2, "--all")
    assert emptied == listed == (0, "", "note: no labels\n")


def test_the_list_is_narrowed_by_labels_and_pins(root: Path) -> None:
    first, second = two(root)
    of_first = ["conversation", "edit", first, "--label", "area=parser", "--label", "odd", "--pin"]
    prepare(of_first, ["conversation", "edit", second, "--label", "area=printer"], cwd=root)

    assert set(conversations(root, "--label", "area")) == {first, second}
    assert set(conversations(root, "--label", "area=printer")) == {second}
    assert set(conversations(root, "--label", "area", "--label", "odd")) == {first}
    assert set(conversations(root, "--pinned")) == {first}
    none = run_jp("conversation", "ls", "--label", "x", cwd=root)
    assert none == (0, "", "note: there are no such conversations here\n")
    check_failure(run_jp("conversation", "ls", "--label", "a b", cwd=root), 2, "--label cannot be 'a b'")


def test_what_is_archived_leaves_the_list_and_every_terminal_until_it_is_brought_back(root: Path) -> None:
    first, second = two(root)
    run_jp("conversation", "use", second, cwd=root, env={"JP_SESSION": "other"})

    archived = run_jp("conversation", "archive", ".", second, cwd=root)
    again = run_jp("conversation", "archive", second, "-F", "json", cwd=root)
    here = run_jp("conversation", "show", cwd=root)
    there = run_jp("conversation", "show", cwd=root, env={"JP_SESSION": "other"})
    continued = run_jp("query", "--id", second, "more", cwd=root)
    used = run_jp("conversation", "use", second, cwd=root)
    copied = run_jp("query", "--id", second, "--fork", "more", cwd=root)
    put_away = conversations(root, "--archived")
    back = run_jp("conversation", "unarchive", second, cwd=root)

    assert archived == (0, f"archived {second} (The second)\n", "")
    assert json.loads(again.stdout) == {"schema": 1, "archived": [second]}
    check_failure(here, 2, "no conversation is active")
    check_failure(there, 2, "no conversation is active")
    check_failure(continued, 2, f"conversation '{second}' is archived", f"jp conversation unarchive {second}", "--fork")
    check_failure(used, 2, f"conversation '{second}' is archived")
    assert copied.stdout == "You said: more\n"
    assert set(put_away) == {second}
    assert back == (0, f"unarchived {second} (The second)\n", "")
    assert {first, second} < set(conversations(root))
    assert conversations(root, "--archived") == {}
    assert run_jp("query", "--id", second, "more", cwd=root).stdout == "You said: more\n"


def test_a_conversation_moves_out_of_the_workspace_and_back_with_all_that_it_names(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    (tmp_path / "big.txt").write_text("line\n" * 2000, encoding="utf-8")
    run_jp("query", "--new", "--title", "Big", "one", "-a", "big.txt", cwd=tmp_path)
    directory = logs(tmp_path)[0].parent
    (directory / "notes").mkdir()
    (directory / "notes" / "mine.txt").write_text("kept", encoding="utf-8")
    before = {path.relative_to(directory): path.read_bytes() for path in directory.rglob("*") if path.is_file()}

    out = run_jp("conversation", "edit", "--local", "-F", "json", cwd=tmp_path)
    place = Path(json.loads(out.stdout)["path"])
    after = {path.relative_to(place): path.read_bytes() for path in place.rglob("*") if path.is_file()}
    mode = place.stat().st_mode & 0o777
    (tmp_path / ".jp" / "blobs").rename(tmp_path / "aside")
    printed = run_jp("conversation", "print", "--full", cwd=tmp_path)
    same = run_jp("conversation", "edit", "--local", "--title", "Large", cwd=tmp_path)
    back = run_jp("conversation", "edit", "--no-local", "-F", "json", cwd=tmp_path)
    asked = run_jp("query", "--id", ".", "two", cwd=tmp_path)

    assert (json.loads(out.stdout)["local"], json.loads(back.stdout)["local"]) == (True, False)
    assert home_beside(tmp_path) in place.parents
    assert after == before
    assert mode == 0o700
    assert printed.stdout.count("line\n") == 2000
    assert same.stdout.endswith("Large\n")
    assert [log.parent for log in logs(tmp_path)] == [directory]
    assert not place.exists()
    assert len(list((tmp_path / ".jp" / "blobs").rglob("*/*/*"))) == 1
    assert asked.stdout == "You said: two\n"


def test_outside_a_workspace_there_is_nowhere_to_move_to(tmp_path: Path) -> None:
    (tmp_path / "echo.toml").write_text(ECHO, encoding="utf-8")
    run_jp("query", "--model", "script/echo.toml", "hi", cwd=tmp_path)

    check_failure(run_jp("conversation", "edit", "last", "--local", cwd=tmp_path), 2, "--local needs a workspace")


def test_a_conversation_for_a_while_is_marked_and_deleted_when_its_time_is_over(root: Path) -> None:
    first, second = two(root)
    prepare(["query", "--new", "--tmp", "--label", "x", "bare"], ["query", "--new", "--tmp=2h", "two hours"], cwd=root)
    in_order = list(conversations(root).values())
    shown = run_jp("conversation", "ls", cwd=root).stdout
    for identity in (first, second, in_order[2]["id"]):
        set_fields(root, identity, expires_at=PAST)
    set_fields(root, second, pinned_at=PAST)
    expired = run_jp("conversation", "ls", cwd=root).stdout

    quiet = run_jp("conversation", "use", first, cwd=root)
    told = run_jp("conversation", "edit", second, "--title", "Pinned", "-v", cwd=root)
    early = run_jp("conversation", "edit", second, "--title", "Again", "-v", cwd=root)

    assert in_order[2]["labels"] == {"x": ""}
    assert ("expires in 23 h, x" in shown, "expires in 1 h " in shown) == (True, True)
    assert expired.count("expired") == 2
    assert quiet.stderr == ""
    assert told.stderr == f"log: removed {in_order[2]['id']} (bare): it expired at {PAST}\n"
    assert early.stderr == ""
    assert kept(root) == {first, second, in_order[3]["id"]}


def drafts_of(root: Path, identity: str) -> Path:
    return drafts_directory(workspace_of(root), identity.removeprefix("jp-c"), persistent=True)


def left_behind(directory: Path, text: str) -> None:
    draft = open_draft(directory, [text]).draft
    draft.write(text, "")
    draft.close()


def test_drafts_go_with_their_conversation_but_what_somebody_is_writing_stays(root: Path) -> None:
    first, second = two(root)
    of_first, of_second = drafts_of(root, first), drafts_of(root, second)
    written = open_draft(of_first, ["unsent"]).draft
    written.write("unsent", "")
    left_behind(of_first, "old")
    left_behind(of_second, "other")

    removed = run_jp("conversation", "rm", "--yes", first, cwd=root)

    stays = f"note: somebody is writing a query to {first} right now, which stays in {str(written.path)!r}\n"
    assert (removed.code, removed.stderr) == (0, stays)
    assert removed.stdout.endswith(" and 1 draft\n")
    assert [path.name for path in of_first.iterdir()] == [written.path.parent.name]
    assert len(list(of_second.iterdir())) == 1
    written.close()


def test_drafts_go_with_what_has_expired(root: Path) -> None:
    first, second = two(root)
    left_behind(drafts_of(root, first), "old")
    set_fields(root, first, expires_at=PAST)

    run_jp("conversation", "edit", second, "--pin", cwd=root)

    assert kept(root) == {second}
    assert not drafts_of(root, first).exists()


def test_what_has_expired_goes_after_an_answer_but_not_where_nothing_is_to_be_written(root: Path) -> None:
    first, _ = two(root)
    set_fields(root, first, expires_at=PAST)

    run_jp("query", "--id", ".", "--dry-run", "x", cwd=root)
    run_jp("query", "--id", ".", "--no-persist", "x", cwd=root)
    still = first in kept(root)
    answered = run_jp("query", "--id", ".", "x", "-v", cwd=root)

    assert still
    assert answered.stdout == "You said: x\n"
    assert f"log: removed {first}" in answered.stderr
    assert first not in kept(root)


def test_what_another_process_writes_does_not_expire_under_it(root: Path) -> None:
    first, second = two(root)
    set_fields(root, first, expires_at=PAST)
    workspace = workspace_of(root)
    lock = workspace.lock(workspace.get(ConversationId.parse(first)))
    lock.acquire(patience=0, waiting=no_waiting)

    with lock:
        run_jp("conversation", "edit", second, "--pin", cwd=root)

    assert first in kept(root)


def test_only_new_conversations_get_a_title_labels_or_an_end_with_a_query(root: Path) -> None:
    for option in ("--title=x", "--label=x", "--tmp", "--local"):
        result = run_jp("query", "--id", ".", option, "more", cwd=root)
        check_failure(result, 2, f"{option.partition('=')[0]} is for a new conversation", "--new", "--fork")


@pytest.mark.parametrize("step", ["marked", "both"])
def test_a_move_that_was_interrupted_is_brought_to_an_end_or_forgotten(root: Path, step: str) -> None:
    first, second = two(root)
    directory = logs(root)[0].parent
    (silo,) = (home_beside(root) / "data" / "workspaces").iterdir()
    if step == "both":
        shutil.copytree(directory, silo / "conversations" / directory.name)
    (directory / ".moved").touch()

    listed = conversations(root)
    asked = run_jp("query", "--id", first, "more", cwd=root)
    moved = run_jp("conversation", "edit", first, "--no-local", cwd=root)

    assert set(listed) == {first, second}
    assert listed[first]["local"] is (step == "both")
    assert asked.stdout == "You said: more\n"
    assert moved.code == 0
    assert "more" in (directory / "events.jsonl").read_text(encoding="utf-8")
    assert not (directory / ".moved").exists()
    assert not list(silo.rglob("events.jsonl"))


@pytest.mark.parametrize("command", [("query", "--new", "hi"), ("conversation", "fork")])
def test_titles_are_one_line_from_the_start(root: Path, command: tuple[str, ...]) -> None:
    made = run_jp(*command, "--title", "a\nb \x1b[31m", cwd=root)
    refused = run_jp(*command, "--title", " \n", cwd=root)

    assert made.code == 0
    assert "a b" in [metadata.get("title") for metadata in conversations(root).values()]
    check_failure(refused, 2, "--title: a title has words in it")
