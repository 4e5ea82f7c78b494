from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from github_server import DIFF, ISSUE, LINES, PULL, REVIEWS, as_json, github
from jp.attachment.base import AttachmentError, Declaration, Resolution, ResolveContext
from jp.attachment.github import GithubHandler
from jp.attachment.github_api import Timeouts
from jp.attachment.github_repository import Token
from loopback import JSON, Answer, Loopback, Reply

TOKEN = "ghp_sEcReT"
PULL_PATH = "/repos/own/repo/pulls/1"
LIMITED = (("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1770000000"))


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("GITHUB_TOKEN", "GH_TOKEN", "GITHUB_API_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.fixture
def context(tmp_path: Path) -> ResolveContext:
    return ResolveContext(root=tmp_path, cwd=tmp_path)


def resolve(
    uri: str, context: ResolveContext, *excludes: str, timeouts: Timeouts | None = None, written: str = ""
) -> Resolution:
    handler = GithubHandler(timeouts)
    excluded = [
        Declaration(uri=handler.canonical(text, context), written=f"!{text}", exclude=True) for text in excludes
    ]
    declaration = Declaration(uri=handler.canonical(uri, context), written=written or uri)

    async def run() -> Resolution:
        return await handler.resolve(declaration, context, excludes=excluded)

    return anyio.run(run)


def asked(
    monkeypatch: pytest.MonkeyPatch, answer: Answer, context: ResolveContext, uri: str, *excludes: str
) -> tuple[Resolution, Loopback]:
    with Loopback(otherwise=answer) as server:
        monkeypatch.setenv("GITHUB_API_URL", f"{server.url}/")
        return resolve(uri, context, *excludes), server


def refused(
    monkeypatch: pytest.MonkeyPatch, answer: Answer, context: ResolveContext, uri: str = "gh:own/repo/pull/1"
) -> AttachmentError:
    with pytest.raises(AttachmentError) as raised:
        asked(monkeypatch, answer, context, uri)
    assert raised.value.hint
    return raised.value


def refusal(status: int, *headers: tuple[str, str]) -> Reply:
    return as_json({"message": f"said {TOKEN}"}, *headers, status=status)


def test_a_pull_request_is_three_resources(monkeypatch: pytest.MonkeyPatch, context: ResolveContext) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)

    resolution, server = asked(monkeypatch, github(), context, "gh:Own/Repo/pull/1")

    assert [(item.uri, item.mime_type, item.name, item.title) for item in resolution.resources] == [
        ("gh:own/repo/pull/1/discussion", "text/markdown", "own/repo/pull/1/discussion", "Fix the parser"),
        ("gh:own/repo/pull/1/reviews", "text/markdown", "own/repo/pull/1/reviews", "Reviews of own/repo#1"),
        ("gh:own/repo/pull/1/diff", "text/x-diff", "own/repo/pull/1/diff", "Diff of own/repo#1"),
    ]
    discussion, reviews, diff = (item.text or "" for item in resolution.resources)
    assert "It was wrong." in discussion
    assert "Thanks." in discussion
    assert "## a.py:3" in reviews
    assert "Old." not in reviews
    assert diff == DIFF.partition("diff --git a/uv.lock")[0]
    assert resolution.notices == (
        "'gh:Own/Repo/pull/1': skipped 1 comment on lines that have changed since; '?include_outdated' keeps them",
        "'gh:Own/Repo/pull/1': skipped 'uv.lock' (7 lines): lock files are, without 'no_defaults'",
    )
    assert resolution.resources[0].annotations is not None
    assert resolution.resources[0].annotations.last_modified == "2026-01-05T00:00:00Z"
    assert [(request.method, request.target) for request in server.requests] == [
        ("GET", PULL_PATH),
        ("GET", "/repos/own/repo/issues/1/comments?per_page=100"),
        ("GET", f"{PULL_PATH}/reviews?per_page=100"),
        ("GET", f"{PULL_PATH}/comments?per_page=100"),
        ("GET", PULL_PATH),
    ]
    assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {TOKEN}"}
    assert server.requests[-1].headers["accept"] == "application/vnd.github.diff"
    assert server.requests[0].headers["x-github-api-version"] == "2022-11-28"


