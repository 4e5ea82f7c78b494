"""Transport of one HTTP request: its response as a stream of bytes, and every failure as a `ProviderError`."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import msgspec
from anyio import CancelScope, current_time, fail_after

from jp.errors import ConfigurationError, JpError, root_cause
from jp.provider.errors import ProviderError
from jp.remedies import Show, phrase

if TYPE_CHECKING:
    import httpx2

    from jp.conversation.entries import Usage
    from jp.provider.connection import Address, Connection, Connections
    from jp.provider.errors import ErrorKind

_Method = Literal["GET", "POST"]

_UPLOAD_PIECE = 64 * 1024
"""Bytes of a piece: the idle timeout restarts between pieces, so that a large request makes progress on a slow line."""

_LONGEST_ERROR_BODY = 64 * 1024


def _nothing() -> None:
    pass


after_upload: ContextVar[Callable[[], None]] = ContextVar("after_upload", default=_nothing)
"""Callback after the body of a request was sent, for work that must not delay it."""


class _SharedConnections:
    """The connections of one query, and its log. Nothing is imported for them before the first request."""

    def __init__(self, log: Callable[[str], None] | None) -> None:
        self.log = log

    @cached_property
    def connections(self) -> Connections:
        from jp.provider.connection import Connections

        return Connections()

    def close(self) -> None:
        if "connections" in vars(self):
            self.connections.close()


_shared: ContextVar[_SharedConnections | None] = ContextVar("_shared", default=None)


@contextmanager
def sharing_connections(log: Callable[[str], None] | None = None) -> Generator[None]:
    """Let requests share connections, in this task and those that it starts, until the block is left.

    `log` is told about each request: where it goes, what comes of it, and when; None where nobody listens. Nothing of a
    URL behind its path is said, for that may be a key.
    """
    shared = _SharedConnections(log)
    before = _shared.set(shared)
    try:
        yield
    finally:
        shared.close()
        with suppress(ValueError):  # an abandoned generator is closed in a context of its own
            _shared.reset(before)


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
    """An open response. Header names are lower case; repeated ones are joined by commas.

    `deadline` is the time limit for the first byte of the body, on the event loop's clock. `log` is told about the
    request.
    """

    def __init__(self, head: _Head, limits: Limits, *, host: str, deadline: float, log: RequestLog) -> None:
        self.log = log
        self.status = head.status
        self.headers = head.headers
        self._body = head.body
        self._limits = limits
        self._host = host
        self._deadline = deadline

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
        body = bytearray()
        try:
            async for chunk in self._timed():
                body += chunk
                if len(body) >= _LONGEST_ERROR_BODY:
                    break
        except Exception:  # noqa: BLE001, S110 - whatever breaks it off
            pass
        return bytes(body[:_LONGEST_ERROR_BODY])

    async def _timed(self) -> AsyncIterator[bytes]:
        """Yield the body's chunks: the first before the deadline, each further one within the idle timeout."""
        chunks = aiter(self._body)
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


def _pieces(body: bytes) -> Iterator[bytes]:
    return (body[start : start + _UPLOAD_PIECE] for start in range(0, len(body), _UPLOAD_PIECE))


class _Head(NamedTuple):
    """The head of a response, and its body as it arrives, decompressed."""

    status: int
    headers: Mapping[str, str]
    body: AsyncIterator[bytes]


class _Exchange(Protocol):
    """A request and its response, over some client.

    `begin` sends the request, calls `uploaded` after its last byte, and returns when the head of the response is there.
    `end` keeps the connection for another request only if the response was read `in_order`.
    """

    async def begin(self, uploaded: Callable[[], None]) -> _Head: ...

    async def end(self, *, in_order: bool) -> None: ...

    def error(self, error: Exception, *, begun: bool) -> JpError | None:
        """Return the error for an exception of the client, None if it is none of its own."""
        ...


