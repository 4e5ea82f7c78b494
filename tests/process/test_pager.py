"""Long results on a real terminal: the pager of the user, and where there is none."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from running import run_jp
from terminal import jp_at_terminal

LONG = ("query", "--help")
MARKING = "sed s/^/|/"
PAGED = {"PAGER": MARKING}
SCREEN = (80, 24)


def shown(*arguments: str, cwd: Path, env: Mapping[str, str], size: tuple[int, int] = SCREEN) -> list[str]:
    with jp_at_terminal(*arguments, cwd=cwd, env=env, size=size) as terminal:
        assert terminal.finish() == 0
        return [line for line in terminal.shown.splitlines() if line.strip()]


@pytest.mark.parametrize("command", [LONG, ("model", "ls", "openai"), ("config", "show")])
def test_what_is_longer_than_the_terminal_goes_through_the_pager(command: tuple[str, ...], tmp_path: Path) -> None:
    assert all(line.startswith("|") for line in shown(*command, cwd=tmp_path, env=PAGED) if "note: " not in line)


def test_what_fits_does_not(tmp_path: Path) -> None:
    assert not any(line.startswith("|") for line in shown(*LONG, cwd=tmp_path, size=(80, 200), env=PAGED))
    assert not any(line.startswith("|") for line in shown("--version", cwd=tmp_path, env=PAGED))


def test_a_pager_for_jp_alone_goes_first(tmp_path: Path) -> None:
    lines = shown(*LONG, cwd=tmp_path, env={"PAGER": "false", "JP_PAGER": MARKING})

    assert lines[0].startswith("|")


@pytest.mark.parametrize(
    "env",
    [
        {"PAGER": "cat"},
        {"PAGER": ""},
        {"PAGER": "'unbalanced"},
        {"PAGER": "/no/such/program"},
        {"PAGER": MARKING, "TERM": "dumb"},
        {"PAGER": MARKING, "GIT_INDEX_FILE": "index"},
    ],
    ids=["cat", "empty", "unbalanced", "missing", "dumb", "git"],
)
def test_without_a_pager_everything_is_printed(env: dict[str, str], tmp_path: Path) -> None:
    lines = shown(*LONG, cwd=tmp_path, env=env)

    assert not any(line.startswith("|") for line in lines)
    assert "--attach" in "".join(lines)


def test_a_pager_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    assert len(shown(*LONG, cwd=tmp_path, env={"PAGER": "head -n 1"})) == 1


def test_less_is_told_to_leave_if_all_fits(tmp_path: Path) -> None:
    assert shown(*LONG, cwd=tmp_path, env={"PAGER": "sh -c 'echo $LESS; cat >/dev/null'"}) == ["FRX"]


def test_a_script_that_reads_its_input_is_never_paged(tmp_path: Path) -> None:
    with (
        Path(os.devnull).open(encoding="utf-8") as nothing,
        jp_at_terminal(*LONG, cwd=tmp_path, env=PAGED, stdin=nothing.fileno()) as terminal,
    ):
        assert terminal.finish() == 0
        assert "|" not in terminal.shown[:1]

    assert not run_jp(*LONG, cwd=tmp_path, env=PAGED).stdout.startswith("|")
