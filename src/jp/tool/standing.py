"""The tools that a request offers by itself: from when on, and how they run where nothing else is said. Pure.

A tool that comes and goes changes the beginning of every request, and a provider's prompt cache misses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jp.config.tools import RuleConfig, ToolConfig
from jp.conversation.entries import AnyEntry, ChatRequest, RequestContext

RECALL = "recall"
SEARCH = "search_history"
REFRESH = "refresh_resource"

ON_HIDDEN = frozenset({RECALL, SEARCH})
"""Those that read what a view hides. Their results are copies of it."""

ON_CONTENT = frozenset({*ON_HIDDEN, REFRESH})
"""Those that read what a conversation has."""

STANDING = frozenset({*ON_CONTENT, "ask_user", "describe_tools"})
"""All of them, by name."""

_UNATTENDED = ToolConfig(enable="always", run="unattended")
STANDING_SETTINGS: Mapping[str, ToolConfig] = {
    **dict.fromkeys(sorted(STANDING), _UNATTENDED),
    REFRESH: ToolConfig(enable="always", run="unattended", rules=(RuleConfig(arguments={"uri": "cmd:**"}, run="ask"),)),
}
"""What holds for each where the configuration does not say otherwise: what runs a command asks like a command."""


def standing_names(entries: Iterable[AnyEntry], *, has_tools: bool, attaches: bool) -> frozenset[str]:
    """Which of them the next request of a conversation with these entries offers.

    All where it offers other tools (`has_tools`). Those that read what a conversation has, besides, where something is
    attached (`attaches`) and wherever a request has attached something or offered tools before, undone or not. A
    compaction adds none: tools that appear in mid-conversation change the prefix of everything in it.
    """
    if has_tools:
        return STANDING
    return ON_CONTENT if attaches or any(map(_offered_some, entries)) else frozenset()


def _offered_some(entry: AnyEntry) -> bool:
    match entry:
        case ChatRequest(resources=resources, attachments=attachments):
            return bool(resources or attachments)
        case RequestContext(tools=tools):
            return tools is not None
        case _:
            return False
