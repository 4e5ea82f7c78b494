from __future__ import annotations

import fcntl
import os
import stat
import threading
import tomllib
from pathlib import Path
from typing import Any

import pytest

from jp.config import edit
from jp.config.assignment import FragmentName, parse_cfg
from jp.config.edit import edited, set_in_file
from jp.config.schema import FILE
from jp.errors import ConfigurationError, StorageError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / ".jp" / "config.toml"


def outcome(data: dict[str, Any], text: str) -> dict[str, Any]:
    value = parse_cfg(text, FILE)
    assert not isinstance(value, FragmentName)
    return edited(data, value)


def test_a_file_is_made_with_its_directory(path: Path) -> None:
    set_in_file(path, ["assistant.model.id=a/b", "conversation.start_local=true"])

    assert path.read_text(encoding="utf-8") == '[assistant.model]\nid = "a/b"\n\n[conversation]\nstart_local = true\n'


def test_comments_and_formatting_are_kept(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_text("# mine\n[user]\nname   = 'a' # me\n", encoding="utf-8")

    set_in_file(path, ["user.name=b"])

    assert path.read_text(encoding="utf-8") == '# mine\n[user]\nname   = "b" # me\n'


@pytest.mark.parametrize(
    ("data", "text", "expected"),
    [
        ({}, "user.name=a", {"user": {"name": "a"}}),
        ({"user": {"name": "a"}}, "user.name:=null", {}),
        ({"inherit": True}, "inherit=false", {"inherit": False}),
        ({}, "extends+=a.toml", {"extends": ["a.toml"]}),
        (
            {"conversation": {"attachments": ["a"]}},
            "conversation.attachments+=b,c",
            {"conversation": {"attachments": ["a", "b", "c"]}},
        ),
        (
            {"conversation": {"attachments": ["a"]}},
            'conversation.attachments:+="b"',
            {"conversation": {"attachments": ["a", "b"]}},
        ),
        (
            {"conversation": {"attachments": ["a"]}},
            "conversation.attachments=b",
            {"conversation": {"attachments": ["b"]}},
        ),
        (
            {"conversation": {"attachments": {"value": ["a"], "strategy": "prepend"}}},
            "conversation.attachments+=b",
            {"conversation": {"attachments": {"value": ["a", "b"], "strategy": "prepend"}}},
        ),
        (
            {"conversation": {"attachments": {"value": ["a"], "strategy": "prepend"}}},
            "conversation.attachments.0=b",
            {"conversation": {"attachments": {"value": ["b"], "strategy": "prepend"}}},
        ),
        (
            {"conversation": {"attachments": {"value": ["a"], "discard_when_merged": True}}},
            "conversation.attachments+=b",
            {"conversation": {"attachments": {"value": ["a", "b"], "discard_when_merged": True}}},
        ),
        (
            {"assistant": {"system_prompt": {"value": "a", "discard_when_merged": True}}},
            "assistant.system_prompt+=b",
            {"assistant": {"system_prompt": {"value": "a\n\nb", "discard_when_merged": True}}},
        ),
        (
            {"conversation": {"attachments": ["a"]}},
            'conversation.attachments:+={"value": ["b"], "strategy": "replace"}',
            {"conversation": {"attachments": {"value": ["b"], "strategy": "replace"}}},
        ),
        (
            {"conversation": {"attachments": ["a", "b", "c"]}},
            "conversation.attachments.1:=null",
            {"conversation": {"attachments": ["a", "c"]}},
        ),
        (
            {"assistant": {"instructions": [{"title": "a"}]}},
            "assistant.instructions.0.items+=x",
            {"assistant": {"instructions": [{"title": "a", "items": ["x"]}]}},
        ),
        (
            {"assistant": {"instructions": [{"title": "a"}]}},
            'assistant.instructions:+={"title": "b"}',
            {"assistant": {"instructions": [{"title": "a"}, {"title": "b"}]}},
        ),
        ({}, "assistant.system_prompt+=a", {"assistant": {"system_prompt": {"value": "a", "strategy": "append"}}}),
        (
            {"assistant": {"system_prompt": "a"}},
            "assistant.system_prompt+=b",
            {"assistant": {"system_prompt": "a\n\nb"}},
        ),
        (
            {"assistant": {"system_prompt": {"value": "a", "strategy": "append", "separator": "line"}}},
            "assistant.system_prompt+=b",
            {"assistant": {"system_prompt": {"value": "a\nb", "strategy": "append", "separator": "line"}}},
        ),
        (
            {"conversation": {"tools": {"a": {"run": "ask"}}}},
            'conversation.tools:+={"a": {"enable": true}, "b": {"run": "skip"}}',
            {"conversation": {"tools": {"a": {"run": "ask", "enable": True}, "b": {"run": "skip"}}}},
        ),
        (
            {"conversation": {"tools": {"value": {"a": {"run": "ask"}}, "strategy": "replace"}}},
            "conversation.tools.a.enable=true",
            {"conversation": {"tools": {"value": {"a": {"run": "ask", "enable": True}}, "strategy": "replace"}}},
        ),
        (
            {"conversation": {"tools": {"a": {"run": "ask"}, "b": {"run": "ask"}}}},
            'conversation.tools:={"c": {"run": "skip"}}',
            {"conversation": {"tools": {"c": {"run": "skip"}}}},
        ),
        (
            {"user": {"name": "a"}, "conversation": {"attachments": ["a"]}},
            '{"user": {"name": null}, "conversation": {"attachments": ["b"]}, "assistant": {"system_prompt": "p"}}',
            {"conversation": {"attachments": ["a", "b"]}, "assistant": {"system_prompt": "p"}},
        ),
        (
            {"user": {"name": "a"}},
            '{"user": {"name": null}, "style": {}}',
            {"style": {}},
        ),
        (
            {"assistant": {"model": {"parameters": {"other": {"a": 1}}}}},
            'assistant.model.parameters.other:+={"b": 2}',
            {"assistant": {"model": {"parameters": {"other": {"a": 1, "b": 2}}}}},
        ),
    ],
)
def test_an_assignment_changes_what_the_file_says(data: dict[str, Any], text: str, expected: dict[str, Any]) -> None:
    assert outcome(data, text) == expected


@pytest.mark.parametrize(
    ("data", "text", "message"),
    [
        (
            {},
            "conversation.attachments.0=a",
            "conversation.attachments.0 is not in the file, whose list has 0 elements",
        ),
        ({"conversation": {"attachments": ["a"]}}, "conversation.attachments.1=a", "whose list has 1 elements"),
        ({"conversation": {"attachments": {"0": "a"}}}, "conversation.attachments.0=b", "changes single elements"),
        ({}, 'assistant.model.parameters.other:={"a": [null]}', "would hold null, which TOML does not have"),
        ({}, 'conversation.tools:={"a": null}', "would hold null, which TOML does not have"),
    ],
)
def test_what_a_file_cannot_hold_is_refused(data: dict[str, Any], text: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        outcome(data, text)

    assert message in caught.value.message


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["dev"], "'dev' sets nothing"),
        (["@dev"], "'@dev' sets nothing"),
        (["user.nmae=x"], "unknown key 'user.nmae'"),
        (["user.name=x", "assistant.request.max_retries=x"], "expects a whole number"),
    ],
)
def test_what_is_no_assignment_leaves_no_file(values: list[str], message: str, path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        set_in_file(path, values)

    assert message in caught.value.message
    assert not path.exists()


def test_an_invalid_file_is_not_touched(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_text("[user]\nnmae = 1\n", encoding="utf-8")

    with pytest.raises(ConfigurationError, match="line 2, column 1: unknown key"):
        set_in_file(path, ["user.name=x"])

    assert path.read_text(encoding="utf-8") == "[user]\nnmae = 1\n"


def test_a_file_that_already_says_so_is_not_written(path: Path) -> None:
    set_in_file(path, ["user.name=x"])
    before = path.stat().st_ino

    set_in_file(path, ["user.name=x"])

    assert path.stat().st_ino == before


def test_a_file_that_would_extend_what_is_not_there_stays_as_it_was(path: Path) -> None:
    set_in_file(path, ["user.name=a"])
    before = path.read_bytes()

    with pytest.raises(ConfigurationError) as caught:
        set_in_file(path, ['extends:=["missing.toml"]'])

    assert caught.value.message == f"{str(path)!r}, line 1, column 12 extends 'missing.toml', which does not exist"
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["config.toml"]


def test_a_link_may_extend_what_lies_beside_it(path: Path, tmp_path: Path) -> None:
    path.parent.mkdir(parents=True)
    (tmp_path / "real.toml").write_text("", encoding="utf-8")
    (path.parent / "more.toml").write_text("", encoding="utf-8")
    path.symlink_to(tmp_path / "real.toml")

    set_in_file(path, ['extends:=["more.toml"]'])

    assert 'extends = ["more.toml"]' in (tmp_path / "real.toml").read_text(encoding="utf-8")


def test_permissions_and_links_are_kept(path: Path, tmp_path: Path) -> None:
    real = tmp_path / "real.toml"
    real.write_text("", encoding="utf-8")
    real.chmod(0o640)
    path.parent.mkdir(parents=True)
    path.symlink_to(real)

    set_in_file(path, ["user.name=x"])

    assert path.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert tomllib.loads(real.read_text(encoding="utf-8")) == {"user": {"name": "x"}}


def test_a_write_that_fails_leaves_the_file_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_in_file(path, ["user.name=x"])
    monkeypatch.setattr(edit.os, "fsync", full_disk)

    with pytest.raises(StorageError, match=r"config\.toml' could not be written: No space left on device"):
        set_in_file(path, ["user.name=y"])

    assert tomllib.loads(path.read_text(encoding="utf-8")) == {"user": {"name": "x"}}
    assert [entry.name for entry in path.parent.iterdir()] == ["config.toml"]


def test_a_directory_that_cannot_be_written_is_reported(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_in_file(path, ["user.name=x"])
    monkeypatch.setattr(edit.os, "open", only_reading)

    with pytest.raises(StorageError, match="could not be written: Permission denied"):
        set_in_file(path, ["user.name=y"])


_open = os.open


def only_reading(path: str | Path, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
    if flags & os.O_CREAT:
        raise PermissionError(13, "Permission denied")
    return _open(path, flags, mode, dir_fd=dir_fd)


def full_disk(_: int) -> None:
    raise OSError(28, "No space left on device")


def test_a_directory_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")

    with pytest.raises(StorageError, match="cannot be used: "):
        set_in_file(tmp_path / "file" / "config.toml", ["user.name=x"])


def test_two_edits_at_once_both_count(path: Path) -> None:
    path.parent.mkdir(parents=True)
    held = os.open(path.parent, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    threads = [
        threading.Thread(target=set_in_file, args=(path, [f"conversation.attachments+=file:{number}"]))
        for number in range(4)
    ]

    for thread in threads:
        thread.start()
    os.close(held)
    for thread in threads:
        thread.join()

    data = tomllib.loads(path.read_text(encoding="utf-8"))
    assert sorted(data["conversation"]["attachments"]) == [f"file:{number}" for number in range(4)]
