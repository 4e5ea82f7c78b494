"""Which repository of a GitHub server a directory is a clone of, as its git remotes say."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from jp.attachment.base import AttachmentError
from jp.attachment.github.uri import FORMS, Repository, repository_named

_SCP = re.compile(r"(?:[^/@:]+@)?(?P<host>[^/@:]+):(?P<path>(?!//).+)")
_URL = re.compile(
    r"(?:ssh|git|https?|git\+ssh)://(?:[^/@]*@)?(?P<host>\[[^\]/]+\]|[^/:]+)(?::[0-9]*)?/(?P<path>.+)", re.IGNORECASE
)
_PREFERRED = ("upstream", "github", "origin")
_TIMEOUT_SECS = 10.0
# A git hook sets these for the repository that it runs in, relative to another directory.
_OF_HOOKS = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"})


def remote_repository(address: str) -> tuple[str, Repository] | None:
    """The host and the repository that a remote's address names; None where it is no repository of a server.

    `git@host:owner/name.git`, `ssh://git@host:22/owner/name`, `https://user:password@host/owner/name.git/`.
    """
    match = _URL.fullmatch(address) or _SCP.fullmatch(address)
    if match is None:
        return None
    names = match["path"].strip("/").removesuffix(".git").split("/")
    repository = repository_named(*names) if len(names) == len(("owner", "name")) else None
    return None if repository is None else (server_of(match["host"]), repository)


def server_of(host: str) -> str:
    """The host under which people know the server that they reach at `host`."""
    lower = host.lower()
    # GitHub answers SSH on the port of HTTPS under a name of its own.
    return "github.com" if lower in {"ssh.github.com", "www.github.com"} else lower


def find_repository(directory: Path, host: str, uri: str) -> Repository:
    """The repository at `host` that the clone around `directory` belongs to; `uri` is for messages.

    Of several remotes the one that `gh repo set-default` chose counts, else `upstream`, `github`, `origin`.

    Raises:
        AttachmentError: there is none, or several that nothing tells apart.
    """
    remotes = _remotes(directory, uri)
    found = {name: parsed for name, address in remotes.items() if (parsed := remote_repository(address)) is not None}
    here = {name: repository for name, (server, repository) in found.items() if server == host}
    if not here:
        servers = sorted({server for server, _ in found.values()})
        others = f"; they lead to {', '.join(map(repr, servers))}" if servers else ""
        message = f"{uri!r}: no git remote of {str(directory)!r} leads to a repository at {host!r}{others}"
        raise AttachmentError(message, hint=FORMS)
    if len(set(here.values())) == 1:
        return next(iter(here.values()))
    chosen = [_default(directory), *_PREFERRED]
    best = next((name for name in chosen if name in here), None)
    if best is None:
        listed = ", ".join(f"{repository.text!r}" for repository in here.values())
        raise AttachmentError(f"{uri!r}: the git remotes lead to several repositories: {listed}", hint=FORMS)
    return here[best]


def _remotes(directory: Path, uri: str) -> dict[str, str]:
    """The addresses from which remotes are fetched, by their names, rewritten as git's configuration says."""
    output, complaint = _git(directory, "remote", "-v")
    if complaint:
        message = f"{uri!r} names no repository, and git knows none: {complaint}"
        raise AttachmentError(message, hint=FORMS)
    remotes: dict[str, str] = {}
    for line in output.splitlines():
        name, tab, rest = line.partition("\t")
        address, _, direction = rest.rpartition(" ")
        # Behind these, a partial clone says which objects it leaves out.
        if direction.startswith("["):
            address, _, direction = address.rpartition(" ")
        if tab and direction == "(fetch)":
            remotes.setdefault(name, address)
    return remotes


def _default(directory: Path) -> str:
    """The remote that `gh repo set-default` chose; empty where it did not."""
    output, _ = _git(directory, "config", "--get-regexp", r"^remote\..*\.gh-resolved$")
    key, _, value = output.partition("\n")[0].rpartition(" ")
    return key.removeprefix("remote.").removesuffix(".gh-resolved") if value == "base" else ""


def _git(directory: Path, *arguments: str) -> tuple[str, str]:
    """What git says, and what it complains of."""
    import subprocess

    try:
        done = subprocess.run(  # noqa: S603  the program and its options are fixed
            ["git", "-C", str(directory), *arguments],  # noqa: S607  git is where the user's PATH has it
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            env=_environment(os.environ),
            timeout=_TIMEOUT_SECS,
        )
    except FileNotFoundError:
        return "", "there is no program 'git'"
    except OSError as error:
        return "", f"'git' cannot be run: {error.strerror or error}"
    except subprocess.TimeoutExpired:
        return "", f"'git' did not answer in {_TIMEOUT_SECS:.0f} seconds"
    complaint = done.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
    return done.stdout.decode("utf-8", "replace"), complaint.removeprefix("fatal: ") if done.returncode else ""


def _environment(environment: Mapping[str, str]) -> dict[str, str]:
    from jp.process.environment import scrubbed

    settings = [name for name in environment if name.startswith("GIT_CONFIG")]
    passed = scrubbed(environment, named=settings)
    kept = {name: value for name, value in passed.items() if name not in _OF_HOOKS}
    return {**kept, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}
