"""A client of GitHub's REST API: records, requests within bounds, and errors."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

import msgspec

from jp import __version__
from jp.attachment.base import AttachmentError, format_size
from jp.attachment.github_repository import Token, server_of
from jp.errors import reason_of
from jp.remedies import Ask, phrase

if TYPE_CHECKING:
    import httpx2


class User(msgspec.Struct, frozen=True):
    """A GitHub user."""

    login: str


class Label(msgspec.Struct, frozen=True):
    """A label."""

    name: str | None = None


class Branch(msgspec.Struct, frozen=True):
    """A branch; `label` has its owner before it."""

    ref: str
    label: str | None = None


class Issue(msgspec.Struct, frozen=True, kw_only=True):
    """An issue, or the fields that a pull request shares with one. Labels may be plain strings."""

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

    base: Branch
    head: Branch
    draft: bool = False
    merged_at: str | None = None


class Comment(msgspec.Struct, frozen=True, kw_only=True):
    """A comment under an issue or a pull request."""

    body: str | None = None
    user: User | None = None
    created_at: str = ""


class Review(msgspec.Struct, frozen=True, kw_only=True):
    """A review: a verdict and an optional text."""

    state: str
    body: str | None = None
    user: User | None = None
    submitted_at: str | None = None


class LineComment(Comment, frozen=True, kw_only=True):
    """A review comment on lines of a file. `line` is None if they have changed since."""

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
        """Return whether the lines have changed since."""
        return self.line is None and self.subject_type != "file"


class ErrorBody(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON body of an error response."""

    message: str = ""


_LONGEST = 300
_ANONYMOUS_HINT = "set GITHUB_TOKEN, or run `gh auth login`: with a token GitHub answers 5,000 requests an hour"
_SERVER_ERRORS = 500


class ErrorResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A response that is an error. Header names are lower case. `subject` names the requested thing, for messages."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    subject: str


def error_of(refused: ErrorResponse, token: Token | None) -> AttachmentError:
    """Return the error for a response that is not 200."""
    if (limit := _limit(refused, token)) is not None:
        return limit
    said = _said(refused.body, token)
    because = f": {said}" if said else ""
    subject = refused.subject
    match refused.status:
        case HTTPStatus.UNAUTHORIZED:
            message = f"GitHub does not accept {'a request without a token' if token is None else token.text}{because}"
            hint = "make a new token, or run `gh auth login`"
        case HTTPStatus.FORBIDDEN:
            message, hint = f"GitHub refuses {subject}{because}", _permission(token)
        case HTTPStatus.NOT_FOUND:
            message = f"GitHub has no {subject}, or it is private"
            hint = f"check the repository and the number. {_visibility(token)}"
        case HTTPStatus.GONE:
            message, hint = f"{subject} is gone{because}", "it was deleted, or the repository keeps no issues"
        case HTTPStatus.NOT_ACCEPTABLE:
            message = f"GitHub does not give {subject}{because}"
            hint = phrase("a diff that is too large for it can be piped: `git diff A...B | ", Ask(is_open=True), "`")
        case status if status >= _SERVER_ERRORS:
            message = f"GitHub failed with {status} on {subject}{because}"
            hint = "try again later: https://www.githubstatus.com says how it is"
        case status:
            message = f"GitHub answered {status} to the request for {subject}{because}"
            hint = "check that GITHUB_API_URL, where it is set, is the address of its API"
    return AttachmentError(message, hint=hint)


def _limit(refused: ErrorResponse, token: Token | None) -> AttachmentError | None:
    """Return the error of a rate limit, with its end or the time to wait; None for other responses."""
    if refused.status not in {HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS}:
        return None
    hint = _ANONYMOUS_HINT if token is None else "try again then"
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
        return "for a private one set GITHUB_TOKEN, or run `gh auth login`"
    return f"For a private one the token of {token.source} has to be allowed to see the repository."


def _said(body: bytes, token: Token | None) -> str:
    """Return GitHub's message in one line, without the token."""
    try:
        message = msgspec.json.decode(body, type=ErrorBody).message
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    line = " ".join(message.split())
    if token is not None:
        line = line.replace(token.value, "[token]")
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


DEFAULT_ADDRESS = "https://api.github.com"
ADDRESS_VARIABLE = "GITHUB_API_URL"

