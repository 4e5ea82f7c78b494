"""`gh` URIs, the repository of a git clone, and the token for its server."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal
from urllib.parse import quote, unquote

import msgspec

from jp.attachment.base import AttachmentError

Kind = Literal["pull", "issues"]
Part = Literal["discussion", "reviews", "diff"]

PARTS: tuple[Part, ...] = ("discussion", "reviews", "diff")
"""Parts of a pull request, in the order of their resources."""

_KINDS: dict[str, Kind] = {"pull": "pull", "pulls": "pull", "pr": "pull", "issue": "issues", "issues": "issues"}
_PARTS: dict[str, Part] = {"discussion": "discussion", "reviews": "reviews", "diff": "diff", "files": "diff"}
_OWNER = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,100})", re.IGNORECASE)
_NAME = re.compile(r"(?!\.{1,2}$)[a-z0-9._-]{1,100}", re.IGNORECASE)
_NUMBER = re.compile(r"0*([1-9][0-9]{0,9})")
_SHORTEST = 2
_WITH_REPOSITORY = 4

FORMS = (
    "write 'gh:OWNER/REPOSITORY/pull/NUMBER', with '/diff', '/reviews' or '/discussion' for a part of it, or"
    " 'gh:OWNER/REPOSITORY/issues/NUMBER'; the default of OWNER/REPOSITORY is the git remote"
)
_PARAMETERS = "'exclude=GLOB' and 'no_defaults' are for a diff, 'include_outdated' is for reviews."


class Repository(msgspec.Struct, frozen=True):
    """A repository, its names in lower case: GitHub ignores case."""

    owner: str
    name: str

    @property
    def text(self) -> str:
        """Return `owner/name`."""
        return f"{self.owner}/{self.name}"


class GithubUri(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed `gh` URI. `repository` is None for that of the git remote.

    `part` is None for all parts. `exclude` are globs of files that the diff skips, besides lock files unless
    `no_defaults` is set. `include_outdated` keeps comments on lines that have changed since.
    """

    repository: Repository | None
    kind: Kind
    number: int
    part: Part | None = None
    exclude: tuple[str, ...] = ()
    no_defaults: bool = False
    include_outdated: bool = False

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return the selected parts of a pull request."""
        return PARTS if self.part is None else (self.part,)

    def part_uri(self, part: Part) -> str:
        """Return the canonical URI of one part."""
        concerned = msgspec.structs.replace(
            self,
            part=part,
            exclude=self.exclude if part == "diff" else (),
            no_defaults=self.no_defaults and part == "diff",
            include_outdated=self.include_outdated and part == "reviews",
        )
        return concerned.text

    @property
    def text(self) -> str:
        """Return the canonical URI."""
        repository = "" if self.repository is None else f"{self.repository.text}/"
        part = "" if self.part is None else f"/{self.part}"
        query = [f"exclude={quote(glob, safe='/*?[]!,@:+~()=')}" for glob in self.exclude]
        query += ["no_defaults"] if self.no_defaults else []
        query += ["include_outdated"] if self.include_outdated else []
        return f"gh:{repository}{self.kind}/{self.number}{part}" + (f"?{'&'.join(query)}" if query else "")


def parse_github_uri(uri: str) -> GithubUri:
    """Parse a URI such as `gh:owner/repo/pull/1/diff`, `gh://owner/repo/issues/2` or `gh:pull/3`.

    Raises:
        AttachmentError: `uri` is malformed.
    """
    if "#" in uri:
        raise AttachmentError(f"{uri!r} has a fragment, but single comments cannot be attached", hint=FORMS)
    path, _, query = uri.partition(":")[2].partition("?")
    names = [unquote(name) for name in path.split("/") if name]
    owned = len(names) >= _WITH_REPOSITORY
    found = _subject(names[2:] if owned else names, _repository(names[:2], uri) if owned else None, uri)
    for parameter in filter(None, query.split("&")):
        found = _with(found, uri, parameter)
    return msgspec.structs.replace(found, exclude=tuple(sorted(set(found.exclude))))


def _repository(names: Sequence[str], uri: str) -> Repository:
    repository = repository_named(*names)
    if repository is None:
        raise AttachmentError(f"{uri!r}: {'/'.join(names)!r} is not a GitHub repository", hint=FORMS)
    return repository


def _subject(names: Sequence[str], repository: Repository | None, uri: str) -> GithubUri:
    kind = _KINDS.get(names[0].lower()) if names else None
    number = _NUMBER.fullmatch(names[1]) if len(names) >= _SHORTEST else None
    if kind is None or number is None:
        raise AttachmentError(f"{uri!r} names neither a pull request nor an issue", hint=FORMS)
    subject = GithubUri(repository=repository, kind=kind, number=int(number[1]))
    if len(names) == _SHORTEST:
        return subject
    part = _PARTS.get(names[_SHORTEST].lower()) if kind == "pull" and len(names) == _SHORTEST + 1 else None
    if part is None:
        what = "a pull request" if kind == "pull" else "an issue"
        raise AttachmentError(f"{uri!r}: {what} has no {'/'.join(names[_SHORTEST:])!r}", hint=FORMS)
    return msgspec.structs.replace(subject, part=part)


def _with(found: GithubUri, uri: str, parameter: str) -> GithubUri:
    name, equals, encoded = parameter.partition("=")
    value = unquote(encoded)
    parts = found.parts if found.kind == "pull" else ()
    is_set = {"": True, "true": True, "false": False}.get(value)
    if name == "exclude" and value and "diff" in parts:
        return msgspec.structs.replace(found, exclude=(*found.exclude, value))
    if name == "no_defaults" and is_set is not None and "diff" in parts:
        return msgspec.structs.replace(found, no_defaults=is_set)
    if name == "include_outdated" and is_set is not None and "reviews" in parts:
        return msgspec.structs.replace(found, include_outdated=is_set)
    written = f"{name}{equals}{value}"
    raise AttachmentError(f"{uri!r} has {written!r}, which is not supported there", hint=_PARAMETERS)


def repository_named(owner: str, name: str) -> Repository | None:
    """Return the repository with these names; None if they are not valid."""
    if _OWNER.fullmatch(owner) is None or _NAME.fullmatch(name) is None:
        return None
    return Repository(owner.lower(), name.lower())


_SCP = re.compile(r"(?:[^/@:]+@)?(?P<host>[^/@:]+):(?P<path>(?!//).+)")
_URL = re.compile(
    r"(?:ssh|git|https?|git\+ssh)://(?:[^/@]*@)?(?P<host>\[[^\]/]+\]|[^/:]+)(?::[0-9]*)?/(?P<path>.+)", re.IGNORECASE
)
_PREFERRED = ("upstream", "github", "origin")
_TIMEOUT_SECS = 10.0
# A git hook sets these for the repository that it runs in, relative to another directory.
_OF_HOOKS = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"})


def remote_repository(address: str) -> tuple[str, Repository] | None:
    """Return the host and the repository in the address of a git remote; None if it has none.

    `git@host:owner/name.git`, `ssh://git@host:22/owner/name`, `https://user:password@host/owner/name.git/`.
    """
    match = _URL.fullmatch(address) or _SCP.fullmatch(address)
    if match is None:
        return None
    names = match["path"].strip("/").removesuffix(".git").split("/")
    repository = repository_named(*names) if len(names) == len(("owner", "name")) else None
    return None if repository is None else (server_of(match["host"]), repository)


def server_of(host: str) -> str:
    """Return the host name of the server's web pages; `host` may be another name of the server."""
    lower = host.lower()
    # GitHub has another host name for SSH over the HTTPS port.
    return "github.com" if lower in {"ssh.github.com", "www.github.com"} else lower


