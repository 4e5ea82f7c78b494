"""What is wrong when GitHub does not answer as asked, in words for a person. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus

import msgspec

from jp.attachment.base import AttachmentError
from jp.attachment.github.records import Refusal
from jp.attachment.github.token import Token

_LONGEST = 300
_ANONYMOUS_HINT = "Set GITHUB_TOKEN, or run `gh auth login`: with a token GitHub answers 5,000 requests an hour."
_SERVER_ERRORS = 500


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that is none. Header names are lower case. `subject` says in words what was asked for."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    subject: str


def refusal(refused: Refused, token: Token | None) -> AttachmentError:
    """What the answer means for whoever asked."""
    if (limit := _limit(refused, token)) is not None:
        return limit
    said = _said(refused.body, token)
    because = f": {said}" if said else ""
    subject = refused.subject
    match refused.status:
        case HTTPStatus.UNAUTHORIZED:
            message = f"GitHub does not accept {'a request without a token' if token is None else token.text}{because}"
            hint = "Make a new token, or run `gh auth login`."
        case HTTPStatus.FORBIDDEN:
            message, hint = f"GitHub refuses {subject}{because}", _permission(token)
        case HTTPStatus.NOT_FOUND:
            message = f"GitHub has no {subject}, or it is private"
            hint = f"Check the repository and the number. {_visibility(token)}"
        case HTTPStatus.GONE:
            message, hint = f"{subject} is gone{because}", "It was deleted, or the repository keeps no issues."
        case HTTPStatus.NOT_ACCEPTABLE:
            message = f"GitHub does not give {subject}{because}"
            hint = "A diff that is too large for it can be piped: `git diff A...B | jp query …`."
        case status if status >= _SERVER_ERRORS:
            message = f"GitHub failed with {status} on {subject}{because}"
            hint = "Try again later: https://www.githubstatus.com says how it is."
        case status:
            message = f"GitHub answered {status} to the request for {subject}{because}"
            hint = "Check that GITHUB_API_URL, where it is set, is the address of its API."
    return AttachmentError(message, hint=hint)


def _limit(refused: Refused, token: Token | None) -> AttachmentError | None:
    """The error of a rate limit: the one of an hour says when it ends, the others how long to wait."""
    if refused.status not in {HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS}:
        return None
    hint = _ANONYMOUS_HINT if token is None else "Try again then."
    if refused.headers.get("x-ratelimit-remaining") == "0":
        reset = _moment(refused.headers.get("x-ratelimit-reset", ""))
        until = f" until {reset}" if reset else ""
        return AttachmentError(f"GitHub's rate limit is used up{until}", hint=hint)
    wait = refused.headers.get("retry-after", "")
    if wait or refused.status == HTTPStatus.TOO_MANY_REQUESTS:
        long = f" for {wait} seconds" if wait.isdecimal() else ""
        return AttachmentError(f"GitHub asks to wait{long}: there were too many requests", hint=hint)
    return None


def _moment(seconds: str) -> str:
    try:
        return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return ""


def _permission(token: Token | None) -> str:
    if token is None:
        return _ANONYMOUS_HINT
    return f"The token of {token.source} has to be allowed to read pull requests and issues there."


def _visibility(token: Token | None) -> str:
    if token is None:
        return "For a private one set GITHUB_TOKEN, or run `gh auth login`."
    return f"For a private one the token of {token.source} has to be allowed to see the repository."


def _said(body: bytes, token: Token | None) -> str:
    """GitHub's own words, in one line; the token is never among them."""
    try:
        message = msgspec.json.decode(body, type=Refusal).message
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    line = " ".join(message.split())
    if token is not None:
        line = line.replace(token.value, "[token]")
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
