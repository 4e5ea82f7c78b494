"""An open session with a server: what it can be asked, what it asks, and the tools that it lists."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, TypeVar, cast

import msgspec
from anyio import Event

from jp import __version__
from jp.config.entries import JsonObject
from jp.conversation.resource import Block, Resource, ResourceBlock, ResourceLink, TextBlock
from jp.errors import JpError
from jp.mcp.definitions import (
    ClosedError,
    Elicitation,
    FormAnswer,
    Handshake,
    Hints,
    Listing,
    RefusalError,
    ServerError,
    ServerTool,
    UrlRequest,
    blocks_of,
    canonical_uri,
    form_of,
    resource_of,
    worth_reading,
)
from jp.mcp.transport import BoundedTransport, Excess, Transport

if TYPE_CHECKING:
    import mcp_types as types
    from mcp.client import Client, ClientRequestContext, IncomingMessage
    from mcp.shared.exceptions import MCPError
    from mcp_types import Tool


_LONGEST = 2000
_CLOSED = "Connection closed"


def error_of(server: str, error: BaseException) -> JpError:
    """Return why a session, or a request in it, has failed. Of several reasons it is the first."""
    import httpx2
    from mcp.shared.exceptions import MCPError
    from pydantic import ValidationError

    match error:
        case JpError():
            return error
        case BaseExceptionGroup():
            return error_of(server, error.exceptions[0])
        case MCPError():
            return _refused(server, error)
        case ValidationError():
            return ServerError(f"the MCP server {server!r} sent an answer that is not what the protocol says")
        case httpx2.HTTPError():
            said = str(error) or type(error).__name__
            return ServerError(f"the MCP server {server!r} cannot be reached: {said}")
        case _:
            said = (str(error) or type(error).__name__)[:_LONGEST]
            return ServerError(f"the MCP server {server!r}: {said}")


def may_need_discover(error: BaseException) -> bool:
    """Return whether a server may have refused `initialize` because it knows only versions that begin without it."""
    from mcp.shared.exceptions import MCPError
    from mcp_types import HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND
    from mcp_types import UNSUPPORTED_PROTOCOL_VERSION as UNSUPPORTED

    codes = {HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, UNSUPPORTED}
    # What is raised from a group may be in it.
    reasons, seen = [error], set[int]()
    while reasons:
        reason = reasons.pop()
        if id(reason) in seen:
            continue
        seen.add(id(reason))
        if isinstance(reason, MCPError):
            return reason.code in codes
        if isinstance(reason, BaseExceptionGroup):
            reasons += cast("BaseExceptionGroup[BaseException]", reason).exceptions
        reasons += [reason.__cause__] if reason.__cause__ is not None else []
    return False


def _refused(server: str, error: MCPError) -> JpError:
    from mcp_types import CONNECTION_CLOSED

    # Servers use the number for errors of their own.
    if error.code == CONNECTION_CLOSED and error.message == _CLOSED:
        return ClosedError(f"the MCP server {server!r} has ended")
    if isinstance(error.data, Excess):
        return RefusalError(f"the MCP server {server!r} {error.data.sentence}")
    return RefusalError(f"the MCP server {server!r} says: {error.message[:_LONGEST]}")


class SessionListener(Protocol):
    """Listener for events of a session."""

    def log(self, text: str) -> None:
        """Something that only who looks for a reason wants to know."""
        ...

    def listed(self, server: str, listing: Listing) -> None:
        """A server has said which tools it has, for the first time or because they have changed."""
        ...

    def failed(self, server: str, error: JpError) -> None:
        """A server does not start, or has ended before its session was over."""
        ...


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A tool to be called. `progress` shows how far it is, `elicit` answers what the server asks meanwhile."""

    tool: str
    arguments: JsonObject
    progress: Callable[[str], None]
    elicit: Callable[[Elicitation], Awaitable[FormAnswer]]


class CallResult(msgspec.Struct, frozen=True, kw_only=True):
    """A tool's result."""

    content: tuple[Block, ...]
    is_error: bool


_DEEPEST = 32
"""Deepest level of a schema; deeper parts accept any value, as providers refuse such schemas."""

