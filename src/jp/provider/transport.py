"""Transport of one HTTP request: its response as a stream of bytes, and every failure as a `ProviderError`.

The client lives for one request: the next request of a turn is seconds away, and a closed client leaks nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from math import inf
from typing import TYPE_CHECKING, Literal

import msgspec
from anyio import CancelScope, current_time

from jp.errors import ConfigurationError, JpError, root_cause
from jp.provider.errors import ProviderError
from jp.remedies import Show, phrase

if TYPE_CHECKING:
    import httpx2

    from jp.provider.errors import ErrorKind

_UPLOAD_PIECE = 64 * 1024
"""Bytes of a piece: the idle timeout restarts between pieces, so that a large request makes progress on a slow line."""

_LONGEST_ERROR_BODY = 64 * 1024


def _nothing() -> None:
    pass


after_upload: ContextVar[Callable[[], None]] = ContextVar("after_upload", default=_nothing)
"""Callback after the body of a request was sent, for work that must not delay it."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one exchange. Timeouts are in seconds, None means no limit.

    Attributes:
        first_byte_timeout: from the end of the upload to the first byte of the body, since a server may send its
            headers before it has read the prompt.
        idle_timeout: between any two bytes after that, including keep-alives, and between two pieces of the upload.
        max_response_bytes: the size of the decompressed response.
    """

    connect_timeout: float | None = 20.0
    first_byte_timeout: float | None = 60.0
    idle_timeout: float | None = 60.0
    max_response_bytes: int = 64 * 1024 * 1024


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP request. `headers` may hold a key: they appear in no error. Only `post` has a `body`."""

    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""


class HttpResponse:
    """An open response. Header names are lower case.

    `deadline` is the time limit for the first byte of the body, on the event loop's clock.
    """

    def __init__(self, response: httpx2.Response, limits: Limits, *, host: str, deadline: float) -> None:
        self._response = response
        self._limits = limits
        self._host = host
        self._deadline = deadline

    @property
    def status(self) -> int:
        """The status code."""
        return self._response.status_code

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; repeated ones are joined by commas."""
        return dict(self._response.headers)

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives.

        Raises:
            ProviderError: it exceeds the size limit (kind `output_limit`) or the time limit (kind `timeout`).
        """
        received = 0
        async for chunk in self._timed():
            received += len(chunk)
            if received > self._limits.max_response_bytes:
                message = f"the response is longer than {self._limits.max_response_bytes} bytes"
                raise ProviderError(message, kind="output_limit")
            yield chunk

    async def error_body(self) -> bytes:
        """Return the beginning of the body; less if it breaks off, since the status is more useful than that error."""
        import httpx2

        body = bytearray()
        try:
            async for chunk in self._timed():
                body += chunk
                if len(body) >= _LONGEST_ERROR_BODY:
                    break
        except (httpx2.RequestError, ProviderError):
            pass
        return bytes(body[:_LONGEST_ERROR_BODY])

    async def _timed(self) -> AsyncIterator[bytes]:
        """Yield the body's chunks: the first before the deadline, each further one within the idle timeout."""
        chunks = self._response.aiter_bytes()
        idle = self._limits.idle_timeout
        timeout, deadline = _NO_RESPONSE, self._deadline
        while True:
            chunk = None
            with CancelScope(deadline=deadline) as scope:
                chunk = await anext(chunks, None)
            if scope.cancelled_caught:
                raise _timeout(self._host, timeout)
            if chunk is None:
                return
            yield chunk
            timeout, deadline = _SILENCE, _after(idle)


def _after(seconds: float | None) -> float:
    return inf if seconds is None else current_time() + seconds


_NO_CONNECTION = ("no connection to {!r} in time", "connect_timeout_secs")
_NO_UPLOAD = ("{!r} took too long to read the request", "stream_idle_timeout_secs")
_NO_RESPONSE = ("{!r} did not respond in time", "first_byte_timeout_secs")
_SILENCE = ("{!r} was silent for too long", "stream_idle_timeout_secs")


def _timeout(host: str, timeout: tuple[str, str], *, kind: ErrorKind = "timeout") -> ProviderError:
    message, setting = timeout
    return ProviderError(message.format(host), kind=kind, hint=f"`assistant.request.{setting}` sets how long jp waits")


async def _pieces(body: bytes, uploaded: Callable[[], None]) -> AsyncIterator[bytes]:
    for start in range(0, len(body), _UPLOAD_PIECE):
        yield body[start : start + _UPLOAD_PIECE]
    uploaded()
    after_upload.get()()


def _client(url: str, limits: Limits) -> httpx2.AsyncClient:
    """Return a client that takes proxies from the environment and follows no redirect.

    Raises:
        ConfigurationError: a proxy variable or a certificate variable cannot be used.
    """
    import httpx2

    from jp.tls import context_for

    # A read has one of two limits, which the client cannot tell apart: `HttpResponse` and `_sent` hold them.
    timeout = httpx2.Timeout(limits.idle_timeout, connect=limits.connect_timeout, read=None)
    try:
        return httpx2.AsyncClient(verify=context_for(url), timeout=timeout, http2=False)
    except (ImportError, ValueError, httpx2.InvalidURL):
        message = "a proxy of the environment has an address that cannot be used"
        hint = "set HTTPS_PROXY, HTTP_PROXY and ALL_PROXY to http:// or https:// URLs, or unset them"
        raise ConfigurationError(message, hint=hint) from None


