"""Hints: what tools wish for their own calls when calls are stripped (RFD D17), and what profiles ask for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jp.config.entries import ToolCompactionConfig, ToolConfig
from jp.config.model import ToolCallMode, ToolCallsConfig
from jp.conversation.entries import ToolCallPolicy, ToolOverride

_CHEAP_ARGUMENTS = ToolCompactionConfig(request="keep", response="strip")
_CHEAP_RESULTS = ToolCompactionConfig(request="strip", response="keep")
_CHEAP = ToolCompactionConfig(request="keep", response="keep")

SHIPPED: Mapping[str, ToolCompactionConfig] = {
    "ask_user": _CHEAP,
    "fs_create_file": _CHEAP_RESULTS,
    "fs_delete_file": _CHEAP,
    "fs_grep_files": _CHEAP_ARGUMENTS,
    "fs_list_files": _CHEAP_ARGUMENTS,
    "fs_modify_file": ToolCompactionConfig(request="strip", response="strip"),
    "fs_move_file": _CHEAP,
    "fs_read_file": _CHEAP_ARGUMENTS,
    "recall": _CHEAP_ARGUMENTS,
    "refresh_resource": _CHEAP_ARGUMENTS,
    "run_command": _CHEAP_ARGUMENTS,
    "search_history": _CHEAP_ARGUMENTS,
    "web_fetch": _CHEAP_ARGUMENTS,
}
"""What jp's own tools wish for. The other ones wish for nothing: what the profile says holds for them."""

_POLICIES: Mapping[ToolCallMode, ToolCallPolicy] = {
    "digest": ToolCallPolicy(policy="digest", request=True, response=True),
    "strip": ToolCallPolicy(policy="strip", request=True, response=True),
    "strip-requests": ToolCallPolicy(policy="strip", request=True),
    "strip-responses": ToolCallPolicy(policy="strip", response=True),
    "omit": ToolCallPolicy(policy="omit"),
}


def tool_policy(mode: ToolCallMode | ToolCallsConfig) -> ToolCallPolicy:
    """Return the policy that a profile or an option names."""
    if isinstance(mode, ToolCallsConfig):
        if mode.policy == "omit":
            return _POLICIES["omit"]
        request = mode.response is not True if mode.request is None else mode.request
        response = mode.request is not True if mode.response is None else mode.response
        return ToolCallPolicy(policy=mode.policy, request=request, response=response)
    return _POLICIES[mode]


def overrides_for(names: Iterable[str], tools: Mapping[str, ToolConfig]) -> dict[str, ToolOverride]:
    """The wishes of the tools that are called `names`, sorted; `tools` is `conversation.tools`.

    They are resolved once and stand in the overlay: what a later configuration says changes no old turn.
    """
    found: dict[str, ToolOverride] = {}
    for name in sorted(set(names)):
        hints = hints_of(name, tools)
        if hints != ToolCompactionConfig():
            found[name] = ToolOverride(request=hints.request, response=hints.response)
    return found


def hints_of(name: str, tools: Mapping[str, ToolConfig]) -> ToolCompactionConfig:
    """Return the hints of a tool: its own settings, then what is built in. `tools` is `conversation.tools`."""
    shipped = SHIPPED.get(name, ToolCompactionConfig())
    own = tools[name].compaction if name in tools else ToolCompactionConfig()
    return ToolCompactionConfig(request=own.request or shipped.request, response=own.response or shipped.response)
