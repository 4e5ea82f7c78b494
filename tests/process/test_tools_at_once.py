"""Many tools at once, some of which misbehave; and tools where nobody can be asked."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import running
from forked import run_jp, start_jp
from jp.conversation.entries import AnyEntry, ToolCallRequest, ToolCallResponse
from jp.conversation.resource import TextBlock
from running import JP, home_beside
from shell import shell_at_terminal
from stage import make_workspace, only_log

MOST_KIB = 200 * 1024

MEASURED = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(code)
"""
"""Runs a program and says how much memory it took: with what starts it counts, and the runner of the tests is large."""

TOOL = """
[conversation.tools.NAME]
enable = true
source = "local"
run = "unattended"
command = { program = "COMMAND", shell = true }
"""
ASKED = """
[conversation.tools.write]
enable = true
source = "local"
command = { program = "touch written", shell = true }
"""
CALLING = """
[[reply]]
when = { contains = "again" }
text = "Once more."

[[reply]]
when = { any_tool = true }
text = "I was told: {{result}}"

[[reply]]
calls = [CALLS]
"""
HOOK = """#!/bin/sh
jp query "write a commit message" </dev/null >message 2>said
echo $? >code
"""
IDENTITY = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


def stage(root: Path, settings: str, *names: str) -> Path:
    """A workspace whose model calls these tools at once; the user's own configuration declares them."""
    calls = ", ".join(f'{{ name = "{name}" }}' for name in names)
    make_workspace(root, CALLING.replace("CALLS", calls).replace("any_tool = true", f'tool = "{names[-1]}"'))
    config = home_beside(root) / "config" / "config.toml"
    config.parent.mkdir()
    config.write_text(settings, encoding="utf-8")
    return root


def tool(name: str, command: str, more: str = "") -> str:
    return TOOL.replace("NAME", name).replace("COMMAND", command) + more


def answers(entries: list[AnyEntry]) -> dict[str, ToolCallResponse]:
    """The response of each call, by the tool's name."""
    names = {entry.id: entry.name for entry in entries if isinstance(entry, ToolCallRequest)}
    return {names[entry.request]: entry for entry in entries if isinstance(entry, ToolCallResponse)}


def text_of(response: ToolCallResponse) -> str:
    return "".join(block.text or "" for block in response.content if isinstance(block, TextBlock))


def test_of_ten_tools_one_hangs_one_floods_and_one_is_killed_and_the_turn_ends_in_little_memory(tmp_path: Path) -> None:
    fine = [f"fine{number}" for number in range(7)]
    settings = "".join(tool(name, f"echo {name}") for name in fine)
    settings += tool("hangs", "sleep 60", "timeout_secs = 0.5\n")
    settings += tool("floods", "head -c 1000000000 /dev/zero")
    settings += tool("dies", "kill -9 $$")
    stage(tmp_path, settings, "hangs", "floods", "dies", *fine)

    done = running.run_jp("query", "hi", cwd=tmp_path, program=(sys.executable, "-c", MEASURED, *JP))

    assert done.code == 0, done
    assert int(done.stderr.splitlines()[-1]) < MOST_KIB
    given = answers(only_log(tmp_path))
    assert {name: text_of(given[name]) for name in fine} == {name: f"{name}\n" for name in fine}
    assert {name for name, response in given.items() if response.is_error} >= {"hangs", "dies"}
    assert "0.5 s" in text_of(given["hangs"])
    assert text_of(given["floods"]).startswith("It was stopped: it printed more than 256 MiB.")


def test_results_that_are_there_are_in_the_log_when_jp_is_killed(tmp_path: Path) -> None:
    settings = tool("fine", "echo fine") + tool("hangs", "sleep 3")
    stage(tmp_path, settings, "hangs", "fine")

    process = start_jp("query", "hi", cwd=tmp_path)
    process.stdin.close()
    while not process.stderr.readline().startswith(b"\xe2\x86\x90 fine"):
        assert process.poll() is None
    process.kill()
    process.wait()
    process.stdout.close()
    process.stderr.close()
    killed = only_log(tmp_path)
    after = run_jp("query", "--id", "last", "again", cwd=tmp_path)

    assert {name: text_of(response) for name, response in answers(killed).items()} == {"fine": "fine\n"}
    assert (after.code, after.stdout) == (0, "Once more.\n")
    assert text_of(answers(only_log(tmp_path))["hangs"]) == "interrupted; effects unknown"


def test_a_signal_ends_the_tools_with_the_turn_and_says_what_is_known_of_them(tmp_path: Path) -> None:
    stage(tmp_path, tool("fine", "echo fine") + tool("hangs", "echo $$ >pid; exec sleep 60"), "hangs", "fine")

    process = start_jp("query", "hi", cwd=tmp_path)
    process.stdin.close()
    while not process.stderr.readline().startswith(b"\xe2\x86\x90 fine"):
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    process.stderr.read()
    assert process.wait() == 143
    process.stdout.close()
    process.stderr.close()

    given = answers(only_log(tmp_path))
    assert {name: text_of(response) for name, response in given.items()} == {
        "fine": "fine\n",
        "hangs": "interrupted; effects unknown",
    }
    pid = int((tmp_path / "pid").read_text(encoding="utf-8"))
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_tool_that_needs_consent_never_runs_in_a_hook_of_git_although_there_is_a_terminal(tmp_path: Path) -> None:
    stage(tmp_path, ASKED, "write")
    subprocess.run(["git", "init", "-q", "."], cwd=tmp_path, check=True, capture_output=True)
    hook = tmp_path / ".git/hooks/pre-commit"
    hook.write_text(HOOK, encoding="utf-8")
    hook.chmod(0o700)

    with shell_at_terminal("git commit --allow-empty -q -m x", cwd=tmp_path, env=IDENTITY) as terminal:
        assert terminal.finish() == 0, terminal.shown

    assert (tmp_path / "code").read_text(encoding="utf-8") == "8\n"
    assert not (tmp_path / "written").exists()
    assert "'write' needs the user's approval, and nobody can be asked here" in text_of(
        answers(only_log(tmp_path))["write"]
    )
    assert "denied, so not run: write" in (tmp_path / "said").read_text(encoding="utf-8")
