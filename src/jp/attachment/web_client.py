"""The HTTP client of attachments: one GET within bounds, and its errors."""

from __future__ import annotations

import os
import socket
import ssl
from base64 import b64encode
from collections.abc import Sequence
from http import HTTPStatus
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING

import anyio
import httpx2  # noqa: TID253 - this module is only imported where the client is
import msgspec

from jp import __version__
from jp.attachment.base import AttachmentError, format_size
from jp.attachment.media import (
    SUPPORTED,
    SUPPORTED_WEB_TYPES,
    BoundError,
    ContentType,
    DamagedError,
    Unpacker,
    UnsupportedEncodingError,
    parse_content_type,
)
from jp.attachment.web_address import (
    BY_HAND,
    RETRY,
    Address,
    IpAddress,
    NetworkScope,
    RedirectError,
    Zone,
    failure,
    redirected,
    zone_of,
)
from jp.errors import root_cause
from jp.remedies import Ask, phrase

if TYPE_CHECKING:
    from ssl import SSLContext


_REACH = "check the address and the network"
_ZONES: dict[Zone, str] = {
    "public": "a public address",
    "loopback": "this machine",
    "private": "in your own network",
    "link-local": "a link-local address",
    "metadata": "where a cloud keeps the credentials of this machine",
    "reserved": "not a public address",
}
_SMALLER = phrase(
    *("Pipe a part of it: `curl ADDRESS | head -c 100K | ", Ask(is_open=True)),
    "`, or raise 'conversation.max_attachment_bytes'.",
)
_PROXIES = "set HTTPS_PROXY, HTTP_PROXY and ALL_PROXY to http:// or https:// addresses, or unset them"


def _bad_redirect(declared: Address, where: str) -> AttachmentError:
    """Return the error of a redirect that is not followed."""
    hint = phrase("attach the address that you mean, or fetch it yourself: ", BY_HAND, "")
    return failure(declared, f"redirects {where}", hint)


def _out_of_scope(declared: Address, here: Address, address: IpAddress) -> AttachmentError:
    """Return the error for a host at an address that must not be connected to."""
    by = "redirects to" if here.host != declared.host or here.port != declared.port else "is not fetched:"
    named = "" if here.host.strip("[]") == str(address) else f" is at {str(address)!r}, which"
    hint = phrase(f"to attach it anyway, type '{address}' in place of the name; or ", BY_HAND)
    return failure(declared, f"{by} {here.host!r}{named or ','} is {_ZONES[zone_of(address)]}", hint)


class RefusedError(AttachmentError):
    """The server did not answer with content; `status` is the HTTP status."""

    def __init__(self, message: str, *, status: int, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.status = status


def _refused(declared: Address, here: Address, status: int, retry_after: str) -> RefusedError:
    """Return the error of a response without content."""
    try:
        phrase = f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        phrase = str(status)
    by = "" if here.host == declared.host else f" at {here.host!r}"
    message = f"{declared.shown!r} answered {phrase}{by}"
    return RefusedError(message, status=status, hint=_advice(status, retry_after))


def _advice(status: int, retry_after: str) -> str:
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.PROXY_AUTHENTICATION_REQUIRED}:
        return phrase("It is not for everybody. Fetch it yourself: ", BY_HAND, ".")
    if status in {HTTPStatus.NOT_FOUND, HTTPStatus.GONE}:
        return "check the address"
    if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        when = (
            f"in {int(retry_after):,} s" if retry_after.isdecimal() and len(retry_after) < len("1000000") else "later"
        )
        return f"Try again {when}."
    return phrase("Fetch it yourself: ", BY_HAND, ".")


def _unreachable(declared: Address, here: Address, error: Exception) -> AttachmentError:
    """Return the error for a client that failed with `error` on the way to `here`."""
    message, hint = _reason(here.host, error)
    return AttachmentError(f"{declared.shown!r}: {message}", hint=hint)


def _reason(host: str, error: Exception) -> tuple[str, str]:
    match error:
        case httpx2.ConnectTimeout():
            return f"no connection to {host!r} in time", _REACH
        case httpx2.TimeoutException():
            return f"{host!r} was silent for too long", "try again later"
        case httpx2.ConnectError():
            return _without_connection(host, error)
        case httpx2.ProxyError():
            return f"the proxy on the way to {host!r} refused", "check HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY"
        case httpx2.InvalidURL() | UnicodeError() | httpx2.UnsupportedProtocol():
            return f"{host!r} cannot be the name of a host", _REACH
        case _:
            reason = str(root_cause(error)) or "the server closed it"
            return f"the connection to {host!r} broke off: {reason}", "try again later"


