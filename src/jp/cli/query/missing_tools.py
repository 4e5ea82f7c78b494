"""Tools that a conversation was used with elsewhere and that are not here: it goes on without them."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from jp.config.layers import Resolved, contributions
from jp.config.model import AppConfig

_SHOWN = 5


def without_missing_tools(resolved: Resolved) -> tuple[AppConfig, tuple[str, ...]]:
    """The configuration without the tools that only the conversation itself names and that are not here.

    Besides, what to tell the user of those that it enables. A name that a file or an option says stays: it is a
    mistake that can be mended.
    """
    config = resolved.config
    tools = config.conversation.tools
    if not tools:
        return config, ()

    from jp.cli.file_names import AttachmentNames
    from jp.tool.builtin import built_in_tools
    from jp.tool.toolbox import ALL

    known = {ALL, *(tool.definition.name for tool in built_in_tools(AttachmentNames()))}
    missing = {name for name in tools if name not in known and _is_conversations_only(resolved, name)}
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
