from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest

from file_calls import Answering, call, failure, invocation, text
from jp.conversation.entries import Facts, Question
from jp.tool.files.write_tools import DeleteFile
from plain_names import PlainNames


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root" / "src").mkdir(parents=True)
    (tmp_path / "root" / "src" / "a.txt").write_text("abc", encoding="utf-8")
    return tmp_path / "root"


def test_a_file_is_deleted(root: Path) -> None:
    output = call(DeleteFile(PlainNames()), root, path="src/a.txt")

    assert list((root / "src").iterdir()) == []
    assert text(output) == "Deleted 'src/a.txt' (3 bytes)."
    assert output.facts == Facts(kind="delete", path="src/a.txt")


@pytest.mark.parametrize("answer", [True, False])
def test_where_calls_run_unattended_it_asks(root: Path, *, answer: bool) -> None:
    user = Answering(answer)
    asked = invocation(root, {"path": "src/a.txt"}, run="unattended", inquirer=user)

    output = anyio.run(DeleteFile(PlainNames()).run, asked)

    assert output.is_error is not answer
    assert (root / "src" / "a.txt").exists() is not answer
    question = Question(id="delete_file", text="Delete 'src/a.txt' (3 bytes)?", kind="boolean", default=False)
    assert user.questions == [question]


def test_what_changes_while_the_user_thinks_is_kept(root: Path) -> None:
    user = Answering(value=True, first=lambda: (root / "src" / "a.txt").write_text("newer", encoding="utf-8"))
    asked = invocation(root, {"path": "src/a.txt"}, run="unattended", inquirer=user)

    said = failure(anyio.run(DeleteFile(PlainNames()).run, asked))

    assert said == "'src/a.txt' was changed meanwhile, so it was not deleted"
    assert (root / "src" / "a.txt").read_text(encoding="utf-8") == "newer"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("missing", "there is no file 'missing'"),
        ("src", "'src' is a directory"),
        ("src/", "'src/' is a directory"),
        (".", "'.' is a directory"),
        ("link", "'link' is a link, not a regular file"),
        ("pipe", "'pipe' is not a regular file"),
        ("../x", "'../x' is outside of"),
        ("way-out/secret", "'way-out/secret' is outside of"),
        (".jp/conversations/jp-c1/events.jsonl", "'.jp/conversations/jp-c1/events.jsonl' lies in '.jp'"),
        (".git/HEAD", "'.git/HEAD' lies in '.git'"),
    ],
)
def test_what_cannot_be_deleted_is_an_error(root: Path, path: str, expected: str) -> None:
    (root.parent / "secret").touch()
    (root / "link").symlink_to("src/a.txt")
    (root / "way-out").symlink_to("..")
    os.mkfifo(root / "pipe")

    assert failure(call(DeleteFile(PlainNames()), root, path=path)).startswith(expected)

    assert (root / "link").is_symlink()
    assert (root / "src" / "a.txt").exists()
    assert (root.parent / "secret").exists()


def test_a_directory_that_becomes_a_link_meanwhile_is_not_followed(root: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("abc", encoding="utf-8")

    def swap() -> None:
        (root / "src").rename(root / "moved")
        (root / "src").symlink_to(outside)

    asked = invocation(root, {"path": "src/a.txt"}, run="unattended", inquirer=Answering(value=True, first=swap))

    assert failure(anyio.run(DeleteFile(PlainNames()).run, asked)).startswith("cannot delete 'src/a.txt': ")
    assert (outside / "a.txt").exists()
    assert (root / "moved" / "a.txt").exists()
