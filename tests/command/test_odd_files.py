"""What is no file where jp reads one by its name: nothing waits for it, and nothing reads without end."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from forked import run_jp
from running import Result, home_beside
from stage import copied, logs, make_workspace

_TERABYTE = 1 << 40


def pipe(path: Path) -> None:
    os.mkfifo(path)


def listening(path: Path) -> None:
    # Their addresses are short.
    here = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(_TERABYTE)


def directory(path: Path) -> None:
    path.mkdir()


KINDS = (pipe, listening, device, huge, directory)


def stage(tmp_path: Path, make: Callable[[Path], None], where: str) -> tuple[Path, Path]:
    """A workspace with a conversation, and what is made in the place of the file at `where`, where there may be one."""
    root = make_workspace(tmp_path / "work")
    assert run_jp("query", "hello", cwd=root).code == 0
    (log,) = logs(root)
    home = home_beside(root)
    path = Path(where.format(root=root, log=log.parent, home=home))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    make(path)
    return root, path


def check(done: Result, code: int, path: Path) -> None:
    assert done.code == code, done
    assert path.name in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize(
    ("where", "arguments"),
    [
        ("{home}/config/config.toml", ()),
        ("{root}/.jp/config.toml", ()),
        ("{root}/.jp.toml", ()),
        ("{root}/.jp/scenarios/test.toml", ()),
        ("{root}/.jp/config/odd.toml", ("--cfg", "@.jp/config/odd.toml")),
        ("{root}/odd.json", ("--schema", "@odd.json")),
    ],
)
def test_no_configuration_keeps_a_query_waiting(
    tmp_path: Path, make: Callable[[Path], None], where: str, arguments: tuple[str, ...]
) -> None:
    root, path = stage(tmp_path, make, where)
    done = run_jp("query", *arguments, "hi", cwd=root)

    if done.code != 0 or make is not directory:
        check(done, 3, path)


@pytest.mark.parametrize("make", KINDS)
def test_what_is_extended_is_a_file(tmp_path: Path, make: Callable[[Path], None]) -> None:
    root, path = stage(tmp_path, make, "{root}/.jp/more.toml")
    config = root / ".jp" / "config.toml"
    config.write_text('extends = ["more.toml"]\n' + config.read_text(encoding="utf-8"), encoding="utf-8")

    check(run_jp("query", "hi", cwd=root), 3, path)


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("name", ["events.jsonl", "base_config.json", "metadata.json"])
def test_no_conversation_keeps_a_command_waiting(tmp_path: Path, make: Callable[[Path], None], name: str) -> None:
    root, path = stage(tmp_path, make, f"{{log}}/{name}")

    for command in (("query", "--id", "last", "hi"), ("conversation", "ls"), ("conversation", "print", "last")):
        done = run_jp(*command, cwd=root)
        assert done.code in {0, 1, 2}, done
        assert "Traceback" not in done.stderr
        assert not done.code or path.name in done.stderr or "conversation" in done.stderr


@pytest.mark.parametrize("make", KINDS)
def test_nothing_that_jp_has_written_keeps_a_command_waiting(tmp_path: Path, make: Callable[[Path], None]) -> None:
    prepared = make_workspace(tmp_path / "prepared", settings="[editor]\ncmd = 'true'\n")
    run_jp("workspace", "trust", "--yes", cwd=prepared)
    run_jp("query", "hello", cwd=prepared)
    assert run_jp("keys", "set", "anthropic", "--stdin", cwd=prepared, stdin="sk-test-0123456789").code == 0
    homes = [prepared, home_beside(prepared)]
    written = [path for home in homes for path in sorted(home.rglob("*")) if path.is_file()]
    assert {"events.jsonl", "metadata.json", "base_config.json", "config.toml"} <= {path.name for path in written}
    assert "trust" in {path.parent.name for path in written}, written
    for number, path in enumerate(written):
        root = copied(prepared, tmp_path / f"work{number}")
        home = next(home for home in homes if path.is_relative_to(home))
        odd = (root if home == prepared else home_beside(root)) / path.relative_to(home)
        odd.unlink(missing_ok=True)
        make(odd)
        for command in (("query", "hi"), ("conversation", "ls"), ("workspace", "show"), ("keys", "ls")):
            done = run_jp(*command, cwd=root)
            assert done.code in {0, 1, 3}, (path, command, done)
            assert "Traceback" not in done.stderr, (path, command, done)


@pytest.mark.parametrize("make", KINDS)
def test_no_arguments_of_a_tool_keep_it_waiting(tmp_path: Path, make: Callable[[Path], None]) -> None:
    root, path = stage(tmp_path, make, "{root}/odd.json")

    check(run_jp("tool", "run", "fs_list_files", "--arguments", "@odd.json", cwd=root), 2, path)


def test_a_pipe_of_the_shell_is_read(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "work")
    reader, writer = os.pipe()
    os.write(writer, b'[assistant.model]\nid = "script/test"\n')
    os.close(writer)
    try:
        done = run_jp("config", "show", "--cfg", f"@/proc/{os.getpid()}/fd/{reader}", cwd=root)
    finally:
        os.close(reader)

    assert done.code == 0, done.stderr
