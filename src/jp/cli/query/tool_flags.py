"""What `--tool` and `--no-tool` say of the configuration, and tools that are missing here."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from jp.cli.query.arguments import QueryArguments
from jp.cli.query.conversation import Held, Place
from jp.cli.toolset import Toolset
from jp.cli.trust import require_tool
from jp.config.layers import Layer, Resolved, contributions
from jp.config.model import AppConfig
from jp.config.sources import flag_layer
from jp.config.tools import ToolConfig
from jp.errors import UsageError

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
    from jp.tool.toolbox import Switching

    resolved = place.sources.resolve(conversation=() if held is None else held.layers, flags=flags)
    config = resolved.config
    toolset = Toolset(config, cache_directory=place.cache)
    remembered = _remembered(config, place)
    names = {*toolset.names, *remembered.settings}
    _check_words(arguments, names)

    def is_known(name: str) -> bool:
        require_tool(resolved, name, None if held is None else held.info)
        return name in names or (toolset.is_known(name) and not remembered.lacks(name))

    settings = {**toolset.settings, **remembered.settings}
    switched = Switching(settings, names, is_known, groups=remembered.groups).switch(arguments.tools)
    if not switched:
        return []
    tools = {name: {"enable": on} for name, on in switched.items()}
    return [flag_layer("--tool", {"conversation": {"tools": tools}})]


class _Remembered(msgspec.Struct, frozen=True, kw_only=True):
    """The tools of MCP servers, as far as it is remembered what these have: nobody is asked.

    `groups` has the name that speaks for all tools of a server, for each of them; `complete` are the names of groups
    of which everything is remembered.
    """

    settings: Mapping[str, ToolConfig] = {}
    groups: Mapping[str, str] = {}
    complete: frozenset[str] = frozenset()

    def lacks(self, name: str) -> bool:
        """Whether a name begins like those of a server that has no such tool."""
        return any(name.startswith(f"{group}_") for group in self.complete) and name not in self.settings


def _remembered(config: AppConfig, place: Place) -> _Remembered:
    if not config.providers.mcp:
        return _Remembered()
    from jp.mcp.definitions import ListingCache, fingerprint
    from jp.tool.mcp import groups_of, offer

    cache = ListingCache(place.cache / "mcp")
    listings = {
        name: listing
        for name, server in config.providers.mcp.items()
        if (listing := cache.read(fingerprint(server, place.root))) is not None
    }
    offered = offer(config.conversation.tools, listings)
    groups = [group for group in groups_of(config.conversation.tools) if group.server in listings]
    return _Remembered(
        settings={one.name: offered.settings[one.name] for one in offered.tools},
        groups={
            one.name: group.name
            for one in offered.tools
            for group in reversed(groups)
            if one.name.startswith(f"{group.name}_")
        },
        complete=frozenset(group.name for group in groups),
    )


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


_SHOWN = 5


def without_missing_tools(resolved: Resolved, cache_directory: Path) -> tuple[AppConfig, tuple[str, ...]]:
    """The configuration without the tools that only the conversation itself names and that are not here.

    Besides, what to tell the user of those that it enables. A name that a file or an option says stays: it is a
    mistake that can be mended. `cache_directory` is where what other packages provide is remembered.
    """
    config = resolved.config
    tools = config.conversation.tools
    if not tools:
        return config, ()

    from jp.tool.toolbox import ALL

    toolset = Toolset(config, cache_directory=cache_directory)
    named = (name for name in tools if name != ALL and _is_conversations_only(resolved, name))
    missing = {name for name in named if not toolset.is_known(name)}
    if not missing:
        return config, ()
    here = {name: settings for name, settings in tools.items() if name not in missing}
    enabled = sorted(name for name in missing if tools[name].enable)
    return replace(config, conversation=replace(config.conversation, tools=here)), _sentences(enabled)


def _is_conversations_only(resolved: Resolved, name: str) -> bool:
    found = contributions(resolved.layers, ("conversation", "tools", name))
    return all(contribution.layer.origin.kind == "conversation" for contribution in found)


def _sentences(enabled: Collection[str]) -> tuple[str, ...]:
    if not enabled:
        return ()
    shown = ", ".join(repr(name) for name in list(enabled)[:_SHOWN])
    more = f" and {len(enabled) - _SHOWN} more" if len(enabled) > _SHOWN else ""
    return (f"tools that this conversation was used with are not here: {shown}{more}",)
