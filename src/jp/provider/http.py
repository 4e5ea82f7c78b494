"""A provider over HTTP: an adapter's two translations around one call, for one account."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol, Self

import msgspec

from jp import __version__
from jp.conversation.entries import JsonObject
from jp.conversation.thread import Thread
from jp.provider.base import BodyEncoder, Framing, Part, ResponseDecoder, WireRequest
from jp.provider.errors import ErrorKind, ProviderError
from jp.provider.keys import missing_key
from jp.provider.transport import HttpRequest, HttpResponse, Limits, connect, post

if TYPE_CHECKING:
    from jp.provider.reader import Frames, Reader

_SUCCESS = range(200, 300)

_WIRE_BYTES_PER_CONTENT_BYTE = 64
"""An event wraps a few characters into a hundred bytes and more: what bounds the wire is a multiple of what bounds
the content."""

_SECONDS_FOR_A_WHOLE_ANSWER = 1800.0
"""First-byte timeout of a response that is not streamed: no byte arrives before it is complete."""

_BROKEN: frozenset[ErrorKind] = frozenset({"cut", "timeout"})
"""Errors of a connection that was not closed in order."""

_ACCEPT: dict[Framing, str] = {
    "sse": "text/event-stream",
    "ndjson": "application/x-ndjson",
    "json": "application/json",
}
_REFUSED: dict[Framing, tuple[str, ...]] = {
    "sse": ("text/html", "application/json"),
    "ndjson": ("text/html",),
    "json": ("text/html",),
}
"""Content types that are not an answer: a proxy's page, or a single object instead of events."""

_SECRET_HEADERS = frozenset({"authorization", "x-api-key", "api-key", "x-goog-api-key", "x-amz-security-token"})


class Adapter(Protocol):
    """A vendor's adapter: two pure translations and the names of things."""

    @property
    def id(self) -> str:
        """The provider's id."""
        ...

    @property
    def renderer(self) -> int:
        """The version of what `render` gives."""
        ...

    def render(self, thread: Thread) -> WireRequest:
        """Return the request for `thread`."""
        ...

    def locate_rejected(self, thread: Thread, error: ProviderError) -> tuple[str, ...]:
        """Return the origins of the reasoning that `error` is about, none if it does not say."""
        ...

    def decoder(self, request: WireRequest) -> ResponseDecoder:
        """Return the decoder of the response to `request`."""
        ...


