from __future__ import annotations

import os
import threading
from pathlib import Path

import anyio
import pytest

from jp.app.query import question
from jp.app.query.question import typed_text
from jp.cli.terminal.wording import worded
from jp.errors import UsageError


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "a.md").write_text("text of a\n", encoding="utf-8")
    (tmp_path / "home" / "b.md").write_bytes(b"\xef\xbb\xbftext of b\r\n")
    return tmp_path


def typed(*words: str) -> str:
    return anyio.run(typed_text, words).text


def refused(word: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        typed(word)
    return caught.value


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), ""),
        (("a", "b"), "a b"),
        (("a", "-", "b"), "a b"),
        (("@a.md",), "text of a"),
        (("say", "it:", "@a.md", "and", "go"), "say it:\n\ntext of a\n\nand go"),
        (("@a.md", "@~/b.md"), "text of a\n\ntext of b"),
        (("@@a.md", "@", "@@"), "@a.md @ @"),
        (("@me says: hello", "me@a.md", "@@ x"), "@me says: hello me@a.md @@ x"),
        (("", "x"), " x"),
    ],
)
def test_a_word_that_begins_with_an_at_sign_is_a_file(words: tuple[str, ...], text: str) -> None:
    assert typed(*words) == text


def test_a_pipe_is_read_to_its_end(files: Path) -> None:
    os.mkfifo(files / "pipe")
    writer = threading.Thread(target=(files / "pipe").write_text, args=("from a pipe\n",), kwargs={"encoding": "utf-8"})
    writer.start()

    assert typed("@pipe") == "from a pipe"
    writer.join()


def test_a_missing_file_names_its_neighbours_as_they_were_typed(files: Path) -> None:
    error = refused("@./a.mdd")
    assert error.message == "cannot read the file './a.mdd': No such file or directory"
    assert error.hint == "did you mean @./a.md? @@./a.mdd is the word itself"

    assert refused("@~/b.m").hint.startswith("did you mean @~/b.md?")
    assert refused("@zzz").hint == "@@zzz is the word itself"
    assert refused("@none/a.md").hint == "@@none/a.md is the word itself"


def test_what_is_no_text_is_refused(files: Path) -> None:
    (files / "x.png").write_bytes(b"\x89PNG\xff\xfe")
    (files / "zero").write_bytes(b"a\0b")

    assert refused("@x.png").message == "the file 'x.png' is no text"
    assert worded(refused("@zero").hint) == "attach it: `jp query --attach zero …`"
    assert refused("@home").message == "'home' is a directory"
    assert refused("@a\0b").message.startswith("cannot read the file")
    assert refused("@~nobody-has-this-name/x").message.startswith("cannot read the file")


def test_a_file_has_a_bound(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(question, "MOST_BYTES", 2_500_000)
    (files / "big").write_bytes(b"x" * 2_500_001)
    (files / "fits").write_bytes(b"x" * 2_500_000)

    assert refused("@big").message == "the file 'big' has more than 2,500,000 bytes"
    assert len(typed("@fits")) == 2_500_000
