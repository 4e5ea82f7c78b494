"""`jp workspace gc` and `jp workspace doctor`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from fcntl import LOCK_EX
from hashlib import sha256
from itertools import count
from operator import itemgetter
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forked import prepare, run_jp
from jp.conversation.entries import ChatRequest
from jp.conversation.resource import Resource
from jp.workspace.blobs import DiskBlobs, locked_directory
from jp.workspace.garbage import KEPT_SECONDS, collect, find_garbage
from jp.workspace.listing import Metadata
from jp.workspace.workspace import find_workspace
from originals import current, write_original
from stage import copied, logs, make_workspace
from workspaces import new_conversation, new_workspace, open_log_of

LONG = "words " * 2_000
OLD = KEPT_SECONDS + 60


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make_workspace(tmp_path_factory.mktemp("prepared") / "work")
    (root / "long.txt").write_text(LONG, encoding="utf-8")
    prepare(["query", "--new", "--attach", "long.txt", "one"], cwd=root)
    return root


@pytest.fixture
def root(prepared: Path, tmp_path: Path) -> Path:
    """A workspace with a conversation that names a blob."""
    return copied(prepared, tmp_path / "work")


def blobs(root: Path) -> list[Path]:
    return sorted(path for path in (root / ".jp" / "blobs").rglob("*") if path.is_file())


def add_blob(root: Path, data: bytes, *, age: float = OLD) -> Path:
    digest = sha256(data).hexdigest()
    path = root / ".jp" / "blobs" / digest[:2] / digest[2:4] / digest
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    make_old(path, age=age)
    return path


def make_old(*paths: Path, age: float = OLD) -> None:
    for path in paths:
        os.utime(path, (time.time() - age, time.time() - age))


def gc(root: Path, *options: str) -> dict[str, Any]:
    result = run_jp("workspace", "gc", "--format", "json", *options, cwd=root)
    assert (result.code, result.stderr) == (0, "")
    return json.loads(result.stdout)


def findings(root: Path, *options: str, code: int = 1) -> list[tuple[str, str, str]]:
    result = run_jp("workspace", "doctor", "--format", "json", *options, cwd=root)
    assert result.code == code, result
    return [
        (found["severity"], found["subject"].split()[0], found["text"])
        for found in json.loads(result.stdout)["findings"]
        if found["severity"] != "ok"
    ]


def test_what_a_conversation_names_stays_and_the_rest_goes_once_it_is_old(root: Path) -> None:
    (named,) = blobs(root)
    make_old(named)
    unused, young = add_blob(root, b"unused"), add_blob(root, b"young", age=60)

    assert [file["path"] for file in gc(root)["files"]] == [str(unused)]
    assert blobs(root) == sorted([named, unused, young])
    assert gc(root, "--apply") == {
        "schema": 1,
        "expired": [],
        "files": [{"path": str(unused), "size": 6}],
        "bytes": 6,
        "deleted": True,
    }
    assert blobs(root) == sorted([named, young])
    assert run_jp("workspace", "gc", cwd=root).stdout == "there is nothing to delete\n"


def test_what_only_a_line_that_was_cut_off_names_stays(root: Path) -> None:
    (log,) = logs(root)
    kept = add_blob(root, b"named by what a crash left")
    (log.parent / "events.torn-1").write_text(f'{{"sha256": "{kept.name}"', encoding="utf-8")

    assert gc(root, "--apply")["files"] == []
    assert kept.exists()


def test_a_log_that_cannot_be_read_stops_it(root: Path) -> None:
    (log,) = logs(root)
    unused = add_blob(root, b"unused")
    log.write_bytes(b"no log\n" + log.read_bytes())
    result = run_jp("workspace", "gc", "--apply", cwd=root)

    assert (result.code, result.stdout) == (1, "")
    assert log.parent.name in result.stderr
    assert unused.exists()


def test_a_file_that_is_used_at_the_last_moment_stays(root: Path) -> None:
    path = add_blob(root, b"unused")
    workspace = find_workspace(root, user_data=root.parent / "user")
    (found,) = find_garbage(workspace)
    make_old(path, age=0)

    assert not collect(found, now=time.time())
    assert path.read_bytes() == b"unused"
    path.unlink()
    assert not collect(found, now=time.time())
    assert [entry.name for entry in path.parent.iterdir()] == []


def test_a_writer_waits_while_a_file_is_deleted_and_then_writes_it_again(root: Path) -> None:
    path = add_blob(root, b"unused")
    writer = Thread(target=DiskBlobs(root / ".jp" / "blobs").put, args=(b"unused",))
    with locked_directory(path.parent, LOCK_EX):
        writer.start()
        writer.join(0.05)
        assert writer.is_alive()
        path.unlink()
    writer.join()
    assert path.read_bytes() == b"unused"


@settings(max_examples=50)
@given(
    written=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 3)), min_size=1, max_size=5),
    old=st.sets(st.integers(0, 3), min_size=1),
)
def test_content_that_a_writer_uses_between_two_steps_stays(
    tmp_path_factory: pytest.TempPathFactory, written: list[tuple[int, int]], old: set[int]
) -> None:
    """A writer appends entries with old and with new content before, between and after the steps."""
    workspace = new_workspace(tmp_path_factory.mktemp("beside"))
    assert workspace.root is not None
    for number in old:
        path = add_blob(workspace.root, f"{number}{LONG}".encode())
        before = workspace.stamps.now() / 1000 - KEPT_SECONDS - 1
        os.utime(path, (before, before))
    info = new_conversation(workspace)
    steps = count()
    with open_log_of(workspace, info) as log:

        def write(_: str = "") -> None:
            step = next(steps)
            for number in (number for at, number in written if at == step):
                resource = Resource(uri=f"file:{number}", text=f"{number}{LONG}")
                log.append(ChatRequest(content="look", resources=(resource,)))

        for garbage in find_garbage(workspace, progress=write):
            write()
            collect(garbage, now=workspace.stamps.now() / 1000)
    stream = workspace.read(info)
    found = [resource for entry in stream.entries if isinstance(entry, ChatRequest) for resource in entry.resources]
    texts = [f"{resource.uri.removeprefix('file:')}{LONG}" for resource in found]
    assert [stream.load(resource).text for resource in found] == texts
    assert {path.name for path in blobs(workspace.root)} >= {resource.sha256 for resource in found}


def test_temporary_files_of_writers_that_were_killed_go_and_links_are_not_followed(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / sha256(b"x").hexdigest()).write_bytes(b"x")
    make_old(outside / sha256(b"x").hexdigest())
    (root / ".jp" / "blobs" / "ff").symlink_to(outside)
    left = root / ".jp" / "blobs" / ".name.0123456789ab.tmp"
    left.write_bytes(b"half")
    make_old(left)

    assert [file["path"] for file in gc(root, "--apply")["files"]] == [str(left)]
    assert list(outside.iterdir())


def test_conversations_that_have_expired_go_too(root: Path) -> None:
    run_jp("query", "--new", "--tmp=1h", "two", cwd=root, env={"JP_SESSION": ""})
    (metadata,) = [p for p in root.rglob("metadata.json") if "expires_at" in p.read_text(encoding="utf-8")]
    fields = json.loads(metadata.read_text(encoding="utf-8")) | {"expires_at": "2020-01-01T00:00:00Z"}
    metadata.write_text(json.dumps(fields), encoding="utf-8")
    name = f"jp-c{metadata.parent.name.partition('-')[0]}"

    assert gc(root)["expired"] == [name]
    assert metadata.exists()
    assert gc(root, "--apply")["expired"] == [name]
    assert not metadata.exists()


@given(
    st.lists(
        st.tuples(st.binary(min_size=1, max_size=9), st.booleans(), st.sampled_from([0, 0.5, 0.99, 1.01, 30])),
        max_size=6,
        unique_by=itemgetter(0),
    ),
    st.sampled_from(["events.jsonl", "events.torn", ".hidden"]),
)
def test_what_is_neither_named_nor_young_is_collected_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, contents: list[tuple[bytes, bool, float]], file: str
) -> None:
    root = make_workspace(tmp_path_factory.mktemp("gc") / "work")
    workspace = find_workspace(root, user_data=root.parent / "user")
    directory = workspace.create({}, Metadata()).directory
    stays: set[Path] = set()
    for data, is_named, age in contents:
        path = add_blob(root, data, age=age * KEPT_SECONDS)
        if is_named or age < 1:
            stays.add(path)
        if is_named:
            line = {"type": "note", "id": "x", "text": path.name}
            with (directory / file).open("a", encoding="utf-8") as log:
                log.write(json.dumps(line) + "\n")
    for garbage in find_garbage(workspace):
        collect(garbage, now=time.time())

    assert set(blobs(root)) == stays


def git(root: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *arguments], cwd=root, capture_output=True, check=True)


def commit_to(root: Path, place: str, number: int, name: str) -> None:
    """Have git keep a conversation that names `name` where the working tree does not show it."""
    tree = root.parent / f"tree{number}" if place == "worktree" else root
    if place == "worktree":
        git(root, "worktree", "add", "-q", "--detach", str(tree))
    elif place != "stash":
        git(root, "checkout", "-qb", f"branch{number}")
    file = tree / ".jp" / "conversations" / f"{number}-x" / "events.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text(name, encoding="utf-8")
    git(tree, "add", "-f", ".jp/conversations")
    if place == "stash":
        git(root, "stash", "push", "-q")
        return
    git(tree, "commit", "-qm", place)
    if place != "worktree":
        git(root, "checkout", "-q", "main")
    if place == "tag":
        git(root, "tag", "-a", "-m", place, f"tag{number}", f"branch{number}")
    if place in {"tag", "deleted"}:
        git(root, "branch", "-qD", f"branch{number}")


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from(["nowhere", "branch", "tag", "stash", "worktree", "deleted"]), max_size=5))
def test_what_a_branch_a_tag_a_stash_or_a_worktree_names_stays(
    tmp_path_factory: pytest.TempPathFactory, places: list[str]
) -> None:
    root = make_workspace(tmp_path_factory.mktemp("branches") / "work")
    git(root, "init", "-qb", "main")
    git(root, "commit", "--allow-empty", "-qm", "first")
    stays: set[Path] = set()
    for number, place in enumerate(places):
        path = add_blob(root, f"{number}".encode())
        if place != "nowhere":
            commit_to(root, place, number, path.name)
        if place not in {"nowhere", "deleted"}:
            stays.add(path)
    for garbage in find_garbage(find_workspace(root, user_data=root.parent / "user")):
        collect(garbage, now=time.time())

    assert set(blobs(root)) == stays


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_repository_that_git_cannot_read_stops_it(root: Path) -> None:
    unused = add_blob(root, b"unused")
    git(root, "init", "-qb", "main")
    assert [file["path"] for file in gc(root)["files"]] == [str(unused)]  # a branch without a commit names nothing
    (root / ".git" / "HEAD").write_text("nonsense", encoding="utf-8")
    result = run_jp("workspace", "gc", "--apply", cwd=root)

    assert (result.code, result.stdout) == (1, "")
    assert "git cannot tell what the conversations of other branches name: fatal: not a git repository" in result.stderr
    assert unused.exists()


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_file_that_a_clone_lacks_stops_it(root: Path) -> None:
    unused = add_blob(root, b"unused")
    git(root, "init", "-qb", "main")
    git(root, "add", "-f", ".jp/conversations")
    git(root, "commit", "-qm", "first")
    (log,) = logs(root)
    done = subprocess.run(["git", "hash-object", str(log)], cwd=root, capture_output=True, check=True, encoding="utf-8")
    (root / ".git" / "objects" / done.stdout[:2] / done.stdout[2:].strip()).unlink()
    result = run_jp("workspace", "gc", "--apply", cwd=root)

    assert (result.code, result.stdout) == (1, "")
    assert "this clone lacks files of them" in result.stderr
    assert unused.exists()


def test_a_whole_workspace_has_nothing_to_correct(root: Path) -> None:
    result = run_jp("workspace", "doctor", cwd=root)

    assert (result.code, result.stderr) == (0, "")
    assert "ok       settings: every file can be read\n" in result.stdout
    assert "ok       model: script/test; no key is needed\n" in result.stdout
    assert "ok       conversations: 1 of 1 are whole\n" in result.stdout


def test_blobs_that_are_missing_or_damaged_are_found(root: Path) -> None:
    (blob,) = blobs(root)
    blob.write_bytes(b"something else")
    assert findings(root) == [
        ("error", "conversation", f"blob '{blob.name}' is damaged: '{blob}' holds something else")
    ]
    blob.unlink()
    assert findings(root) == [("error", "conversation", f"blob '{blob.name}' is missing: there is no '{blob}'")]


def test_a_log_that_a_crash_has_cut_is_repaired_beside_the_cut(root: Path) -> None:
    (log,) = logs(root)
    whole = log.read_bytes()
    log.write_bytes(whole + b'{"type":"tool_call_requ')

    ((severity, subject, _),) = findings(root, code=0)
    assert (severity, subject) == ("warning", "conversation")
    assert log.read_bytes() != whole
    assert findings(root, "--repair", code=0) == []
    assert log.read_bytes() == whole
    assert any(b"tool_call_requ" in path.read_bytes() for path in log.parent.iterdir() if path != log)
    assert findings(root, code=0) == []


def test_damage_in_metadata_and_logs_is_found_and_nothing_is_repaired_away(root: Path) -> None:
    (log,) = logs(root)
    (log.parent / "metadata.json").write_text("{", encoding="utf-8")
    log.write_bytes(log.read_bytes().replace(b'{"type":"chat_request"', b"{", 1))
    before = {path: path.read_bytes() for path in log.parent.iterdir()}

    found = findings(root, "--repair")
    assert [(severity, subject) for severity, subject, _ in found] == [("error", "conversation")] * 2
    assert {path: path.read_bytes() for path in log.parent.iterdir()} == before


@pytest.mark.parametrize(
    ("settings", "severity", "subject", "words"),
    [
        ("oops = 1", "error", "settings", "oops"),
        ('[providers.mcp.notes]\ncommand = "no-such-server"', "warning", "settings", "until they are trusted"),
    ],
)
def test_settings_that_cannot_be_used_are_found(
    settings: str, severity: str, subject: str, words: str, tmp_path: Path
) -> None:
    root = make_workspace(tmp_path / "work", settings=settings)
    ((found, about, text),) = findings(root, code=1 if severity == "error" else 0)

    assert (found, about) == (severity, subject)
    assert words in text


def test_a_server_that_cannot_start_and_a_key_that_is_missing_are_found(root: Path) -> None:
    options = ("--cfg", "providers.mcp.notes.command=no-such-server", "--cfg", "assistant.model.id=openai/gpt-6.1-sol")

    assert findings(root, *options) == [
        ("error", "model", "openai/gpt-6.1-sol, and there is no key for 'openai'"),
        ("error", "server", "its command 'no-such-server' is not on PATH"),
    ]


def test_a_conversation_of_the_original_is_left_as_it_is(root: Path) -> None:
    directory = write_original(root / ".jp" / "conversations" / "17000000000", current())
    before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    run_jp("workspace", "doctor", "--repair", cwd=root)

    assert {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()} == before
