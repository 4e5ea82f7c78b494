from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from jp.attachment.base import AttachmentError
from jp.attachment.github_repository import Repository, find_repository, remote_repository


def git(directory: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(directory), *arguments], check=True, capture_output=True)


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git repository that this machine's own configuration says nothing about."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    git(tmp_path, "init", "-q")
    return tmp_path


def add_remotes(clone: Path, **addresses: str) -> None:
    for name, address in addresses.items():
        git(clone, "remote", "add", name, address)


def found(clone: Path, host: str = "github.com") -> str:
    return find_repository(clone, host, "gh:pull/1").text


@pytest.mark.parametrize(
    ("address", "host", "repository"),
    [
        ("git@github.com:Own/Repo.git", "github.com", "own/repo"),
        ("github.com:own/repo", "github.com", "own/repo"),
        ("git@github.com:/own/repo.git/", "github.com", "own/repo"),
        ("ssh://git@github.com/own/repo.git", "github.com", "own/repo"),
        ("ssh://git@ssh.github.com:443/own/repo.git", "github.com", "own/repo"),
        ("https://github.com/own/repo", "github.com", "own/repo"),
        ("https://user:pass@www.GitHub.com/own/re.po.git/", "github.com", "own/re.po"),
        ("git://ghe.example.org:9418/own/repo.git", "ghe.example.org", "own/repo"),
        ("http://[::1]:8080/own/repo", "[::1]", "own/repo"),
    ],
)
def test_a_remote_names_a_host_and_a_repository(address: str, host: str, repository: str) -> None:
    assert remote_repository(address) == (host, Repository(*repository.split("/")))


@pytest.mark.parametrize(
    "address",
    [
        "",
        "/srv/own/repo.git",
        "../own/repo",
        "file:///own/repo",
        "https://github.com/repo",
        "git@github.com:a/b/c",
        "x:y",
    ],
)
def test_what_is_no_repository_of_a_server_is_none(address: str) -> None:
    assert remote_repository(address) is None


def test_the_only_remote_counts_whatever_it_is_called(clone: Path) -> None:
    add_remotes(clone, mine="git@github.com:own/repo.git", local="/srv/repo.git", lab="git@gitlab.com:a/b")

    assert found(clone) == "own/repo"


def test_a_clone_is_found_from_below_and_in_a_hook(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_remotes(clone, origin="git@github.com:own/repo.git")
    (clone / "sub").mkdir()
    monkeypatch.setenv("GIT_DIR", ".git")

    assert found(clone / "sub") == "own/repo"


def test_of_several_remotes_the_one_that_pull_requests_go_to_counts(clone: Path) -> None:
    add_remotes(clone, origin="git@github.com:me/repo", upstream="https://github.com/own/repo", z="git@github.com:z/z")

    assert found(clone) == "own/repo"
    git(clone, "config", "remote.z.gh-resolved", "base")
    assert found(clone) == "z/z"


def test_git_rewrites_addresses_as_it_is_configured(clone: Path) -> None:
    git(clone, "config", "url.git@github.com:.insteadOf", "work:")
    add_remotes(clone, origin="work:own/repo.git")
    git(clone, "config", "remote.origin.promisor", "true")
    git(clone, "config", "remote.origin.partialclonefilter", "blob:none")

    assert found(clone) == "own/repo"


@pytest.mark.parametrize(
    ("remotes", "message"),
    [
        ({}, "no git remote of '{}' leads to a repository at 'github.com'"),
        ({"origin": "git@gitlab.com:a/b"}, "leads to a repository at 'github.com'; they lead to 'gitlab.com'"),
        (
            {"a": "git@github.com:a/b", "c": "git@github.com:c/d"},
            "the git remotes lead to several repositories: 'a/b', 'c/d'",
        ),
    ],
)
def test_where_remotes_do_not_tell_the_repository_has_to_be_named(
    remotes: dict[str, str], message: str, clone: Path
) -> None:
    add_remotes(clone, **remotes)

    with pytest.raises(AttachmentError) as raised:
        found(clone)

    assert raised.value.message.startswith("'gh:pull/1': ")
    assert message.format(clone) in raised.value.message
    assert "gh:OWNER/REPOSITORY/pull/NUMBER" in raised.value.hint


def test_outside_of_a_clone_git_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))

    with pytest.raises(AttachmentError, match="names no repository, and git has no remote: not a git repository"):
        found(tmp_path)


def test_without_git_the_repository_has_to_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(AttachmentError, match="git has no remote: 'git' is not installed"):
        found(tmp_path)


def test_a_git_that_cannot_be_run_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").write_bytes(b"\0")
    (tmp_path / "bin" / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    with pytest.raises(AttachmentError, match="'git' cannot be run: Exec format error"):
        found(tmp_path)


def test_a_git_that_does_not_answer_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "git").write_text("#!/bin/sh\nexec /bin/sleep 600\n", encoding="utf-8")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("jp.attachment.github_repository._TIMEOUT_SECS", 0.05)

    with pytest.raises(AttachmentError, match="'git' did not answer"):
        found(tmp_path)
