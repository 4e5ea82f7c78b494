"""What `--tool` and `--no-tool` say of the configuration."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from jp.cli.query.arguments import QueryArguments
from jp.cli.query.conversation import Held, Place
from jp.config.layers import Layer
from jp.config.sources import flag_layer
from jp.errors import UsageError

if TYPE_CHECKING:
    from jp.config.model import AppConfig
    from jp.config.tools import ToolConfig

_ALL = frozenset({"*", "!*"})


def tool_layers(arguments: QueryArguments, place: Place, held: Held | None, flags: Sequence[Layer]) -> list[Layer]:
    """The layer that offers tools or takes them away, over what holds without it; `flags` are the other options'.

    Raises:
        UsageError: there is no such tool, or one is to be taken away that is always offered.
        ConfigurationError: the layers below it do not fit together.
    """
    if not arguments.tools:
        return []
    from jp.cli.toolset import Toolset
    from jp.tool.switching import Switching

    config = place.sources.resolve(conversation=() if held is None else held.layers, flags=flags).config
    toolset = Toolset(config, cache_directory=place.cache)
    on_servers = _on_servers(config, place)
    names = {*toolset.names, *on_servers}
    _check_words(arguments, names)
    switching = Switching({**toolset.settings, **on_servers}, names, toolset.is_known)
    switched = switching.switch(arguments.tools)
    if not switched:
        return []
    tools = {name: {"enable": on} for name, on in switched.items()}
    return [flag_layer("--tool", {"conversation": {"tools": tools}})]


def _on_servers(config: AppConfig, place: Place) -> Mapping[str, ToolConfig]:
    """The tools of MCP servers, as far as it is remembered what these have: nobody is asked."""
    if not config.providers.mcp:
        return {}
    from jp.mcp.cache import ListingCache, fingerprint
    from jp.tool.mcp.offered import offer

    cache = ListingCache(place.cache / "mcp")
    listings = {
        name: listing
        for name, server in config.providers.mcp.items()
        if (listing := cache.read(fingerprint(server, place.root))) is not None
    }
    offered = offer(config.conversation.tools, listings)
    return {one.name: offered.settings[one.name] for one in offered.tools}


def _check_words(arguments: QueryArguments, names: Collection[str]) -> None:
    """Refuse `--tool NAME`: it would offer every tool, and ask the model a question that begins with a name.

    Raises:
        UsageError: it was typed.
    """
    if _ALL.isdisjoint(arguments.tools):
        return
    for word in arguments.words:
        if word in names:
            raise UsageError(
                f"{word!r} is a tool's name, but would be part of the query",
                hint=f"write --tool={word} or --no-tool={word}; without '=' they mean all tools",
            )
