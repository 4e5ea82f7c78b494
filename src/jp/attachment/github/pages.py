"""Pull requests, diffs and issues as Markdown. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise

import msgspec

from jp.attachment.conversation import fenced
from jp.attachment.github.api import Comment, Issue, Label, LineComment, PullRequest, Review, User

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
"""What programs write and nobody reads."""

_START = re.compile(r"^diff --git ", re.MULTILINE)
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_ESCAPES = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
_AROUND_TWICE = len("a/ b/")
_OCTAL_DIGITS = 3


class FileDiff(msgspec.Struct, frozen=True):
    """What changed in one file. `path` is its new one, or the old one of a file that is gone."""

    path: str
    text: str

    @property
    def line_count(self) -> int:
        """How many lines say so."""
        return self.text.count("\n")


def file_diffs(text: str) -> Iterator[FileDiff]:
    """The files of what `git diff` or GitHub writes. What stands before the first is dropped."""
    starts = [match.start() for match in _START.finditer(text)]
    for start, end in pairwise([*starts, len(text)]):
        piece = text[start:end]
        yield FileDiff(path=_path(piece), text=piece)


def _path(piece: str) -> str:
    """The path of a file's piece. Where only its mode changed, or it is binary, the first line alone has it, twice."""
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
    """A name as git writes it: in quotes with escaped bytes where it has others than plain ones."""
    plain = name.rstrip("\t\r")
    if not plain.startswith('"'):
        return plain
    return _ESCAPE.sub(_byte, plain.strip('"').encode()).decode("utf-8", "replace")


def _byte(match: re.Match[bytes]) -> bytes:
    escaped = match[1]
    if len(escaped) == _OCTAL_DIGITS:
        return bytes([int(escaped, 8) & 0xFF])
    return _ESCAPES.get(escaped, escaped)


def reason_to_leave_out(path: str, globs: Sequence[str], *, lock_files: bool) -> str:
    """Why the file at `path` is left out; empty where it is not. With `lock_files`, these are.

    A glob without a slash is for names at any depth, one that ends in a slash for everything below a directory; in the
    others `*` stands for slashes too.
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
    """Title, state, branches, labels, description, and what was said below; `name` is such as `owner/name#12`."""
    state = "merged" if pull.merged_at else "draft" if pull.draft and pull.state == "open" else pull.state
    branches = f"{pull.head.label or pull.head.ref} into {pull.base.ref}"
    said = [f"pull request {name}", state, *_by(pull.user, pull.created_at), branches]
    return "".join(_page(pull, said, comments))


def issue_page(name: str, issue: Issue, comments: Sequence[Comment]) -> str:
    """Title, state, labels, description, and what was said below."""
    state = f"{issue.state} as {issue.state_reason.replace('_', ' ')}" if issue.state_reason else issue.state
    return "".join(_page(issue, [f"issue {name}", state, *_by(issue.user, issue.created_at)], comments))


def reviews_page(name: str, reviews: Sequence[Review], comments: Sequence[LineComment], *, outdated: bool) -> str:
    """Verdicts, then comments on lines by file and line, each with its replies and the lines; empty without any.

    Without `outdated` those on lines that have changed since are left out.
    """
    pieces = [*_verdicts(reviews), *_threads(comments, outdated=outdated)]
    return f"# Reviews of {name}\n" + "".join(pieces) if pieces else ""


def count_outdated(comments: Sequence[LineComment]) -> int:
    """How many comments are in threads on lines that have changed since."""
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
        # A comment on a line comes in a review that says nothing else; a pending one is not sent yet.
        if review.state == "PENDING" or (review.state == "COMMENTED" and not body):
            continue
        verdict = _VERDICTS.get(review.state, review.state.lower())
        yield f"\n## {', '.join(['Review', *_by(review.user, review.submitted_at or ''), verdict])}\n"
        yield f"\n{body}\n" if body else ""


def _by_thread(comments: Sequence[LineComment]) -> list[list[LineComment]]:
    """The comments with their replies, by file and line; one that answers what is gone begins a thread of its own."""
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
    """Who and when; an account that is gone is a ghost, as on GitHub's own pages."""
    name = "ghost" if user is None else _line(user.login)
    return [f"by {name}", moment] if moment else [f"by {name}"]


def _text(body: str | None) -> str:
    return (body or "").replace("\r\n", "\n").strip("\n")


def _line(text: str) -> str:
    return " ".join(text.split())


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