def test_an_issue_is_one_resource(monkeypatch: pytest.MonkeyPatch, context: ResolveContext) -> None:
    resolution, server = asked(monkeypatch, github(), context, "gh:own/repo/issues/2")

    (issue,) = resolution.resources
    assert (issue.uri, issue.title, issue.annotations) == ("gh:own/repo/issues/2", "Crash", None)
    assert issue.text == "# Crash\n\nIssue own/repo#2, open, by ghost\n\nIt does.\n"
    assert all("authorization" not in request.headers for request in server.requests)


@pytest.mark.parametrize(
    ("uri", "there"),
    [
        ("gh:own/repo/pull/1/diff", ["a.py"]),
        ("gh:own/repo/pull/1/diff?no_defaults", ["a.py", "uv.lock"]),
        ("gh:own/repo/pull/1/diff?exclude=a.*&no_defaults", ["uv.lock"]),
    ],
)
def test_a_diff_is_without_the_files_that_are_excluded(
    uri: str, there: list[str], monkeypatch: pytest.MonkeyPatch, context: ResolveContext
) -> None:
    resolution, server = asked(monkeypatch, github(), context, uri)

    (diff,) = resolution.resources
    assert (diff.uri, diff.name) == (uri, "own/repo/pull/1/diff")
    assert [name for name in ("a.py", "uv.lock") if f"diff --git a/{name}" in (diff.text or "")] == there
    assert len(server.requests) == 1


def test_many_files_that_are_omitted_are_one_notice(monkeypatch: pytest.MonkeyPatch, context: ResolveContext) -> None:
    text = "".join(f"diff --git a/{n}.svg b/{n}.svg\nold mode 1\n" for n in range(9))
    changed = {"diff": Reply(body=text.encode())}

    resolution, _ = asked(monkeypatch, github(changed), context, "gh:own/repo/pull/1/diff?exclude=*.svg")

    uri = "'gh:own/repo/pull/1/diff?exclude=*.svg'"
    assert resolution == Resolution(
        resources=(),
        notices=(
            f"{uri}: skipped '0.svg', '1.svg', '2.svg' and 6 more (18 lines): 'exclude=*.svg'",
            f"{uri}: all files of its diff are skipped",
        ),
    )


def test_what_there_is_none_of_is_said(monkeypatch: pytest.MonkeyPatch, context: ResolveContext) -> None:
    empty = as_json([])
    changed = {f"{PULL_PATH}/reviews": empty, f"{PULL_PATH}/comments": empty, "diff": Reply()}

    resolution, _ = asked(monkeypatch, github(changed), context, "gh:own/repo/pull/1")

    assert [item.uri for item in resolution.resources] == ["gh:own/repo/pull/1/discussion"]
    assert resolution.notices == (
        "'gh:own/repo/pull/1': there are no reviews",
        "'gh:own/repo/pull/1': its diff is empty",
    )


def test_outdated_comments_come_on_request(monkeypatch: pytest.MonkeyPatch, context: ResolveContext) -> None:
    uri = "gh:own/repo/pull/1/reviews?include_outdated"
    more = {f"{PULL_PATH}/comments": as_json([*LINES, {**LINES[1], "id": 3}])}

    kept, _ = asked(monkeypatch, github(), context, uri)
    omitted, _ = asked(monkeypatch, github(more), context, "gh:own/repo/pull/1/reviews")

    assert kept.notices == ()
    assert "## a.py:9, outdated" in (kept.resources[0].text or "")
    assert "skipped 2 comments on lines" in omitted.notices[0]


@pytest.mark.parametrize(
    ("excludes", "parts"),
    [
        (["gh:own/repo/pull/1/diff"], ["discussion", "reviews"]),
        (["gh:own/repo/pull/1/diff?exclude=*.svg", "gh:own/repo/pull/2"], ["discussion", "reviews"]),
        (["gh:own/repo/pull/1/diff", "gh:own/repo/pull/1/reviews"], ["discussion"]),
    ],
)
def test_a_part_that_is_excluded_is_not_asked_for(
    excludes: list[str], parts: list[str], monkeypatch: pytest.MonkeyPatch, context: ResolveContext
) -> None:
    resolution, server = asked(monkeypatch, github(), context, "gh:own/repo/pull/1?exclude=*.svg", *excludes)

    assert [item.uri.rpartition("/")[2] for item in resolution.resources] == parts
    assert all(request.headers["accept"] != "application/vnd.github.diff" for request in server.requests)


