from __future__ import annotations

import os
from pathlib import Path

import pytest

from jp.config.files import InvalidFileError, checked, is_file, read_text
from jp.config.layers import MapChange, applied
from jp.errors import ConfigurationError


def read_file(path: Path) -> MapChange | None:
    text = read_text(path)
    return None if text is None else checked(text, path).change


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_file_is_read(tmp_path: Path) -> None:
    path = written(tmp_path / "a.toml", '\ufeff[user]\nname = "ä"\r\n')

    change = read_file(path)

    assert change is not None
    assert applied(change) == {"user": {"name": "ä"}}


@pytest.mark.parametrize("name", ["missing.toml", "missing/a.toml", "a.toml/b.toml"])
def test_a_file_that_is_not_there_says_nothing(name: str, tmp_path: Path) -> None:
    written(tmp_path / "a.toml", "")

    assert read_file(tmp_path / name) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[assistant]\nmodel.id\n", ", line 2, column 9: expected '=' after a key in a key/value pair: 'model.id'"),
        ('a = "x\nb = 1', ", line 1, column 7: illegal character '\\n': 'a = \"x'"),
        ("a = [1,\n2", ", line 2, column 2: unclosed array before the file's end: '2'"),
        ("a = ", ", line 1, column 5: invalid value before the file's end: 'a ='"),
        ("a = 1\na = 2", ", line 2, column 6: cannot overwrite a value before the file's end: 'a = 2'"),
        (f'a = "{"x" * 200}\n', f", line 1, column 206: illegal character '\\n': 'a = \"{'x' * 75}'"),
    ],
)
def test_a_malformed_file_is_reported_with_its_place(text: str, message: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.toml", text)

    with pytest.raises(InvalidFileError) as caught:
        read_file(path)

    assert caught.value.message == f"{str(path)!r}{message}"
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "# comment\n[assistant.request]\nmax_retries = 'x'\n",
            ", line 3, column 15: assistant.request.max_retries expects a whole number of at least 0, got 'x'",
        ),
        (
            "user.nmae = 'x'\n",
            ", line 1, column 1: unknown key 'user.nmae'; the nearest known key is 'user.name'",
        ),
        ("assistant = { model = 5 }", ", line 1, column 23: assistant.model expects a table, got the number 5"),
        (
            "[[assistant.instructions]]\n[[assistant.instructions]]\ntitle = 1\n",
            ", line 3, column 9: assistant.instructions.1.title",
        ),
    ],
)
def test_a_key_that_is_not_accepted_is_reported_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.toml", text)

    with pytest.raises(ConfigurationError) as caught:
        read_file(path)

    assert caught.value.message.startswith(repr(str(path)))
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ('"Shrot"', "did you mean 'short'?"),
        ('"xyz"', 'Such as `assistant.request.cache = "off"`.'),
        ("1", 'Such as `assistant.request.cache = "off"`.'),
    ],
)
def test_a_word_that_is_not_accepted_is_told_the_nearest_one(value: str, hint: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.toml", f"assistant.request.cache = {value}")

    with pytest.raises(ConfigurationError, match="expects one of 'off', 'short', 'long', got") as caught:
        read_file(path)

    assert caught.value.hint == hint


def test_a_file_has_to_be_utf_8(tmp_path: Path) -> None:
    path = written(tmp_path / "a.toml", b"[user]\nname = '\xff'\n")

    with pytest.raises(InvalidFileError, match=r"a\.toml', line 2, column 9: the file is no UTF-8"):
        read_file(path)


def test_a_file_may_not_be_huge(tmp_path: Path) -> None:
    path = written(tmp_path / "a.toml", b"#" * (1024 * 1024 + 1))

    with pytest.raises(InvalidFileError, match="is larger than 1048576 bytes"):
        read_file(path)


def test_a_file_that_is_nested_without_end_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a.toml", f"a = {'[' * 100_000}")

    with pytest.raises(InvalidFileError, match="is nested too deeply"):
        read_file(path)


def test_what_cannot_be_read_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InvalidFileError, match="cannot be read: Is a directory"):
        read_file(tmp_path)


def test_files_and_pipes_are_told_from_directories(tmp_path: Path) -> None:
    file = written(tmp_path / "a.toml", "")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    assert is_file(file)
    assert is_file(pipe)
    assert not is_file(tmp_path)
    assert not is_file(tmp_path / "missing")
