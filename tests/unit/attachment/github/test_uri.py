from __future__ import annotations

import pytest

from jp.attachment.base import AttachmentError
from jp.attachment.github_repository import GithubUri, Repository, parse_github_uri, repository_named


@pytest.mark.parametrize(
    ("uri", "canonical"),
    [
        ("gh:Own/Repo/pull/12", "gh:own/repo/pull/12"),
        ("GH://own/repo/pulls/0012/", "gh:own/repo/pull/12"),
        ("gh:own/repo/pr/12/FILES", "gh:own/repo/pull/12/diff"),
        ("gh:own/re.po_-/issue/3", "gh:own/re.po_-/issues/3"),
        ("gh:own%2Frepo/pull/1/diff", None),
        ("gh:pull/12", "gh:pull/12"),
        ("gh:/pull/12/discussion", "gh:pull/12/discussion"),
        ("gh:issues/7", "gh:issues/7"),
        ("gh:pull/1?exclude=*.svg&exclude=a%20b/&exclude=*.svg", "gh:pull/1?exclude=*.svg&exclude=a%20b/"),
        ("gh:pull/1/diff?no_defaults&exclude=docs/*", "gh:pull/1/diff?exclude=docs/*&no_defaults"),
        ("gh:pull/1/diff?no_defaults=true&no_defaults=false&", "gh:pull/1/diff"),
        ("gh:pull/1/reviews?include_outdated=", "gh:pull/1/reviews?include_outdated"),
        ("gh:pull/1?exclude=a%26b%23c%25", "gh:pull/1?exclude=a%26b%23c%25"),
    ],
)
def test_two_spellings_of_one_thing_are_one(uri: str, canonical: str | None) -> None:
    if canonical is None:
        with pytest.raises(AttachmentError):
            parse_github_uri(uri)
        return

    assert parse_github_uri(uri).text == canonical
    assert parse_github_uri(canonical).text == canonical


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("gh:", "names neither a pull request nor an issue"),
        ("gh:pull", "names neither"),
        ("gh:12", "names neither"),
        ("gh:pull/0", "names neither"),
        ("gh:pull/x", "names neither"),
        ("gh:own/repo/commit/1", "names neither"),
        ("gh:own/repo/x", "names neither"),
        ("gh:../repo/pull/1", "'../repo' is not a GitHub repository"),
        ("gh:own/../pull/1", "'own/..' is not a GitHub repository"),
        ("gh:own/a%2Fb/pull/1", "'own/a/b' is not a GitHub repository"),
        ("gh:own/repo/pull/1/commits", "a pull request has no 'commits'"),
        ("gh:own/repo/pull/1/diff/x", "a pull request has no 'diff/x'"),
        ("gh:own/repo/issues/1/diff", "an issue has no 'diff'"),
        ("gh:pull/1#discussion_r5", "has a fragment"),
        ("gh:pull/1?x", "has 'x', which is not supported there"),
        ("gh:pull/1?exclude=", "has 'exclude=', which is not supported there"),
        ("gh:pull/1?no_defaults=5", "has 'no_defaults=5', which is not supported there"),
        ("gh:pull/1/diff?include_outdated", "has 'include_outdated', which is not supported there"),
        ("gh:pull/1/reviews?exclude=a", "has 'exclude=a', which is not supported there"),
        ("gh:issues/1?no_defaults", "has 'no_defaults', which is not supported there"),
    ],
)
def test_what_is_malformed_is_said(uri: str, words: str) -> None:
    with pytest.raises(AttachmentError) as raised:
        parse_github_uri(uri)

    assert words in raised.value.message
    assert raised.value.message.startswith(repr(uri))
    assert raised.value.hint


def test_each_part_has_a_uri_of_its_own() -> None:
    whole = parse_github_uri("gh:own/repo/pull/1?exclude=a&no_defaults&include_outdated")

    assert whole == GithubUri(
        repository=Repository("own", "repo"),
        kind="pull",
        number=1,
        exclude=("a",),
        no_defaults=True,
        include_outdated=True,
    )
    assert [whole.part_uri(part) for part in whole.parts] == [
        "gh:own/repo/pull/1/discussion",
        "gh:own/repo/pull/1/reviews?include_outdated",
        "gh:own/repo/pull/1/diff?exclude=a&no_defaults",
    ]
    assert parse_github_uri("gh:pull/1/diff").parts == ("diff",)


@pytest.mark.parametrize(
    "names", [("", "x"), ("-x", "x"), ("x", ""), ("x", "."), ("x", ".."), ("x", "a b"), ("ä", "x")]
)
def test_not_everything_can_be_a_repository(names: tuple[str, str]) -> None:
    assert repository_named(*names) is None
