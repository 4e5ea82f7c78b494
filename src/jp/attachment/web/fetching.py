"""One GET over the web: redirects followed within reason, the body unpacked and bounded while it comes.

A name is resolved once for each hop, every address that it has is judged, and what is connected to is one of these.
"""

from __future__ import annotations

import os
import socket
from base64 import b64encode
from collections.abc import Sequence
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING

import anyio
import httpx2  # noqa: TID253 - this module is only imported where the client is
import msgspec

from jp import __version__
from jp.attachment.web import failures
from jp.attachment.web.address import Address, RedirectError, redirected
from jp.attachment.web.content import ContentType, parse_content_type
from jp.attachment.web.decompression import SUPPORTED, BoundError, DamagedError, Unpacker, UnsupportedEncodingError
from jp.attachment.web.reach import IpAddress, Reach

if TYPE_CHECKING:
    from ssl import SSLContext

_GOOD = frozenset({200, 203})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PORTS = {"http": 80, "https": 443}
_SECS_FOR_ONE_OF_MANY = 3.0
"""How long a connection to an address is waited for where there is another one to try."""

_ACCEPT = "text/markdown, text/html;q=0.9, text/plain;q=0.9, application/json;q=0.8, */*;q=0.5"


class FetchLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How long, in seconds, and how far. `idle_secs` is between any two bytes, `total_secs` for everything."""

    connect_secs: float = 15.0
    idle_secs: float = 30.0
    total_secs: float = 120.0
    max_redirects: int = 10


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """What came. `address` is where it came from in the end; `last_modified` is the header as it stands."""

    address: Address
    status: int
    content_type: ContentType
    last_modified: str
    body: bytes


async def fetch(address: Address, limits: FetchLimits, max_bytes: int, reach: Reach) -> Fetched:
    """Get what lies at `address`; cancelling it closes the connection.

    `reach` is for `address`: a redirect may lead to the public, or to the machine that sent it.

    Raises:
        AttachmentError: it cannot be had, is out of reach, is of a type that cannot be attached, or has more than
            `max_bytes`.
    """
    here = address
    seen = {here.text}
    for _ in range(limits.max_redirects + 1):
        hop = _Hop(here, address, limits)
        found = await hop.take(reach, max_bytes)
        if isinstance(found, Fetched):
            return found
        here, reach = found, reach.after(hop.addresses)
        if here.text in seen:
            raise failures.redirected(address, "in a circle")
        seen.add(here.text)
    raise failures.redirected(address, f"more than {limits.max_redirects} times")


class _Hop:
    """One request, to `here`, on the way from `declared`. `addresses` are those of its host, once it is taken."""

    def __init__(self, here: Address, declared: Address, limits: FetchLimits) -> None:
        self.addresses: tuple[IpAddress, ...] = ()
        self._here = here
        self._declared = declared
        self._limits = limits

    async def take(self, reach: Reach, max_bytes: int) -> Fetched | Address:
        """Return what lies there, or where it is said to lie. A client of its own: redirects lead elsewhere."""
        here, declared = self._here, self._declared
        try:
            proxy = _proxy_for(here)
            self.addresses = await self._resolved(by_proxy=proxy is not None)
            for address in self.addresses:
                if not reach.allows(address):
                    raise failures.out_of_reach(declared, here, address)
            async with self._client(proxy) as client, client.stream("GET", here.text) as response:
                if response.status_code in _REDIRECTS:
                    return redirected(here, response.headers.get("location", ""))
                return await _received(response, here, declared, max_bytes)
        except RedirectError as error:
            raise failures.redirected(declared, f"to {error}") from None
        except (httpx2.RequestError, httpx2.InvalidURL, OSError, UnicodeError) as error:
            raise failures.unreachable(declared, here, error) from None

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
            raise failures.without_certificates(self._declared, error) from None
        try:
            transport = httpx2.AsyncHTTPTransport(verify=verify, proxy=None if proxy is None else httpx2.Proxy(proxy))
        except (ImportError, ValueError, httpx2.InvalidURL):
            raise failures.without_proxy(self._declared) from None
        timeout = httpx2.Timeout(self._limits.idle_secs, connect=self._limits.connect_secs)
        pinned = transport if proxy is not None else _Pinned(transport, self.addresses)
        return httpx2.AsyncClient(transport=pinned, timeout=timeout, headers=headers)


class _Pinned(httpx2.AsyncBaseTransport):
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
    """Whether an entry of NO_PROXY is `*`, or a network or an address that `host` is in."""
    try:
        return entry == "*" or ip_address(host) in ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        return False


async def _received(response: httpx2.Response, here: Address, declared: Address, max_bytes: int) -> Fetched:
    headers = response.headers
    if response.status_code not in _GOOD:
        raise failures.refused(declared, here, response.status_code, headers.get("retry-after", ""))
    content_type = parse_content_type(headers.get("content-type", ""))
    if content_type.kind == "other":
        raise failures.unsupported(declared, content_type)
    body = bytearray()
    try:
        unpacker = Unpacker(headers.get("content-encoding", ""), max_bytes)
        async for piece in response.aiter_raw():
            body += unpacker.feed(piece)
        unpacker.close()
    except UnsupportedEncodingError as error:
        raise failures.damaged(declared, f"came as {str(error)!r}, which was not asked for") from None
    except DamagedError:
        raise failures.damaged(declared, "came compressed, and is damaged or incomplete") from None
    except BoundError:
        raise failures.too_large(declared, max_bytes) from None
    return Fetched(
        address=here,
        status=response.status_code,
        content_type=content_type,
        last_modified=headers.get("last-modified", ""),
        body=bytes(body),
    )


def _trust(here: Address) -> SSLContext:
    """Whom TLS trusts: reading all certificates costs more than a request, so not where none is spoken."""
    from jp.tls import bare_context, speaks_tls

    if speaks_tls(here.text):
        context = httpx2.create_ssl_context()
        bundle, directory = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
        if bundle and directory:
            # The client heeds the first alone.
            context.load_verify_locations(cafile=bundle, capath=directory)
        return context
    return bare_context()