_JSON = "application/vnd.github+json"
_DIFF = "application/vnd.github.diff"
_VERSION = "2022-11-28"
_PAGE_SIZE = 100
_MOST_PAGES = 50
_MOST_REDIRECTS = 5
_LONGEST_ERROR_BODY = 64 * 1024
_OK = 200
_REDIRECTS = frozenset({301, 302, 307, 308})
_ERROR_NUMBER = re.compile(r"^\[Errno -?\d+\] ")
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})

_PARTS = "attach a part of it: '/discussion', '/reviews' or '/diff'"
_ADDRESS = f"Check that {ADDRESS_VARIABLE}, where it is set, is the address of GitHub's API."

T = TypeVar("T")


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """A GitHub server. `address` is that of its API, without a trailing slash; `host` is that of its web pages."""

    address: str
    host: str


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """Timeouts in seconds: for a connection, between two bytes, and for all requests of one attachment."""

    connect: float = 10.0
    idle: float = 30.0
    total: float = 120.0


def find_server(environment: Mapping[str, str]) -> Server:
    """Return the server that the environment names, by default github.com.

    Raises:
        AttachmentError: the variable is not a usable URL.
    """
    address = environment.get(ADDRESS_VARIABLE, "").strip() or DEFAULT_ADDRESS
    if "@" in address:
        message = f"{ADDRESS_VARIABLE} holds credentials"
        raise AttachmentError(message, hint="put them into GITHUB_TOKEN, not into the URL")
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        parts, host = None, ""
    if parts is None or parts.scheme not in {"http", "https"} or not host or parts.query:
        message = f"{ADDRESS_VARIABLE} is {address!r}, which is not an API URL"
        raise AttachmentError(message, hint=f"unset it for github.com, which has {DEFAULT_ADDRESS!r}")
    return Server(address=address.rstrip("/"), host=server_of(host.removeprefix("api.")))


class GithubApi:
    """Requests to one server. All bodies together have at most `max_bytes`."""

    def __init__(self, client: httpx2.AsyncClient, server: Server, token: Token | None, *, max_bytes: int) -> None:
        self._client = client
        self._server = server
        self._token = token
        self._max_bytes = max_bytes
        self._read_bytes = 0

    async def record(self, path: str, kind: type[T], subject: str) -> T:
        """Return the record at `path`. `subject` names it in messages.

        Raises:
            AttachmentError: the request failed, or the response is of another kind.
        """
        body, _ = await self._get(self._server.address + path, _JSON, subject)
        return _decoded(body, kind, subject)

    async def records(self, path: str, kind: type[T], subject: str) -> list[T]:
        """Return all records that `path` lists, page by page.

        Raises:
            AttachmentError: a request failed, a response is of another kind, or there are too many pages.
        """
        found: list[T] = []
        address: str | None = f"{self._server.address}{path}?per_page={_PAGE_SIZE}"
        for _ in range(_MOST_PAGES):
            body, address = await self._get(address, _JSON, subject)
            found += _decoded(body, list[kind], subject)
            if address is None:
                return found
        message = f"{subject}: there are more than {_MOST_PAGES * _PAGE_SIZE:,}"
        raise AttachmentError(message, hint=_PARTS)

    async def diff(self, path: str, subject: str) -> str:
        """Return the diff of a pull request.

        Raises:
            AttachmentError: the request failed.
        """
        body, _ = await self._get(self._server.address + path, _DIFF, subject)
        return body.decode("utf-8", "replace")

    async def _get(self, address: str, accept: str, subject: str) -> tuple[bytes, str | None]:
        """Return a body, and the address of the next page if there is one."""
        for _ in range(_MOST_REDIRECTS + 1):
            async with self._client.stream("GET", address, headers=self._headers(accept)) as response:
                if response.status_code in _REDIRECTS and (location := response.headers.get("location")):
                    address = self._own(str(response.url.join(location)), subject)
                    continue
                if response.status_code != _OK:
                    body = await _read(response, _LONGEST_ERROR_BODY)
                    refused = ErrorResponse(
                        status=response.status_code, headers=dict(response.headers), body=body, subject=subject
                    )
                    raise error_of(refused, self._token)
                following = response.links.get("next", {}).get("url")
                next_page = None if following is None else self._own(str(response.url.join(following)), subject)
                return await self._body(response, subject), next_page
        message = f"GitHub redirects the request for {subject} more than {_MOST_REDIRECTS} times"
        raise AttachmentError(message, hint=_ADDRESS)

    def _headers(self, accept: str) -> dict[str, str]:
        headers = {"accept": accept, "user-agent": f"jp/{__version__}", "x-github-api-version": _VERSION}
        return headers if self._token is None else {**headers, "authorization": f"Bearer {self._token.value}"}

    def _own(self, address: str, subject: str) -> str:
        """Return `address` if it is on the same server: no other one may get the token.

        Raises:
            AttachmentError: it is on another server.
        """
        if _origin(address) != _origin(self._server.address):
            host = urlsplit(address).hostname
            message = f"GitHub redirects the request for {subject} to another server, {host!r}"
            raise AttachmentError(message, hint=_ADDRESS)
        return address

    async def _body(self, response: httpx2.Response, subject: str) -> bytes:
        body = await _read(response, self._max_bytes - self._read_bytes)
        self._read_bytes += len(body)
        if self._read_bytes > self._max_bytes:
            message = f"{subject}: GitHub sends more than {format_size(self._max_bytes)}"
            raise AttachmentError(message, hint=_PARTS)
        return body