@pytest.mark.parametrize(
    ("uri", "exclude"),
    [
        ("gh:own/repo/pull/1", "gh:own/repo/pull/1"),
        ("gh:own/repo/pull/1?no_defaults", "gh:own/repo/pull/1"),
        ("gh:own/repo/pull/1/diff", "gh:own/repo/pull/1"),
        ("gh:own/repo/pull/1/diff?no_defaults", "gh:own/repo/pull/1/diff"),
        ("gh:own/repo/issues/1", "gh:own/repo/issues/1"),
    ],
)
def test_what_is_excluded_as_a_whole_asks_nobody(uri: str, exclude: str, context: ResolveContext) -> None:
    resolution = resolve(uri, context, exclude)

    assert resolution == Resolution(resources=(), notices=(f"{uri!r} attaches nothing: '!{exclude}' excludes it",))


def test_lists_are_read_to_their_last_page(monkeypatch: pytest.MonkeyPatch, context: ResolveContext) -> None:
    def page(number: int, *, more: bool) -> Reply:
        link = (("link", f'<{server.url}{PULL_PATH}/reviews?page={number + 1}>; rel="next", <x>; rel="last"'),)
        return as_json([{**REVIEWS[0], "body": f"page {number}"}], *(link if more else ()))

    with Loopback() as server:
        server.add(page(1, more=True), page(2, more=True), page(3, more=False), as_json([]))
        monkeypatch.setenv("GITHUB_API_URL", server.url)
        resolution = resolve("gh:own/repo/pull/1/reviews", context)

    text = resolution.resources[0].text or ""
    assert [text.count(f"page {number}") for number in (1, 2, 3)] == [1, 1, 1]
    assert [request.target for request in server.requests][1:3] == [
        f"{PULL_PATH}/reviews?page=2",
        f"{PULL_PATH}/reviews?page=3",
    ]


def test_lists_without_an_end_are_left(monkeypatch: pytest.MonkeyPatch, context: ResolveContext) -> None:
    endless = as_json([], ("link", '</repos/own/repo/x?page=2>; rel="next"'))
    with Loopback(otherwise=endless) as server:
        monkeypatch.setenv("GITHUB_API_URL", server.url)
        with pytest.raises(AttachmentError, match="there are more than 5,000") as raised:
            resolve("gh:own/repo/pull/1/reviews", context)

    assert len(server.requests) == 50
    assert raised.value.hint


@pytest.mark.parametrize("link", ["http://127.0.0.1:1/x", "https://evil.example/x", "//evil.example/x"])
def test_the_token_goes_to_no_other_server(link: str, monkeypatch: pytest.MonkeyPatch, context: ResolveContext) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    paged = {f"{PULL_PATH}/reviews": as_json([], ("link", f'<{link}>; rel="next"'))}
    moved = {PULL_PATH: Reply(status=302, headers=(("location", link),))}

    followed = refused(monkeypatch, github(paged), context, "gh:own/repo/pull/1/reviews")
    redirected = refused(monkeypatch, github(moved), context)

    assert "GitHub redirects the request for reviews of pull request own/repo#1 to another server" in followed.message
    assert "GitHub redirects the request for pull request own/repo#1 to another server" in redirected.message


def test_a_repository_that_was_renamed_is_followed(monkeypatch: pytest.MonkeyPatch, context: ResolveContext) -> None:
    changed = {
        "/repos/own/repo/issues/2": Reply(status=301, headers=(("location", "/repositories/7/issues/2"),)),
        "/repositories/7/issues/2": as_json(ISSUE),
    }

    resolution, _ = asked(monkeypatch, github(changed), context, "gh:own/repo/issues/2")

    assert resolution.resources[0].title == "Crash"


def test_redirects_without_an_end_are_left(monkeypatch: pytest.MonkeyPatch, context: ResolveContext) -> None:
    circle = Reply(status=302, headers=(("location", PULL_PATH),))

    assert "more than 5 times" in refused(monkeypatch, github({PULL_PATH: circle}), context).message


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (refusal(401), "GitHub does not accept the token of GITHUB_TOKEN: said [token]"),
        (refusal(403, *LIMITED), "GitHub's rate limit is used up until 2026-02-02 02:40:00 UTC"),
        (refusal(404), "GitHub has no pull request own/repo#1, or it is private"),
        (refusal(503), "GitHub failed with 503 on pull request own/repo#1: said [token]"),
        (Reply(status=500, body=b"x" * 200_000, ends="hang"), "GitHub failed with 500 on pull request own/repo#1"),
    ],
)
def test_a_refusal_never_shows_the_token(
    answer: Reply, message: str, monkeypatch: pytest.MonkeyPatch, context: ResolveContext
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)

    error = refused(monkeypatch, github({PULL_PATH: answer}), context)

    assert message in error.message
    assert TOKEN not in error.message + error.hint + repr(error.__cause__) + repr(error.__context__)


