"""jp in a hook of git, run by somebody who types `git commit` at a terminal."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from jp.conversation.entries import ChatRequest
from running import home_beside
from shell import shell_at_terminal
from stage import entries_of, logs, make_workspace

HOOK = """#!/bin/sh
git diff --cached | jp query "write a commit message" > "$1" && jp query < /dev/tty > "$1.empty" 2>&1
exit 0
"""
IDENTITY = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "EDITOR": "false",
}


@pytest.mark.parametrize("session", ["", "hook"])
def test_a_query_in_a_hook_begins_a_conversation_of_its_own_and_the_terminal_keeps_its_active_one(
    session: str, tmp_path: Path
) -> None:
    make_workspace(tmp_path)
    subprocess.run(["git", "init", "-q", "."], cwd=tmp_path, check=True, capture_output=True)
    hook = tmp_path / ".git/hooks/prepare-commit-msg"
    setting = f"export JP_SESSION={session}\n" if session else ""
    hook.write_text(HOOK.replace("\n", f"\n{setting}", 1), encoding="utf-8")
    hook.chmod(0o700)
    (tmp_path / "a.txt").write_text("a line\n", encoding="utf-8")

    command = (
        "jp query typed; git add a.txt; git commit --no-edit -q; jp query again; exec git --no-pager log -1 --format=%B"
    )
    with shell_at_terminal(command, cwd=tmp_path, env=IDENTITY) as terminal:
        assert terminal.finish() == 0, terminal.shown

    asked = sorted([e.content for e in entries_of(path) if isinstance(e, ChatRequest)] for path in logs(tmp_path))
    assert [len(requests) for requests in asked] == [2, 1]
    assert asked[0] == ["typed", "again"]
    assert asked[1][0].startswith("write a commit message\n\ndiff --git a/a.txt")
    assert "You said: write a commit message" in terminal.shown
    (refused,) = (tmp_path / ".git").glob("*.empty")
    assert "there is no query" in refused.read_text(encoding="utf-8")
    named = list((home_beside(tmp_path) / "data").glob("**/env-JP_SESSION-*.json"))
    assert len(named) == bool(session)