def find_repository(directory: Path, host: str, uri: str) -> Repository:
    """Return the repository at `host` of the git clone that contains `directory`; `uri` is for messages.

    Of several remotes, use the one set with `gh repo set-default`, else `upstream`, `github` or `origin`.

    Raises:
        AttachmentError: no remote leads to `host`, or the choice is ambiguous.
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
    """Return the fetch addresses of the remotes by name, rewritten by git's configuration."""
    output, complaint = _git(directory, "remote", "-v")
    if complaint:
        message = f"{uri!r} names no repository, and git has no remote: {complaint}"
        raise AttachmentError(message, hint=FORMS)
    remotes: dict[str, str] = {}
    for line in output.splitlines():
        name, tab, rest = line.partition("\t")
        address, _, direction = rest.rpartition(" ")
        # A partial clone appends the filter of its objects.
        if direction.startswith("["):
            address, _, direction = address.rpartition(" ")
        if tab and direction == "(fetch)":
            remotes.setdefault(name, address)
    return remotes


def _default(directory: Path) -> str:
    """Return the remote set with `gh repo set-default`; empty without one."""
    output, _ = _git(directory, "config", "--get-regexp", r"^remote\..*\.gh-resolved$")
    key, _, value = output.partition("\n")[0].rpartition(" ")
    return key.removeprefix("remote.").removesuffix(".gh-resolved") if value == "base" else ""


def _git(directory: Path, *arguments: str) -> tuple[str, str]:
    """Return the output of git, and its error message if it failed."""
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
        return "", "'git' is not installed"
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


_VARIABLES = ("GITHUB_TOKEN", "GH_TOKEN")
_PROGRAM = "gh"
_REACHES_KEYRING = ("DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR")
_MOST_BYTES = 64 * 1024
_OF_PROGRAM = ("GH_CONFIG_DIR", "GH_HOST", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN", *_REACHES_KEYRING)
_TOKEN = re.compile(r"[!-~]+")


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """A token. `source` names its origin, for messages."""

    value: str
    source: str

    @property
    def text(self) -> str:
        """Return a description without the value."""
        return f"the token of {self.source}"

    def __repr__(self) -> str:
        return f"Token(source={self.source!r})"


async def find_token(environment: Mapping[str, str], host: str) -> Token | None:
    """Return the token of a variable, else the one of `gh auth token` for `host`; None without one.

    Raises:
        AttachmentError: a variable has characters that are not valid in a header.
    """
    for name in _VARIABLES:
        if value := environment.get(name, "").strip():
            if _TOKEN.fullmatch(value) is None:
                message = f"{name} has characters that are not valid in a token"
                raise AttachmentError(message, hint=f"set it again, or `unset {name}` for requests without a token")
            return Token(value=value, source=name)

    import shutil

    program = shutil.which(_PROGRAM, path=environment.get("PATH"))
    value = "" if program is None else await _of_program(program, host, environment)
    return Token(value=value, source="`gh auth token`") if value else None


async def _of_program(program: str, host: str, environment: Mapping[str, str]) -> str:
    from jp.process.environment import scrubbed
    from jp.process.guardian import OutputLimits, ProcessLimits, Program, run

    passed = scrubbed(environment, named=_OF_PROGRAM)
    asked = Program(words=(program, "auth", "token", "--hostname", host), directory=".", environment=passed)
    output = OutputLimits(kept=_MOST_BYTES, most=_MOST_BYTES)
    try:
        ended = await run(asked, output=output, limits=ProcessLimits(timeout_secs=_TIMEOUT_SECS))
    except OSError:
        return ""
    value = (ended.stdout.head + ended.stdout.tail).decode("utf-8", "replace").strip()
    return value if ended.exit_code == 0 and _TOKEN.fullmatch(value) else ""
