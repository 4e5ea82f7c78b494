"""Which tools the model may call, and how: the configuration's word on each. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeVar

from msgspec.structs import replace

from jp import likeness
from jp.config.kinds import Section
from jp.config.tools import ToolConfig
from jp.conversation.thread import ToolDefinition
from jp.errors import ConfigurationError
from jp.tool.base import ConfiguredTool, Tool, Toolbox

S = TypeVar("S", bound=Section)

ALL = "*"
"""The name under which a configuration says what holds for every tool that does not say otherwise."""

_NOTHING = ToolConfig()
_LONGEST_NAME = 64


def settings_of(name: str, settings: Mapping[str, ToolConfig]) -> ToolConfig:
    """The settings of a tool, with those that hold for all where it has none. `settings` is `conversation.tools`."""
    return settings_over(settings.get(ALL, _NOTHING), settings.get(name, _NOTHING))


def is_enabled(settings: ToolConfig) -> bool:
    """Whether the model is offered a tool: it is off until it is enabled."""
    return settings.enable is True or settings.enable == "always"


def enabled_names(known: Iterable[str], settings: Mapping[str, ToolConfig]) -> list[str]:
    """Those of the `known` tools that the model is offered, sorted. `settings` is `conversation.tools`."""
    every = settings.get(ALL, _NOTHING)
    said = ((name, settings.get(name, _NOTHING)) for name in sorted(known))
    return [name for name, own in said if is_enabled(every if own.enable is None else own)]


def build_toolbox(tools: Iterable[Tool], settings: Mapping[str, ToolConfig]) -> Toolbox:
    """The enabled ones of `tools`, sorted by name. `settings` is `conversation.tools`.

    Raises:
        ConfigurationError: a name cannot be offered.
    """
    known = {tool.definition.name: tool for tool in tools}
    toolbox: dict[str, ConfiguredTool] = {}
    for name in enabled_names(known, settings):
        check_offered(name)
        toolbox[name] = ConfiguredTool(tool=known[name], settings=settings_of(name, settings))
    return toolbox


def check_offered(name: str) -> None:
    """Refuse a name that not every provider takes.

    All take up to 64 letters, digits, `_` and `-`; Google wants no digit or `-` in front.

    Raises:
        ConfigurationError: it is such a name.
    """
    is_word = name.isascii() and name.replace("_", "a").replace("-", "a").isalnum()
    if is_word and len(name) <= _LONGEST_NAME and not (name[0].isdigit() or name[0] == "-"):
        return
    raise ConfigurationError(
        f"the tool {name!r} cannot be offered: providers take names of up to {_LONGEST_NAME} letters, digits, '_' "
        "and '-' that begin with a letter or '_'",
        hint="call it otherwise; a tool of an MCP server may have a name of your own: "
        "`conversation.tools.NAME.source=mcp.SERVER.TOOL`",
    )


def settings_over(every: ToolConfig, own: ToolConfig) -> ToolConfig:
    """A tool's `own` settings, and where it says nothing, those that hold for `every` tool."""
    return _over(every, own)


def _over(every: S, own: S) -> S:
    unset = type(own)()
    merged: dict[str, Any] = {}
    for name in own.__struct_fields__:
        value, general = getattr(own, name), getattr(every, name)
        if isinstance(getattr(unset, name), Section):
            merged[name] = _over(general, value)
        elif value == getattr(unset, name):
            merged[name] = general
    return replace(own, **merged)


def definitions(toolbox: Toolbox) -> tuple[ToolDefinition, ...]:
    """What the model is told, sorted by name: the same tools always make the same request."""
    return tuple(toolbox[name].tool.definition for name in sorted(toolbox))


def unknown_tool(where: str, name: str, known: Collection[str]) -> ConfigurationError:
    """What is said where something names a tool that there is not; `where` is what does."""
    return ConfigurationError(f"{where} names an unknown tool {name!r}", hint=nearest(name, known))


def nearest(name: str, known: Collection[str]) -> str:
    """Which of the `known` names may be meant, for a hint."""
    names = sorted(known)
    near = likeness.nearest(name, names)
    return f"did you mean {near[0]!r}?" if near else f"the tools are: {', '.join(names) or 'none'}"
