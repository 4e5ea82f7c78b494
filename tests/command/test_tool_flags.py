"""`--tool`, `--no-tool` and `--tool-use`: what a request offers, and what sticks to a conversation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from failures import check_failure
from forked import run_jp
from jp.conversation.entries import ConfigDelta
from jp.tool.toolbox import AUTOMATIC
from stage import make_workspace, only_log

SETTINGS = """
[conversation.tools.fs_list_files]
enable = "explicit"
[conversation.tools.fs_grep_files]
enable = "always"
"""
FIRST = ("query", "--new", "hello")
NEXT = ("query", "--id", "last", "more")


def offered(work: Path, *arguments: str) -> list[str]:
    """The tools of the request that would be sent, but those that it offers by itself."""
    result = run_jp(*NEXT, "--dry-run", "--format", "json", *arguments, cwd=work)
    assert result.code == 0, result
    names = [tool["name"] for tool in json.loads(result.stdout)["request"]["body"].get("tools", [])]
    return [name for name in names if name not in AUTOMATIC]


def test_tools_are_offered_and_taken_away_and_that_sticks(tmp_path: Path) -> None:
    work = make_workspace(tmp_path / "work", settings=SETTINGS)
    run_jp("workspace", "trust", "--yes", cwd=work)
    run_jp(*FIRST, cwd=work)

    assert offered(work) == ["fs_grep_files"]
    assert offered(work, "-T") == ["fs_grep_files"]
    assert offered(work, "--tool=fs_list_files", "-t=fs_read_file") == [
        "fs_grep_files",
        "fs_list_files",
        "fs_read_file",
    ]
    assert offered(work, "-t=fs_*", "-T=fs_[cdm]*") == ["fs_grep_files", "fs_read_file"]
    assert run_jp(*NEXT, "-T", "-t=fs_read_file", cwd=work).code == 0
    assert offered(work) == ["fs_grep_files", "fs_read_file"]
    deltas = [entry.delta for entry in only_log(work) if isinstance(entry, ConfigDelta)]
    assert deltas == [{"conversation": {"tools": {"fs_read_file": {"enable": True}}}}]
    assert offered(work, "--no-tool=fs_read_file", "--no-tool=fs_read_file") == ["fs_grep_files"]


def test_whether_a_tool_has_to_be_called_holds_for_one_turn(tmp_path: Path) -> None:
    work = make_workspace(tmp_path / "work")
    run_jp(*FIRST, cwd=work)

    asked = run_jp(*NEXT, "--tool-use", "none", cwd=work)

    assert asked.code == 0
    assert not [entry for entry in only_log(work) if isinstance(entry, ConfigDelta)]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ("-t=fs_raed_file", 2, ("--tool names an unknown tool 'fs_raed_file'", "did you mean 'fs_read_file'?")),
        ("-T=git_*", 2, ("--no-tool 'git_*' matches no tool", "the tools are: ")),
        ("-T=fs_grep_files", 2, ("--no-tool cannot take 'fs_grep_files' away", "enable=false")),
        ("-t fs_read_file", 2, ("'fs_read_file' is a tool's name, but would be part of the query", "--tool=fs_read")),
        ("-u fs_read_file", 3, ("'assistant.tool_choice' is 'fs_read_file', but the enabled", "--tool=NAME")),
    ],
)
def test_what_cannot_be_offered_is_an_error(arguments: str, code: int, words: tuple[str, ...], tmp_path: Path) -> None:
    work = make_workspace(tmp_path / "work", settings=SETTINGS)
    run_jp("workspace", "trust", "--yes", cwd=work)

    check_failure(run_jp("query", *arguments.split(), "why?", cwd=work), code, *words)