def _without_connection(host: str, error: Exception) -> tuple[str, str]:
    root = root_cause(error)
    if isinstance(root, ssl.SSLCertVerificationError):
        hint = "where the certificate authority is a private one, set SSL_CERT_FILE to its certificate"
        return f"the certificate of {host!r} is not trusted: {root.verify_message}", hint
    if isinstance(root, ssl.SSLError):
        return f"{host!r} does not speak TLS as expected", "if it speaks plain HTTP, write 'http://'"
    if isinstance(root, (socket.gaierror, UnicodeError)):
        reason = root.strerror if isinstance(root, OSError) else "this cannot be the name of a host"
        return f"{host!r} cannot be found: {reason}", _REACH
    reason = os.strerror(root.errno) if isinstance(root, OSError) and root.errno else str(root)
    return f"no connection to {host!r}: {reason}", _REACH


_GOOD = frozenset({200, 203})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PORTS = {"http": 80, "https": 443}
_SECS_FOR_ONE_OF_MANY = 3.0
"""Seconds to wait for a connection when there is another address to try."""

_ACCEPT = "text/markdown, text/html;q=0.9, text/plain;q=0.9, application/json;q=0.8, */*;q=0.5"


class FetchLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a fetch. `idle_secs` is the time between two bytes, `total_secs` the time in all."""

    connect_secs: float = 15.0
    idle_secs: float = 30.0
    total_secs: float = 120.0
    max_redirects: int = 10


class WebResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A response. `address` is the one after all redirects; `last_modified` is the value of the header."""

    address: Address
    status: int
    content_type: ContentType
    last_modified: str
    body: bytes


async def fetch(address: Address, limits: FetchLimits, max_bytes: int, scope: NetworkScope) -> WebResponse:
    """Fetch `address`. Canceling closes the connection.

    `scope` holds for `address`; a redirect may only lead to a public address, or to the machine that sent it.

    Raises:
        AttachmentError: the fetch failed, the address is out of scope, its type cannot be attached, or it has more
            than `max_bytes`.
    """
    here = address
    seen = {here.text}
    for _ in range(limits.max_redirects + 1):
        request = _Request(here, address, limits)
        found = await request.send(scope, max_bytes)
        if isinstance(found, WebResponse):
            return found
        here, scope = found, scope.after(request.addresses)
        if here.text in seen:
            raise _bad_redirect(address, "in a circle")
        seen.add(here.text)
    raise _bad_redirect(address, f"more than {limits.max_redirects} times")


class _Request:
    """One request to `here`, after redirects from `declared`. `send` sets `addresses`, those of the host."""

    def __init__(self, here: Address, declared: Address, limits: FetchLimits) -> None:
        self.addresses: tuple[IpAddress, ...] = ()
        self._here = here
        self._declared = declared
        self._limits = limits

    async def send(self, scope: NetworkScope, max_bytes: int) -> WebResponse | Address:
        """Return the response, or the address that it redirects to."""
        here, declared = self._here, self._declared
        try:
            proxy = _proxy_for(here)
            self.addresses = await self._resolved(by_proxy=proxy is not None)
            for address in self.addresses:
                if not scope.allows(address):
                    raise _out_of_scope(declared, here, address)
            async with self._client(proxy) as client, client.stream("GET", here.text) as response:
                if response.status_code in _REDIRECTS:
                    return redirected(here, response.headers.get("location", ""))
                return await _received(response, here, declared, max_bytes)
        except RedirectError as error:
            raise _bad_redirect(declared, f"to {error}") from None
        except (httpx2.RequestError, httpx2.InvalidURL, OSError, UnicodeError) as error:
            raise _unreachable(declared, here, error) from None

    async def _resolved(self, *, by_proxy: bool) -> tuple[IpAddress, ...]:
        """Return the addresses of the host, in the order of connection attempts.

        Return none where only the proxy can resolve the name, as in networks without direct access.
        """
        host = httpx2.URL(self._here.text).raw_host.decode("ascii")
        port = self._here.port or _PORTS[self._here.scheme]
        try:
            with anyio.fail_after(self._limits.connect_secs):
                found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except TimeoutError:
            raise httpx2.ConnectTimeout(f"{host!r} was not resolved in time") from None
        except (OSError, UnicodeError) as error:
            if by_proxy:
                return ()
            raise httpx2.ConnectError(str(error)) from error
        return tuple(dict.fromkeys(ip_address(str(place[0]).partition("%")[0]) for *_, place in found))

    def _client(self, proxy: str | None) -> httpx2.AsyncClient:
        """Return a client with the environment's certificates that uses `proxy`, or the resolved addresses.

        Raises:
            AttachmentError: a certificate file or a proxy of the environment cannot be used.
        """
        here = self._here
        headers = {"accept": _ACCEPT, "accept-encoding": SUPPORTED, "user-agent": f"jp/{__version__}"}
        if here.credentials:
            headers["authorization"] = f"Basic {b64encode(here.credentials.encode()).decode()}"
        try:
            verify = _trust(here)
        except OSError as error:
            name = next((name for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if os.environ.get(name)), "SSL_CERT_FILE")
            said = f"{os.environ.get(name, '')!r}: {error.strerror or error}"
            message = f"cannot be verified: {name} is {said}"
            raise failure(self._declared, message, f"Correct or unset {name}.") from None
        try:
            transport = httpx2.AsyncHTTPTransport(verify=verify, proxy=None if proxy is None else httpx2.Proxy(proxy))
        except (ImportError, ValueError, httpx2.InvalidURL):
            # The address of a proxy may have a password.
            message = "cannot be requested: a proxy of the environment has an address that cannot be used"
            raise failure(self._declared, message, _PROXIES) from None
        timeout = httpx2.Timeout(self._limits.idle_secs, connect=self._limits.connect_secs)
        pinned = transport if proxy is not None else _PinnedTransport(transport, self.addresses)
        return httpx2.AsyncClient(transport=pinned, timeout=timeout, headers=headers)


