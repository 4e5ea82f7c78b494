from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import anyio
import pytest

from file_calls import Answering, call, failure, invocation, text
from jp.conversation.entries import Facts, Question
from jp.tool.files.access import MAX_BYTES
from jp.tool.files.write_tools import CreateFile
from plain_names import PlainNames


def run(root: Path, inquirer: Answering, **arguments: object) -> str:
    return text(anyio.run(CreateFile(PlainNames()).run, invocation(root, arguments, inquirer=inquirer)))


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_file_is_created_with_the_directories_that_it_needs(tmp_path: Path) -> None:
    output = call(CreateFile(PlainNames()), tmp_path, path="a/b/c.txt", content="über\nend")

    assert (tmp_path / "a" / "b" / "c.txt").read_bytes() == "über\nend".encode()
    assert text(output) == "Created 'a/b/c.txt': 2 lines, 9 bytes."
    assert output.facts == Facts(kind="write", path="a/b/c.txt")
    assert names(tmp_path / "a" / "b") == ["c.txt"]


@pytest.mark.parametrize(
    ("content", "counted"), [("", "0 lines, 0 bytes"), ("a", "1 line, 1 bytes"), ("a\n", "1 line, 2 bytes")]
)
def test_what_was_written_is_counted(tmp_path: Path, content: str, counted: str) -> None:
    assert text(call(CreateFile(PlainNames()), tmp_path, path="f", content=content)) == f"Created 'f': {counted}."


def test_without_content_a_file_is_empty(tmp_path: Path) -> None:
    call(CreateFile(PlainNames()), tmp_path, path="empty")

    assert (tmp_path / "empty").read_bytes() == b""


