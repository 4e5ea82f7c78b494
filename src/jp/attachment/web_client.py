"""One GET over the web, bounded, with its errors for a person."""

from __future__ import annotations

import os
import socket
import ssl
from base64 import b64encode
from collections.abc import Sequence
from http import HTTPStatus
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, cast

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
from jp.attachment.web_address import Address, IpAddress, NetworkScope, RedirectError, Zone, redirected, zone_of

if TYPE_CHECKING:
    from ssl import SSLContext


_REACH = "Check the address and the network."
_ZONES: dict[Zone, str] = {
    "public": "a public address",
    "loopback": "this machine",
    "private": "in your own network",
    "link-local": "a link-local address",
    "metadata": "where a cloud keeps the credentials of this machine",
    "reserved": "not a public address",
}
_BY_HAND = "`curl ADDRESS | jp query …` attaches it in your own way"


def bad_redirect(declared: Address, where: str) -> AttachmentError:
    """Return a redirect that is not followed."""
    message = f"{declared.shown!r} redirects {where}"
    return AttachmentError(message, hint=f"Attach the address that you mean, or fetch it yourself: {_BY_HAND}.")


def out_of_reach(declared: Address, here: Address, address: IpAddress) -> AttachmentError:
    """Return the error for a host at an address that must not be connected to."""
    by = "redirects to" if here.host != declared.host or here.port != declared.port else "is not fetched:"
    named = "" if here.host.strip("[]") == str(address) else f" is at {str(address)!r}, which"
    message = f"{declared.shown!r} {by} {here.host!r}{named or ','} is {_ZONES[zone_of(address)]}"
    return AttachmentError(
        message, hint=f"to attach it all the same, type '{address}' in place of the name; or {_BY_HAND}"
    )


class RefusedError(AttachmentError):
    """The server answered with something else than content; `status` is HTTP's."""

    def __init__(self, message: str, *, status: int, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.status = status


def refused(declared: Address, here: Address, status: int, retry_after: str) -> RefusedError:
    """Return the server answered with something else than content."""
    try:
        phrase = f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        phrase = str(status)
    by = "" if here.host == declared.host else f" at {here.host!r}"
    message = f"{declared.shown!r} answered {phrase}{by}"
    return RefusedError(message, status=status, hint=_advice(status, retry_after))


def _advice(status: int, retry_after: str) -> str:
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.PROXY_AUTHENTICATION_REQUIRED}:
        return f"It is not for everybody. Fetch it yourself: {_BY_HAND}."
    if status in {HTTPStatus.NOT_FOUND, HTTPStatus.GONE}:
        return "Check the address."
    if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        when = (
            f"in {int(retry_after):,} s" if retry_after.isdecimal() and len(retry_after) < len("1000000") else "later"
        )
        return f"Try again {when}."
    return f"Fetch it yourself: {_BY_HAND}."


def unsupported(declared: Address, content_type: ContentType) -> AttachmentError:
    """Return what the server says that it is cannot be attached."""
    return AttachmentError(f"{declared.shown!r} is of the type {content_type.mime_type!r}", hint=SUPPORTED_WEB_TYPES)


def not_attachable(declared: Address, reason: str, hint: str) -> AttachmentError:
    """Return what came cannot be attached."""
    return AttachmentError(f"{declared.shown!r} is {reason}", hint=hint)


def damaged(declared: Address, how: str) -> AttachmentError:
    """Return what came cannot be unpacked."""
    return AttachmentError(f"{declared.shown!r} {how}", hint=f"Try again, or fetch it yourself: {_BY_HAND}.")


def too_large(declared: Address, max_bytes: int) -> AttachmentError:
    """It is over its bound."""
    message = f"{declared.shown!r} has more than {format_size(max_bytes)}, which is the most that an attachment has"
    hint = (
        "Pipe a part of it: `curl ADDRESS | head -c 100K | jp query …`, or raise 'conversation.max_attachment_bytes'."
    )
    return AttachmentError(message, hint=hint)


def too_slow(declared: Address, seconds: float) -> AttachmentError:
    """Everything together took too long."""
    message = f"{declared.shown!r} was not complete after {seconds:g} s"
    return AttachmentError(message, hint=f"Try again, or fetch it yourself: {_BY_HAND}.")


def too_long(declared: Address, max_bytes: int) -> AttachmentError:
    """Return the Markdown of a page is over the bound, though the page is not."""
    message = f"the page at {declared.shown!r} comes to more than {format_size(max_bytes)} as Markdown"
    hint = f"Raise 'conversation.max_attachment_bytes', or attach a part of it: {_BY_HAND}."
    return AttachmentError(message, hint=hint)


def not_converted(declared: Address, seconds: float) -> AttachmentError:
    """It came, and the time was up before it was Markdown."""
    message = f"the page at {declared.shown!r} came, but making Markdown of it was not done after {seconds:g} s in all"
    return AttachmentError(message, hint=f"Attach a part of it: {_BY_HAND}.")


