"""One HTTP request, its response as a stream of bytes, and every failure on the way as a `ProviderError`.

The client lives for one request: a turn's next request is seconds away, and what is not kept open needs no closing.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Literal

import msgspec

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
    """How long and how much. Timeouts are in seconds, None means none.

    `idle_timeout` is between any two bytes, keep-alives included. `max_response_bytes` counts the response as it
    comes, decompressed.
    """

    connect_timeout: float | None = 20.0
    idle_timeout: float | None = 60.0
    max_response_bytes: int = 64 * 1024 * 1024


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent. `headers` may hold a key: they appear in no error. A `body` is for `post` alone."""

    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""


class HttpResponse:
    """An open response. Header names are lower case."""

    def __init__(self, response: httpx2.Response, limits: Limits) -> None:
        self._response = response
        self._limits = limits

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
            ProviderError: it is longer than allowed, of kind `output_limit`.
        """
        received = 0
        async for chunk in self._response.aiter_bytes():
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
            async for chunk in self._response.aiter_bytes():
                body += chunk
                if len(body) >= _LONGEST_ERROR_BODY:
                    break
        except httpx2.RequestError:
            pass
        return bytes(body[:_LONGEST_ERROR_BODY])


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), _UPLOAD_PIECE):
        yield body[start : start + _UPLOAD_PIECE]
    after_upload.get()()


def _client(url: str, limits: Limits) -> httpx2.AsyncClient:
    """A client that takes proxies from the environment and follows no redirect.

    Raises:
        ConfigurationError: a proxy variable or a certificate variable cannot be used.
    """
    import httpx2

    from jp.tls import context_for

    timeout = httpx2.Timeout(limits.idle_timeout, connect=limits.connect_timeout)
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
    return _exchange("POST", request, limits, headers=(*request.headers, length), content=_pieces(request.body))


def get(request: HttpRequest, limits: Limits) -> AbstractAsyncContextManager[HttpResponse]:
    """Ask for what lies at an address; see `post`."""
    return _exchange("GET", request, limits, headers=request.headers, content=None)


@asynccontextmanager
async def _exchange(
    method: Literal["GET", "POST"],
    request: HttpRequest,
    limits: Limits,
    *,
    headers: tuple[tuple[str, str], ...],
    content: AsyncIterator[bytes] | None,
) -> AsyncGenerator[HttpResponse, None]:
    import httpx2

    begun = False
    host = request.url
    try:
        host = httpx2.URL(request.url).netloc.decode()
        async with (
            _client(request.url, limits) as client,
            client.stream(method, request.url, headers=[*headers], content=content) as response,
        ):
            begun = True
            yield HttpResponse(response, limits)
    except (httpx2.RequestError, httpx2.InvalidURL, OSError) as error:
        from jp.provider.failures import failure

        raise failure(error, host=host, begun=begun) from error
