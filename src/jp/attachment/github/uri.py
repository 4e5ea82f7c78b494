"""`gh` URIs: a pull request or an issue of a repository, and what of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal
from urllib.parse import quote, unquote

import msgspec

from jp.attachment.base import AttachmentError

Kind = Literal["pull", "issues"]
Part = Literal["discussion", "reviews", "diff"]

PARTS: tuple[Part, ...] = ("discussion", "reviews", "diff")
"""What a pull request consists of, in the order in which it is attached."""

_KINDS: dict[str, Kind] = {"pull": "pull", "pulls": "pull", "pr": "pull", "issue": "issues", "issues": "issues"}
_PARTS: dict[str, Part] = {"discussion": "discussion", "reviews": "reviews", "diff": "diff", "files": "diff"}
_OWNER = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,100})", re.IGNORECASE)
_NAME = re.compile(r"(?!\.{1,2}$)[a-z0-9._-]{1,100}", re.IGNORECASE)
_NUMBER = re.compile(r"0*([1-9][0-9]{0,9})")
_SHORTEST = 2
_WITH_REPOSITORY = 4

FORMS = (
    "Write 'gh:OWNER/REPOSITORY/pull/NUMBER', with '/diff', '/reviews' or '/discussion' for a part of it, or"
    " 'gh:OWNER/REPOSITORY/issues/NUMBER'; without OWNER/REPOSITORY it is that of the git remote."
)
_PARAMETERS = "'exclude=GLOB' and 'no_defaults' are for a diff, 'include_outdated' is for reviews."


class Repository(msgspec.Struct, frozen=True):
    """A repository by its names, in lower case: GitHub does not tell cases apart."""

    owner: str
    name: str

    @property
    def text(self) -> str:
        """As GitHub writes it."""
        return f"{self.owner}/{self.name}"


class GithubUri(msgspec.Struct, frozen=True, kw_only=True):
    """A `gh` URI taken apart. `repository` is None where that of the git remote is meant.

    `part` is None for everything. `exclude` are globs of files to leave out of the diff, besides the lock files unless
    `no_defaults`; comments on lines that have changed since need `include_outdated`.
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
        """What is wanted of a pull request."""
        return PARTS if self.part is None else (self.part,)

    def part_uri(self, part: Part) -> str:
        """The canonical URI of one part."""
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
        """The canonical URI."""
        repository = "" if self.repository is None else f"{self.repository.text}/"
        part = "" if self.part is None else f"/{self.part}"
        query = [f"exclude={quote(glob, safe='/*?[]!,@:+~()=')}" for glob in self.exclude]
        query += ["no_defaults"] if self.no_defaults else []
        query += ["include_outdated"] if self.include_outdated else []
        return f"gh:{repository}{self.kind}/{self.number}{part}" + (f"?{'&'.join(query)}" if query else "")


def parse_github_uri(uri: str) -> GithubUri:
    """Take `uri` apart: `gh:owner/repo/pull/1/diff`, `gh://owner/repo/issues/2`, `gh:pull/3`.

    Raises:
        AttachmentError: it is malformed.
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
        raise AttachmentError(f"{uri!r}: {'/'.join(names)!r} is no repository of GitHub", hint=FORMS)
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
    raise AttachmentError(f"{uri!r} has {written!r}, which means nothing there", hint=_PARAMETERS)


def repository_named(owner: str, name: str) -> Repository | None:
    """The repository of these names; None where no repository can be called so."""
    if _OWNER.fullmatch(owner) is None or _NAME.fullmatch(name) is None:
        return None
    return Repository(owner.lower(), name.lower())