def without_text(declared: Address) -> AttachmentError:
    """Return a page of which nothing remains."""
    message = f"the page at {declared.shown!r} has no text"
    hint = f"What its scripts would write is not read. Attach the address of its data; or {_BY_HAND}."
    return AttachmentError(message, hint=hint)


def with_stored_password(declared: Address) -> AttachmentError:
    """Credentials in what is stored."""
    message = f"{declared.shown!r} is declared with a name or a password, which would be stored with the conversation"
    hint = "Declare it without them, and give them with `--attach` at the turn that reads it."
    return AttachmentError(message, hint=hint)


def without_certificates(declared: Address, error: OSError) -> AttachmentError:
    """Return the environment names certificates that cannot be read."""
    name = next((name for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if os.environ.get(name)), "SSL_CERT_FILE")
    reason = error.strerror or str(error)
    message = f"{declared.shown!r} cannot be verified: {name} is {os.environ.get(name, '')!r}: {reason}"
    return AttachmentError(message, hint=f"Correct or unset {name}.")


def without_proxy(declared: Address) -> AttachmentError:
    """Return the environment names a proxy that cannot be used; its address may have a password."""
    message = f"{declared.shown!r} cannot be asked for: a proxy of the environment has an address that cannot be used"
    hint = "Set HTTPS_PROXY, HTTP_PROXY and ALL_PROXY to http:// or https:// addresses, or unset them."
    return AttachmentError(message, hint=hint)


def unreachable(declared: Address, here: Address, error: Exception) -> AttachmentError:
    """Return the client failed with `error` on the way to `here`."""
    message, hint = _reason(here.host, error)
    return AttachmentError(f"{declared.shown!r}: {message}", hint=hint)


def _reason(host: str, error: Exception) -> tuple[str, str]:
    match error:
        case httpx2.ConnectTimeout():
            return f"no connection to {host!r} in time", _REACH
        case httpx2.TimeoutException():
            return f"{host!r} was silent for too long", "Try again later."
        case httpx2.ConnectError():
            return _without_connection(host, error)
        case httpx2.ProxyError():
            return f"the proxy on the way to {host!r} refused", "Check HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY."
        case httpx2.InvalidURL() | UnicodeError() | httpx2.UnsupportedProtocol():
            return f"{host!r} cannot be the name of a host", _REACH
        case _:
            reason = str(_root(error)) or "the server closed it"
            return f"the connection to {host!r} broke off: {reason}", "Try again later."


def _without_connection(host: str, error: Exception) -> tuple[str, str]:
    root = _root(error)
    if isinstance(root, ssl.SSLCertVerificationError):
        hint = "Where the certificate authority is a private one, set SSL_CERT_FILE to its certificate."
        return f"the certificate of {host!r} is not trusted: {root.verify_message}", hint
    if isinstance(root, ssl.SSLError):
        return f"{host!r} does not speak TLS as expected", "If it speaks plain HTTP, write 'http://'."
    if isinstance(root, (socket.gaierror, UnicodeError)):
        reason = root.strerror if isinstance(root, OSError) else "this cannot be the name of a host"
        return f"{host!r} cannot be found: {reason}", _REACH
    reason = os.strerror(root.errno) if isinstance(root, OSError) and root.errno else str(root)
    return f"no connection to {host!r}: {reason}", _REACH


def _root(error: BaseException) -> BaseException:
    """Return the first cause of `error`: of several attempts, the first."""
    while True:
        if isinstance(error, BaseExceptionGroup):
            error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
            continue
        cause = error.__cause__ or error.__context__
        if cause is None:
            return error
        error = cause


_GOOD = frozenset({200, 203})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PORTS = {"http": 80, "https": 443}
_SECS_FOR_ONE_OF_MANY = 3.0
"""Seconds to wait for a connection when there is another address to try."""

_ACCEPT = "text/markdown, text/html;q=0.9, text/plain;q=0.9, application/json;q=0.8, */*;q=0.5"


class FetchLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a fetch, in seconds and redirects. `idle_secs` is between two bytes, `total_secs` for everything."""

    connect_secs: float = 15.0
    idle_secs: float = 30.0
    total_secs: float = 120.0
    max_redirects: int = 10


class WebResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A response. `address` is where it came from after redirects; `last_modified` is the raw header."""

    address: Address
    status: int
    content_type: ContentType
    last_modified: str
    body: bytes


async def fetch(address: Address, limits: FetchLimits, max_bytes: int, reach: NetworkScope) -> WebResponse:
    """Get what lies at `address`; cancelling it closes the connection.

    `reach` is for `address`: a redirect may lead to the public, or to the machine that sent it.

    Raises:
        AttachmentError: it cannot be had, is out of reach, is of a type that cannot be attached, or has more than
            `max_bytes`.
    """
    here = address
    seen = {here.text}
    for _ in range(limits.max_redirects + 1):
        hop = _Request(here, address, limits)
        found = await hop.take(reach, max_bytes)
        if isinstance(found, WebResponse):
            return found
        here, reach = found, reach.after(hop.addresses)
        if here.text in seen:
            raise bad_redirect(address, "in a circle")
        seen.add(here.text)
    raise bad_redirect(address, f"more than {limits.max_redirects} times")


