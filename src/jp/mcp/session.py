"""An open session with a server: what it can be asked."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

import msgspec
from anyio import Event

from jp import __version__
from jp.conversation.resource import Block, Resource, ResourceBlock, ResourceLink, TextBlock
from jp.errors import JpError
from jp.mcp.bounds import BoundedTransport, Link
from jp.mcp.content import blocks_of, resource_of
from jp.mcp.definitions import Listing, Opening
from jp.mcp.errors import ServerError
from jp.mcp.failures import explained
from jp.mcp.hearing import Hearing
from jp.mcp.links import worth_reading
from jp.mcp.listing import list_tools
from jp.mcp.ports import Call, Called, Talk
from jp.mcp.uris import canonical_uri

if TYPE_CHECKING:
    import mcp_types as types
    from mcp.client import Client

T = TypeVar("T")

_MOST_CHANGES = 20
"""So often a list that changes is read again in one session."""

_LISTED = 10


@asynccontextmanager
async def open_session(name: str, link: Link, talk: Talk, *, opening: Opening) -> AsyncGenerator[Session]:
    """A session over `link` with the server `name`, from the agreement on a version to the end.

    Sampling is not offered: a server cannot spend the user's tokens. With `discover`, the SDK goes on with
    `initialize` where the server says that it does not know the former.

    Raises:
        Exception: whatever the SDK, the network and the process bring about; see `explained`.
    """
    from mcp.client import Client
    from mcp_types import Implementation
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    hearing = Hearing(name, talk)
    client = Client(
        BoundedTransport(link),
        mode="legacy" if opening == "initialize" else "auto",
        elicitation_callback=hearing.elicit,
        message_handler=hearing.message,
        logging_callback=hearing.log,
        client_info=Implementation(name="jp", version=__version__),
        cache=None,
    )
    async with client:
        spoken = opening if client.protocol_version in MODERN_PROTOCOL_VERSIONS else "initialize"
        listing = Listing(opening=spoken)
        if client.server_capabilities.tools:
            listing = await list_tools(client, name, opening=spoken)
        yield Session(client, hearing, name=name, listing=listing, talk=talk)


class Session:
    """What a server can be asked. `listing` are its tools as they were when the session began."""

    def __init__(self, client: Client, hearing: Hearing, *, name: str, listing: Listing, talk: Talk) -> None:
        self.listing = listing
        self._newest = listing
        self._client = client
        self._hearing = hearing
        self._name = name
        self._talk = talk

    async def call(self, call: Call) -> Called:
        """Call a tool, and read what its result links to. Where this is cancelled, the server is told.

        Raises:
            JpError: the server has ended, refuses, or does not speak the protocol.
        """

        async def show(progress: float, total: float | None, message: str | None) -> None:
            call.progress(_progress_text(progress, total, message))

        with self._hearing.during(call):
            result = await self._asked(self._client.call_tool(call.tool, call.arguments, progress_callback=show))
        content = blocks_of(self._name, result.content)
        if result.structured_content is not None and not any(isinstance(block, TextBlock) for block in content):
            content = (*content, TextBlock(text=msgspec.json.encode(result.structured_content).decode()))
        read = await self._linked(result)
        whole = tuple(read.get(block.uri, block) if isinstance(block, ResourceLink) else block for block in content)
        return Called(content=whole, is_error=result.is_error)

    async def read(self, uri: str) -> tuple[Resource, ...]:
        """The resources that the server gives for its own `uri`; of several with one URI each has a number.

        Raises:
            JpError: the server has ended, refuses, or does not speak the protocol.
        """
        result = await self._asked(self._client.read_resource(uri))
        resources: dict[str, Resource] = {}
        for contents in result.contents:
            resource = resource_of(self._name, contents)
            if resource is None:
                raise ServerError(f"the MCP server {self._name!r} gives {contents.uri!r} as bytes that are not base64")
            unique = _unique(resource.uri, resources)
            resources[unique] = msgspec.structs.replace(resource, uri=unique)
        return tuple(resources.values())

    async def resources(self) -> tuple[str, ...]:
        """Some of the URIs that the server lists, as jp knows them; none where it lists none.

        Raises:
            JpError: the server has ended, refuses, or does not speak the protocol.
        """
        if not self._client.server_capabilities.resources:
            return ()
        page = await self._asked(self._client.list_resources())
        return tuple(canonical_uri(self._name, resource.uri) for resource in page.resources[:_LISTED])

    async def follow(self) -> None:
        """Read the list of tools again whenever the server says that it has changed, and tell of it."""
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        said = self._client.server_capabilities.tools
        if said is None or not said.list_changed:
            return
        try:
            if self._client.protocol_version in MODERN_PROTOCOL_VERSIONS:
                await self._follow_subscription()
            else:
                await self._follow_notifications()
        except Exception as error:  # noqa: BLE001  without it, changes are seen when the next session begins
            self._talk.log(f"{self._name}: {explained(self._name, error).message}")

    async def _follow_subscription(self) -> None:
        async with self._client.listen(tools_list_changed=True) as changes:
            # What has changed before it is listened to, nobody tells.
            await self._list_again()
            left = _MOST_CHANGES
            async for _ in changes:
                await self._list_again()
                left -= 1
                if not left:
                    return

    async def _follow_notifications(self) -> None:
        for _ in range(_MOST_CHANGES):
            await self._hearing.changed.wait()
            self._hearing.changed = Event()
            await self._list_again()

    async def _list_again(self) -> None:
        before, self._newest = self._newest, await self._list()
        if self._newest != before:
            self._talk.listed(self._name, self._newest)

    async def _list(self) -> Listing:
        return await list_tools(self._client, self._name, opening=self.listing.opening)

    async def _linked(self, result: types.CallToolResult) -> dict[str, Block]:
        """What is read of the resources that a result links to, by their URIs. What fails stays a link."""
        read: dict[str, Block] = {}
        for link in () if result.is_error else worth_reading(result.content):
            try:
                resources = await self.read(link.uri)
            except JpError as error:
                self._talk.log(f"{self._name}: {link.uri}: {error.message}")
                continue
            if len(resources) == 1 and resources[0].text is not None:
                read[canonical_uri(self._name, link.uri)] = ResourceBlock(resource=resources[0])
        return read

    async def _asked(self, answer: Awaitable[T]) -> T:
        try:
            return await answer
        except Exception as error:
            raise explained(self._name, error) from error


def _progress_text(done: float, total: float | None, message: str | None) -> str:
    how_far = f"{done:g}" if total is None else f"{done:g} of {total:g}"
    return f"{message} ({how_far})" if message else how_far


def _unique(uri: str, taken: dict[str, Resource]) -> str:
    number, unique = 1, uri
    while unique in taken:
        number += 1
        unique = f"{uri}#{number}"
    return unique
