"""Completion in the shells that are installed here, at a terminal with a person who presses the Tab key."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forked import search_path
from jp.cli.command_line.commands import ROOT
from jp.cli.completion.candidates import answer
from running import TIMEOUT_SECS, home_beside, isolated_environment, run_jp
from stage import make_workspace
from terminal import at_terminal

SHELLS = {
    "bash": ("bash --norc --noprofile -i", "PS1='ready> '; show() { printf '<%s>' \"$@\"; echo .; }"),
    "zsh": ("zsh -f -i", "PS1='ready> '; autoload -U compinit; compinit -u -D; show() { printf '<%s>' \"$@\"; echo .; }"),
    "fish": ("fish --no-config -i", "function fish_prompt; echo 'ready> '; end; function show; printf '<%s>' $argv; echo .; end"),
}
LOAD = {"bash": 'eval "$(jp completion bash)"', "zsh": 'eval "$(jp completion zsh)"', "fish": "jp completion fish | source"}
HOSTILE = "$(touch /tmp/x)`id`;'\"\\ &|<>*?{a,b}~!#[z]%@:=,\u202e\x1b[31m\x07\n\ttail"
TAB, HOME_KEY = "\t", "\x01"

shells = pytest.mark.parametrize(
    "shell",
    [pytest.param(name, marks=pytest.mark.skipif(shutil.which(name) is None, reason=f"no {name} here")) for name in SHELLS],
)


def conversation(root: Path, number: int, title: str, **labels: str) -> str:
    digits = 17_800_000_000 + number
    directory = root / ".jp/conversations" / f"{digits}-x"
    directory.mkdir(parents=True)
    metadata = json.dumps({"title": title, "labels": labels})
    (directory / "metadata.json").write_text(metadata, encoding="utf-8")
    return f"jp-c{digits}"


def typed(shell: str, line: str, root: Path) -> list[str]:
    """Return the words that a shell passes to a command after a person has typed `line` and pressed Tab."""
    program, setup = SHELLS[shell]
    with at_terminal(f"exec {program}", cwd=root, env={"PATH": search_path(), "TERM": "xterm"}) as terminal:
        terminal.expect(r"[$%>#] ")
        terminal.type(f"{setup}\r")
        terminal.expect("ready> ")
        terminal.type(f"{LOAD[shell]}; echo lo''aded\r")
        terminal.expect("loaded\n")
        terminal.type(f"{line}{TAB}{HOME_KEY}show \r")
        shown = terminal.expect(r"\n[^\n]*<jp>(?:<[^\n]*>)*\.\n")
        terminal.type("exit\r")
        terminal.finish()
    return re.findall(r"<([^\n]*?)>(?=[<.])", shown)


@shells
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("jp conv", ["jp", "conversation"]),
        ("jp c compac", ["jp", "c", "compact"]),
        ("jp query --dry", ["jp", "query", "--dry-run"]),
        ("jp query -m son", ["jp", "query", "-m", "sonnet"]),
        ("jp q --model=anthropic/claude-son", ["jp", "q", "--model=anthropic/claude-sonnet-5-5"]),
        ("jp -c style.code.th", ["jp", "-c", "style.code.theme="]),
        ("jp c show jp-c178000000", ["jp", "c", "show", "jp-c17800000001"]),
        ("jp q --id @ar", ["jp", "q", "--id", "@area=lexer"]),
        ("jp c label add area=", ["jp", "c", "label", "add", "area=lexer"]),
        ("jp q --prompt com", ["jp", "q", "--prompt", "commit"]),
        ("jp q --tool=fs_gr", ["jp", "q", "--tool=fs_grep_files"]),
        ("jp c compact --profile mi", ["jp", "c", "compact", "--profile", "mine"]),
        ("jp q --attach no", ["jp", "q", "--attach", "notes one.md"]),
        ("jp a add gh", ["jp", "a", "add", "gh:"]),
        ("jp keys set anth", ["jp", "keys", "set", "anthropic"]),
    ],
)
def test_tab_completes_commands_options_and_their_values(
    shell: str, line: str, words: list[str], tmp_path: Path
) -> None:
    root = make_workspace(tmp_path / "w", settings='[compaction.profiles.mine]\nrules = []\n')
    conversation(root, 1, "The lexer", area="lexer")
    (root / "notes one.md").write_text("x", encoding="utf-8")
    prompts = home_beside(root) / "config/prompts"
    prompts.mkdir(parents=True)
    (prompts / "commit.md").write_text("Write.", encoding="utf-8")

    assert typed(shell, line, root) == words
