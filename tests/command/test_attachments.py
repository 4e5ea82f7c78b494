"""`jp attachment` and `--attach`: what is declared, what is read when, and what is said about it."""

from __future__ import annotations

import base64
import json
import re
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from failures import check_failure
from forked import prepare, run_jp, start_jp
from jp.conversation.entries import ChatRequest
from loopback import Loopback, Reply
from running import Result
from stage import ECHO, entries_of, logs, make_workspace, only_log
from terminal import jp_at_terminal


def write(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"text of {path}\n", encoding="utf-8")


def delivered(log: Path) -> list[list[str | None]]:
    """The names of what each request of a log brought along."""
    requests = [entry for entry in entries_of(log) if isinstance(entry, ChatRequest)]
    return [[resource.name for resource in request.resources] for request in requests]


# Where a declaration begins


class Outside:
    """A user with a home and two directories, none of them in a workspace."""

    def __init__(self, directory: Path) -> None:
        self.here, self.there = directory / "here", directory / "there"
        self.data = directory / "data"
        for place in (self.here, self.there, directory / "config"):
            place.mkdir()
        (directory / "echo.toml").write_text(ECHO, encoding="utf-8")
        self.config = directory / "config" / "config.toml"
        self.config.write_text(f'[assistant.model]\nid = "script/{directory}/echo.toml"\n', encoding="utf-8")
        self._env = {"JP_USER_DATA_DIR": str(self.data), "JP_GLOBAL_CONFIG_DIR": str(directory / "config")}

    def run(self, *arguments: str, cwd: Path) -> Result:
        result = run_jp(*arguments, cwd=cwd, env=self._env)
        assert result.code == 0, result
        return result

    def prepare(self, *lines: Sequence[str], cwd: Path) -> None:
        prepare(*lines, cwd=cwd, env=self._env)

    def delivered(self) -> list[list[str | None]]:
        (log,) = (self.data / "conversations").glob("*/events.jsonl")
        return delivered(log)


@pytest.fixture
def outside(tmp_path: Path) -> Outside:
    return Outside(tmp_path)


def test_outside_a_workspace_what_is_typed_is_the_same_file_wherever_one_goes_on(outside: Outside) -> None:
    write(outside.here, "f.txt", "g.txt", "sub/h.txt")
    write(outside.there, "f.txt", "g.txt", "sub/h.txt")

    outside.run("query", "one", "-a", "f.txt", cwd=outside.here)
    added = outside.run("attachment", "add", "g.txt", "sub", "file:f.txt", cwd=outside.here)
    outside.run("query", "--id", ".", "two", cwd=outside.here)
    outside.run("query", "--id", ".", "three", cwd=outside.there)
    removed = outside.run("attachment", "rm", str(outside.here / "f.txt"), "sub", cwd=outside.here)

    here = f"file://{outside.here}"
    assert added.stdout == f"{here}/f.txt\n{here}/g.txt\n{here}/sub\n"
    assert outside.delivered() == [["f.txt"], ["g.txt", "sub/h.txt"], []]
    assert removed.stdout == f"{here}/g.txt\n"


def test_outside_a_workspace_what_was_declared_in_one_directory_is_read_in_another(outside: Outside) -> None:
    write(outside.here, "g.txt")
    write(outside.there, "g.txt")
    outside.prepare(("query", "one"), ("attachment", "add", "g.txt"), cwd=outside.here)

    outside.run("query", "--id", ".", "two", cwd=outside.there)

    assert outside.delivered() == [[], [str(outside.here / "g.txt")]]


def test_outside_a_workspace_what_a_file_declares_is_read_once(outside: Outside) -> None:
    declared = '[conversation]\nattachments = ["notes.md", "!*.lock"]\n'
    outside.config.write_text(outside.config.read_text(encoding="utf-8") + declared, encoding="utf-8")
    write(outside.here, "notes.md")

    outside.run("query", "one", cwd=outside.here)
    outside.run("query", "--id", ".", "two", cwd=outside.there)

    assert outside.delivered() == [["notes.md"], []]