_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_LISTED = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SINGLE = frozenset({"items", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedItems"})


def object_schema(schema: object) -> JsonObject:
    """Return a JSON Schema of type object, whose keywords have the types that JSON Schema gives them.

    What a keyword cannot be is left out, so that it constrains nothing. `$schema` goes: every provider has a dialect.
    """
    cleaned = _cleaned(schema, 0)
    cleaned.pop("$schema", None)
    return {**cleaned, "type": "object", "properties": cleaned.get("properties", {})}


def _is_object(value: object) -> TypeGuard[JsonObject]:
    return isinstance(value, dict)


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _cleaned(schema: object, depth: int) -> JsonObject:
    """Return a schema without what no schema has. `true` allows anything, and so does what is none at all."""
    if schema is False:
        return {"not": {}}
    if not _is_object(schema) or depth > _DEEPEST:
        return {}
    cleaned: JsonObject = {}
    for keyword, value in schema.items():
        kept = _keyword(keyword, value, depth)
        if kept is not None:
            cleaned[keyword] = kept
    return cleaned


def _keyword(keyword: str, value: object, depth: int) -> object:
    """Return the value of a keyword; None where it cannot be that."""
    if keyword in _NAMED:
        return {name: _cleaned(below, depth + 1) for name, below in value.items()} if _is_object(value) else None
    if keyword in _LISTED:
        return [_cleaned(below, depth + 1) for below in value] or None if _is_list(value) else None
    if keyword in _SINGLE:
        return _cleaned(value, depth + 1)
    if keyword == "additionalProperties":
        return value if isinstance(value, bool) else _cleaned(value, depth + 1)
    if keyword in {"required", "enum"}:
        return _listed(keyword, value)
    return _type(value) if keyword == "type" else value


def _listed(keyword: str, value: object) -> list[Any] | None:
    if not _is_list(value):
        return None
    return value if keyword == "enum" else [name for name in value if isinstance(name, str)]


def _type(value: object) -> str | list[str] | None:
    if isinstance(value, str):
        return value
    return ([name for name in value if isinstance(name, str)] or None) if _is_list(value) else None


_MOST_PAGES = 100
_MOST_TOOLS = 1000
_LARGEST = 4 * 1024 * 1024
_LONGEST_NAME = 256
_LONGEST_DESCRIPTION = 16 * 1024


async def list_tools(client: Client, server: str, *, opening: Handshake) -> Listing:
    """Return every tool of `server`, the first of each name. The session began with `opening`.

    Raises:
        ServerError: they are more than a server can mean.
    """
    tools: dict[str, ServerTool] = {}
    cursor: str | None = None
    size = 0
    for _ in range(_MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            # The SDK keeps what a result must be, of tools that are not taken here, too.
            size += len(msgspec.json.encode((tool.name, tool.description, tool.input_schema, tool.output_schema)))
            if 0 < len(tool.name) <= _LONGEST_NAME:
                tools.setdefault(tool.name, _of(tool))
        cursor = page.next_cursor
        if cursor is None or len(tools) > _MOST_TOOLS or size > _LARGEST:
            break
    listing = Listing(tools=tuple(tools[name] for name in sorted(tools)), opening=opening)
    if cursor is not None or len(tools) > _MOST_TOOLS or size > _LARGEST:
        most = f"{_MOST_TOOLS:,} tools or {_LARGEST:,} bytes of definitions"
        raise ServerError(f"the MCP server {server!r} lists more than {most}")
    return listing


def _of(tool: Tool) -> ServerTool:
    said = tool.annotations
    hints = Hints()
    if said is not None:
        hints = Hints(
            reads_only=said.read_only_hint,
            destroys=said.destructive_hint,
            repeatable=said.idempotent_hint,
            open_world=said.open_world_hint,
        )
    title = tool.title or (None if said is None else said.title)
    return ServerTool(
        name=tool.name,
        description=(tool.description or title or "").strip()[:_LONGEST_DESCRIPTION],
        parameters=object_schema(tool.input_schema),
        title=title,
        hints=hints,
    )


_MOST_ASKED = 4
"""So many questions of a server wait for answers at once; further ones get none."""

_MOST_LOGGED = 1000
_LONGEST_LOGGED = 2000


class ServerCallbacks:
    """Answers what the server `name` asks while calls run, and notes that its list of tools has changed."""

    def __init__(self, name: str, talk: SessionListener) -> None:
        self.changed = Event()
        self._name = name
        self._talk = talk
        self._calls: list[Call] = []
        self._asked = 0
        self._logged = 0

    @contextmanager
    def during(self, call: Call) -> Generator[None]:
        """Yield the time in which `call` runs: what the server asks then may be about it."""
        self._calls.append(call)
        try:
            yield
        finally:
            self._calls.remove(call)

    async def message(self, message: IncomingMessage) -> None:
        """Take a notification."""
        import mcp_types as types

        if isinstance(message, types.ToolListChangedNotification):
            self.changed.set()

    async def log(self, params: types.LoggingMessageNotificationParams) -> None:
        """Take a line of the server's log."""
        if self._logged == _MOST_LOGGED:
            self._talk.log(f"{self._name}: it has logged {_MOST_LOGGED:,} messages: no more are shown")
        elif self._logged < _MOST_LOGGED:
            self._talk.log(f"{self._name}: {params.level}: {str(params.data)[:_LONGEST_LOGGED]}")
        self._logged += 1

    async def elicit(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """Have a question answered. It does not say which call it is about: the first that runs answers it."""
        import mcp_types as types

        del context
        elicitation = self._elicitation(params)
        if not self._calls or self._asked >= _MOST_ASKED:
            return types.ElicitResult(action="cancel")
        self._asked += 1
        try:
            filled: FormAnswer = await self._calls[0].elicit(elicitation)
        finally:
            self._asked -= 1
        if filled.action != "accept":
            return types.ElicitResult(action=filled.action)
        return types.ElicitResult(action="accept", content=filled.values)

    def _elicitation(self, params: types.ElicitRequestParams) -> Elicitation:
        if params.mode == "url":
            return UrlRequest(server=self._name, message=params.message, url=params.url)
        return form_of(self._name, params.message, params.requested_schema)


T = TypeVar("T")

_MOST_CHANGES = 20
"""So often a list that changes is read again in one session."""

_MOST_URIS = 10


@asynccontextmanager
async def open_session(
    name: str, link: Transport, talk: SessionListener, *, opening: Handshake
) -> AsyncGenerator[Session]:
    """Yield a session over `link` with the server `name`, from the agreement on a version to the end.

    Sampling is not offered: a server cannot spend the user's tokens. With `discover`, the SDK goes on with
    `initialize` where the server says that it does not know the former.

    Raises:
        Exception: whatever the SDK, the network and the process bring about; see `explained`.
    """
    from mcp.client import Client
    from mcp_types import Implementation
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    hearing = ServerCallbacks(name, talk)
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
    """Requests that a server can answer. `listing` are its tools as they were when the session began."""

    def __init__(
        self, client: Client, hearing: ServerCallbacks, *, name: str, listing: Listing, talk: SessionListener
    ) -> None:
        self.listing = listing
        self._newest = listing
        self._client = client
        self._hearing = hearing
        self._name = name
        self._talk = talk

    async def call(self, call: Call) -> CallResult:
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
        return CallResult(content=whole, is_error=result.is_error)

    async def read(self, uri: str) -> tuple[Resource, ...]:
        """Return the resources that the server gives for its own `uri`; of several with one URI each has a number.

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
        return tuple(canonical_uri(self._name, resource.uri) for resource in page.resources[:_MOST_URIS])

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
            self._talk.log(f"{self._name}: {error_of(self._name, error).message}")

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
        """Return what is read of the resources that a result links to, by their URIs. What fails stays a link."""
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
            raise error_of(self._name, error) from error


def _progress_text(done: float, total: float | None, message: str | None) -> str:
    how_far = f"{done:g}" if total is None else f"{done:g} of {total:g}"
    return f"{message} ({how_far})" if message else how_far


def _unique(uri: str, taken: dict[str, Resource]) -> str:
    number, unique = 1, uri
    while unique in taken:
        number += 1
        unique = f"{uri}#{number}"
    return unique
