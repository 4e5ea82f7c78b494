"""The `gh` scheme: pull requests, diffs and issues of GitHub as Markdown."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import assert_never

import msgspec
from msgspec.structs import replace

from jp.attachment.base import AttachmentError, Declaration, Resolution, ResolveContext, format_size
from jp.attachment.conversation import fenced
from jp.attachment.github_api import (
    Comment,
    GithubApi,
    Issue,
    Label,
    LineComment,
    PullRequest,
    Review,
    Timeouts,
    User,
    find_server,
    open_api,
)
from jp.attachment.github_repository import (
    FORMS,
    GithubUri,
    Part,
    Repository,
    find_repository,
    find_token,
    parse_github_uri,
)
from jp.conversation.resource import Annotations, Resource

LOCK_FILES = frozenset({
    "Cargo.lock",
    "Gemfile.lock",
    "Pipfile.lock",
    "bun.lock",
    "composer.lock",
    "deno.lock",
    "flake.lock",
    "go.sum",
    "mix.lock",
    "npm-shrinkwrap.json",
    "package-lock.json",
    "packages.lock.json",
    "pdm.lock",
    "pnpm-lock.yaml",
    "poetry.lock",
    "pubspec.lock",
    "uv.lock",
    "yarn.lock",
})
"""Generated files, which a diff skips by default."""

_START = re.compile(r"^diff --git ", re.MULTILINE)
_AROUND_TWICE = len("a/ b/")


class FileDiff(msgspec.Struct, frozen=True):
    """The diff of one file. `path` is the new one, or the old one of a deleted file."""

    path: str
    text: str

    @property
    def line_count(self) -> int:
        """Return the number of lines."""
        return self.text.count("\n")


def file_diffs(text: str) -> Iterator[FileDiff]:
    """Yield the files of a diff from git or GitHub. Text before the first one is dropped."""
    starts = [match.start() for match in _START.finditer(text)]
    for start, end in pairwise([*starts, len(text)]):
        piece = text[start:end]
        yield FileDiff(path=_path(piece), text=piece)


def _path(piece: str) -> str:
    """Return the path of a file's diff. For a mode change or a binary file only the first line has it, twice."""
    first, *lines = piece.partition("\n@@ ")[0].split("\n")
    for opening, prefix in (("+++ ", "b/"), ("rename to ", ""), ("--- ", "a/")):
        names = [_unquoted(line.removeprefix(opening)) for line in lines if line.startswith(opening)]
        if names and names[0] != "/dev/null":
            return names[0].removeprefix(prefix)
    both = first.removeprefix("diff --git ")
    if both.endswith('"'):
        return _unquoted(both[both.rindex(' "') + 1 :]).removeprefix("b/")
    return both[len(both) - (len(both) - _AROUND_TWICE) // 2 :]


def _unquoted(name: str) -> str:
    """Return a path without git's quotes and escapes, which it has if it contains special characters."""
    plain = name.rstrip("\t\r")
    if not plain.startswith('"'):
        return plain
    escaped = plain.strip('"').encode()
    return escaped.decode("unicode_escape", "replace").encode("latin-1", "replace").decode("utf-8", "replace")


def reason_to_skip(path: str, globs: Sequence[str], *, lock_files: bool) -> str:
    """Return why the diff skips the file at `path`; empty if it does not. With `lock_files`, it skips those.

    A glob without a slash matches names at any depth, one that ends in a slash everything below a directory; in other
    globs `*` matches slashes too.
    """
    name = path.rpartition("/")[2]
    for glob in globs:
        pattern = f"{glob}*" if glob.endswith("/") else glob
        if fnmatchcase(path if "/" in pattern else name, pattern):
            return f"'exclude={glob}'"
    return "lock files are, without 'no_defaults'" if lock_files and name in LOCK_FILES else ""


_VERDICTS = {
    "APPROVED": "approved",
    "CHANGES_REQUESTED": "changes requested",
    "COMMENTED": "comments",
    "DISMISSED": "dismissed",
}


def pull_request_page(name: str, pull: PullRequest, comments: Sequence[Comment]) -> str:
    """Return title, state, branches, labels, description and comments; `name` is of the form `owner/name#12`."""
    state = "merged" if pull.merged_at else "draft" if pull.draft and pull.state == "open" else pull.state
    branches = f"{pull.head.label or pull.head.ref} into {pull.base.ref}"
    said = [f"pull request {name}", state, *_by(pull.user, pull.created_at), branches]
    return "".join(_page(pull, said, comments))


def issue_page(name: str, issue: Issue, comments: Sequence[Comment]) -> str:
    """Return title, state, labels, description and comments."""
    state = f"{issue.state} as {issue.state_reason.replace('_', ' ')}" if issue.state_reason else issue.state
    return "".join(_page(issue, [f"issue {name}", state, *_by(issue.user, issue.created_at)], comments))


def reviews_page(name: str, reviews: Sequence[Review], comments: Sequence[LineComment], *, outdated: bool) -> str:
    """Return verdicts, then comments by file and line, each with its lines and replies; empty without any.

    Without `outdated`, skip comments on lines that have changed since.
    """
    pieces = [*_verdicts(reviews), *_threads(comments, outdated=outdated)]
    return f"# Reviews of {name}\n" + "".join(pieces) if pieces else ""


def count_outdated(comments: Sequence[LineComment]) -> int:
    """Return the number of comments in threads on lines that have changed since."""
    return sum(len(thread) for thread in _by_thread(comments) if thread[0].is_outdated)


def _page(issue: Issue, said: Sequence[str], comments: Sequence[Comment]) -> Iterator[str]:
    yield f"# {_line(issue.title)}\n\n{_capital(', '.join(said))}\n"
    labels = [label.name if isinstance(label, Label) else label for label in issue.labels]
    if named := ", ".join(_line(label) for label in labels if label):
        yield f"Labels: {named}\n"
    if issue.html_url:
        yield f"<{_line(issue.html_url)}>\n"
    yield f"\n{_text(issue.body) or 'No description.'}\n"
    for comment in comments:
        yield f"\n## {', '.join(['Comment', *_by(comment.user, comment.created_at)])}\n\n{_text(comment.body)}\n"


def _verdicts(reviews: Sequence[Review]) -> Iterator[str]:
    for review in reviews:
        body = _text(review.body)
        # A comment on a line belongs to a review without text; a pending review is not submitted yet.
        if review.state == "PENDING" or (review.state == "COMMENTED" and not body):
            continue
        verdict = _VERDICTS.get(review.state, review.state.lower())
        yield f"\n## {', '.join(['Review', *_by(review.user, review.submitted_at or ''), verdict])}\n"
        yield f"\n{body}\n" if body else ""


def _by_thread(comments: Sequence[LineComment]) -> list[list[LineComment]]:
    """Return the threads by file and line; a reply to a deleted comment begins a thread."""
    threads: dict[int, list[LineComment]] = {}
    for comment in sorted(comments, key=lambda comment: comment.id):
        root = comment.in_reply_to_id
        threads.setdefault(comment.id if root is None or root not in threads else root, []).append(comment)
    return sorted(threads.values(), key=lambda thread: (thread[0].path, _end(thread[0]) or 0, thread[0].id))


def _threads(comments: Sequence[LineComment], *, outdated: bool) -> Iterator[str]:
    for thread in _by_thread(comments):
        first = thread[0]
        if first.is_outdated and not outdated:
            continue
        yield f"\n## {_place(first)}\n"
        if first.diff_hunk:
            yield "\n" + fenced(first.diff_hunk, "diff")
        for comment in thread:
            who = ", ".join(["Comment", *_by(comment.user, comment.created_at)])
            yield f"\n### {who}\n\n{_text(comment.body)}\n"


def _end(comment: LineComment) -> int | None:
    return comment.original_line if comment.line is None else comment.line


def _place(comment: LineComment) -> str:
    path = _line(comment.path)
    end = _end(comment)
    if comment.subject_type == "file" or end is None:
        return path
    start = comment.original_start_line if comment.line is None else comment.start_line
    lines = f"{path}:{end}" if start is None or start == end else f"{path}:{start}-{end}"
    said = [lines]
    if comment.side == "LEFT":
        said.append("before the change")
    if comment.is_outdated:
        said.append("outdated")
    return ", ".join(said)


def _by(user: User | None, moment: str) -> list[str]:
    """Return author and time; a deleted account is `ghost`, as on GitHub's pages."""
    name = "ghost" if user is None else _line(user.login)
    return [f"by {name}", moment] if moment else [f"by {name}"]


def _text(body: str | None) -> str:
    return (body or "").replace("\r\n", "\n").strip("\n")


def _line(text: str) -> str:
    return " ".join(text.split())


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


_TOTAL = 10
"""Maximum bytes read for a declaration, as a multiple of the maximum of one resource."""

_EXAMPLES = 3


class GithubHandler:
    """The handler of `gh`: pull requests with diff, reviews and comments, and issues."""

    def __init__(self, timeouts: Timeouts | None = None) -> None:
        self._timeouts = Timeouts() if timeouts is None else timeouts

    def canonical(self, uri: str, context: ResolveContext) -> str:
        """Return the URI with a repository, by default that of the git remote.

        Raises:
            AttachmentError: `uri` is malformed, or no git remote names a repository.
        """
        found = parse_github_uri(uri)
        if found.repository is None:
            host = find_server(os.environ).host
            found = replace(found, repository=find_repository(context.root, host, uri))
        return found.text

    async def resolve(
        self, declaration: Declaration, context: ResolveContext, *, excludes: Sequence[Declaration] = ()
    ) -> Resolution:
        """Request the parts from GitHub.

        Raises:
            AttachmentError: see `AttachmentHandler.resolve`.
        """
        uri = parse_github_uri(declaration.uri)
        if uri.repository is None:
            raise AttachmentError(f"{declaration.written!r} names no repository", hint=FORMS)
        parts, exclude = _wanted(uri, excludes)
        if exclude is not None:
            notice = f"{declaration.written!r} attaches nothing: {exclude.written!r} excludes it"
            return Resolution(resources=(), notices=(notice,))
        server = find_server(os.environ)
        token = await find_token(os.environ, server.host)
        limit = _TOTAL * context.max_bytes
        written = declaration.written
        async with open_api(server, token, written=written, max_bytes=limit, timeouts=self._timeouts) as api:
            reading = _Reader(api, uri, repository=uri.repository, written=written, max_bytes=context.max_bytes)
            resources = [await reading.issue()] if uri.kind == "issues" else await reading.pull_request(parts)
        return Resolution(resources=tuple(resources), notices=tuple(reading.notices))


def _wanted(uri: GithubUri, excludes: Sequence[Declaration]) -> tuple[list[Part], Declaration | None]:
    """Return the parts of a pull request that are not excluded; if there are none, the exclude."""
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


class _Reader:
    """Reads the resources of one declaration."""

    def __init__(self, api: GithubApi, uri: GithubUri, *, repository: Repository, written: str, max_bytes: int) -> None:
        self._api = api
        self._uri = uri
        self._written = written
        self._max_bytes = max_bytes
        self._name = f"{repository.text}#{uri.number}"
        self._root = f"/repos/{repository.text}"
        self.notices: list[str] = []

    async def issue(self) -> Resource:
        """Return the issue with its comments."""
        path = f"{self._root}/issues/{self._uri.number}"
        subject = f"issue {self._name}"
        issue = await self._api.record(path, Issue, subject)
        comments = await self._api.records(f"{path}/comments", Comment, f"comments of {subject}")
        return self._resource(
            self._uri.text, issue_page(self._name, issue, comments), title=issue.title, updated=issue.updated_at
        )

    async def pull_request(self, parts: Iterable[Part]) -> list[Resource]:
        """Return the parts that have content, and add a notice for each other one."""
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
        include_outdated = self._uri.include_outdated
        outdated = 0 if include_outdated else count_outdated(comments)
        if outdated:
            counted = "1 comment" if outdated == 1 else f"{outdated:,} comments"
            self._notice(f"skipped {counted} on lines that have changed since; '?include_outdated' keeps them")
        page = reviews_page(self._name, reviews, comments, outdated=include_outdated)
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
            raise AttachmentError(f"the response for the {subject} is not a diff", hint=FORMS)
        lock_files = not self._uri.no_defaults
        kept: list[str] = []
        skipped: dict[str, list[FileDiff]] = {}
        for file in files:
            if reason := reason_to_skip(file.path, self._uri.exclude, lock_files=lock_files):
                skipped.setdefault(reason, []).append(file)
            else:
                kept.append(file.text)
        for reason, omitted in skipped.items():
            self._notice(f"skipped {_listed(omitted)}: {reason}")
        if kept:
            text = "".join(kept)
            return self._resource(self._uri.part_uri("diff"), text, title=f"Diff of {self._name}", kind="text/x-diff")
        self._notice("all files of its diff are skipped" if files else "its diff is empty")
        return None

    def _notice(self, text: str) -> None:
        self.notices.append(f"{self._written!r}: {text}")

    def _resource(
        self, uri: str, text: str, *, title: str, updated: str | None = None, kind: str = "text/markdown"
    ) -> Resource:
        size = len(text.encode())
        if size > self._max_bytes:
            message = f"{uri!r} has {format_size(size)}; an attachment has at most {format_size(self._max_bytes)}"
            smaller = "Skip files with '?exclude=GLOB'" if kind == "text/x-diff" else "Attach another part of it"
            raise AttachmentError(message, hint=f"{smaller}, or raise 'conversation.max_attachment_bytes'")
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
