from __future__ import annotations

import pytest

from jp.attachment.github_api import ErrorResponse, error_of
from jp.attachment.github_repository import Token

TOKEN = Token(value="ghp_sEcReT", source="GITHUB_TOKEN")
SUBJECT = "pull request own/repo#1"


def refused(status: int, message: str = "", **headers: str) -> ErrorResponse:
    body = f'{{"message": "{message}"}}'.encode() if message else b""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return ErrorResponse(status=status, headers=named, body=body, subject=SUBJECT)


@pytest.mark.parametrize(
    ("answer", "anonymous", "with_token"),
    [
        (
            refused(401, "Bad credentials"),
            "GitHub does not accept a request without a token: Bad credentials",
            "GitHub does not accept the token of GITHUB_TOKEN: Bad credentials",
        ),
        (refused(403, "No ghp_sEcReT"), f"GitHub refuses {SUBJECT}: No ghp_sEcReT", f"refuses {SUBJECT}: No [token]"),
        (refused(403, "", x_ratelimit_remaining="59"), f"GitHub refuses {SUBJECT}", f"GitHub refuses {SUBJECT}"),
        (
            refused(403, "limit", x_ratelimit_remaining="0", x_ratelimit_reset="1770000000"),
            "GitHub's rate limit is used up until 2026-02-02 02:40:00 UTC",
            "GitHub's rate limit is used up until 2026-02-02 02:40:00 UTC",
        ),
        (
            refused(429, "limit", x_ratelimit_remaining="0", x_ratelimit_reset="soon"),
            "GitHub's rate limit is used up",
            "GitHub's rate limit is used up",
        ),
        (
            refused(403, "secondary", retry_after="60"),
            "GitHub asks to wait for 60 seconds: there were too many requests",
            "GitHub asks to wait for 60 seconds: there were too many requests",
        ),
        (refused(429, retry_after="Wed"), "GitHub asks to wait: there were", "GitHub asks to wait: there were"),
        (refused(429), "GitHub asks to wait: there were", "GitHub asks to wait: there were"),
        (refused(404, "Not Found"), f"GitHub has no {SUBJECT}, or it is private", "or it is private"),
        (refused(410, "deleted"), f"{SUBJECT} is gone: deleted", f"{SUBJECT} is gone: deleted"),
        (refused(406, "too_large"), f"GitHub does not give {SUBJECT}: too_large", f"does not give {SUBJECT}"),
        (refused(502), f"GitHub failed with 502 on {SUBJECT}", f"GitHub failed with 502 on {SUBJECT}"),
        (refused(418, "tea  \\n pot"), "GitHub answered 418 to the request for", f"for {SUBJECT}: tea pot"),
    ],
)
def test_a_refusal_says_what_is_wrong_and_what_helps(answer: ErrorResponse, anonymous: str, with_token: str) -> None:
    without, given = error_of(answer, None), error_of(answer, TOKEN)

    assert anonymous in without.message
    assert with_token in given.message
    assert TOKEN.value not in given.message + given.hint
    assert without.hint
    assert given.hint


def test_a_private_repository_needs_a_token_that_may_see_it() -> None:
    assert "set GITHUB_TOKEN, or run `gh auth login`" in error_of(refused(404), None).hint
    assert "the token of GITHUB_TOKEN has to be allowed to see" in error_of(refused(404), TOKEN).hint
    assert "with a token GitHub answers 5,000 requests an hour" in error_of(refused(403), None).hint
    assert "The token of GITHUB_TOKEN has to be allowed to read" in error_of(refused(403), TOKEN).hint


@pytest.mark.parametrize("body", [b"<html>", b"\xff", b"[]", b'{"message": 5}', b"[" * 100_000])
def test_a_body_that_is_no_error_of_github_says_nothing(body: bytes) -> None:
    answer = ErrorResponse(status=500, headers={}, body=body, subject="x")

    assert error_of(answer, None).message == "GitHub failed with 500 on x"


def test_a_long_explanation_is_cut() -> None:
    assert len(error_of(refused(500, "x" * 10_000), None).message) < 400