async def _read(response: httpx2.Response, most: int) -> bytes:
    """Return the body, or its beginning of more than `most` bytes."""
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > most:
            break
    return bytes(body)


def _origin(address: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(address)
    return parts.scheme, parts.hostname, parts.port


def _decoded(body: bytes, kind: type[T], subject: str) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        message = f"the response for {subject} is not one of GitHub's API: {reason_of(error)}"
        hint = f"a proxy may have answered instead of GitHub; check it, and {ADDRESS_VARIABLE} where it is set"
        raise AttachmentError(message, hint=hint) from None


@asynccontextmanager
async def open_api(
    server: Server, token: Token | None, *, written: str, max_bytes: int, timeouts: Timeouts
) -> AsyncGenerator[GithubApi, None]:
    """Yield a client of `server`; `written` is the declaration, for messages.

    Raises:
        AttachmentError: the server is not reachable, the connection breaks, or a timeout is over.
    """
    import anyio
    import httpx2

    is_plain = server.address.startswith("http:")
    if is_plain and token is not None and urlsplit(server.address).hostname not in _LOCAL:
        message = f"{ADDRESS_VARIABLE} is {server.address!r}: {token.text} would be sent without encryption"
        raise AttachmentError(message, hint="use https://")
    timeout = httpx2.Timeout(timeouts.idle, connect=timeouts.connect)
    try:
        with anyio.fail_after(timeouts.total):
            async with _client(timeout, plain=is_plain) as client:
                yield GithubApi(client, server, token, max_bytes=max_bytes)
    except TimeoutError:
        message = f"{written!r}: {server.host!r} did not send everything in {timeouts.total:g} seconds"
        raise AttachmentError(message, hint="try again, or attach a part of it") from None
    except httpx2.TimeoutException as error:
        seconds = timeouts.connect if isinstance(error, httpx2.ConnectTimeout) else timeouts.idle
        message = f"{written!r}: {server.host!r} was silent for {seconds:g} seconds"
        raise AttachmentError(message, hint="check the network, and try again") from None
    except (httpx2.RequestError, httpx2.InvalidURL, OSError) as error:
        reason = _ERROR_NUMBER.sub("", str(error)) or type(error).__name__
        message = f"{written!r}: no answer from {server.host!r}: {reason}"
        hint = "check the network, HTTPS_PROXY, and for a certificate authority of your own SSL_CERT_FILE"
        raise AttachmentError(message, hint=hint) from None


def _client(timeout: httpx2.Timeout, *, plain: bool) -> httpx2.AsyncClient:
    """Return a client with the environment's proxies that follows no redirects. If `plain`, it loads no certificates.

    Raises:
        AttachmentError: a proxy or a certificate variable cannot be used.
    """
    import ssl

    import httpx2

    try:
        return httpx2.AsyncClient(timeout=timeout, verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else True)
    except (ImportError, ValueError, OSError, httpx2.InvalidURL) as error:
        message = f"a proxy or the certificates of the environment cannot be used: {error}"
        raise AttachmentError(message, hint="check HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and SSL_CERT_FILE") from None
