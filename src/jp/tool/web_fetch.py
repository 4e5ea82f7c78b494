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
    """What came; `notices` are sentences that say what it lacks."""

    resources: tuple[Resource, ...]
    notices: tuple[str, ...] = ()


class Web(Protocol):
    """The web, as attachments read it."""

    async def fetch(self, url: str, *, allows_local: bool) -> FetchedPage:
        """What lies at `url`. Cancelling it closes the connection.

        Without `allows_local` neither this machine nor its private network is reached, as far as an address says so.

        Raises:
            JpError: it is no address, must not be reached, or cannot be had; in words without secrets.
        """
        ...


class WebFetch:
    """The tool. `access.local_network` of its settings lets it reach this machine and its network."""

    def __init__(self, web: Web) -> None:
        self._web = web

    @property
    def definition(self) -> ToolDefinition:
        """See the class."""
        return _DEFINITION

    @property
    def reads_only(self) -> bool:
        """True: see `jp.tool.base.ReadsOnly`."""
        return True

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        """See the port."""
        url = str(invocation.arguments["url"])
        try:
            page = await self._web.fetch(url, allows_local=invocation.settings.access.local_network)
        except JpError as error:
            return error_output(error.message)
        blocks: list[Block] = [ResourceBlock(resource=resource) for resource in page.resources]
        blocks += [TextBlock(text=f"Note: {notice}.") for notice in page.notices]
        path = page.resources[0].uri if page.resources else url
        return ToolOutput(content=tuple(blocks), facts=Facts(kind="web", path=path))