class _Request:
    """One request, to `here`, on the way from `declared`. `addresses` are those of its host, once it is taken."""

    def __init__(self, here: Address, declared: Address, limits: FetchLimits) -> None:
        self.addresses: tuple[IpAddress, ...] = ()
        self._here = here
        self._declared = declared
        self._limits = limits

    async def take(self, reach: NetworkScope, max_bytes: int) -> WebResponse | Address:
        """Return what lies there, or where it is said to lie. A client of its own: redirects lead elsewhere."""
        here, declared = self._here, self._declared
        try:
            proxy = _proxy_for(here)
            self.addresses = await self._resolved(by_proxy=proxy is not None)
            for address in self.addresses:
                if not reach.allows(address):
                    raise out_of_reach(declared, here, address)
            async with self._client(proxy) as client, client.stream("GET", here.text) as response:
                if response.status_code in _REDIRECTS:
                    return redirected(here, response.headers.get("location", ""))
                return await _received(response, here, declared, max_bytes)
        except RedirectError as error:
            raise bad_redirect(declared, f"to {error}") from None
        except (httpx2.RequestError, httpx2.InvalidURL, OSError, UnicodeError) as error:
            raise unreachable(declared, here, error) from None

    async def _resolved(self, *, by_proxy: bool) -> tuple[IpAddress, ...]:
        """Return every address of the host, in the order in which they are to be tried.

        None where only a proxy can resolve its name, as in networks whose machines reach nothing else.
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
        """Return a client that takes certificates from the environment, and goes by `proxy`, or to the addresses.

        Raises:
            AttachmentError: what the environment names cannot be used.
        """
        here = self._here
        headers = {"accept": _ACCEPT, "accept-encoding": SUPPORTED, "user-agent": f"jp/{__version__}"}
        if here.credentials:
            headers["authorization"] = f"Basic {b64encode(here.credentials.encode()).decode()}"
        try:
            verify = _trust(here)
        except OSError as error:
            raise without_certificates(self._declared, error) from None
        try:
            transport = httpx2.AsyncHTTPTransport(verify=verify, proxy=None if proxy is None else httpx2.Proxy(proxy))
        except (ImportError, ValueError, httpx2.InvalidURL):
            raise without_proxy(self._declared) from None
        timeout = httpx2.Timeout(self._limits.idle_secs, connect=self._limits.connect_secs)
        pinned = transport if proxy is not None else _PinnedTransport(transport, self.addresses)
        return httpx2.AsyncClient(transport=pinned, timeout=timeout, headers=headers)


class _PinnedTransport(httpx2.AsyncBaseTransport):
    """Connects to the first of `addresses` that answers, whatever the host of a request resolves to meanwhile.

    The header `host` and the name that TLS verifies remain those of the request.
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
    """Return the proxy of the environment on the way to `here`; None where it is to be connected to."""
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
    """Return whether an entry of NO_PROXY is `*`, or a network or an address that `host` is in."""
    try:
        return entry == "*" or ip_address(host) in ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        return False


async def _received(response: httpx2.Response, here: Address, declared: Address, max_bytes: int) -> WebResponse:
    headers = response.headers
    if response.status_code not in _GOOD:
        raise refused(declared, here, response.status_code, headers.get("retry-after", ""))
    content_type = parse_content_type(headers.get("content-type", ""))
    if content_type.kind == "other":
        raise unsupported(declared, content_type)
    body = bytearray()
    try:
        unpacker = Unpacker(headers.get("content-encoding", ""), max_bytes)
        async for piece in response.aiter_raw():
            body += unpacker.feed(piece)
        unpacker.close()
    except UnsupportedEncodingError as error:
        raise damaged(declared, f"came as {str(error)!r}, which was not asked for") from None
    except DamagedError:
        raise damaged(declared, "came compressed, and is damaged or incomplete") from None
    except BoundError:
        raise too_large(declared, max_bytes) from None
    return WebResponse(
        address=here,
        status=response.status_code,
        content_type=content_type,
        last_modified=headers.get("last-modified", ""),
        body=bytes(body),
    )


def _trust(here: Address) -> SSLContext:
    """Return whom TLS trusts: reading all certificates costs more than a request, so not where none is spoken."""
    from jp.tls import bare_context, speaks_tls

    if speaks_tls(here.text):
        context = httpx2.create_ssl_context()
        bundle, directory = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
        if bundle and directory:
            # The client heeds the first alone.
            context.load_verify_locations(cafile=bundle, capath=directory)
        return context
    return bare_context()