def test_a_diff_that_is_too_large_for_github_says_so(monkeypatch: pytest.MonkeyPatch, context: ResolveContext) -> None:
    answer = as_json({"message": "the diff exceeded 20000 lines"}, status=406)

    error = refused(monkeypatch, github({"diff": answer}), context)

    assert error.message == "GitHub does not give diff of pull request own/repo#1: the diff exceeded 20000 lines"
    assert "git diff" in error.hint


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (Reply(body=b"<html>Sign in</html>"), "the response for pull request own/repo#1 is not one of GitHub's API"),
        (Reply(headers=JSON, body=b'{"title": 5}'), "is not one of GitHub's API: Expected `str`, got `int`"),
        (Reply(headers=JSON, body=b"\xff"), "is not one of GitHub's API"),
        (
            as_json({**PULL, "body": "x" * 1100}),
            "'gh:own/repo/pull/1/discussion' has 1.3 KiB; an attachment has at most",
        ),
        (as_json({**PULL, "more": "x" * 11_000}), "GitHub sends more than 10.0 KiB"),
        (Reply(ends="reset", body=b"{"), "no answer from '127.0.0.1'"),
        (Reply(headless=True, ends="close"), "no answer from '127.0.0.1'"),
        (Reply(headers=(*JSON, ("content-encoding", "gzip")), body=b"no gzip"), "no answer from '127.0.0.1'"),
    ],
)
def test_what_is_no_answer_is_an_error(
    reply: Reply, message: str, monkeypatch: pytest.MonkeyPatch, context: ResolveContext
) -> None:
    bounded = ResolveContext(root=context.root, cwd=context.cwd, max_bytes=1024)

    assert message in refused(monkeypatch, github({PULL_PATH: reply}), bounded).message


def test_a_diff_that_is_no_diff_is_an_error(monkeypatch: pytest.MonkeyPatch, context: ResolveContext) -> None:
    error = refused(monkeypatch, github({"diff": Reply(body=b"<html>")}), context, "gh:own/repo/pull/1/diff")

    assert error.message == "the response for the diff of pull request own/repo#1 is not a diff"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((Timeouts(idle=0.05), Reply(headless=True, ends="hang")), "'gh:own/repo/issues/2': '127.0.0.1' was silent"),
        ((Timeouts(total=0.05), Reply(headless=True, ends="hang")), "did not send everything in 0.05 seconds"),
        ((Timeouts(idle=0.05), Reply(status=500, body=b"{", ends="hang")), "was silent for 0.05 seconds"),
    ],
)
def test_a_server_that_is_silent_is_left(
    given: tuple[Timeouts, Reply], message: str, monkeypatch: pytest.MonkeyPatch, context: ResolveContext
) -> None:
    timeouts, reply = given
    with Loopback(otherwise=reply) as server:
        monkeypatch.setenv("GITHUB_API_URL", server.url)
        with pytest.raises(AttachmentError) as raised:
            resolve("gh:own/repo/issues/2", context, timeouts=timeouts)
        assert server.client_left.wait(20)

    assert message in raised.value.message


def test_where_nobody_listens_is_said(monkeypatch: pytest.MonkeyPatch, context: ResolveContext) -> None:
    with Loopback() as server:
        address = server.url
    monkeypatch.setenv("GITHUB_API_URL", address)

    with pytest.raises(AttachmentError, match=r"^'gh:own/repo/issues/2': no answer from '127\.0\.0\.1': \w") as raised:
        resolve("gh:own/repo/issues/2", context)

    assert "check the network" in raised.value.hint


