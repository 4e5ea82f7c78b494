"""What there is to know of a tool, for people and for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from jp.compaction.hints import SHIPPED
from jp.config.keys import key_text
from jp.config.tools import ToolConfig
from jp.errors import ConfigurationError
from jp.tool.base import Confined, ToolInvocation
from jp.tool.standing import STANDING, STANDING_SETTINGS
from jp.tool.toolbox import ALL, is_enabled, settings_of

if TYPE_CHECKING:
    from pathlib import Path

    from jp.cli.toolset import Toolset
    from jp.config.layers import Resolved
    from jp.process.sandbox.words import Limits
    from jp.tool.base import Tool

_UNSET = ToolConfig()


class ToolFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One tool. `tool` is None where it cannot be made, and `problem` says why.

    `limits` are what confines its programs, None where it acts in jp's own process.
    """

    name: str
    source: str
    settings: ToolConfig
    tool: Tool | None
    problem: str = ""
    limits: Limits | None = None

    @property
    def offered(self) -> str:
        """Whether a request offers it, in words."""
        if self.name in STANDING:
            return "as needed" if is_enabled(self.settings) else "no"
        match self.settings.enable:
            case "explicit":
                return "by name"
            case "always":
                return "always"
            case enable:
                return "yes" if enable else "no"

    @property
    def run(self) -> str:
        """How its calls run."""
        return self.settings.run or "ask"

    @property
    def summary(self) -> str:
        """The first sentence of what the model is told, or what is wrong."""
        if self.tool is None:
            return f"({self.problem})"
        sentence, end, _ = " ".join(self.tool.definition.description.split()).partition(". ")
        return f"{sentence}{end.rstrip()}"

    @property
    def sandbox(self) -> str:
        """What confines its programs, in words; empty where it has none."""
        return "" if self.limits is None else self.limits.text.removeprefix("sandbox: ") or self.limits.word

    def value(self) -> dict[str, Any]:
        """As `--format json` has it."""
        return {
            "name": self.name,
            "source": self.source,
            "offered": self.offered,
            "enable": self.settings.enable,
            "run": self.run,
            "sandbox": self.sandbox or None,
            "summary": self.summary if self.tool is not None else None,
            "problem": self.problem or None,
        }


def facts_of(name: str, toolset: Toolset, root: Path) -> ToolFacts:
    """What there is to know of the tool `name`, which is known, in the workspace at `root`."""
    settings = settings_of(name, toolset.settings)
    source = toolset.source(name).text
    try:
        tool = toolset.tool(name)
        limits = _limits(tool, settings, root)
        return ToolFacts(name=name, source=source, settings=settings, tool=tool, limits=limits)
    except ConfigurationError as error:
        return ToolFacts(name=name, source=source, settings=settings, tool=None, problem=error.message)


def _limits(tool: Tool, settings: ToolConfig, root: Path) -> Limits | None:
    if not isinstance(tool, Confined):
        return None
    call = ToolInvocation(arguments={}, root=root, settings=settings)
    limits, agreed = (tool.sandbox_limits(replace(call, is_agreed=is_agreed)) for is_agreed in (False, True))
    if limits == agreed or settings.run not in {None, "ask", "edit"}:
        return limits
    return replace(agreed, text=f"{agreed.text} once you agree to the call")


def plain(settings: ToolConfig) -> dict[str, Any]:
    """Settings as JSON has them. A rule says how calls run, even where that is the default."""
    values: dict[str, Any] = {name: getattr(settings, name) for name in settings.__struct_fields__}
    rules = [{"arguments": rule.arguments, "run": rule.run} for rule in settings.rules]
    return {**msgspec.to_builtins(values), "rules": rules}


def origins_of(facts: ToolFacts, resolved: Resolved) -> dict[str, str]:
    """For each setting that the tool has, where it came from, in words."""
    from jp.tool.mcp.offered import groups_of, member_of

    tools = resolved.config.conversation.tools
    own = tools.get(facts.name, _UNSET)
    group = member_of(facts.name, own, groups_of(tools))
    groups = _UNSET if group is None else tools[group.name]
    found: dict[str, str] = {}
    for setting in facts.settings.__struct_fields__:
        value, unset = getattr(facts.settings, setting), getattr(_UNSET, setting)
        if value == unset:
            continue
        if getattr(own, setting) != unset:
            found[setting] = _origin(resolved, facts.name, setting)
        elif group is not None and getattr(groups, setting) != unset:
            found[setting] = f"{_origin(resolved, group.name, setting)}, for all of {group.name!r}"
        elif getattr(STANDING_SETTINGS.get(facts.name, _UNSET), setting) != unset:
            found[setting] = "what jp does by itself"
        else:
            found[setting] = f"{_origin(resolved, ALL, setting)}, for all tools"
    return found


def hint_origin(name: str, resolved: Resolved) -> str:
    """Return where a tool's hints for compactions came from, in words; empty where it has none."""
    own = resolved.config.conversation.tools.get(name, _UNSET).compaction
    origin = "" if own == _UNSET.compaction else _origin(resolved, name, "compaction")
    built_in = "built in" if name in SHIPPED and None in (own.request, own.response) else ""
    return ", ".join(filter(None, (origin, built_in)))


def _origin(resolved: Resolved, name: str, setting: str) -> str:
    """The layers that have set a setting, or what is in it."""
    key = key_text(("conversation", "tools", name, setting))
    below = [origin.text for known, origin in resolved.origins.items() if f"{known}.".startswith(f"{key}.")]
    whole = resolved.origin(("conversation", "tools", name, setting)).text
    return ", ".join(dict.fromkeys(below)) or whole
