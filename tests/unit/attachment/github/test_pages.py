from __future__ import annotations

from inline_snapshot import snapshot

from jp.attachment.github import count_outdated, issue_page, pull_request_page, reviews_page
from jp.attachment.github_api import Branch, Comment, Issue, Label, LineComment, PullRequest, Review, User

ADA, BOB = User("ada"), User("bob")
PULL = PullRequest(
    title="Fix\nthe parser",
    state="open",
    body="It was\r\nwrong.\r\n",
    user=ADA,
    created_at="2026-01-01T00:00:00Z",
    html_url="https://github.com/own/repo/pull/1",
    labels=(Label("bug"), "old", Label()),
    base=Branch("main", "own:main"),
    head=Branch("fix", "ada:fix"),
)


def line_comment(number: int, body: str, **more: object) -> LineComment:
    return LineComment(**({"id": number, "path": "src/a.py", "line": 10, "body": body, "user": BOB} | more))  # pyright: ignore[reportArgumentType]  fields by name


def test_a_pull_request_is_readable() -> None:
    comments = [Comment(body="Nice.\r\nYes.", user=BOB, created_at="2026-01-02T00:00:00Z"), Comment(body=None)]

    assert pull_request_page("own/repo#1", PULL, comments) == snapshot("""\
# Fix the parser

Pull request own/repo#1, open, by ada, 2026-01-01T00:00:00Z, ada:fix into main
Labels: bug, old
<https://github.com/own/repo/pull/1>

It was
wrong.

## Comment, by bob, 2026-01-02T00:00:00Z

Nice.
Yes.

## Comment, by ghost


""")


def test_a_pull_request_says_how_it_stands() -> None:
    base, head = Branch("main"), Branch("fix")
    merged = PullRequest(title="x", state="closed", merged_at="2026", draft=True, base=base, head=head)
    draft = PullRequest(title="x", state="open", draft=True, base=base, head=head)
    closed = PullRequest(title="x", state="closed", draft=True, base=base, head=head)

    assert pull_request_page("a/b#1", merged, []) == (
        "# x\n\nPull request a/b#1, merged, by ghost, fix into main\n\nNo description.\n"
    )
    assert ", draft, by ghost" in pull_request_page("a/b#1", draft, [])
    assert ", closed, by ghost" in pull_request_page("a/b#1", closed, [])


def test_an_issue_is_readable() -> None:
    issue = Issue(title="Crash", state="closed", state_reason="not_planned", body="It does.", user=ADA)

    assert issue_page("own/repo#2", issue, [Comment(body="Why?", user=BOB)]) == (
        "# Crash\n\nIssue own/repo#2, closed as not planned, by ada\n\nIt does.\n\n## Comment, by bob\n\nWhy?\n"
    )
    assert "\nIssue own/repo#2, open, by ghost\n" in issue_page("own/repo#2", Issue(title="x", state="open"), [])


REVIEWS = [
    Review(state="APPROVED", user=ADA, submitted_at="2026-01-03T00:00:00Z"),
    Review(state="COMMENTED", body="", user=BOB),
    Review(state="PENDING", body="not sent", user=BOB),
    Review(state="CHANGES_REQUESTED", body="Please.", user=None),
    Review(state="NEW_KIND", user=BOB),
]
COMMENTS = [
    line_comment(5, "lower", line=20, start_line=18, diff_hunk="@@ -1 +1 @@\n-a\n+```"),
    line_comment(3, "root", line=10, original_line=4, created_at="2026"),
    line_comment(6, "reply", in_reply_to_id=3),
    line_comment(7, "answers what is gone", in_reply_to_id=1, line=11, start_line=11),
    line_comment(8, "old", line=None, original_line=5, original_start_line=4),
    line_comment(9, "reply to old", line=None, in_reply_to_id=8),
    line_comment(2, "whole file", path="a\nfile", line=None, subject_type="file"),
    line_comment(4, "before", line=12, side="LEFT"),
]


def test_reviews_are_verdicts_and_threads_by_file_and_line() -> None:
    assert reviews_page("own/repo#1", REVIEWS, COMMENTS, outdated=False) == snapshot("""\
# Reviews of own/repo#1

## Review, by ada, 2026-01-03T00:00:00Z, approved

## Review, by ghost, changes requested

Please.

## Review, by bob, new_kind

## a file

### Comment, by bob

whole file

## src/a.py:10

### Comment, by bob, 2026

root

### Comment, by bob

reply

## src/a.py:11

### Comment, by bob

answers what is gone

## src/a.py:12, before the change

### Comment, by bob

before

## src/a.py:18-20

````diff
@@ -1 +1 @@
-a
+```
````

### Comment, by bob

lower
""")


def test_comments_on_lines_that_have_changed_are_counted_and_shown_on_request() -> None:
    page = reviews_page("own/repo#1", [], COMMENTS, outdated=True)

    assert "\n## src/a.py:4-5, outdated\n" in page
    assert "reply to old" in page
    assert count_outdated(COMMENTS) == 2


def test_a_comment_that_knows_no_line_has_its_file() -> None:
    comment = line_comment(1, "x", line=None, subject_type="line")

    assert "\n## src/a.py\n" in reviews_page("a/b#1", [], [comment], outdated=True)


def test_without_any_review_there_is_no_page() -> None:
    assert reviews_page("a/b#1", [Review(state="COMMENTED")], [], outdated=True) == ""