def test_a_new_file_has_the_permissions_of_new_files(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        call(CreateFile(PlainNames()), tmp_path, path="f")
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o640


def test_a_file_is_overwritten_when_the_user_agrees(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old", encoding="utf-8")
    (tmp_path / "f").chmod(0o751)
    user = Answering(value=True)

    assert run(tmp_path, user, path="f", content="new\n") == "Overwrote 'f': 1 line, 4 bytes."

    assert (tmp_path / "f").read_text(encoding="utf-8") == "new\n"
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o751
    question = Question(id="overwrite_file", text="'f' exists (3 bytes). Overwrite it?", kind="boolean", default=False)
    assert user.questions == [question]
    assert names(tmp_path) == ["f"]


@pytest.mark.parametrize("answer", [False, None, "yes", 1])
def test_a_file_is_kept_when_the_user_does_not_say_yes(tmp_path: Path, answer: object) -> None:
    (tmp_path / "f").write_text("old", encoding="utf-8")

    said = run(tmp_path, Answering(answer), path="f", content="new")

    assert said == "'f' exists (3 bytes). Overwrite it? The answer was no, so nothing was done."
    assert (tmp_path / "f").read_text(encoding="utf-8") == "old"


def test_a_file_is_kept_where_nobody_can_be_asked(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old", encoding="utf-8")

    said = failure(call(CreateFile(PlainNames()), tmp_path, path="f", content="new"))

    assert said == (
        "'f' exists (3 bytes). Overwrite it? That needs the user's consent, and nobody can be asked here, so nothing "
        "was done."
    )
    assert (tmp_path / "f").read_text(encoding="utf-8") == "old"


def test_a_file_that_changes_while_the_user_thinks_is_kept(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old", encoding="utf-8")
    user = Answering(value=True, first=lambda: (tmp_path / "f").write_text("newer", encoding="utf-8"))

    assert run(tmp_path, user, path="f", content="new") == (
        "'f' was changed meanwhile, so nothing was written; read it again"
    )
    assert (tmp_path / "f").read_text(encoding="utf-8") == "newer"
    assert names(tmp_path) == ["f"]


def test_a_file_that_changed_after_the_difference_was_shown_is_kept(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old\n", encoding="utf-8")
    tool = CreateFile(PlainNames())
    asked = invocation(tmp_path, {"path": "f", "content": "new\n"}, inquirer=Answering(value=True))

    shown = anyio.run(tool.preview, asked)
    (tmp_path / "f").write_text("newer\n", encoding="utf-8")

    assert shown == "--- f\n+++ f\n@@ -1 +1 @@\n-old\n+new"
    assert failure(anyio.run(tool.run, asked)).startswith("'f' has changed since this call was shown")
    assert (tmp_path / "f").read_text(encoding="utf-8") == "newer\n"


@pytest.mark.parametrize(("path", "content"), [("new", "x"), ("binary", "x"), ("same", "same"), ("../out", "x")])
def test_where_there_is_no_difference_to_show_none_is_shown(tmp_path: Path, path: str, content: str) -> None:
    (tmp_path / "binary").write_bytes(b"\0")
    (tmp_path / "same").write_text("same", encoding="utf-8")

    asked = invocation(tmp_path, {"path": path, "content": content})

    assert anyio.run(CreateFile(PlainNames()).preview, asked) is None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("directory", "'directory' is a directory"),
        ("new/", "'new/' is a directory"),
        (".", "'.' is a directory"),
        ("../outside", "'../outside' is outside of"),
        (".git/hooks/pre-commit", "'.git/hooks/pre-commit' lies in '.git', which no tool changes"),
        ("file/below", "cannot create 'file/below': Not a directory"),
        ("way-out/f", "'way-out/f' is outside of"),
        ("pipe", "'pipe' is not a regular file"),
    ],
)
def test_what_cannot_be_created_is_an_error_and_leaves_nothing(tmp_path: Path, path: str, expected: str) -> None:
    root = tmp_path / "root"
    (root / "directory").mkdir(parents=True)
    (root / "file").touch()
    (root / "way-out").symlink_to(tmp_path)
    os.mkfifo(root / "pipe")
    before = names(root)

    assert failure(call(CreateFile(PlainNames()), root, path=path, content="x")).startswith(expected)

    assert names(root) == before
    assert names(tmp_path) == ["root"]


def test_half_a_character_cannot_be_written(tmp_path: Path) -> None:
    said = failure(call(CreateFile(PlainNames()), tmp_path, path="f", content="a\ud800"))

    assert said == "'content' holds half a character, at 1, so nothing was written"
    assert names(tmp_path) == []


def test_a_file_that_is_too_large_to_be_read_is_not_overwritten(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(MAX_BYTES + 1)

    assert "is larger than" in run(tmp_path, Answering(value=True), path="large", content="x")


def swap_directory_for_link(root: Path) -> None:
    (root / "src").rename(root / "moved")
    (root / "src").symlink_to(root.parent / "outside")


def test_a_directory_that_becomes_a_link_after_the_check_is_not_followed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "src").mkdir(parents=True)
    (tmp_path / "outside").mkdir()

    def swap(real: str) -> str:
        if real.endswith("f.txt"):
            swap_directory_for_link(root)
        return real

    said = failure(call(CreateFile(PlainNames(swap)), root, path="src/f.txt", content="x"))

    assert said.startswith("cannot create 'src/f.txt': ")
    assert names(tmp_path / "outside") == []


def test_a_file_that_appears_meanwhile_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def appear_then_link(*names: str, **options: object) -> None:
        (tmp_path / "f").write_text("theirs", encoding="utf-8")
        link(*names, **options)

    with monkeypatch.context() as patched:
        patched.setattr(os, "link", appear_then_link)
        said = failure(call(CreateFile(PlainNames()), tmp_path, path="f", content="ours"))

    assert said == "'f' was created meanwhile, so nothing was written"
    assert names(tmp_path) == ["f"]
    assert (tmp_path / "f").read_text(encoding="utf-8") == "theirs"


def test_a_file_system_without_links_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*names: str, **options: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)

    call(CreateFile(PlainNames()), tmp_path, path="f", content="x")

    assert names(tmp_path) == ["f"]
    assert (tmp_path / "f").read_text(encoding="utf-8") == "x"


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        said = failure(call(CreateFile(PlainNames()), tmp_path, path="a/b/f", content="x"))

    assert said == "cannot create 'a/b/f': No space left on device"
    assert names(tmp_path) == []


def test_a_directory_that_is_not_writable_is_named(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o555)
    if os.access(tmp_path / "locked", os.W_OK):
        pytest.skip("root may write everywhere")

    said = failure(call(CreateFile(PlainNames()), tmp_path, path="locked/f", content="x"))

    assert said == "cannot create 'locked/f': Permission denied"
