"""The `http` and `https` schemes: pages, texts, pictures and PDF of the web."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from jp.attachment.base import (
    AttachmentError,
    Declaration,
    Resolution,
    ResolveContext,
    Slots,
    format_size,
    run_in_thread,
)
from jp.attachment.media import BinaryMedia, UnsupportedMedia, interpret
from jp.attachment.web_address import (
    ANYWHERE,
    BY_HAND,
    OWN_NETWORK,
    PUBLIC,
    RETRY,
    Address,
    NetworkScope,
    failure,
    is_local,
    is_numeric,
    parse_address,
)
from jp.conversation.resource import Annotations, Resource
from jp.remedies import Option, phrase

if TYPE_CHECKING:
    from jp.attachment.media import WebText
    from jp.attachment.web_client import FetchLimits, WebResponse
    from jp.attachment.web_page import Page


AT_ONCE = 6
"""Most addresses that are fetched at the same time."""

_slots = Slots("web", AT_ONCE)


class WebResolution(msgspec.Struct, frozen=True, kw_only=True):
    """A resolution, and the HTTP `status` of the response; None without a request."""

    resolution: Resolution
    status: int | None = None


class HttpHandler:
    """The handler of `http` and `https`. `limits` are None for the defaults."""

    def __init__(self, limits: FetchLimits | None = None) -> None:
        self._limits = limits

    def canonical(self, uri: str, context: ResolveContext) -> str:
        """Return the address without credentials and fragment. See `parse_address`.

        Raises:
            AttachmentError: `uri` is malformed.
        """
        return parse_address(uri).text

    async def resolve(
        self, declaration: Declaration, context: ResolveContext, *, excludes: Sequence[Declaration] = ()
    ) -> Resolution:
        """Fetch the address. Typed credentials are used for this request and are not stored.

        Raises:
            AttachmentError: see `AttachmentHandler.resolve`.
        """
        return (await self.fetch(declaration, context, excludes=excludes)).resolution

    async def fetch(
        self,
        declaration: Declaration,
        context: ResolveContext,
        *,
        excludes: Sequence[Declaration] = (),
        scope: NetworkScope | None = None,
    ) -> WebResolution:
        """Fetch the address, and return the HTTP status too. Without `scope`, `scope_of` decides it.

        Raises:
            AttachmentError: see `AttachmentHandler.resolve`. A `RefusedError` for a response without content.
        """
        from anyio import move_on_after

        from jp.attachment.web_client import FetchLimits, fetch

        address = _with_credentials(declaration)
        if any(exclude.uri == declaration.uri for exclude in excludes):
            notice = f"{address.shown!r} attaches nothing: it is excluded"
            return WebResolution(resolution=Resolution(resources=(), notices=(notice,)))
        if address.credentials and declaration.confined:
            what = "is declared with a name or a password, which would be stored with the conversation"
            hint = phrase("declare it without them, and give them with `", Option.ATTACH, "` when it is read")
            raise failure(address, what, hint)
        limits = self._limits or FetchLimits()
        scope = scope or scope_of(address, confined=declaration.confined)
        fetched: WebResponse | None = None
        async with _slots.one():
            with move_on_after(limits.total_secs):
                fetched = await fetch(address, limits, context.max_bytes, scope)
                resolution = await _resolution(fetched, address, context.max_bytes)
                return WebResolution(resolution=resolution, status=fetched.status)
        if fetched is None:
            raise failure(address, f"was not complete after {limits.total_secs:g} s", RETRY)
        what = f"was fetched, but converting it to Markdown was not done after {limits.total_secs:g} s in all"
        raise failure(address, what, phrase("Attach a part of it: ", BY_HAND, "."))


def scope_of(address: Address, *, confined: bool) -> NetworkScope:
    """Return the networks in which an attached address may lie.

    A typed address may lie in the user's own network; a declared one only where its name says so. An address written
    in numbers may lie anywhere, but a name never leads to the services that hold a machine's credentials.
    """
    if confined:
        return OWN_NETWORK if is_local(address.host) else PUBLIC
    is_link_local = address.host.rstrip(".").endswith(".local")
    return ANYWHERE if is_numeric(address.host) or is_link_local else OWN_NETWORK


def _with_credentials(declaration: Declaration) -> Address:
    """Return the address with the credentials that the user typed; the canonical form has none."""
    address = parse_address(declaration.uri)
    if "@" not in declaration.written:
        return address
    try:
        written = parse_address(declaration.written)
    except AttachmentError:
        return address
    return written if written.text == address.text else address


async def _resolution(fetched: WebResponse, address: Address, max_bytes: int) -> Resolution:
    media = interpret(fetched.body, fetched.content_type, fetched.address.path.rpartition("/")[2])
    if isinstance(media, UnsupportedMedia):
        raise failure(address, f"is {media.reason}", media.hint)
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
    return Resolution(resources=(resource,), notices=(*notices, *_page_notices(page, address)))


def _page_notices(page: Page, address: Address) -> list[str]:
    """Return notices about missing text or markup.

    Raises:
        AttachmentError: the page has neither text nor a title.
    """
    if not page.text:
        if not page.title:
            hint = phrase("the output of its scripts is not read. Attach the address of its data; or ", BY_HAND, "")
            raise failure(address, "is a page that has no text", hint)
        return [f"the page at {address.shown!r} has no text; its title is attached"]
    if page.is_plain:
        why = "is nested too deeply or has too much markup for Markdown"
        return [f"{address.shown!r} {why}; its bare text is attached"]
    return []


async def _page(media: WebText, fetched: WebResponse, address: Address, max_bytes: int) -> Page:
    """Convert a page to Markdown in a thread that ends early where this is cancelled."""
    from jp.attachment.web_page import PageTooLongError, read_page

    def read(check: Callable[[], None]) -> Page:
        return read_page(media.text, fetched.address.text, max_chars=max_bytes, check=check)

    try:
        return await run_in_thread(read)
    except PageTooLongError:
        hint = phrase("raise 'conversation.max_attachment_bytes', or attach a part of it: ", BY_HAND, "")
        raise failure(address, f"comes to more than {format_size(max_bytes)} as Markdown", hint) from None


def _annotations(last_modified: str) -> Annotations | None:
    """Return the time of the last change, from the value of `Last-Modified`; None for a malformed date."""
    from datetime import UTC
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(last_modified)
        aware = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError, TypeError):
        return None
    return Annotations(last_modified=aware.isoformat().replace("+00:00", "Z"))
