"""What GitHub's REST API says of pull requests and issues, as far as it is shown. Pure.

Fields that are not shown are not read, and those that may be missing or null have a default.
"""

from __future__ import annotations

import msgspec


class User(msgspec.Struct, frozen=True):
    """Who did something."""

    login: str


class Label(msgspec.Struct, frozen=True):
    """A label."""

    name: str | None = None


class Reference(msgspec.Struct, frozen=True):
    """A branch; `label` has its owner before it."""

    ref: str
    label: str | None = None


class Issue(msgspec.Struct, frozen=True, kw_only=True):
    """An issue, or what a pull request has in common with one. Labels were plain texts once."""

    title: str
    state: str
    body: str | None = None
    state_reason: str | None = None
    user: User | None = None
    created_at: str = ""
    updated_at: str | None = None
    html_url: str = ""
    labels: tuple[Label | str, ...] = ()


class PullRequest(Issue, frozen=True, kw_only=True):
    """A pull request."""

    base: Reference
    head: Reference
    draft: bool = False
    merged_at: str | None = None


class Comment(msgspec.Struct, frozen=True, kw_only=True):
    """A comment under an issue or a pull request."""

    body: str | None = None
    user: User | None = None
    created_at: str = ""


class Review(msgspec.Struct, frozen=True, kw_only=True):
    """A review: a verdict, perhaps with words."""

    state: str
    body: str | None = None
    user: User | None = None
    submitted_at: str | None = None


class LineComment(Comment, frozen=True, kw_only=True):
    """A comment of a review on lines of a file. `line` is None where they have changed since."""

    id: int
    path: str
    in_reply_to_id: int | None = None
    line: int | None = None
    start_line: int | None = None
    original_line: int | None = None
    original_start_line: int | None = None
    side: str | None = None
    subject_type: str | None = None
    diff_hunk: str = ""

    @property
    def is_outdated(self) -> bool:
        """Whether it is on lines that have changed since."""
        return self.line is None and self.subject_type != "file"


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """The body of an error."""

    message: str = ""