def test_inside_a_workspace_a_declaration_begins_at_its_root(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    write(tmp_path, "sub/f.txt")

    run_jp("query", "one", "-a", "f.txt", cwd=tmp_path / "sub", env=home_of(tmp_path))
    added = run_jp("attachment", "add", "g.txt", cwd=tmp_path / "sub", env=home_of(tmp_path))

    assert added.stdout == "file:sub/f.txt\nfile:sub/g.txt\n"


def home_of(root: Path) -> dict[str, str]:
    """One user's data for runs in several directories of a workspace."""
    return {"JP_USER_DATA_DIR": str(root.parent / f"data-of-{root.name}")}


# What is typed against what was declared


def test_a_path_that_is_typed_wins_over_what_was_excluded_before(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    write(tmp_path, "src/a.py", "src/b.py")

    prepare(
        ("query", "one", "-a", "!b.py", "-a", "src"),
        ("query", "--id", ".", "two", "-a", "src/b.py"),
        ("query", "--id", ".", "three", "-a", "src"),
        cwd=tmp_path,
    )
    both = run_jp("query", "--id", ".", "four", "-a", "src/b.py", "-a", "!b.py", cwd=tmp_path)

    requests = [entry for entry in only_log(tmp_path) if isinstance(entry, ChatRequest)]
    assert [[resource.name for resource in request.resources] for request in requests] == [
        ["src/a.py"],
        ["src/b.py"],
        ["src/a.py"],
        [],
    ]
    assert both.stderr == "note: 'src/b.py' attaches nothing: '!b.py' excludes it\n"


# What is not there


def test_a_file_that_is_not_there_is_said_with_what_may_have_been_meant(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    write(tmp_path, "a.txt", "sp ace.txt", "src/main.py")

    def failure(path: str) -> Result:
        result = run_jp("query", "one", "-a", path, cwd=tmp_path)
        check_failure(result, 10, f"there is no file {path!r}")
        return result

    assert "hint: did you mean 'a.txt'?" in failure("A.TXT").stderr
    assert "hint: did you mean 'src/main.py'?" in failure("main.py").stderr
    assert "hint: '.' has nothing called 'nosuch.txt'." in failure("nosuch.txt").stderr


# What was attached, and is lost


@pytest.fixture
def lost(tmp_path: Path) -> tuple[Path, Path]:
    """A workspace where a large file was attached, and the blob that holds it, now damaged."""
    make_workspace(tmp_path)
    (tmp_path / "large.txt").write_text("a line of text\n" * 400, encoding="utf-8")
    run_jp("query", "one", "-a", "large.txt", cwd=tmp_path)
    (blob,) = (path for path in (tmp_path / ".jp" / "blobs").rglob("*") if path.is_file())
    blob.chmod(0o644)
    blob.write_bytes(b"other text")
    return tmp_path, blob


def test_content_that_is_lost_is_said_with_how_to_bring_it_back(lost: tuple[Path, Path]) -> None:
    root, blob = lost
    (log,) = logs(root)
    before = log.read_bytes()

    damaged = run_jp("query", "--id", ".", "two", cwd=root)
    blob.unlink()
    missing = run_jp("query", "--id", ".", "two", cwd=root)
    unchanged = log.read_bytes()
    elsewhere = run_jp("query", "--new", "three", "-a", "large.txt", cwd=root)

    remedy = f"hint: if it has not changed since, attach it again: `--attach file://{root}/large.txt`; restore the file"
    check_failure(damaged, 1, "content of 'large.txt' cannot be read", "is damaged", remedy)
    check_failure(missing, 1, "content of 'large.txt' cannot be read", "is missing", remedy)
    assert unchanged == before
    assert elsewhere.code == 0
    assert blob.read_bytes() == (root / "large.txt").read_bytes()


@pytest.mark.parametrize("damage", ["damaged", "missing"])
def test_attaching_the_same_content_again_brings_it_back(lost: tuple[Path, Path], damage: str) -> None:
    root, blob = lost
    if damage == "missing":
        blob.unlink()

    dry = run_jp("query", "--id", ".", "two", "-a", "large.txt", "--dry-run", cwd=root)
    was_written = blob.exists() and blob.read_bytes() != b"other text"
    healed = run_jp("query", "--id", ".", "two", "-a", "large.txt", cwd=root)
    after = run_jp("query", "--id", ".", "three", cwd=root)

    said = "note: the earlier copy of 'large.txt' was lost; it is the same as what is attached now"
    assert (dry.code, dry.stderr, was_written) == (0, f"{said}\n", False)
    assert (healed.code, healed.stderr) == (0, f"{said}, and stored again\n")
    assert blob.read_bytes() == (root / "large.txt").read_bytes()
    assert after == (0, "You said: three\n", "")


def test_other_content_brings_nothing_back(lost: tuple[Path, Path]) -> None:
    root, blob = lost
    (root / "large.txt").write_text("another line\n" * 400, encoding="utf-8")

    check_failure(run_jp("query", "--id", ".", "two", "-a", "large.txt", cwd=root), 1, "is damaged")
    assert blob.read_bytes() == b"other text"


# What has changed


def listed(cwd: Path, *options: str) -> dict[str, Any]:
    """What `jp attachment ls` says of each source, as data."""
    result = run_jp("attachment", "ls", "--format", "json", *options, cwd=cwd)
    assert (result.code, result.stderr) == (0, ""), result
    return {item.pop("uri"): item for item in json.loads(result.stdout)["attachments"]}


def test_the_list_says_what_has_changed_since_it_was_sent(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    write(tmp_path, "same.txt", "other.txt", "gone.txt", "kept-out.txt", "later.txt", "d/a", "d/b", "d/c")
    sources = ["same.txt", "other.txt", "gone.txt", "kept-out.txt", "!kept-out.txt", "d", "cmd:echo hi"]
    prepare(
        ("query", "one", *(word for source in sources for word in ("-a", source))),
        ("query", "--id", ".", "two", "-a", "same.txt"),
        ("attachment", "add", "later.txt"),
        cwd=tmp_path,
    )
    write(tmp_path, "d/new")
    (tmp_path / "other.txt").write_text("TEXT OF other.txt\n", encoding="utf-8")
    (tmp_path / "d" / "a").write_text("x", encoding="utf-8")
    (tmp_path / "d" / "b").unlink()
    (tmp_path / "gone.txt").unlink()

    shown = run_jp("attachment", "ls", cwd=tmp_path)
    found = listed(tmp_path)

    assert shown.stderr == ""
    lines = shown.stdout.splitlines()
    assert [re.sub(" {2,}", "  ", line) for line in lines] == [
        "sent  turn 1, 17 B, 4 tokens  file:same.txt",
        "changed  turn 0, 18 B, 4 tokens  file:other.txt",
        "missing  turn 0, 17 B, 4 tokens  file:gone.txt  (there is no file 'file:gone.txt')",
        "excluded  file:kept-out.txt  ('!file:**/kept-out.txt' excludes it)",
        "excluded  !file:**/kept-out.txt",
        "changed  turn 0, 3 resources, 36 B, 9 tokens, 1 changed, 1 added, 1 removed  file:d",
        "sent  turn 0, 74 B, 18 tokens, not checked  cmd://echo?arg=hi",
        "pending  file:later.txt",
    ]
    assert {line.index(text) for line, text in zip(lines, found, strict=True)} == {len(lines[5]) - len("file:d")}
    uri = f"file://{tmp_path}/d"
    assert found["file:d"] == {
        "state": "changed",
        "checked": True,
        "turn": 0,
        "files": 3,
        "bytes": 36,
        "tokens": 9,
        "changed": [f"{uri}/a"],
        "added": [f"{uri}/new"],
        "removed": [f"{uri}/b"],
        "detail": None,
    }
    nothing: dict[str, object] = {
        "turn": None,
        "files": 0,
        "bytes": 0,
        "tokens": 0,
        "changed": [],
        "added": [],
        "removed": [],
    }
    assert found["file:later.txt"] == {"state": "pending", "checked": True, "detail": None, **nothing}
    assert (found["file:same.txt"]["turn"], found["file:gone.txt"]["detail"]) == (1, "there is no file 'file:gone.txt'")


def test_without_a_conversation_the_list_is_what_new_ones_start_with(tmp_path: Path) -> None:
    declared = ["a.txt", "nosuch.txt", "what:ever", "!file:a#b"]
    make_workspace(tmp_path, settings=f"[conversation]\nattachments = {json.dumps(declared)}")
    write(tmp_path, "a.txt")

    assert {text: item["state"] for text, item in listed(tmp_path).items()} == {
        "a.txt": "pending",
        "nosuch.txt": "missing",
        "what:ever": "pending",
        "!file:a#b": "excluded",
    }


def test_what_a_log_declares_in_its_own_spelling_is_sent(tmp_path: Path) -> None:
    make_workspace(tmp_path, settings='[conversation]\nattachments = ["./a.txt"]')
    write(tmp_path, "a.txt")
    run_jp("query", "one", cwd=tmp_path)
    (log,) = logs(tmp_path)
    log.write_bytes(log.read_bytes().replace(b'["file:a.txt"]', b'["./a.txt"]'))

    assert listed(tmp_path)["./a.txt"]["state"] == "sent"


def test_other_machines_are_only_asked_with_check(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    text = (("content-type", "text/plain"),)
    with Loopback(Reply(body=b"then", headers=text), Reply(body=b"now", headers=text)) as server:
        run_jp("query", "one", "-a", f"{server.url}/page", cwd=tmp_path)
        unasked = run_jp("attachment", "ls", cwd=tmp_path)
        asked = run_jp("attachment", "ls", "--check", cwd=tmp_path)
        requests = len(server.requests)
    silent = run_jp("attachment", "ls", "--check", cwd=tmp_path)

    assert unasked.stdout == f"sent      turn 0, 4 B, 1 token, not checked  {server.url}/page\n"
    assert asked.stdout == f"changed   turn 0, 4 B, 1 token  {server.url}/page\n"
    assert requests == 2
    assert silent.code == 0
    assert f"not checked  {server.url}/page  (" in silent.stdout


def test_what_is_not_trusted_is_listed_and_left_alone(tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    with Loopback() as server:
        declared = [f"cmd:touch {trap}", f"{server.url}/page", "a.txt", "nobody:knows", "!nobody:cares"]
        make_workspace(tmp_path, settings=f"[conversation]\nattachments = {json.dumps(declared)}")
        write(tmp_path, "a.txt")

        found = listed(tmp_path, "--check")
        requests = list(server.requests)

    waiting = "not trusted: see `jp workspace trust`"
    assert {text: (item["state"], item["checked"], item["detail"]) for text, item in found.items()} == {
        declared[0]: ("pending", False, waiting),
        declared[1]: ("pending", False, waiting),
        "a.txt": ("pending", True, None),
        "nobody:knows": ("pending", False, waiting),
        "!nobody:cares": ("excluded", False, waiting),
    }
    assert (requests, trap.exists()) == ([], False)


def test_an_address_is_listed_without_its_password(tmp_path: Path) -> None:
    make_workspace(tmp_path, settings='[conversation]\nattachments = ["https://me:secret@localhost/x"]')

    shown = run_jp("attachment", "ls", cwd=tmp_path)
    run_jp("workspace", "trust", "--yes", cwd=tmp_path)
    checked = run_jp("attachment", "ls", "--check", "--format", "json", cwd=tmp_path)

    assert "https://" in shown.stdout
    assert "https://" in checked.stdout
    assert "secret" not in f"{shown.stdout}{checked.stdout}"


def test_what_an_imported_conversation_declares_names_the_command_that_trusts_it(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    prepare(("query", "one", "-a", "cmd:echo hi"), ("workspace", "trust", "--yes"), cwd=tmp_path)
    elsewhere = make_workspace(tmp_path / "elsewhere")
    (source,) = (tmp_path / ".jp" / "conversations").iterdir()
    run_jp("conversation", "import", str(source), cwd=elsewhere)

    shown = run_jp("attachment", "ls", "--id", "last", cwd=elsewhere)

    identity = f"jp-c{source.name.partition('-')[0]}"
    waiting = f"not trusted: see `jp workspace trust --id {identity}`"
    assert shown.stdout == f"sent      turn 0, 74 B, 18 tokens, not checked  cmd://echo?arg=hi  ({waiting})\n"


def test_a_list_that_waits_for_another_machine_can_be_left(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    with Loopback(
        Reply(body=b"text", headers=(("content-type", "text/plain"),)), Reply(ends="hang", headless=True)
    ) as server:
        run_jp("query", "one", "-a", f"{server.url}/page", cwd=tmp_path)
        process = start_jp("attachment", "ls", "--check", cwd=tmp_path)
        server.wait_for_requests(2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()

    assert (process.returncode, out, err) == (130, b"", b"")


def test_a_conversation_that_is_attached_is_compared(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    run_jp("query", "--title", "The first", "one", cwd=tmp_path)
    first = f"jp-c{logs(tmp_path)[0].parent.name.partition('-')[0]}"
    run_jp("query", "--new", "two", "-a", first, cwd=tmp_path)
    before = listed(tmp_path)[f"jp:{first}"]
    prepare(("--no-persist", "query", "--id", first, "nothing"), ("query", "--id", first, "three"), cwd=tmp_path)
    after = listed(tmp_path, "--id", "prev")[f"jp:{first}"]

    assert (before["state"], before["checked"], after["state"]) == ("sent", True, "changed")


# Declaring, and taking out


def test_what_is_declared_and_not_there_is_said(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    write(tmp_path, "a.txt", "sub/b.txt")
    run_jp("query", "one", "-a", "a.txt", cwd=tmp_path)

    added = run_jp("attachment", "add", "A.TXT", "nosuch.txt", "*.rs", "sub", "!b.txt", "a.txt", "jp-c9", cwd=tmp_path)
    again = run_jp("attachment", "add", "nosuch.txt", "--format", "json", cwd=tmp_path)
    before = only_log(tmp_path)
    malformed = run_jp("attachment", "add", "c.txt", "file:a#b", cwd=tmp_path)

    fails = "now: the next query fails unless it is there by then;"
    globs = "'**/*.py' matches at any depth, '*.py' in one directory; hidden files only match '.*'."
    conversations = "list the conversations with `jp conversation ls`"
    assert added.code == 0
    assert added.stderr.splitlines() == [
        f"note: there is no file 'A.TXT' {fails} did you mean 'a.txt'?",
        f"note: there is no file 'nosuch.txt' {fails} '.' has nothing called 'nosuch.txt'.",
        f"note: '*.rs' matches no file {fails} {globs}",
        "note: 'sub' attaches nothing: '!file:**/b.txt' excludes it",
        "note: 'a.txt' was read in turn 0 and is not read again; `jp query --attach` does that",
        f"note: 'jp-c9': there is no conversation 'jp-c9' here {fails} {conversations}",
    ]
    assert again.code == 0
    assert json.loads(again.stderr)["note"].startswith("there is no file 'nosuch.txt' now: ")
    check_failure(malformed, 10, "'file:a#b' has a fragment")
    assert only_log(tmp_path) == before


def test_what_is_declared_may_come_until_the_next_query(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    prepare(("query", "one"), ("attachment", "add", "later.txt"), cwd=tmp_path)

    failed, typed = (
        run_jp("query", "--id", ".", "two", *more, cwd=tmp_path) for more in ((), ("--attach", "later.txt"))
    )

    way_out = "`jp attachment rm file:later.txt` takes it out"
    check_failure(failed, 10, "there is no file 'file:later.txt'", way_out)
    check_failure(typed, 10, "there is no file 'later.txt'")
    assert "attachment rm" not in typed.stderr
    write(tmp_path, "later.txt")
    assert run_jp("query", "--id", ".", "two", cwd=tmp_path).code == 0
    assert listed(tmp_path)["file:later.txt"]["state"] == "sent"


def test_files_behind_the_one_that_is_attached_are_said_to_be_words(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    write(tmp_path, "a.txt", "b.txt", "c.txt")
    expanded = run_jp("query", "--attach", "a.txt", "b.txt", "c.txt", "a.txt b.txt?", "x" * 300, cwd=tmp_path)
    unattached = run_jp("query", "b.txt", cwd=tmp_path)

    advice = "quote a pattern, and repeat --attach for each"
    assert expanded.stderr == f"note: not attached, but words of the query: 'b.txt' and 1 more; {advice}\n"
    assert (unattached.code, unattached.stderr) == (0, "")


def test_a_dry_run_names_a_file_in_one_line_whatever_its_name(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    write(tmp_path, "new\nline\x1b[31m.txt")

    shown = run_jp("query", "--dry-run", "--attach", "new*", "one", cwd=tmp_path).stdout

    assert "\nattached   new line.txt (26 bytes)\n" in shown


def test_what_is_taken_out_is_named_as_listed_as_typed_or_by_a_part(tmp_path: Path) -> None:
    make_workspace(tmp_path, settings='[conversation]\nattachments = ["docs/a.md"]')
    nowhere = run_jp("query", "one", cwd=tmp_path)
    check_failure(
        nowhere, 10, "there is no file 'docs/a.md'", "`jp config explain conversation.attachments` says where"
    )
    write(tmp_path, "docs/a.md", "src/main.py", "src/data.txt", "sp ace.txt")
    sources = ("src/main.py", "src/data.txt", "sp ace.txt", "!*.lock", "gh:o/n/pull/1")
    prepare(("query", "one"), ("attachment", "add", *sources), cwd=tmp_path)

    def removed(*typed: str) -> Result:
        return run_jp("attachment", "rm", *typed, cwd=tmp_path)

    before = only_log(tmp_path)
    check_failure(removed("src"), 2, "'src' is a part of 2 attachments: 'file:src/main.py', 'file:src/data.txt'")
    check_failure(removed("src/mian.py"), 2, "is not attached", "did you mean 'file:src/main.py'?")
    check_failure(removed("main", "a.txt"), 2, "'a.txt' is not attached", "list them with `jp attachment ls`")
    check_failure(removed(""), 10, "'' is not an attachment")
    assert only_log(tmp_path) == before

    assert removed("main") == (
        0,
        "docs/a.md\nfile:src/data.txt\nfile:sp%20ace.txt\n!file:**/*.lock\ngh:o/n/pull/1\n",
        "note: no longer attached: 'file:src/main.py'\n",
    )
    assert removed("file:src/data.txt", "sp ace.txt", "lock", "docs/a.md") == (
        0,
        "gh:o/n/pull/1\n",
        "note: no longer attached: '!file:**/*.lock'\n",
    )
    assert removed("gh:o/n/pull/1").stdout == ""


def test_an_at_sign_in_a_path_is_no_password(tmp_path: Path) -> None:
    make_workspace(tmp_path, settings='[conversation]\nattachments = ["@types/a@b.txt"]')
    write(tmp_path, "@types/a@b.txt")
    run_jp("query", "one", cwd=tmp_path)

    shown = run_jp("attachment", "ls", cwd=tmp_path)
    missed = run_jp("attachment", "rm", "x@y.md", cwd=tmp_path)
    removed = run_jp("attachment", "rm", "@types/a@b.txt", cwd=tmp_path)

    assert shown.stdout == "sent      turn 0, 23 B, 6 tokens  @types/a@b.txt\n"
    check_failure(missed, 2, "'x@y.md' is not attached")
    assert removed.stdout == ""


# Printing


def test_several_sources_are_printed_pictures_by_their_type_and_size(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    write(tmp_path, "a.txt", "d/b.txt")
    picture = b"\x89PNG\r\n\x1a\n\0"
    (tmp_path / "p.png").write_bytes(picture)

    text = run_jp("attachment", "print", "a.txt", "p.png", "d", cwd=tmp_path)
    data = run_jp("attachment", "print", "a.txt", "p.png", "d", "--format", "json", cwd=tmp_path)
    nothing = run_jp("attachment", "print", cwd=tmp_path)

    assert text.stdout == (
        "── a.txt (14 bytes, text/plain)\ntext of a.txt\n\n"
        "── p.png (9 bytes, image/png)\n[binary: image/png, 9 bytes]\n"
        "── d/b.txt (16 bytes, text/plain)\ntext of d/b.txt\n"
    )
    resources = json.loads(data.stdout)["resources"]
    assert [(item["name"], item["mimeType"]) for item in resources] == [
        ("a.txt", "text/plain"),
        ("p.png", "image/png"),
        ("d/b.txt", "text/plain"),
    ]
    assert base64.b64decode(resources[1]["blob"]) == picture
    assert nothing == (0, "", "note: nothing is attached\n")


def test_what_is_printed_cannot_steer_a_terminal(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    name = "a\x1b]0;title\x07\n── b.txt"
    (tmp_path / name).write_text("\x1b[2Jred \x1b[31mtext\x9b1m\x1b]52;c;eA==\x07 end\n", encoding="utf-8")

    with jp_at_terminal("attachment", "print", name, cwd=tmp_path) as terminal:
        assert terminal.finish() == 0
    piped = run_jp("attachment", "print", name, cwd=tmp_path)

    assert terminal.shown.endswith("── a ── b.txt (38 bytes, text/plain)\nred text end\n")
    assert "\x1b]" not in terminal.shown
    assert piped.stdout.endswith("\x1b[2Jred \x1b[31mtext\x9b1m\x1b]52;c;eA==\x07 end\n")
    assert piped.stdout.startswith("── a ── b.txt (38 bytes")


def test_a_dry_run_shows_a_request_that_is_too_large_to_be_sent_without_yes(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "work")
    (root / "large.txt").write_text("word " * 200_000, encoding="utf-8")

    refused = run_jp("query", "--new", "--attach", "large.txt", "hi", cwd=root)
    shown = run_jp("query", "--new", "--dry-run", "--attach", "large.txt", "hi", cwd=root)

    large = "the input is 1,000,002 bytes"
    assert (refused.code, large in refused.stderr, logs(root)) == (2, True, [])
    assert (shown.code, large in shown.stderr, "only `--yes` would send it" in shown.stderr) == (0, True, True)


def test_a_picture_counts_as_what_it_costs(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "work")
    (root / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(600_000))

    sent = run_jp("query", "--new", "--attach", "photo.png", "hi", cwd=root)
    limited = ("--cfg", "conversation.max_input_bytes=6000")
    refused = run_jp("query", "--new", *limited, "--attach", "photo.png", "hi", cwd=root)

    assert sent.code == 0, sent.stderr
    assert "the input counts as 6,402 bytes, about 1,600 tokens" in refused.stderr