class _PinnedTransport(httpx2.AsyncBaseTransport):
    """A transport that connects to the first of `addresses` that answers and never resolves the host again.

    The `host` header and the name that TLS verifies stay those of the request.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport, addresses: Sequence[IpAddress]) -> None:
        self._inner = inner
        self._addresses = addresses

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send `request`, which has no body."""
        for address in self._addresses[:-1]:
            try:
                return await self._send(request, address, _SECS_FOR_ONE_OF_MANY)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                continue
        return await self._send(request, self._addresses[-1], None)

    async def _send(self, request: httpx2.Request, address: IpAddress, seconds: float | None) -> httpx2.Response:
        extensions: dict[str, object] = {**request.extensions, "sni_hostname": request.url.raw_host.decode("ascii")}
        if seconds is not None:
            waits: dict[str, float | None] = request.extensions.get("timeout", {})
            extensions["timeout"] = {**waits, "connect": min(seconds, waits.get("connect") or seconds)}
        url = request.url.copy_with(host=str(address))
        pinned = httpx2.Request(
            request.method, url, headers=request.headers, stream=request.stream, extensions=extensions
        )
        return await self._inner.handle_async_request(pinned)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._inner.aclose()


def _proxy_for(here: Address) -> str | None:
    """Return the environment's proxy for `here`; None for a direct connection."""
    from urllib.request import getproxies, proxy_bypass

    proxies = getproxies()
    found = proxies.get(here.scheme) or proxies.get("all")
    if not found:
        return None
    host = here.host.strip("[]")
    if proxy_bypass(host) or any(_spares(entry.strip(), host) for entry in proxies.get("no", "").split(",")):
        return None
    return found if "://" in found else f"http://{found}"


def _spares(entry: str, host: str) -> bool:
    """Return whether an entry of NO_PROXY is `*`, the address `host`, or a network that contains it."""
    try:
        return entry == "*" or ip_address(host) in ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        return False


async def _received(response: httpx2.Response, here: Address, declared: Address, max_bytes: int) -> WebResponse:
    headers = response.headers
    if response.status_code not in _GOOD:
        raise _refused(declared, here, response.status_code, headers.get("retry-after", ""))
    content_type = parse_content_type(headers.get("content-type", ""))
    if content_type.kind == "other":
        raise failure(declared, f"is of the type {content_type.mime_type!r}", SUPPORTED_WEB_TYPES)
    body = bytearray()
    try:
        unpacker = Unpacker(headers.get("content-encoding", ""), max_bytes)
        async for piece in response.aiter_raw():
            body += unpacker.feed(piece)
        unpacker.close()
    except UnsupportedEncodingError as error:
        raise failure(declared, f"came as {str(error)!r}, which was not asked for", RETRY) from None
    except DamagedError:
        raise failure(declared, "came compressed, and is damaged or incomplete", RETRY) from None
    except BoundError:
        most = f"has more than {format_size(max_bytes)}, the most that an attachment has"
        raise failure(declared, most, _SMALLER) from None
    return WebResponse(
        address=here,
        status=response.status_code,
        content_type=content_type,
        last_modified=headers.get("last-modified", ""),
        body=bytes(body),
    )


def _trust(here: Address) -> SSLContext:
    """Return the TLS context. Without TLS it has no certificates: to read them costs more than a request."""
    from jp.tls import bare_context, speaks_tls

    if speaks_tls(here.text):
        context = httpx2.create_ssl_context()
        bundle, directory = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
        if bundle and directory:
            # httpx2 reads the first one only.
            context.load_verify_locations(cafile=bundle, capath=directory)
        return context
    return bare_context()
