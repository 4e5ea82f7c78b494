"""One HTTP request, its response as a stream of bytes, and every failure on the way as a `ProviderError`.

The client lives for one request: a turn's next request is seconds away, and what is not kept open needs no closing.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from math import inf
from typing import TYPE_CHECKING, Literal

import msgspec
from anyio import CancelScope, current_time

from jp.errors import ConfigurationError
from jp.provider.errors import ProviderError

if TYPE_CHECKING:
    import httpx2

_UPLOAD_PIECE = 64 * 1024
"""The idle timeout counts between pieces: a large request on a slow line makes progress."""

_LONGEST_ERROR_BODY = 64 * 1024


def _nothing() -> None:
    pass


after_upload: ContextVar[Callable[[], None]] = ContextVar("after_upload", default=_nothing)
"""What is called when the body of a request has left: whoever has work that must not delay it begins then."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of one exchange. Timeouts are in seconds, None means no limit.

    `first_byte_timeout` is from the end of the upload to the first byte of the body: a server may send its headers
    before it has read the prompt. `idle_timeout` is between any two bytes after that, keep-alives included, and
    between two pieces of the upload. `max_response_bytes` counts the response as it comes, decompressed.
    """

    connect_timeout: float | None = 20.0
    first_byte_timeout: float | None = 60.0
    idle_timeout: float | None = 60.0
    max_response_bytes: int = 64 * 1024 * 1024


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent. `headers` may hold a key: they appear in no error. A `body` is for `post` alone."""

    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""


class HttpResponse:
    """An open response. Header names are lower case.

    `deadline` is when the first byte of the body has to be there, on the event loop's clock.
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
        """The headers; those that came more than once are joined by commas."""
        return dict(self._response.headers)

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes.

        Raises:
            ProviderError: it is longer than allowed, of kind `output_limit`, or too long in coming, of kind `timeout`.
        """
        received = 0
        async for chunk in self._timed():
            received += len(chunk)
            if received > self._limits.max_response_bytes:
                message = f"the response is longer than {self._limits.max_response_bytes} bytes"
                raise ProviderError(message, kind="output_limit")
            yield chunk

    async def error_body(self) -> bytes:
        """The beginning of the body; less where it breaks off, since the status says more than the break."""
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
        silence, deadline = _nothing_came, self._deadline
        while True:
            chunk = None
            with CancelScope(deadline=deadline) as scope:
                chunk = await anext(chunks, None)
            if scope.cancelled_caught:
                raise silence(self._host)
            if chunk is None:
                return
            yield chunk
            silence, deadline = _fell_silent, _after(idle)


def _after(seconds: float | None) -> float:
    return inf if seconds is None else current_time() + seconds


def _nothing_came(host: str) -> ProviderError:
    hint = "`assistant.request.first_byte_timeout_secs` sets how long jp waits"
    return ProviderError(f"{host!r} did not begin to answer in time", kind="timeout", hint=hint)


def _fell_silent(host: str) -> ProviderError:
    hint = "`assistant.request.stream_idle_timeout_secs` sets how long jp waits"
    return ProviderError(f"{host!r} was silent for too long", kind="timeout", hint=hint)


async def _pieces(body: bytes, uploaded: Callable[[], None]) -> AsyncIterator[bytes]:
    for start in range(0, len(body), _UPLOAD_PIECE):
        yield body[start : start + _UPLOAD_PIECE]
    uploaded()
    after_upload.get()()


def _client(url: str, limits: Limits) -> httpx2.AsyncClient:
    """A client that takes proxies from the environment and follows no redirect.

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
        hint = "set HTTPS_PROXY, HTTP_PROXY and ALL_PROXY to http:// or https:// addresses, or unset them"
        raise ConfigurationError(message, hint=hint) from None


def post(request: HttpRequest, limits: Limits) -> AbstractAsyncContextManager[HttpResponse]:
    """Send `request` and read the response inside the context; leaving it closes the connection at once.

    Raises:
        ProviderError: nothing was sent, nothing came, or it broke off. Failures before the response are like any.
        ConfigurationError: the address, a proxy or a certificate variable cannot be used.
    """
    length = ("content-length", str(len(request.body)))
    return _exchange("POST", request, limits, headers=(*request.headers, length))


def get(request: HttpRequest, limits: Limits) -> AbstractAsyncContextManager[HttpResponse]:
    """Ask for what lies at an address; see `post`."""
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
                raise _nothing_came(host)
            begun = True
            try:
                yield HttpResponse(response, limits, host=host, deadline=first_byte.deadline)
            finally:
                await response.aclose()
    except (httpx2.RequestError, httpx2.InvalidURL, OSError) as error:
        from jp.provider.failures import failure

        raise failure(error, host=host, begun=begun) from error
