from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from file_calls import Answering, call, failure, invocation, text
from jp.config.entries import FileRuleConfig
from jp.conversation.entries import Facts, Question
from jp.tool.files.write_tools import MoveFile
from plain_names import PlainNames


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root" / "src").mkdir(parents=True)
    (tmp_path / "root" / "src" / "a.txt").write_text("a", encoding="utf-8")
    (tmp_path / "root" / "b.txt").write_text("bb", encoding="utf-8")
    return tmp_path / "root"


def files(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): path.read_text(encoding="utf-8")
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


UNCHANGED = {"b.txt": "bb", "src/a.txt": "a"}


def test_a_file_is_moved_with_the_directories_that_it_needs(root: Path) -> None:
    output = call(MoveFile(PlainNames()), root, source="src/a.txt", target="new/deep/c.txt")

    assert files(root) == {"b.txt": "bb", "new/deep/c.txt": "a"}
    assert text(output) == "Moved 'src/a.txt' to 'new/deep/c.txt'."
    assert output.facts == Facts(kind="move", path="new/deep/c.txt")


def test_a_file_is_overwritten_when_the_user_agrees(root: Path) -> None:
    user = Answering(value=True)
    asked = invocation(root, {"source": "src/a.txt", "target": "b.txt"}, inquirer=user)

    anyio.run(MoveFile(PlainNames()).run, asked)

    assert files(root) == {"b.txt": "a"}
    question = Question(
        id="overwrite_file", text="'b.txt' exists (2 bytes). Overwrite it?", kind="boolean", default=False
    )
    assert user.questions == [question]


def test_a_file_is_kept_when_the_user_does_not_agree(root: Path) -> None:
    asked = invocation(root, {"source": "src/a.txt", "target": "b.txt"}, inquirer=Answering(value=False))

    assert failure(anyio.run(MoveFile(PlainNames()).run, asked)).endswith("The answer was no, so nothing was done.")
    assert "nobody can be asked here" in failure(call(MoveFile(PlainNames()), root, source="src/a.txt", target="b.txt"))
    assert files(root) == UNCHANGED


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("missing", "c", "there is no file 'missing'"),
        ("src", "c", "'src' is a directory"),
        ("link", "c", "'link' is a link, not a regular file"),
        ("pipe", "c", "'pipe' is not a regular file"),
        ("b.txt", "src", "'src' is a directory"),
        ("b.txt", "new/", "'new/' is a directory; name the file's new path"),
        ("b.txt", "link", "'link' is a link, not a regular file"),
        ("b.txt", "./b.txt", "'b.txt' and './b.txt' are the same path"),
        ("b.txt", "src/a.txt/c", "cannot move to 'src/a.txt/c': Not a directory"),
        ("../x", "c", "'../x' is outside of"),
        ("b.txt", "../c", "'../c' is outside of"),
        ("b.txt", "way-out/c", "'way-out/c' is outside of"),
        ("b.txt", ".git/hooks/c", "'.git/hooks/c' lies in '.git', which no tool changes"),
        (".jp/config.toml", "c", "'.jp/config.toml' lies in '.jp', which no tool changes"),
    ],
)
def test_what_cannot_be_moved_is_an_error_and_changes_nothing(
    root: Path, source: str, target: str, expected: str
) -> None:
    (root / "link").symlink_to("b.txt")
    (root / "way-out").symlink_to("..")
    os.mkfifo(root / "pipe")

    assert failure(call(MoveFile(PlainNames()), root, source=source, target=target)).startswith(expected)
    assert files(root) == UNCHANGED


def test_both_ends_have_to_be_writable_by_the_tool(root: Path) -> None:
    rules = [FileRuleConfig(path=".", read=True), FileRuleConfig(path="src", read=True, write=True)]

    asked = invocation(root, {"source": "src/a.txt", "target": "c.txt"}, access=rules)

    assert "must not be changed" in failure(anyio.run(MoveFile(PlainNames()).run, asked))


def appear(root: Path) -> None:
    (root / "c.txt").write_text("theirs", encoding="utf-8")


def test_a_file_that_appears_meanwhile_is_kept(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def appear_then_link(*names: str, **options: object) -> None:
        appear(root)
        link(*names, **options)

    with monkeypatch.context() as patched:
        patched.setattr(os, "link", appear_then_link)
        said = failure(call(MoveFile(PlainNames()), root, source="b.txt", target="c.txt"))

    assert said == "'c.txt' was created meanwhile, so nothing was moved"
    assert files(root) == {**UNCHANGED, "c.txt": "theirs"}


def test_what_takes_the_place_of_the_source_meanwhile_is_not_moved(root: Path) -> None:
    def swap() -> None:
        (root / "src" / "a.txt").unlink()
        (root / "src" / "a.txt").symlink_to(root / "b.txt")

    asked = invocation(root, {"source": "src/a.txt", "target": "b.txt"}, inquirer=Answering(value=True, first=swap))

    assert failure(anyio.run(MoveFile(PlainNames()).run, asked)) == "'src/a.txt' is a link, not a regular file"
    assert files(root) == {"b.txt": "bb"}


def replace_by_directory(root: Path) -> None:
    (root / "b.txt").unlink()
    (root / "b.txt").mkdir()


def replace_by_link(root: Path) -> None:
    (root / "b.txt").rename(root / "old.txt")
    (root / "b.txt").symlink_to("old.txt")


@pytest.mark.parametrize(
    ("swap", "expected"),
    [(replace_by_directory, "'b.txt' is a directory"), (replace_by_link, "'b.txt' is a link, not a regular file")],
)
def test_what_takes_the_place_of_the_target_meanwhile_is_kept(
    root: Path, swap: Callable[[Path], None], expected: str
) -> None:
    user = Answering(value=True, first=lambda: swap(root))
    asked = invocation(root, {"source": "src/a.txt", "target": "b.txt"}, inquirer=user)

    assert failure(anyio.run(MoveFile(PlainNames()).run, asked)) == expected
    assert files(root)["src/a.txt"] == "a"


@pytest.mark.parametrize("fails", [False, True])
def test_a_file_system_without_links_will_do(root: Path, monkeypatch: pytest.MonkeyPatch, *, fails: bool) -> None:
    def refuse(*names: str, **options: object) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    if fails:
        monkeypatch.setattr(os, "rename", refuse)

    output = call(MoveFile(PlainNames()), root, source="src/a.txt", target="new/c.txt")

    if fails:
        assert failure(output) == "cannot move to 'new/c.txt': Invalid cross-device link"
        assert not (root / "new").exists()
    assert files(root) == (UNCHANGED if fails else {"b.txt": "bb", "new/c.txt": "a"})


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_file_that_cannot_leave_its_place_is_not_in_both(
    root: Path, monkeypatch: pytest.MonkeyPatch, *, is_gone: bool
) -> None:
    unlink = os.unlink

    def refuse(name: str, *, dir_fd: int | None = None) -> None:
        if name != "a.txt":
            unlink(name, dir_fd=dir_fd)
            return
        if is_gone:
            unlink(name, dir_fd=dir_fd)
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "unlink", refuse)

    output = call(MoveFile(PlainNames()), root, source="src/a.txt", target="c.txt")

    assert output.is_error is not is_gone
    assert files(root) == ({"b.txt": "bb", "c.txt": "a"} if is_gone else UNCHANGED)
