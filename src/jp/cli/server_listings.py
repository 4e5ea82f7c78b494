"""What MCP servers have listed, in this command and before."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from jp.cli.options import GlobalOptions
from jp.cli.output import log
from jp.config.tools import McpServerConfig
from jp.errors import ConfigurationError, JpError
from jp.mcp.cache import ListingCache, fingerprint
from jp.mcp.definitions import Listing, Opening


class ServerListings:
    """The tools of servers, remembered in `directory`. `known` is what requests of this command are made of."""

    def __init__(self, options: GlobalOptions, *, root: Path, directory: Path) -> None:
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

    def opening(self, config: McpServerConfig) -> Opening:
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
            log(self._options, f"the tools of the MCP server {name!r} have changed: the next turn has them")
        if not self._options.persist:
            return
        try:
            self._cache.write(fingerprint(config, self._root), listing)
        except JpError as error:
            log(self._options, error.message)


def unknown_server(name: str, known: Collection[str]) -> ConfigurationError:
    """What is said where something names a server that is not configured."""
    listed = f"the servers are: {', '.join(sorted(known))}" if known else "there are none"
    hint = f"{listed}; `jp config set providers.mcp.{name}.command=…` declares one"
    return ConfigurationError(f"there is no MCP server {name!r}", hint=hint)
