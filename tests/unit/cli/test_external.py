from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from jp.cli.app import find_executable, replace_process
from jp.cli.command_line.advice import unknown_command
from jp.cli.command_line.commands import ROOT, Group
from jp.errors import ExitCode, JpError


def executable(path: Path, text: str = "#!/bin/sh\n", mode: int = 0o755) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


def test_the_first_executable_on_the_path_is_taken(tmp_path: Path) -> None:
    executable(tmp_path / "a" / "jp-other", mode=0o644)
    (tmp_path / "b" / "jp-other").mkdir(parents=True)
    expected = executable(tmp_path / "c" / "jp-other")
    executable(tmp_path / "d" / "jp-other")

    search_path = os.pathsep.join(str(tmp_path / name) for name in ("missing", "a", "b", "c", "d"))

    assert find_executable("other", search_path) == str(expected)


@pytest.mark.parametrize("name", ["", "-x", "../a/jp-other", "a/b", "others"])
def test_other_words_are_not_looked_for(name: str, tmp_path: Path) -> None:
    executable(tmp_path / "jp-other")

    assert find_executable(name, str(tmp_path)) is None


@pytest.mark.parametrize("directory", ["", ".", "here"])
def test_directories_that_depend_on_where_one_stands_do_not_count(
    directory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executable(tmp_path / directory / "jp-other")
    monkeypatch.chdir(tmp_path)

    assert find_executable("other", directory) is None


def test_a_program_that_the_system_cannot_run_is_an_error(tmp_path: Path) -> None:
    program = executable(tmp_path / "jp-other", "no interpreter is named here")

    with pytest.raises(JpError, match=r"cannot run '.*jp-other': Exec format error"):
        replace_process(str(program), [])

    assert signal.getsignal(signal.SIGPIPE) == signal.SIG_IGN


CONVERSATION = ROOT.get("c")


@pytest.mark.parametrize(
    ("word", "path", "message", "hint"),
    [
        ("qurey", ("jp",), "jp has no command 'qurey'", "did you mean 'jp query'? jp --help lists the commands"),
        (
            "print",
            ("jp",),
            "jp has no command 'print'",
            "did you mean 'jp attachment print' or 'jp conversation print'? jp --help lists the commands",
        ),
        (
            "xyzzy",
            ("jp",),
            "jp has no command 'xyzzy'",
            "`jp query xyzzy` asks the model; jp --help lists the commands",
        ),
        (
            "why is it?",
            ("jp", "conversation"),
            "jp conversation has no command 'why is it?'",
            'to ask something: jp "QUESTION"',
        ),
        (
            "\x1b",
            ("jp",),
            "jp has no command '\\x1b'",
            "`jp query '\x1b'` asks the model; jp --help lists the commands",
        ),
        (
            "pth",
            ("jp", "conversation"),
            "jp conversation has no command 'pth'",
            "did you mean 'jp conversation path'? jp conversation --help lists the commands",
        ),
    ],
)
def test_a_word_that_is_no_command_gets_the_nearest(word: str, path: tuple[str, ...], message: str, hint: str) -> None:
    group = ROOT if len(path) == 1 else CONVERSATION
    assert isinstance(group, Group)
    error = unknown_command(word, path, group)

    assert (error.message, error.hint, error.exit_code) == (message, hint, ExitCode.USAGE)