class _SocketExchange:
    """An exchange over a connection of jp's own."""

    def __init__(self, method: _Method, request: HttpRequest, limits: Limits, address: Address) -> None:
        from jp.provider.connection import Connections

        self._method: _Method = method
        self._request = request
        self._limits = limits
        self._address = address
        shared = _shared.get()
        self._connections = Connections() if shared is None else shared.connections
        self._is_alone = shared is None
        self._connection: Connection | None = None

    async def begin(self, uploaded: Callable[[], None]) -> _Head:
        from h11 import RemoteProtocolError

        while True:
            self._connection = connection = await self._connect()
            try:
                return await self._sent(connection, uploaded)
            except (OSError, RemoteProtocolError):
                # A server may leave an idle connection at the moment in which it is used again.
                if not connection.is_reused or connection.has_answered:
                    raise
                connection.close()

    async def _connect(self) -> Connection:
        host, timeout = self._address.authority, self._limits.connect_timeout
        try:
            with fail_after(timeout):
                return await self._connections.take(self._address.origin, timeout)
        except OSError as error:
            if isinstance(error, TimeoutError) and error.errno is None:
                raise _timeout(host, _NO_CONNECTION, kind="connect") from error
            raise _without_connection(host, error) from error

    async def _sent(self, connection: Connection, uploaded: Callable[[], None]) -> _Head:
        import h11

        from jp.provider.connection import decoded

        given = {name.lower() for name, _ in self._request.headers}
        usual = (("host", self._address.authority), ("accept-encoding", "gzip, deflate"))
        headers = [*(header for header in usual if header[0] not in given), *self._request.headers]
        if self._method == "POST":
            headers.append(("content-length", str(len(self._request.body))))
        events: list[h11.Event] = [h11.Request(method=self._method, target=self._address.target, headers=headers)]
        try:
            for piece in _pieces(self._request.body):
                with fail_after(self._limits.idle_timeout):
                    await connection.send(*events, h11.Data(data=piece))
                events = []
            await connection.send(*events, h11.EndOfMessage())
        except TimeoutError as error:
            raise _timeout(self._address.authority, _NO_UPLOAD) from error
        except OSError:
            pass  # a server that does not want all of it may have said why
        uploaded()
        while not isinstance(head := await connection.receive(), h11.Response):
            pass  # such as 100 Continue
        names = [name.decode("latin-1") for name, _ in head.headers]
        found: dict[str, str] = {}
        for name, value in zip(names, (value.decode("latin-1") for _, value in head.headers), strict=True):
            found[name] = f"{found[name]}, {value}" if name in found else value
        return _Head(head.status_code, found, decoded(connection.body(), found.get("content-encoding", "").lower()))

    async def end(self, *, in_order: bool) -> None:
        if self._connection is not None and in_order:
            self._connections.give_back(self._connection)
        elif self._connection is not None:
            self._connection.close()
        if self._is_alone:
            self._connections.close()

    def error(self, error: Exception, *, begun: bool) -> JpError | None:
        import zlib

        import h11

        host = self._address.authority
        match error:
            case zlib.error():
                return _undecodable(host)
            case h11.LocalProtocolError():
                return ConfigurationError(f"cannot send a request to {host!r}: {error}", hint=_REACH)
            case OSError() | h11.RemoteProtocolError():
                return _broken(error, host, begun=begun)
            case _:
                return None


class _HttpxExchange:
    """An exchange over httpx2: through proxies, and to addresses that need its care."""

    def __init__(self, method: _Method, request: HttpRequest, limits: Limits) -> None:
        self._method = method
        self._request = request
        self._limits = limits
        self._host = request.url
        self._stack = AsyncExitStack()

    async def begin(self, uploaded: Callable[[], None]) -> _Head:
        import httpx2

        self._host = httpx2.URL(self._request.url).netloc.decode()
        client = await self._stack.enter_async_context(_client(self._request.url, self._limits))
        headers = [*self._request.headers]
        content = None
        if self._method == "POST":
            headers.append(("content-length", str(len(self._request.body))))
            content = self._content(uploaded)
        else:
            uploaded()
        sent = client.build_request(self._method, self._request.url, headers=headers, content=content)
        response = await client.send(sent, stream=True)
        self._stack.push_async_callback(response.aclose)
        return _Head(response.status_code, dict(response.headers), response.aiter_bytes())

    async def _content(self, uploaded: Callable[[], None]) -> AsyncIterator[bytes]:
        for piece in _pieces(self._request.body):
            yield piece
        uploaded()

    async def end(self, *, in_order: bool) -> None:
        await self._stack.aclose()

    def error(self, error: Exception, *, begun: bool) -> JpError | None:
        import httpx2

        kinds = (httpx2.RequestError, httpx2.InvalidURL, OSError)
        return connection_error(error, host=self._host, begun=begun) if isinstance(error, kinds) else None


def _client(url: str, limits: Limits) -> httpx2.AsyncClient:
    """Return a client that takes proxies from the environment and follows no redirect.

    Raises:
        ConfigurationError: a proxy variable or a certificate variable cannot be used.
    """
    import httpx2

    from jp.tls import context_for

    # A read has one of two limits, which the client cannot tell apart: `HttpResponse` and `_exchange` hold them.
    timeout = httpx2.Timeout(limits.idle_timeout, connect=limits.connect_timeout, read=None)
    try:
        return httpx2.AsyncClient(verify=context_for(url), timeout=timeout, http2=False)
    except (ImportError, ValueError, httpx2.InvalidURL):
        message = "a proxy of the environment has an address that cannot be used"
        hint = "set HTTPS_PROXY, HTTP_PROXY and ALL_PROXY to http:// or https:// URLs, or unset them"
        raise ConfigurationError(message, hint=hint) from None


