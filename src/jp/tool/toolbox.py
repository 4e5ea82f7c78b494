"""Which tools the model may call, and how: the configuration's word on each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from msgspec.structs import replace

from jp.config.kinds import Section
from jp.config.tools import ToolConfig
from jp.conversation.thread import ToolDefinition
from jp.errors import ConfigurationError
from jp.tool.base import ConfiguredTool, Tool, Toolbox

S = TypeVar("S", bound=Section)

ALL = "*"
"""The name under which a configuration says what holds for every tool that does not say otherwise."""

_NOTHING = ToolConfig()


def build_toolbox(tools: Iterable[Tool], settings: Mapping[str, ToolConfig]) -> Toolbox:
    """The enabled ones of `tools`, sorted by name.

    `settings` is `conversation.tools`. A tool is off until it is enabled, and asks until it is told otherwise.

    Raises:
        ConfigurationError: `settings` names a tool that is not among `tools`.
    """
    known = {tool.definition.name: tool for tool in tools}
    for name in settings:
        if name != ALL and name not in known:
            raise _unknown_tool(name, known)
    every = settings.get(ALL, _NOTHING)
    toolbox: dict[str, ConfiguredTool] = {}
    for name in sorted(known):
        own = settings.get(name, _NOTHING)
        if every.enable if own.enable is None else own.enable:
            toolbox[name] = ConfiguredTool(tool=known[name], settings=settings_over(every, own))
    return toolbox


def settings_over(every: ToolConfig, own: ToolConfig) -> ToolConfig:
    """A tool's `own` settings, and where it says nothing, those that hold for `every` tool."""
    return _over(every, own)


def _over(every: S, own: S) -> S:
    unset = type(own)()
    merged: dict[str, Any] = {}
    for name in own.__struct_fields__:
        value, general = getattr(own, name), getattr(every, name)
        if isinstance(value, Section):
            merged[name] = _over(general, value)
        elif value == getattr(unset, name):
            merged[name] = general
    return replace(own, **merged)


def definitions(toolbox: Toolbox) -> tuple[ToolDefinition, ...]:
    """What the model is told, sorted by name: the same tools always make the same request."""
    return tuple(toolbox[name].tool.definition for name in sorted(toolbox))


def _unknown_tool(name: str, known: Iterable[str]) -> ConfigurationError:
    from difflib import get_close_matches

    names = sorted(known)
    near = get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"the tools are: {', '.join(names) or 'none'}"
    return ConfigurationError(f"'conversation.tools' names an unknown tool {name!r}", hint=hint)
