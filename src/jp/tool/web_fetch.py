"""`web_fetch`: what lies at an address of the web, as it would be attached."""

from __future__ import annotations

from typing import Protocol

import msgspec

from jp.conversation.entries import Facts
from jp.conversation.resource import Block, Resource, ResourceBlock, TextBlock
from jp.conversation.thread import ToolDefinition
from jp.errors import JpError
from jp.tool.base import ToolInvocation, ToolOutput, error_output

_DEFINITION = ToolDefinition(
    name="web_fetch",
    description=(
        "Fetch a page, a text, a picture or a PDF from the web. A page comes as Markdown, without navigation, scripts "
        "and forms; what its scripts would write is missing. Redirects are followed."
    ),
    parameters={
        "type": "object",
        "properties": {
            "url": {"type": "string", "description": "The address, with http:// or https://. A fragment has no effect."}
        },
        "required": ["url"],
        "additionalProperties": False,
    },
)


class FetchedPage(msgspec.Struct, frozen=True, kw_only=True):
    """A fetched resource; `notices` are sentences about what it lacks. `status` is HTTP's."""

    resources: tuple[Resource, ...]
    notices: tuple[str, ...] = ()
    status: int | None = None


class RefusedFetchError(JpError):
    """A server answered with no content; `status` is HTTP's."""

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


class Web(Protocol):
    """The web, as attachments read it."""

    async def fetch(self, url: str, *, allows_local: bool) -> FetchedPage:
        """Return what lies at `url`. Cancelling it closes the connection.

        Without `allows_local` neither this machine nor its private network is reached, as far as an address says so.

        Raises:
            JpError: it is no address, must not be reached, or cannot be had; in words without secrets. A
                `RefusedFetchError` where its server answered with no content.
        """
        ...


class WebFetch:
    """The tool. `access.local_network` of its settings lets it reach this machine and its network."""

    definition = _DEFINITION
    reads_only = True

    def __init__(self, web: Web) -> None:
        self._web = web

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        """See the port."""
        url = str(invocation.arguments["url"])
        try:
            page = await self._web.fetch(url, allows_local=invocation.settings.access.local_network)
        except JpError as error:
            status = error.status if isinstance(error, RefusedFetchError) else None
            facts = Facts(kind="web", url=url, status=status, first_error=error.message)
            return msgspec.structs.replace(error_output(error.message), facts=facts)
        blocks: list[Block] = [ResourceBlock(resource=resource) for resource in page.resources]
        blocks += [TextBlock(text=f"Note: {notice}.") for notice in page.notices]
        first = page.resources[0] if page.resources else Resource(uri=url)
        facts = Facts(kind="web", url=first.uri, title=first.title, status=page.status)
        return ToolOutput(content=tuple(blocks), facts=facts)