def connect(url: str, limits: Limits) -> None:
    """Begin to connect to the server of a URL, if requests share connections here and nothing forbids it."""
    shared = _shared.get()
    if shared is None:
        return
    from jp.provider.connection import address_of

    address = address_of(url)
    if address is not None:
        shared.connections.begin(address.origin, limits.connect_timeout)


def post(request: HttpRequest, limits: Limits) -> AbstractAsyncContextManager[HttpResponse]:
    """Send `request` and yield the response.

    When the context is left, the connection is kept if it is shared and the response was read in order; else it is
    closed at once.

    Raises:
        ProviderError: the connection failed or broke off, before the response or in it.
        ConfigurationError: the URL, a proxy or a certificate variable cannot be used.
    """
    return _exchange("POST", request, limits)


def get(request: HttpRequest, limits: Limits) -> AbstractAsyncContextManager[HttpResponse]:
    """Request a URL and yield the response; see `post`."""
    return _exchange("GET", request, limits)


@asynccontextmanager
async def _exchange(method: _Method, request: HttpRequest, limits: Limits) -> AsyncGenerator[HttpResponse, None]:
    from jp.provider.connection import address_of

    address = address_of(request.url)
    exchange: _Exchange = (
        _HttpxExchange(method, request, limits)
        if address is None
        else _SocketExchange(method, request, limits, address)
    )
    host = request.url if address is None else address.authority
    begun = in_order = False
    first_byte = CancelScope()
    log = RequestLog(method, request)

    def uploaded() -> None:
        first_byte.deadline = _after(limits.first_byte_timeout)
        after_upload.get()()

    async def sent() -> _Head:
        with first_byte:
            return await exchange.begin(uploaded)
        raise _timeout(host, _NO_RESPONSE)

    try:
        head = await sent()
        begun = True
        log.tell_timed("responds", head.status)
        yield HttpResponse(head, limits, host=host, deadline=first_byte.deadline, log=log)
        in_order = True
        log.tell_timed("has ended")
    except Exception as error:
        found = exchange.error(error, begun=begun)
        log.tell_timed("failed:", error if found is None else found.message)
        if found is None:
            raise
        raise found from error
    finally:
        await exchange.end(in_order=in_order)


class RequestLog:
    """Tells about one request, each time in one line. Where nobody listens nothing is composed."""

    def __init__(self, method: _Method, request: HttpRequest) -> None:
        shared = _shared.get()
        self._log = None if shared is None else shared.log
        if self._log is not None:
            self._start = current_time()
            self._name = f"{method} {_named(request.url)}"
            self.tell(len(request.body), "bytes")

    def tell(self, *words: object) -> None:
        """Say something about the request. Numbers are written with separators."""
        if self._log is not None:
            said = " ".join(f"{word:,}" if isinstance(word, int) else str(word) for word in words)
            self._log(_one_line(f"{self._name}: {said}"))

    def tell_usage(self, usage: Usage) -> None:
        """Say how many tokens the request took, as its provider reported them."""
        prompt = usage.input + usage.cache_read + usage.cache_write
        cached = ("of these", usage.cache_read, "cached,") if usage.cache_read else ()
        self.tell("used", prompt, "tokens in,", *cached, usage.output, "out")

    def tell_timed(self, *words: object) -> None:
        """Say something, and how long after the beginning of the request that is."""
        if self._log is not None:
            self.tell(*words, f"after {current_time() - self._start:.2f} s")


def _one_line(text: str) -> str:
    """Return `text` with a space for every run of white space and of characters that are not printable."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def _named(url: str) -> str:
    """Return a URL without anything that may be a secret: a user, a password, a query."""
    scheme, _, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path.partition('?')[0].partition('#')[0]}"


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
            is_damaged = isinstance(error, httpx2.DecodingError)
            return _undecodable(host) if is_damaged else _broken(error, host, begun=begun)


def _undecodable(host: str) -> ProviderError:
    return ProviderError(f"the response of {host!r} cannot be decompressed", kind="transient")


def _broken(error: Exception, host: str, *, begun: bool) -> ProviderError:
    reason = str(root_cause(error)) or type(error).__name__
    return ProviderError(f"the connection to {host!r} broke off: {reason}", kind="cut" if begun else "connect")
