"""Pull requests and issues as attachments: `gh:` URIs on the command line and in configuration files."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from failures import check_failure, json_error
from forked import run_jp
from github_server import as_json, github
from jp.conversation.entries import ChatRequest
from loopback import Loopback
from running import Result
from stage import logs, make_workspace, only_log

TOKEN = "ghp_sEcReT"
PARTS = ("discussion", "reviews", "diff")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A workspace in a clone of `own/repo`."""
    root = make_workspace(tmp_path / "work")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    with (root / ".git" / "config").open("a", encoding="utf-8") as config:
        config.write('[remote "origin"]\n\turl = ssh://git@127.0.0.1/Own/Repo.git\n')
    return root


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback(otherwise=github()) as running:
        yield running


def jp(work: Path, server: Loopback, *arguments: str, token: str = TOKEN) -> Result:
    return run_jp(*arguments, cwd=work, env={"GITHUB_API_URL": server.url, "GITHUB_TOKEN": token})


def test_a_pull_request_of_the_git_remote_is_attached(work: Path, server: Loopback) -> None:
    result = jp(work, server, "query", "-a", "gh:pull/1", "review it")

    assert (result.code, result.stdout) == (0, "You said: review it\n")
    assert result.stderr.splitlines() == [
        "note: 'gh:pull/1': skipped 1 comment on lines that have changed since; '?include_outdated' keeps them",
        "note: 'gh:pull/1': skipped 'uv.lock' (7 lines): lock files are, without 'no_defaults'",
    ]
    request = next(entry for entry in only_log(work) if isinstance(entry, ChatRequest))
    assert request.attachments == ("gh:own/repo/pull/1",)
    assert [resource.uri for resource in request.resources] == [f"gh:own/repo/pull/1/{part}" for part in PARTS]
    stored = b"".join(file.read_bytes() for file in (work / ".jp").rglob("*") if file.is_file())
    assert TOKEN.encode() not in stored


def test_an_issue_is_declared_listed_printed_and_removed(work: Path, server: Loopback) -> None:
    jp(work, server, "query", "hello")

    added = jp(work, server, "attachment", "add", "gh:issue/2")
    pending = jp(work, server, "attachment", "ls")
    printed = jp(work, server, "attachment", "print")
    asked = jp(work, server, "query", "--id", ".", "why?")
    sent = jp(work, server, "attachment", "ls")
    requests = len(server.requests)
    again = jp(work, server, "query", "--id", ".", "really?")
    removed = jp(work, server, "attachment", "rm", "gh://own/repo/issues/2")

    assert (added.stdout, pending.stdout) == ("gh:own/repo/issues/2\n", "pending   gh:own/repo/issues/2\n")
    assert printed.stdout.startswith("── own/repo/issues/2 (52 bytes, text/markdown)\n# Crash\n")
    copy = "turn 1, 52 B, 13 tokens, not checked"
    assert (asked.code, sent.stdout) == (0, f"sent      {copy}  gh:own/repo/issues/2\n")
    assert again.code == 0
    assert len(server.requests) == requests
    assert removed.stdout == ""


def test_a_dry_run_shows_the_parts(work: Path, server: Loopback) -> None:
    result = jp(work, server, "query", "--dry-run", "-a", "gh:pull/1", "-a", "!gh:pull/1/diff", "review it")

    attached = [line.split()[1] for line in result.stdout.splitlines() if line.startswith("attached")]
    assert attached == ["own/repo/pull/1/discussion", "own/repo/pull/1/reviews"]
    assert logs(work) == []


def test_what_a_file_declares_asks_github_only_with_trust(work: Path, server: Loopback) -> None:
    (work / ".jp.toml").write_text('[conversation]\nattachments = ["gh:issues/2"]\n', encoding="utf-8")

    refused = jp(work, server, "query", "x")
    before = len(server.requests)
    trusted = jp(work, server, "workspace", "trust", "--yes")
    asked = jp(work, server, "query", "x")

    check_failure(refused, 3, "conversation.attachments = 'gh:issues/2'")
    assert before == 0
    assert "conversation.attachments = 'gh:issues/2'" in trusted.stdout
    assert asked.code == 0
    assert len(server.requests) == 2


def test_a_failure_comes_before_anything_is_written_and_never_shows_the_token(work: Path, server: Loopback) -> None:
    missing = jp(work, server, "query", "-a", "gh:pull/7", "x")
    malformed = jp(work, server, "query", "-a", "gh:commit/7", "x")
    verbose = jp(work, server, "-vv", "query", "-a", "gh:pull/7", "x")
    unsendable = jp(work, server, "query", "-a", "gh:pull/1", "x", token="a b")
    as_data = jp(work, server, "--format", "json", "query", "-a", "gh:pull/7", "x")

    check_failure(missing, 10, "GitHub has no pull request own/repo#7, or it is private", "the token of GITHUB_TOKEN")
    check_failure(malformed, 10, "'gh:commit/7' names neither a pull request nor an issue")
    check_failure(unsendable, 10, "GITHUB_TOKEN has characters that are not valid in a token")
    assert json_error(as_data)["exit_code"] == 10
    assert TOKEN not in missing.stderr + verbose.stderr + as_data.stderr
    assert logs(work) == []


def test_a_rate_limit_says_when_it_ends(work: Path) -> None:
    limited = as_json({}, ("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1770000000"), status=403)

    with Loopback(otherwise=limited) as server:
        result = jp(work, server, "query", "-a", "gh:pull/1", "x", token="")

    check_failure(result, 10, "used up until 2026-02-02 02:40:00 UTC", "`gh auth login`")


def test_a_workspace_without_a_remote_says_how_to_name_the_repository(tmp_path: Path, server: Loopback) -> None:
    root = make_workspace(tmp_path / "work")

    result = jp(root, server, "query", "-a", "gh:pull/1", "x")

    check_failure(
        result, 10, "'gh:pull/1' names no repository, and git has no remote", "gh:OWNER/REPOSITORY/pull/NUMBER"
    )
