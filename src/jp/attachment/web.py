"""The `http` and `https` schemes: pages, texts, pictures and PDF of the web."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from jp.attachment.base import Declaration, Resolution, ResolveContext, Slots
from jp.attachment.media import BinaryMedia, UnsupportedMedia
from jp.attachment.web_address import Address, is_local, is_numeric, parse_address
from jp.conversation.resource import Annotations, Resource

if TYPE_CHECKING:
    from jp.attachment.media import WebText
    from jp.attachment.web_address import NetworkScope
    from jp.attachment.web_client import FetchLimits, WebResponse
    from jp.attachment.web_page import Page


AT_ONCE = 6
"""Most addresses that are fetched at the same time."""

_slots = Slots("web", AT_ONCE)


class WebResolution(msgspec.Struct, frozen=True, kw_only=True):
    """A resolution, and the `status` of the server's response; None without a request."""

    resolution: Resolution
    status: int | None = None


class HttpHandler:
    """`http` and `https`. `limits` are for how long and how far; None is the usual."""

    def __init__(self, limits: FetchLimits | None = None) -> None:
        self._limits = limits

    def canonical(self, uri: str, context: ResolveContext) -> str:
        """Without credentials and fragment. See `parse_address`.

        Raises:
            AttachmentError: `uri` is malformed.
        """
        return parse_address(uri).text

    async def resolve(
        self, declaration: Declaration, context: ResolveContext, *, excludes: Sequence[Declaration] = ()
    ) -> Resolution:
        """Fetch it. A name and a password that a user typed are used now, and kept nowhere.

        Raises:
            AttachmentError: see the port.
        """
        return (await self.answer(declaration, context, excludes=excludes)).resolution

    async def answer(
        self,
        declaration: Declaration,
        context: ResolveContext,
        *,
        excludes: Sequence[Declaration] = (),
        reach: NetworkScope | None = None,
    ) -> WebResolution:
        """`resolve`, with how the server answered. `reach` is what may be connected to; None: see `scope_of`.

        Raises:
            AttachmentError: see the port. A `RefusedError` where the server answered with no content.
        """
        from jp.attachment import web_client
        from jp.attachment.web_client import FetchLimits, fetch

        address = _with_credentials(declaration)
        if any(exclude.uri == declaration.uri for exclude in excludes):
            notice = f"{address.shown!r} attaches nothing: it is excluded"
            return WebResolution(resolution=Resolution(resources=(), notices=(notice,)))
        if address.credentials and declaration.confined:
            raise web_client.with_stored_password(address)
        limits = self._limits or FetchLimits()
        fetched: WebResponse | None = None
        async with _slots.one():
            from anyio import move_on_after

            with move_on_after(limits.total_secs):
                fetched = await fetch(
                    address, limits, context.max_bytes, reach or scope_of(address, confined=declaration.confined)
                )
                resolution = await _resolved(fetched, address, context.max_bytes)
                return WebResolution(resolution=resolution, status=fetched.status)
        if fetched is None:
            raise web_client.too_slow(address, limits.total_secs)
        raise web_client.not_converted(address, limits.total_secs)


def scope_of(address: Address, *, confined: bool) -> NetworkScope:
    """Return what an attached address may be found at.

    An address that a person typed is that person's wish; one that a file declares reaches the user's own network only
    where it says that it does. What is written as numbers leads where it says, a name nowhere near credentials.
    """
    from jp.attachment.web_address import ANYWHERE, OWN_NETWORK, PUBLIC

    if confined:
        return OWN_NETWORK if is_local(address.host) else PUBLIC
    is_on_link = address.host.rstrip(".").endswith(".local")
    return ANYWHERE if is_numeric(address.host) or is_on_link else OWN_NETWORK


def _with_credentials(declaration: Declaration) -> Address:
    """Return the address, with the name and the password of what was written, which its canonical form has lost."""
    address = parse_address(declaration.uri)
    if "@" not in declaration.written:
        return address
    from jp.attachment.base import AttachmentError

    try:
        written = parse_address(declaration.written)
    except AttachmentError:
        return address
    return written if written.text == address.text else address


async def _resolved(fetched: WebResponse, address: Address, max_bytes: int) -> Resolution:
    from jp.attachment import web_client
    from jp.attachment.media import interpret

    media = interpret(fetched.body, fetched.content_type, fetched.address.path.rpartition("/")[2])
    if isinstance(media, UnsupportedMedia):
        raise web_client.not_attachable(address, media.reason, media.hint)
    base = Resource(
        uri=address.text, name=address.text, mime_type=media.mime_type, annotations=_annotations(fetched.last_modified)
    )
    if isinstance(media, BinaryMedia):
        return Resolution(resources=(msgspec.structs.replace(base, blob=fetched.body),))
    notices = [f"{address.shown!r} {notice}" for notice in media.notices]
    if not media.is_html:
        if not media.text:
            notices.append(f"{address.shown!r} is empty")
        return Resolution(resources=(msgspec.structs.replace(base, text=media.text),), notices=tuple(notices))
    page = await _page(media, fetched, address, max_bytes)
    resource = msgspec.structs.replace(
        base,
        mime_type="text/plain" if page.is_plain else "text/markdown",
        text=page.text or page.title,
        title=page.title or None,
    )
    return Resolution(resources=(resource,), notices=(*notices, *_notices(page, address)))


def _notices(page: Page, address: Address) -> list[str]:
    """Return what a page lacks.

    Raises:
        AttachmentError: everything.
    """
    from jp.attachment import web_client

    if not page.text:
        if not page.title:
            raise web_client.without_text(address)
        return [f"the page at {address.shown!r} has no text; its title is attached"]
    if page.is_plain:
        return [
            f"{address.shown!r} is nested too deeply or has too much markup for Markdown; its bare text is attached"
        ]
    return []


async def _page(media: WebText, fetched: WebResponse, address: Address, max_bytes: int) -> Page:
    """Return the page as Markdown, made in a thread that can be left."""
    from jp.attachment import web_client
    from jp.attachment.base import run_in_thread
    from jp.attachment.web_page import PageTooLongError, read_page

    def read(check: Callable[[], None]) -> Page:
        return read_page(media.text, fetched.address.text, max_chars=max_bytes, check=check)

    try:
        return await run_in_thread(read)
    except PageTooLongError:
        raise web_client.too_long(address, max_bytes) from None


def _annotations(last_modified: str) -> Annotations | None:
    """Return when it was changed, as its server says; a date that is none says nothing."""
    if not last_modified:
        return None
    from datetime import UTC
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(last_modified)
        aware = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError, TypeError):
        return None
    return Annotations(last_modified=aware.isoformat().replace("+00:00", "Z"))
