from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from jp.attachment.github import FileDiff, file_diffs, reason_to_skip

NAMES = ["plain.py", "a b/with space.txt", "Höhle.md", 'quo"te.txt', "tab\there.txt", "back\\slash", "x b/x.txt"]


def git(directory: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(directory), *arguments]
    done = subprocess.run(command, check=True, capture_output=True)
    return done.stdout.decode("utf-8", "surrogateescape")


def test_the_files_of_a_real_diff_have_their_names(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    for name in [*NAMES, "gone.txt", "old name.txt", "mode.sh", "binary.png", "mode b.sh"]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"{name}\ndiff --git a/no b/no\n{name} again\n", encoding="utf-8")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "x")
    for name in NAMES:
        (tmp_path / name).write_text("one\n--- a/changed\n+++ b/changed\n", encoding="utf-8")
    (tmp_path / "gone.txt").unlink()
    (tmp_path / "old name.txt").rename(tmp_path / "new name.txt")
    (tmp_path / "mode.sh").chmod(0o755)
    (tmp_path / "mode b.sh").chmod(0o755)
    (tmp_path / "binary.png").write_bytes(b"\0\1\2")
    (tmp_path / "fresh.txt").write_text("new\n", encoding="utf-8")
    (tmp_path / "empty \xe4.txt").touch()
    git(tmp_path, "add", ".")
    text = git(tmp_path, "diff", "--cached", "-M")

    files = list(file_diffs(text))

    expected = {*NAMES, "gone.txt", "new name.txt", "mode.sh", "mode b.sh", "binary.png", "fresh.txt", "empty \xe4.txt"}
    assert {file.path for file in files} == expected
    assert "".join(file.text for file in files) == text


def test_what_is_no_diff_has_no_files() -> None:
    assert list(file_diffs("")) == []
    assert list(file_diffs("<html>\n")) == []
    assert list(file_diffs("before\ndiff --git a/x b/x\nold mode 1\n")) == [
        FileDiff("x", "diff --git a/x b/x\nold mode 1\n")
    ]


@pytest.mark.parametrize(
    ("path", "globs", "reason"),
    [
        ("a/b.svg", ("*.svg",), "'exclude=*.svg'"),
        ("a/b.svg", ("b.*", "*.svg"), "'exclude=b.*'"),
        ("a/b/c.py", ("a/*",), "'exclude=a/*'"),
        ("a/b/c.py", ("a/",), "'exclude=a/'"),
        ("b/a/c.py", ("a/",), ""),
        ("a/b/c.py", ("b",), ""),
        ("x/Cargo.lock", (), "lock files are, without 'no_defaults'"),
        ("x/my-Cargo.lock", (), ""),
    ],
)
def test_a_file_is_omitted_for_a_reason(path: str, globs: tuple[str, ...], reason: str) -> None:
    assert reason_to_skip(path, globs, lock_files=True) == reason


def test_lock_files_stay_where_they_are_asked_for() -> None:
    assert reason_to_skip("uv.lock", (), lock_files=False) == ""
    assert reason_to_skip("uv.lock", ("*.lock",), lock_files=False) == "'exclude=*.lock'"
