"""`jp attachment` and `--attach`: what is declared, what is read when, and what is said about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from failures import check_failure
from forked import run_jp
from jp.conversation.entries import ChatRequest
from running import Result
from stage import ECHO, entries_of, make_workspace, only_log


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
    outside.run("query", "--id", ".", "two", cwd=outside.there)
    removed = outside.run("attachment", "rm", str(outside.here / "f.txt"), "sub", cwd=outside.here)

    here = f"file://{outside.here}"
    assert added.stdout == f"{here}/f.txt\n{here}/g.txt\n{here}/sub\n"
    assert outside.delivered() == [["f.txt"], [str(outside.here / "g.txt"), str(outside.here / "sub" / "h.txt")]]
    assert removed.stdout == f"{here}/g.txt\n"


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

    run_jp("query", "one", "-a", "!b.py", "-a", "src", cwd=tmp_path)
    run_jp("query", "--id", ".", "two", "-a", "src/b.py", cwd=tmp_path)
    run_jp("query", "--id", ".", "three", "-a", "src", cwd=tmp_path)
    both = run_jp("query", "--id", ".", "four", "-a", "src/b.py", "-a", "!b.py", cwd=tmp_path)

    requests = [entry for entry in only_log(tmp_path) if isinstance(entry, ChatRequest)]
    assert [[resource.name for resource in request.resources] for request in requests] == [
        ["src/a.py"],
        ["src/b.py"],
        ["src/a.py"],
        [],
    ]
    assert both.stderr == "note: 'src/b.py' attaches nothing: '!b.py' leaves it out\n"


# What is not there


def test_a_file_that_is_not_there_is_said_with_what_may_have_been_meant(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    write(tmp_path, "a.txt", "sp ace.txt", "src/main.py")

    def failure(path: str) -> Result:
        result = run_jp("query", "one", "-a", path, cwd=tmp_path)
        check_failure(result, 10, f"there is no file {path!r}")
        return result

    assert "hint: Did you mean 'a.txt'?" in failure("A.TXT").stderr
    assert "hint: Did you mean 'src/main.py'?" in failure("main.py").stderr
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
    log = (root / ".jp" / "conversations").glob("*/events.jsonl")
    before = [path.read_bytes() for path in log]

    damaged = run_jp("query", "--id", ".", "two", cwd=root)
    blob.unlink()
    missing = run_jp("query", "--id", ".", "two", cwd=root)

    remedy = f"hint: If it has not changed since, attach it again: `--attach file://{root}/large.txt`. Restore the file"
    check_failure(damaged, 1, "content of 'large.txt' cannot be read", "is damaged", remedy)
    check_failure(missing, 1, "content of 'large.txt' cannot be read", "is missing", remedy)
    assert [path.read_bytes() for path in (root / ".jp" / "conversations").glob("*/events.jsonl")] == before


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
    assert (healed.code, healed.stderr) == (0, f"{said}, and stored anew\n")
    assert blob.read_bytes() == (root / "large.txt").read_bytes()
    assert after == (0, "You said: three\n", "")


def test_other_content_brings_nothing_back(lost: tuple[Path, Path]) -> None:
    root, blob = lost
    (root / "large.txt").write_text("another line\n" * 400, encoding="utf-8")

    check_failure(run_jp("query", "--id", ".", "two", "-a", "large.txt", cwd=root), 1, "is damaged")
    assert blob.read_bytes() == b"other text"
