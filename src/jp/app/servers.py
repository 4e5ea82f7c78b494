"""MCP servers of a command: their tools, their resources, and for how long they run."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from msgspec.structs import replace

from jp.app.options import Options, current_directory
from jp.config.entries import McpServerConfig
from jp.config.model import AppConfig
from jp.errors import ConfigurationError, JpError
from jp.mcp.definitions import Handshake, Listing, ListingCache, fingerprint
from jp.remedies import SetSettings, phrase

if TYPE_CHECKING:
    from jp.config.entries import ToolConfig
    from jp.conversation.resource import Resource
    from jp.mcp.connection import Connection, ServerContext
    from jp.mcp.session import Call, CallResult
    from jp.process.sandbox.policy import Limits
    from jp.tool.base import Tool


class ServerListings:
    """The tools of servers, remembered in `directory`. `known` is what requests of this command are made of."""

    def __init__(self, options: Options, *, root: Path, directory: Path) -> None:
        self.known: dict[str, Listing] = {}
        self._options = options
        self._root = root
        self._cache = ListingCache(directory)
        self._remembered: dict[str, Listing] = {}

    def recall(self, configured: Mapping[str, McpServerConfig], names: Collection[str]) -> list[str]:
        """Take what is remembered of the servers; those of which that is nothing, sorted.

        Raises:
            ConfigurationError: there is no such server.
        """
        strange: list[str] = []
        for name in sorted(names):
            config = configured.get(name)
            if config is None:
                raise unknown_server(name, configured)
            listing = self._cache.read(fingerprint(config, self._root))
            if listing is None:
                strange.append(name)
            else:
                self.known[name] = self._remembered[name] = listing
        return strange

    def opening(self, config: McpServerConfig) -> Handshake:
        """Return what the last session with the server began with."""
        listing = self._cache.read(fingerprint(config, self._root))
        return "initialize" if listing is None else listing.opening

    def learn(self, name: str, config: McpServerConfig, listing: Listing) -> None:
        """Remember what a server lists now. Requests of this command stay as they are."""
        before = self._remembered.get(name)
        self._remembered[name] = listing
        if listing == before:
            return
        if before is not None and listing.tools != before.tools:
            self._options.log(f"the tools of the MCP server {name!r} have changed: the next turn has them")
        if not self._options.persist:
            return
        try:
            self._cache.write(fingerprint(config, self._root), listing)
        except JpError as error:
            self._options.log(error.message)


def unknown_server(name: str, known: Collection[str]) -> ConfigurationError:
    """Return the error for a server that is named but not configured."""
    listed = f"the servers are: {', '.join(sorted(known))}" if known else "there are none"
    hint = phrase(f"{listed}; `", SetSettings((f"providers.mcp.{name}.command=…",)), "` declares one")
    return ConfigurationError(f"there is no MCP server {name!r}", hint=hint)


class Servers:
    """The servers of one command. Enter it before anything that uses one.

    `tools` are those of the servers by their names; it `has_strangers` where of some servers nothing was remembered.
    `root` is where they are started, `cache` where what they list is remembered.
    """

    def __init__(self, options: Options, *, root: Path, cache: Path) -> None:
        self.tools: Mapping[str, Tool] = {}
        self.has_strangers = False
        self._is_over = False
        self._groups: dict[str, set[str]] = {}
        self._options = options
        self._root = root
        self._cache = cache
        self._configured: Mapping[str, McpServerConfig] = {}
        self._connections: dict[str, Connection] = {}
        self._awaited: set[str] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over = True
        if not self._connections:
            return
        from anyio import CancelScope, create_task_group

        with CancelScope(shield=True), self._options.progress("ending the MCP servers"):
            async with create_task_group() as ending:
                for connection in self._connections.values():
                    ending.start_soon(connection.close)

    @cached_property
    def _listings(self) -> ServerListings:

        return ServerListings(self._options, root=self._root, directory=self._cache / "mcp")

    def configure(self, config: AppConfig) -> None:
        """Say which servers there are. `join` does it, too."""
        self._configured = config.providers.mcp

    async def join(self, config: AppConfig, *, every: bool = False) -> AppConfig:
        """Return the configuration with every tool of a server under its own name; from here on, `tools` has them.

        Servers of which no tool is enabled are left alone, or with `every` asked, too.

        Raises:
            ConfigurationError: a name's source is none, or a server that there is not.
            JpError: a server that is not `optional`, and that nothing is remembered of, does not start.
        """
        self.configure(config)
        settings = config.conversation.tools
        if not _names_servers(settings):
            return config

        from jp.tool.mcp import declared_servers, wanted_servers

        strange = self._listings.recall(
            self._configured, declared_servers(settings) if every else wanted_servers(settings)
        )
        await self._ask(strange)
        self._begin_after_request()
        return self._with_tools(config, say=self._options.notice)

    def remembered(self, config: AppConfig) -> AppConfig:
        """Return the same as `join`, as far as it is remembered: nothing is started, and nothing said.

        Raises:
            ConfigurationError: a name's source is none, or a server that there is not.
        """
        self.configure(config)
        settings = config.conversation.tools
        if not _names_servers(settings):
            return config

        from jp.tool.mcp import declared_servers

        self.has_strangers = bool(self._listings.recall(self._configured, declared_servers(settings)))
        return self._with_tools(config, say=lambda _: None)

    def _with_tools(self, config: AppConfig, *, say: Callable[[str], None]) -> AppConfig:
        from jp.app.toolset import BUILT_IN, STANDING_TOOLS
        from jp.tool.mcp import McpTool, offer

        offered = offer(config.conversation.tools, self._listings.known, taken={*BUILT_IN, *STANDING_TOOLS})
        for sentence in offered.notices:
            say(sentence)
        for one in offered.tools:
            self._groups.setdefault(one.group or one.name, set()).add(one.name)
        self.tools = {
            one.name: McpTool(
                one,
                Caller(self, one.server),
                summary=offered.settings[one.name].summary,
                limits=partial(self._limits, one.server),
            )
            for one in offered.tools
        }
        return replace(config, conversation=replace(config.conversation, tools=dict(offered.settings)))

    def spelled_out(self, names: Collection[str]) -> frozenset[str]:
        """Return the names of tools, where the name of a server means all of its tools."""
        return frozenset(tool for name in names for tool in self._groups.get(name, {name}))

    def connection(self, name: str) -> Connection:
        """Return the session with a server, which is started if it was not.

        Raises:
            ConfigurationError: there is no such server.
        """
        if name not in self._connections:
            from jp.mcp.connection import Connection

            config = self._configured.get(name)
            if config is None:
                raise unknown_server(name, self._configured)
            around = self._around()
            limits = _limits_of(config, around)
            if limits.word in {"none", "partly"}:
                self._options.notice(f"the MCP server {name!r}: {limits.text}")
            talk = ServerMessages(self._options, self._listings, self._configured, self._awaited)
            remembered = self._listings.opening(config)
            self._connections[name] = Connection(name, config, around, talk, remembered=remembered)
        self._connections[name].begin()
        return self._connections[name]

    def _around(self) -> ServerContext:
        from jp.app.toolset import private_directories
        from jp.mcp.connection import ServerContext

        private = tuple(private_directories())
        return ServerContext(directory=self._root, cwd=current_directory(), environment=os.environ, private=private)

    def _limits(self, name: str) -> Limits:
        return _limits_of(self._configured[name], self._around())

    def asked(self, name: str) -> Connection:
        """Return the same for who says by themselves what goes wrong with it.

        Raises:
            ConfigurationError: there is no such server.
        """
        self._awaited.add(name)
        return self.connection(name)

    async def read(self, server: str, uri: str) -> tuple[Resource, ...]:
        """See `jp.attachment.mcp.ResourceReader`."""
        return await self.connection(server).read(uri)

    async def listed_resources(self, server: str) -> tuple[str, ...]:
        """See `jp.attachment.mcp.ResourceReader`."""
        return await self.connection(server).resources()

    async def _ask(self, names: Collection[str]) -> None:
        """Have the servers list their tools, all at once, and wait for it."""
        self._awaited.update(names)
        for name in names:
            self.connection(name)
            self._options.notice(f"starting the MCP server {name!r}, whose tools are not known yet")
        for name in names:
            try:
                with self._options.progress(f"starting the MCP server {name!r}"):
                    self._listings.known[name] = await self.connection(name).listing()
            except JpError as error:
                if not self._configured[name].optional:
                    error.hint = error.hint or f"`providers.mcp.{name}.optional=true` goes on without it"
                    raise
                self._options.notice(phrase(error.message, "; going on without it"))
        self._awaited.clear()

    def _begin_after_request(self) -> None:
        from jp.provider.transport import after_upload

        def begin() -> None:
            for name in () if self._is_over else self._listings.known:
                self.connection(name)

        after_upload.set(begin)


class ServerMessages:
    """The handling of what servers say. Those that are `awaited` are seen to fail anyway."""

    def __init__(
        self,
        options: Options,
        listings: ServerListings,
        configured: Mapping[str, McpServerConfig],
        awaited: Collection[str],
    ) -> None:
        self._options = options
        self._listings = listings
        self._configured = configured
        self._awaited = awaited

    def log(self, text: str) -> None:
        """See the port."""
        self._options.log(text)

    def listed(self, server: str, listing: Listing) -> None:
        """See the port."""
        self._listings.learn(server, self._configured[server], listing)

    def failed(self, server: str, error: JpError) -> None:
        """See the port."""
        if server not in self._awaited:
            self._options.notice(error.message)


class Caller:
    """Calls tools of the server `name`, which is started with the first call at the latest."""

    def __init__(self, servers: Servers, name: str) -> None:
        self._servers = servers
        self._name = name

    async def call(self, call: Call) -> CallResult:
        """See `jp.tool.mcp.Server`."""
        return await self._servers.connection(self._name).call(call)


def _limits_of(config: McpServerConfig, around: ServerContext) -> Limits:
    """Return the limits that confine the program of a server."""
    from jp.mcp.connection import confinement
    from jp.process.sandbox.policy import Limits

    limits = confinement(config, around)
    if limits is None:
        return Limits(word="off", text="")
    from jp.process.sandbox.launcher import in_force

    return in_force(limits)


def _names_servers(settings: Mapping[str, ToolConfig]) -> bool:
    return any((own.source or "").startswith("mcp") for own in settings.values())
