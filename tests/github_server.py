"""A GitHub that knows one pull request and one issue, on the loopback interface."""

from __future__ import annotations

import json
from collections.abc import Mapping

from loopback import JSON, Answer, Received, Reply

PULL = {
    "title": "Fix the parser",
    "state": "open",
    "body": "It was wrong.",
    "user": {"login": "ada"},
    "created_at": "2026-01-01T00:00:00Z",
    "updated_at": "2026-01-05T00:00:00Z",
    "html_url": "https://github.com/own/repo/pull/1",
    "labels": [{"name": "bug"}],
    "base": {"ref": "main", "label": "own:main"},
    "head": {"ref": "fix", "label": "ada:fix"},
    "merged_at": None,
    "anything": {"else": [1]},
}
ISSUE = {"title": "Crash", "state": "open", "body": "It does.", "user": None, "updated_at": None}
REVIEWS = [{"state": "APPROVED", "body": "Good.", "user": {"login": "bob"}, "submitted_at": "2026-01-03T00:00:00Z"}]
LINES = [
    {"id": 1, "path": "a.py", "line": 3, "body": "Why?", "user": {"login": "bob"}, "diff_hunk": "@@ -1 +1 @@\n-a\n+b"},
    {"id": 2, "path": "a.py", "line": None, "original_line": 9, "body": "Old.", "user": {"login": "bob"}},
]
COMMENTS = [{"body": "Thanks.", "user": {"login": "ada"}, "created_at": "2026-01-04T00:00:00Z"}]
DIFF = "".join(
    f"diff --git a/{name} b/{name}\nindex 1..2 100644\n--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-old\n+new\n"
    for name in ("a.py", "uv.lock")
)


def as_json(value: object, *headers: tuple[str, str], status: int = 200) -> Reply:
    """An answer of the API."""
    return Reply(status=status, headers=(*JSON, *headers), body=json.dumps(value).encode())


def github(changed: Mapping[str, Reply] | None = None) -> Answer:
    """Answers what the server holds; `changed` has other answers by path, and under `diff` for that."""
    answers: dict[str, Reply] = {
        "/repos/own/repo/pulls/1": as_json(PULL),
        "/repos/own/repo/pulls/1/reviews": as_json(REVIEWS),
        "/repos/own/repo/pulls/1/comments": as_json(LINES),
        "/repos/own/repo/issues/1/comments": as_json(COMMENTS),
        "/repos/own/repo/issues/2": as_json(ISSUE),
        "/repos/own/repo/issues/2/comments": as_json([]),
        "diff": Reply(headers=(("content-type", "text/plain"),), body=DIFF.encode()),
        **(changed or {}),
    }

    def answer(request: Received) -> Reply:
        is_diff = request.headers["accept"] == "application/vnd.github.diff"
        path = request.target.partition("?")[0]
        return answers.get("diff" if is_diff else path, as_json({"message": "Not Found"}, status=404))

    return answer