@pytest.mark.parametrize(
    "address", ["github.example", "ftp://x", "https://", "https://x:port", "https://a:secret@x", "http://[x"]
)
def test_an_address_that_is_none_is_named(
    address: str, monkeypatch: pytest.MonkeyPatch, context: ResolveContext
) -> None:
    monkeypatch.setenv("GITHUB_API_URL", address)

    with pytest.raises(AttachmentError, match=r"^GITHUB_API_URL ") as raised:
        resolve("gh:own/repo/issues/2", context)

    assert "@" in address or repr(address) in raised.value.message
    assert "secret" not in raised.value.message


def test_a_token_is_not_sent_for_all_to_read(monkeypatch: pytest.MonkeyPatch, context: ResolveContext) -> None:
    monkeypatch.setenv("GITHUB_API_URL", "http://github.example/api/v3")
    monkeypatch.setenv("GH_TOKEN", TOKEN)

    with pytest.raises(AttachmentError, match="the token of GH_TOKEN would be sent without encryption") as raised:
        resolve("gh:own/repo/issues/2", context)

    assert TOKEN not in raised.value.message


def test_a_token_that_no_header_can_hold_is_refused_unseen(
    monkeypatch: pytest.MonkeyPatch, context: ResolveContext
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", f"{TOKEN}\nX: y")

    with pytest.raises(AttachmentError, match=r"^GITHUB_TOKEN has characters that are not valid in a token$"):
        resolve("gh:own/repo/issues/2", context)


def test_a_proxy_that_cannot_be_used_is_said(monkeypatch: pytest.MonkeyPatch, context: ResolveContext) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "gopher://x")

    with pytest.raises(AttachmentError, match="a proxy or the certificates of the environment cannot be used"):
        resolve("gh:own/repo/issues/2", context)


def program(directory: Path, script: str) -> None:
    """A `gh` that is first on the PATH."""
    file = directory / "gh"
    file.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    file.chmod(0o755)


@pytest.mark.parametrize(
    ("script", "authorization"),
    [
        ('[ "$*" = "auth token --hostname 127.0.0.1" ] && echo " gho_x "', "Bearer gho_x"),
        ("echo 'no oauth token' >&2; exit 1", None),
        ("echo gho_x; exit 1", None),
        ("echo 'not a token'", None),
    ],
)
def test_the_program_gh_may_know_a_token(
    script: str, authorization: str | None, monkeypatch: pytest.MonkeyPatch, context: ResolveContext
) -> None:
    program(context.root, script)

    _, server = asked(monkeypatch, github(), context, "gh:own/repo/issues/2")

    assert {request.headers.get("authorization") for request in server.requests} == {authorization}


def test_a_variable_counts_more_than_the_program(
    monkeypatch: pytest.MonkeyPatch, context: ResolveContext, tmp_path: Path
) -> None:
    program(tmp_path, "echo gho_x")
    monkeypatch.setenv("GITHUB_TOKEN", " ")
    monkeypatch.setenv("GH_TOKEN", TOKEN)

    _, server = asked(monkeypatch, github(), context, "gh:own/repo/issues/2")

    assert server.requests[0].headers["authorization"] == f"Bearer {TOKEN}"


def test_a_program_that_does_not_answer_knows_none(monkeypatch: pytest.MonkeyPatch, context: ResolveContext) -> None:
    program(context.root, "exec /bin/sleep 600")
    monkeypatch.setattr("jp.attachment.github_repository._TIMEOUT_SECS", 0.05)

    _, server = asked(monkeypatch, github(), context, "gh:own/repo/issues/2")

    assert "authorization" not in server.requests[0].headers


def test_a_token_does_not_show_itself() -> None:
    assert repr(Token(value=TOKEN, source="GH_TOKEN")) == "Token(source='GH_TOKEN')"


def test_a_program_that_cannot_be_run_knows_none(
    monkeypatch: pytest.MonkeyPatch, context: ResolveContext, tmp_path: Path
) -> None:
    (tmp_path / "gh").write_bytes(b"\0")
    (tmp_path / "gh").chmod(0o755)

    _, server = asked(monkeypatch, github(), context, "gh:own/repo/issues/2")

    assert "authorization" not in server.requests[0].headers


def test_a_uri_without_a_repository_needs_a_clone(context: ResolveContext) -> None:
    with pytest.raises(AttachmentError, match="'gh:pull/1' names no repository, and git has no remote"):
        GithubHandler().canonical("gh:pull/1", context)
    with pytest.raises(AttachmentError, match="'x' names no repository"):
        anyio.run(GithubHandler().resolve, Declaration(uri="gh:pull/1", written="x"), context)
