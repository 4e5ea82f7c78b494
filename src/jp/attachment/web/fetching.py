"""One GET over the web: redirects followed within reason, the body unpacked and bounded while it comes."""

from __future__ import annotations

import os
from base64 import b64encode
from typing import TYPE_CHECKING

import msgspec

from jp import __version__
from jp.attachment.web import failures
from jp.attachment.web.address import Address, RedirectError, redirected
from jp.attachment.web.content import ContentType, parse_content_type
from jp.attachment.web.decompression import SUPPORTED, BoundError, DamagedError, Unpacker, UnsupportedEncodingError

if TYPE_CHECKING:
    from ssl import SSLContext

    import httpx2

_GOOD = frozenset({200, 203})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
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


async def fetch(address: Address, limits: FetchLimits, max_bytes: int) -> Fetched:
    """Get what lies at `address`; cancelling it closes the connection.

    Raises:
        AttachmentError: it cannot be had, is of a type that cannot be attached, or has more than `max_bytes`.
    """
    here = address
    seen = {here.text}
    for _ in range(limits.max_redirects + 1):
        found = await _hop(here, address, limits, max_bytes)
        if isinstance(found, Fetched):
            return found
        here = found
        if here.text in seen:
            raise failures.redirected(address, "in a circle")
        seen.add(here.text)
    raise failures.redirected(address, f"more than {limits.max_redirects} times")


async def _hop(here: Address, declared: Address, limits: FetchLimits, max_bytes: int) -> Fetched | Address:
    """What lies `here`, or where it is said to lie. A client of its own: redirects lead elsewhere."""
    import httpx2

    try:
        async with _client(here, declared, limits) as client, client.stream("GET", here.text) as response:
            if response.status_code in _REDIRECTS:
                return redirected(here, response.headers.get("location", ""))
            return await _received(response, here, declared, max_bytes)
    except RedirectError as error:
        raise failures.redirected(declared, f"to {error}") from None
    except (httpx2.RequestError, httpx2.InvalidURL, OSError, UnicodeError) as error:
        raise failures.unreachable(declared, here, error) from None


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


def _client(here: Address, declared: Address, limits: FetchLimits) -> httpx2.AsyncClient:
    """A client that takes proxies and certificates from the environment.

    Raises:
        AttachmentError: it names ones that cannot be used.
    """
    import httpx2

    headers = {"accept": _ACCEPT, "accept-encoding": SUPPORTED, "user-agent": f"jp/{__version__}"}
    if here.credentials:
        headers["authorization"] = f"Basic {b64encode(here.credentials.encode()).decode()}"
    try:
        verify = _trust(here)
    except OSError as error:
        raise failures.without_certificates(declared, error) from None
    timeout = httpx2.Timeout(limits.idle_secs, connect=limits.connect_secs)
    try:
        return httpx2.AsyncClient(verify=verify, timeout=timeout, headers=headers, http2=False)
    except (ImportError, ValueError, httpx2.InvalidURL):
        raise failures.without_proxy(declared) from None


def _trust(here: Address) -> SSLContext:
    """Whom TLS trusts: reading all certificates costs more than a request, so not where none is spoken."""
    import httpx2

    from jp.tls import bare_context, speaks_tls

    if speaks_tls(here.text):
        context = httpx2.create_ssl_context()
        bundle, directory = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
        if bundle and directory:
            # The client heeds the first alone.
            context.load_verify_locations(cafile=bundle, capath=directory)
        return context
    return bare_context()