class Signer(Protocol):
    """A signer of requests, for clouds that need more than a key in a header."""

    async def sign(self, request: WireRequest) -> HttpRequest:
        """Return the HTTP request for `request`, with its credentials.

        Raises:
            ConfigurationError: a setting of the cloud is missing.
            ProviderError: there are no credentials, or they are not available now.
        """
        ...

    def frames(self, headers: Mapping[str, str]) -> Frames | None:
        """Return the splitter of a response with such headers; None if it has the adapter's framing."""
        ...


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """The URL and credentials of requests. `base_url_setting` and `key_variable` are the ones that a user changes.

    Attributes:
        key_hint: the hint for a rejected key.
        reach_hint: the hint for a server that cannot be reached.
        hints: hints for other errors, by their kind.
        needs_key: whether nothing is sent without a key.
        headers: headers of the user's configuration.
        key_header: the header of the key, and the prefix of its value.
        reply_hints: words of an error, and the hint for it.
    """

    base_url: str
    base_url_setting: str
    key: str | None
    key_variable: str
    key_header: tuple[str, str] = ("authorization", "Bearer ")
    needs_key: bool = True
    key_hint: str = ""
    reach_hint: str = ""
    hints: Mapping[ErrorKind, str] = {}
    reply_hints: tuple[tuple[bytes, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def key_headers(self) -> tuple[tuple[str, str], ...]:
        """The headers that carry the key, none without one."""
        name, before = self.key_header
        return () if self.key is None else ((name, f"{before}{self.key}"),)


def joined(base_url: str, path: str) -> str:
    """Return the URL of a path; the API's version may be at the end of the one or at the start of the other."""
    base = base_url.rstrip("/")
    version, _, rest = path.removeprefix("/").partition("/")
    return f"{base}/{rest}" if rest and base.endswith(f"/{version}") else base + path


def secrets_of(request: HttpRequest) -> tuple[str, ...]:
    """Return the values of the headers that carry credentials, with and without their scheme, to redact messages."""
    values = [value for name, value in request.headers if name.lower() in _SECRET_HEADERS]
    return tuple(secret for value in values for secret in (value, value.rpartition(" ")[2]))


class _Break:
    """A context that stores the `error` of a broken connection: an answer with a finish reason is still complete."""

    error: ProviderError | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if not isinstance(error, ProviderError) or error.kind not in _BROKEN:
            return False
        self.error = error
        return True


class HttpProvider:
    """A `Provider` that sends requests over HTTP. The key is asked for only when a request is sent.

    `limits.max_response_bytes` bounds the content of an answer; the bytes on the wire may be many more. A `signer`
    knows where requests go and how they are authenticated; else both follow from the account.
    """

    def __init__(self, adapter: Adapter, account: Account, limits: Limits, *, signer: Signer | None = None) -> None:
        self._adapter = adapter
        self._account = account
        self._limits = limits
        self._signer = signer
        self._encoder = BodyEncoder()

    @property
    def id(self) -> str:
        """The provider's id."""
        return self._adapter.id

    @property
    def renderer(self) -> int:
        """The version of what `render` gives."""
        return self._adapter.renderer

    def connect(self) -> None:
        """Begin to connect, for a request that is still being prepared; see `jp.provider.transport.connect`."""
        if self._signer is None:
            connect(self._account.base_url, self._limits)

    def render(self, thread: Thread) -> WireRequest:
        """Return the request for `thread`.

        Raises:
            ProviderError: the thread has content that the provider does not accept.
        """
        return self._adapter.render(thread)

    def locate_rejected(self, thread: Thread, error: ProviderError) -> tuple[str, ...]:
        """Return the origins of the reasoning that an error is about, none if it does not say."""
        return self._adapter.locate_rejected(thread, error)

    async def stream(self, request: WireRequest) -> AsyncGenerator[Part, None]:
        """Send `request` and yield parts as they come; the last one is `Finished`.

        Raises:
            AuthenticationError: there is no key.
            ProviderError: the request failed or cannot fit, or the stream ended without `Finished`.
        """
        if request.unfit is not None:
            raise ProviderError(request.unfit.message, kind="context_too_long", hint=request.unfit.hint)
        reader: Reader | None = None
        async with _Break() as broken, self._exchange(request) as response:
            reader = self._reader(request, response)
            async for chunk in response.chunks():
                for part in reader.feed(chunk):
                    yield part
                if reader.finished:
                    return
        for part in () if reader is None else reader.close():
            yield part
        if reader is None or not reader.finished:
            raise broken.error or await self._incomplete(request, has_begun=reader is not None and reader.begun)

    def _reader(self, request: WireRequest, response: HttpResponse) -> Reader:
        """Return the reader of the response, imported while the provider thinks."""
        from jp.provider.reader import Reader

        frames = None if self._signer is None else self._signer.frames(response.headers)
        decoder = self._adapter.decoder(request)
        return Reader(
            decoder,
            request.framing,
            max_bytes=self._limits.max_response_bytes,
            frames=frames,
            counted=response.log.tell_usage,
        )

    async def _incomplete(self, request: WireRequest, *, has_begun: bool) -> ProviderError:
        """Return the error for a stream that ended in order without an answer."""
        if request.probe is not None and not has_begun:
            await self._probe(request, request.probe)
        return ProviderError(f"{self.id} ended the answer before it was complete", kind="cut")

    async def _probe(self, request: WireRequest, body: JsonObject) -> None:
        """Let a server say why it does not answer: one that has promised a stream already can only end it."""
        async with self._exchange(msgspec.structs.replace(request, body=body, framing="json")):
            pass

    async def ask(self, request: WireRequest) -> bytes:
        """Send what is answered with one JSON value, which is no answer of a model, and get it.

        Raises:
            AuthenticationError: there is no key.
            ProviderError: the request failed.
        """
        async with self._exchange(request) as response:
            return b"".join([chunk async for chunk in response.chunks()])

    @asynccontextmanager
    async def _exchange(self, request: WireRequest) -> AsyncGenerator[HttpResponse, None]:
        """Yield the response to `request` if it is of the expected kind."""
        sent = self._http_request(request) if self._signer is None else await self._signer.sign(request)
        try:
            async with post(sent, self._wire_limits(request.framing)) as response:
                await self._check(response, request, secrets=secrets_of(sent))
                yield response
        except ProviderError as error:
            if error.kind == "connect" and self._account.reach_hint:
                error.hint = self._account.reach_hint
            raise

    def _wire_limits(self, framing: Framing) -> Limits:
        limits = self._limits
        first_byte, idle = limits.first_byte_timeout, limits.idle_timeout
        if framing == "json":
            first_byte = None if first_byte is None else max(first_byte, _SECONDS_FOR_A_WHOLE_ANSWER)
            idle = None if idle is None else max(idle, _SECONDS_FOR_A_WHOLE_ANSWER)
        wire_bytes = limits.max_response_bytes * _WIRE_BYTES_PER_CONTENT_BYTE
        return msgspec.structs.replace(
            limits, max_response_bytes=wire_bytes, first_byte_timeout=first_byte, idle_timeout=idle
        )

    def _http_request(self, request: WireRequest) -> HttpRequest:
        key = self._account.key
        if key is None and self._account.needs_key:
            raise missing_key(self.id, self._account.key_variable)
        headers = (
            ("content-type", "application/json"),
            ("accept", _ACCEPT[request.framing]),
            ("user-agent", f"jp/{__version__}"),
            *self._account.key_headers,
            *request.headers,
            *self._account.headers,
        )
        return HttpRequest(
            url=joined(self._account.base_url, request.path), headers=headers, body=self._encoder.encode(request.body)
        )

    async def _check(self, response: HttpResponse, request: WireRequest, *, secrets: tuple[str, ...]) -> None:
        """Refuse what is no stream of events: an error, a redirect, a proxy's page."""
        kind = response.headers.get("content-type", "")
        if response.status in _SUCCESS and not kind.startswith(_REFUSED[request.framing]):
            return
        from jp.provider.classification import Origin, Reply, classify

        body = await response.error_body()
        reply = Reply(body=body, status=response.status, headers=response.headers)
        account = self._account
        origin = Origin(
            provider=self.id,
            model=request.model,
            key_hint=account.key_hint,
            hints=account.hints,
            reply_hints=account.reply_hints,
            base_url_setting=account.base_url_setting,
            secrets=secrets,
        )
        raise classify(reply, origin, now=time.time())
