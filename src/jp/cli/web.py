"""The web for tools: read as attachments are. Loaded when a tool fetches."""

from __future__ import annotations

from pathlib import Path

from jp.errors import JpError
from jp.tool.web_fetch import FetchedPage, RefusedFetchError


class AttachmentWeb:
    """See the port, `jp.tool.web_fetch.Web`."""

    async def fetch(self, url: str, *, allows_local: bool) -> FetchedPage:
        """See the port.

        Raises:
            JpError: see the port.
        """
        from jp.attachment.base import Declaration, ResolveContext
        from jp.attachment.web.address import is_local, parse_address
        from jp.attachment.web.handler import HttpHandler
        from jp.attachment.web.reach import OWN_NETWORK, PUBLIC

        address = parse_address(url)
        if address.credentials:
            raise JpError(f"{address.shown!r} was given with a name and a password, which are not sent")
        if is_local(address.host) and not allows_local:
            raise JpError(f"{address.shown!r} lies in the user's own network, which must not be reached")
        from jp.attachment.web.failures import RefusedError

        # What resolves an address of the web looks at no directory.
        context = ResolveContext(root=Path("/"), cwd=Path("/"))
        try:
            declaration = Declaration(uri=address.text, written=address.text)
            reach = OWN_NETWORK if allows_local else PUBLIC
            found = await HttpHandler().answer(declaration, context, reach=reach)
        except RefusedError as error:
            raise RefusedFetchError(error.message, status=error.status) from None
        return FetchedPage(resources=found.resolution.resources, notices=found.resolution.notices, status=found.status)
