"""Tools that a conversation was used with elsewhere and that are not here: it goes on without them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from msgspec.structs import replace

from jp.cli.toolset import Toolset
from jp.config.layers import Resolved, contributions
from jp.config.model import AppConfig

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
