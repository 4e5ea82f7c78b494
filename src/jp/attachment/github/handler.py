"""The `gh` scheme: pull requests and issues of GitHub."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import assert_never

from msgspec.structs import replace

from jp.attachment.base import AttachmentError, Declaration, Resolution, ResolveContext
from jp.attachment.files.failures import in_units
from jp.attachment.github.api import (
    Comment,
    GithubApi,
    Issue,
    LineComment,
    PullRequest,
    Review,
    Timeouts,
    find_server,
    open_api,
)
from jp.attachment.github.pages import (
    FileDiff,
    count_outdated,
    file_diffs,
    issue_page,
    pull_request_page,
    reason_to_leave_out,
    reviews_page,
)
from jp.attachment.github.repository import (
    FORMS,
    GithubUri,
    Part,
    Repository,
    find_repository,
    find_token,
    parse_github_uri,
)
from jp.conversation.resource import Annotations, Resource

_TOTAL = 10
"""How many times the bound of one resource everything that is read for a declaration may have."""

_EXAMPLES = 3


class GithubHandler:
    """`gh`: what a pull request changes and what is said about it, or an issue."""

    def __init__(self, timeouts: Timeouts | None = None) -> None:
        self._timeouts = Timeouts() if timeouts is None else timeouts

    def canonical(self, uri: str, context: ResolveContext) -> str:
        """With the repository, that of the git remote where none is named.

        Raises:
            AttachmentError: `uri` is malformed, or nothing says which repository is meant.
        """
        found = parse_github_uri(uri)
        if found.repository is None:
            host = find_server(os.environ).host
            found = replace(found, repository=find_repository(context.root, host, uri))
        return found.text

    async def resolve(
        self, declaration: Declaration, context: ResolveContext, *, excludes: Sequence[Declaration] = ()
    ) -> Resolution:
        """Ask GitHub.

        Raises:
            AttachmentError: see the port.
        """
        uri = parse_github_uri(declaration.uri)
        if uri.repository is None:
            raise AttachmentError(f"{declaration.written!r} names no repository", hint=FORMS)
        parts, exclude = _wanted(uri, excludes)
        if exclude is not None:
            notice = f"{declaration.written!r} attaches nothing: {exclude.written!r} leaves it out"
            return Resolution(resources=(), notices=(notice,))
        server = find_server(os.environ)
        token = await find_token(os.environ, server.host)
        limit = _TOTAL * context.max_bytes
        written = declaration.written
        async with open_api(server, token, written=written, max_bytes=limit, timeouts=self._timeouts) as api:
            reading = _Reading(api, uri, repository=uri.repository, written=written, max_bytes=context.max_bytes)
            resources = [await reading.issue()] if uri.kind == "issues" else await reading.pull_request(parts)
        return Resolution(resources=tuple(resources), notices=tuple(reading.notices))


def _wanted(uri: GithubUri, excludes: Sequence[Declaration]) -> tuple[list[Part], Declaration | None]:
    """The parts of a pull request that are not excluded; if nothing is left, what excludes it."""
    plain = replace(uri, exclude=(), no_defaults=False, include_outdated=False)
    by_uri = {exclude.uri: exclude for exclude in excludes}
    whole = by_uri.get(uri.text) or by_uri.get(replace(plain, part=None).text)
    if whole is not None or uri.kind == "issues":
        return [], whole
    found: dict[Part, Declaration | None] = {
        part: by_uri.get(uri.part_uri(part)) or by_uri.get(plain.part_uri(part)) for part in uri.parts
    }
    wanted: list[Part] = [part for part in uri.parts if found[part] is None]
    return wanted, None if wanted else found[uri.parts[0]]


class _Reading:
    """Reads what one declaration names."""

    def __init__(self, api: GithubApi, uri: GithubUri, *, repository: Repository, written: str, max_bytes: int) -> None:
        self._api = api
        self._uri = uri
        self._written = written
        self._max_bytes = max_bytes
        self._name = f"{repository.text}#{uri.number}"
        self._root = f"/repos/{repository.text}"
        self.notices: list[str] = []

    async def issue(self) -> Resource:
        """The issue with its comments."""
        path = f"{self._root}/issues/{self._uri.number}"
        subject = f"issue {self._name}"
        issue = await self._api.record(path, Issue, subject)
        comments = await self._api.records(f"{path}/comments", Comment, f"comments of {subject}")
        return self._resource(
            self._uri.text, issue_page(self._name, issue, comments), title=issue.title, updated=issue.updated_at
        )

    async def pull_request(self, parts: Iterable[Part]) -> list[Resource]:
        """The parts that have something. What a part has not, a notice says."""
        found = [await self._part(part) for part in parts]
        return [resource for resource in found if resource is not None]

    async def _part(self, part: Part) -> Resource | None:
        match part:
            case "discussion":
                return await self._discussion()
            case "reviews":
                return await self._reviews()
            case "diff":
                return await self._diff()
            case _:
                assert_never(part)

    async def _discussion(self) -> Resource:
        subject = f"pull request {self._name}"
        pull = await self._api.record(f"{self._root}/pulls/{self._uri.number}", PullRequest, subject)
        path = f"{self._root}/issues/{self._uri.number}/comments"
        comments = await self._api.records(path, Comment, f"comments of {subject}")
        return self._resource(
            self._uri.part_uri("discussion"),
            pull_request_page(self._name, pull, comments),
            title=pull.title,
            updated=pull.updated_at,
        )

    async def _reviews(self) -> Resource | None:
        path = f"{self._root}/pulls/{self._uri.number}"
        subject = f"reviews of pull request {self._name}"
        reviews = await self._api.records(f"{path}/reviews", Review, subject)
        comments = await self._api.records(f"{path}/comments", LineComment, subject)
        with_outdated = self._uri.include_outdated
        outdated = 0 if with_outdated else count_outdated(comments)
        if outdated:
            counted = "1 comment" if outdated == 1 else f"{outdated:,} comments"
            self._notice(f"left out {counted} on lines that have changed since; '?include_outdated' keeps them")
        page = reviews_page(self._name, reviews, comments, outdated=with_outdated)
        if page:
            return self._resource(self._uri.part_uri("reviews"), page, title=f"Reviews of {self._name}")
        self._notice("there are no reviews")
        return None

    async def _diff(self) -> Resource | None:
        path = f"{self._root}/pulls/{self._uri.number}"
        subject = f"diff of pull request {self._name}"
        text = await self._api.diff(path, subject)
        files = list(file_diffs(text))
        if text.strip() and not files:
            raise AttachmentError(f"what came for the {subject} is no diff", hint=FORMS)
        lock_files = not self._uri.no_defaults
        kept: list[str] = []
        gone: dict[str, list[FileDiff]] = {}
        for file in files:
            if reason := reason_to_leave_out(file.path, self._uri.exclude, lock_files=lock_files):
                gone.setdefault(reason, []).append(file)
            else:
                kept.append(file.text)
        for reason, left_out in gone.items():
            self._notice(f"left out {_listed(left_out)}: {reason}")
        if kept:
            text = "".join(kept)
            return self._resource(self._uri.part_uri("diff"), text, title=f"Diff of {self._name}", kind="text/x-diff")
        self._notice("nothing of its diff is left" if files else "it changes nothing")
        return None

    def _notice(self, text: str) -> None:
        self.notices.append(f"{self._written!r}: {text}")

    def _resource(
        self, uri: str, text: str, *, title: str, updated: str | None = None, kind: str = "text/markdown"
    ) -> Resource:
        size = len(text.encode())
        if size > self._max_bytes:
            message = f"{uri!r} has {in_units(size)}; an attachment has at most {in_units(self._max_bytes)}"
            smaller = "Leave files out with '?exclude=GLOB'" if kind == "text/x-diff" else "Attach another part of it"
            raise AttachmentError(message, hint=f"{smaller}, or raise 'conversation.max_attachment_bytes'.")
        return Resource(
            uri=uri,
            mime_type=kind,
            annotations=None if updated is None else Annotations(last_modified=updated),
            name=uri.partition("?")[0].removeprefix("gh:"),
            title=title,
            text=text,
        )


def _listed(files: Sequence[FileDiff]) -> str:
    names = ", ".join(repr(file.path) for file in files[:_EXAMPLES])
    more = f" and {len(files) - _EXAMPLES:,} more" if len(files) > _EXAMPLES else ""
    return f"{names}{more} ({sum(file.line_count for file in files):,} lines)"