def post(request: HttpRequest, limits: Limits) -> AbstractAsyncContextManager[HttpResponse]:
    """Send `request` and yield the response; leaving the context closes the connection at once.

    Raises:
        ProviderError: the connection failed or broke off, before the response or in it.
        ConfigurationError: the URL, a proxy or a certificate variable cannot be used.
    """
    length = ("content-length", str(len(request.body)))
    return _exchange("POST", request, limits, headers=(*request.headers, length))


def get(request: HttpRequest, limits: Limits) -> AbstractAsyncContextManager[HttpResponse]:
    """Request a URL and yield the response; see `post`."""
    return _exchange("GET", request, limits, headers=request.headers)


@asynccontextmanager
async def _exchange(
    method: Literal["GET", "POST"], request: HttpRequest, limits: Limits, *, headers: tuple[tuple[str, str], ...]
) -> AsyncGenerator[HttpResponse, None]:
    import httpx2

    begun = False
    host = request.url
    first_byte = CancelScope()

    def uploaded() -> None:
        first_byte.deadline = _after(limits.first_byte_timeout)

    content = _pieces(request.body, uploaded) if method == "POST" else None
    try:
        host = httpx2.URL(request.url).netloc.decode()
        async with _client(request.url, limits) as client:
            sent = client.build_request(method, request.url, headers=[*headers], content=content)
            if content is None:
                uploaded()
            response = None
            with first_byte:
                response = await client.send(sent, stream=True)
            if response is None:
                raise _timeout(host, _NO_RESPONSE)
            begun = True
            try:
                yield HttpResponse(response, limits, host=host, deadline=first_byte.deadline)
            finally:
                await response.aclose()
    except (httpx2.RequestError, httpx2.InvalidURL, OSError) as error:
        raise connection_error(error, host=host, begun=begun) from error


_REACH = phrase("check the network and the URL: `", Show("setting origins"), "` shows the source of `base_url`")

_PROXIES = ("https", "http", "all")

_HERE = re.compile(r"(localhost|127(\.\d+){3}|\[::1\])(:\d+)?$")
"""Hosts of this machine, where the user has to start the server."""


def _reach() -> str:
    """Return the hint for a server that cannot be reached; behind a proxy, the proxy may be the cause."""
    from urllib.request import getproxies

    found = getproxies()
    names = " or ".join(f"{scheme.upper()}_PROXY" for scheme in _PROXIES if scheme in found)
    return phrase(_REACH, f"; the proxy in {names} may not respond") if names else _REACH


def _without_connection(host: str, error: Exception) -> ProviderError:
    import socket
    import ssl

    root = root_cause(error)
    if isinstance(root, ssl.SSLCertVerificationError):
        message = f"the certificate of {host!r} is not trusted: {root.verify_message}"
        hint = "behind a proxy that inspects TLS, set SSL_CERT_FILE to its certificate authority"
        return ProviderError(message, kind="other", hint=hint)
    if isinstance(root, ssl.SSLError):
        hint = "if it speaks plain HTTP, give its address as http://"
        message = f"{host!r} does not speak TLS as expected: {root.strerror or root}"
        return ProviderError(message, kind="other", hint=hint)
    if isinstance(root, socket.gaierror):
        return ProviderError(f"{host!r} cannot be found: {root.strerror}", kind="connect", hint=_reach())
    reason = os.strerror(root.errno) if isinstance(root, OSError) and root.errno else str(root)
    refused = ProviderError(f"no connection to {host!r}: {reason}", kind="connect", hint=_reach())
    refused.lasting = isinstance(root, ConnectionRefusedError) and _HERE.match(host) is not None
    return refused


def connection_error(error: Exception, *, host: str, begun: bool) -> JpError:
    """Return the error to report for an exception of the HTTP client.

    Args:
        error: the exception.
        host: the server, with its port if it is not the default one.
        begun: whether a response had begun.
    """
    import httpx2

    match error:
        case httpx2.ConnectTimeout():
            return _timeout(host, _NO_CONNECTION, kind="connect")
        case httpx2.TimeoutException():
            return _timeout(host, _NO_UPLOAD)
        case httpx2.ConnectError():
            return _without_connection(host, error)
        case httpx2.ProxyError():
            hint = "check HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY"
            return ProviderError(f"the proxy on the way to {host!r} refused: {error}", kind="connect", hint=hint)
        case httpx2.UnsupportedProtocol() | httpx2.InvalidURL() | httpx2.LocalProtocolError():
            message = f"cannot send a request to {host!r}: {error or type(error).__name__}"
            return ConfigurationError(message, hint=_REACH)
        case _:
            return _broken(error, host, begun=begun)


def _broken(error: Exception, host: str, *, begun: bool) -> ProviderError:
    import httpx2

    if isinstance(error, httpx2.DecodingError):
        return ProviderError(f"the response of {host!r} cannot be decompressed", kind="transient")
    reason = str(root_cause(error)) or type(error).__name__
    return ProviderError(f"the connection to {host!r} broke off: {reason}", kind="cut" if begun else "connect")
