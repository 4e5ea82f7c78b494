"""The tools of a query: what `--tool` says, those that are offered by themselves, and what they read."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec.structs import replace

from jp.app.query.arguments import QueryArguments
from jp.app.query.attachments import AttachmentSchemes
from jp.app.query.conversation import QueryContext, QueryConversation
from jp.app.settings import is_of_model, require_tool
from jp.app.toolset import Toolset
from jp.config.entries import ToolConfig
from jp.config.layers import Change, Layer, MapChange, Resolved, contributions, resolve
from jp.config.model import AppConfig
from jp.config.schema import KeyPath
from jp.config.sources import flag_layer
from jp.conversation.entries import AnyEntry
from jp.errors import UsageError
from jp.provider.models import find_model
from jp.provider.registry import ModelId, built_in, kind_of
from jp.remedies import Option, UseOption, phrase
from jp.tool.toolbox import automatic_names, is_enabled, settings_of

if TYPE_CHECKING:
    from jp.attachment.base import Declaration
    from jp.tool.base import Tool


_ALL = frozenset({"*", "!*"})


def tool_layers(context: QueryContext, held: QueryConversation | None, flags: Sequence[Layer]) -> list[Layer]:
    """Return the layer that offers tools or takes them away; `flags` are those of the other options.

    Raises:
        UsageError: there is no such tool, or one is to be taken away that is always offered.
        ConfigurationError: the layers below it do not fit together.
    """
    arguments = context.arguments
    if not arguments.tools:
        return []
    from jp.app.toolset import Toolset
    from jp.tool.toolbox import ToolSwitch

    resolved = context.sources.resolve(conversation=() if held is None else held.layers, flags=flags)
    config = resolved.config
    toolset = Toolset(config, cache_directory=context.cache)
    remembered = _remembered(config, context)
    names = {*toolset.names, *remembered.settings}
    _check_words(arguments, names)

    def is_known(name: str) -> bool:
        require_tool(resolved, name, None if held is None else held.info)
        return name in names or (toolset.is_known(name) and not remembered.lacks(name))

    settings = {**toolset.settings, **remembered.settings}
    switched = ToolSwitch(settings, names, is_known, groups=remembered.groups).switch(arguments.tools)
    if not switched:
        return []
    tools = {name: {"enable": on} for name, on in switched.items()}
    return [flag_layer(phrase(Option.TOOL), {"conversation": {"tools": tools}})]


class _Remembered(msgspec.Struct, frozen=True, kw_only=True):
    """The tools of MCP servers, as far as it is remembered what these have: nobody is asked.

    `groups` has the name that speaks for all tools of a server, for each of them; `complete` are the names of groups
    of which everything is remembered.
    """

    settings: Mapping[str, ToolConfig] = {}
    groups: Mapping[str, str] = {}
    complete: frozenset[str] = frozenset()

    def lacks(self, name: str) -> bool:
        """Return whether a name begins like those of a server that has no such tool."""
        return any(name.startswith(f"{group}_") for group in self.complete) and name not in self.settings


def _remembered(config: AppConfig, context: QueryContext) -> _Remembered:
    if not config.providers.mcp:
        return _Remembered()
    from jp.mcp.definitions import ListingCache, fingerprint
    from jp.tool.mcp import groups_of, offer

    cache = ListingCache(context.cache / "mcp")
    listings = {
        name: listing
        for name, server in config.providers.mcp.items()
        if (listing := cache.read(fingerprint(server, context.root))) is not None
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
                hint=phrase(
                    *("write ", UseOption(Option.TOOL, word), " or ", UseOption(Option.DISABLED_TOOL, word)),
                    "; without '=' they mean all tools",
                ),
            )


_SHOWN = 5


def without_missing_tools(resolved: Resolved, cache_directory: Path) -> tuple[AppConfig, tuple[str, ...]]:
    """Return the configuration without the tools that only the conversation or the workspace names and are not here.

    Besides, notices about those that it enables. A name that the user's own file or an option has stays, and so does
    one that is close to a tool's: it is a mistake that can be fixed. `cache_directory` remembers what other packages
    provide.
    """
    config = resolved.config
    tools = config.conversation.tools
    if not tools:
        return config, ()

    from jp.tool.toolbox import ALL

    toolset = Toolset(config, cache_directory=cache_directory)
    named = {name: kind for name in tools if name != ALL and (kind := _namers(resolved, name)) is not None}
    missing = {name for name in named if not toolset.is_known(name)}
    missing = {name for name in missing if named[name] == "conversation" or not _is_mistyped(name, toolset.names)}
    if not missing:
        return config, ()
    here = {name: settings for name, settings in tools.items() if name not in missing}
    enabled = sorted(name for name in missing if tools[name].enable)
    used = [name for name in enabled if named[name] == "conversation"]
    return replace(config, conversation=replace(config.conversation, tools=here)), (
        *_sentences("tools that this conversation was used with are not here", used),
        *_sentences("tools that files of this workspace enable are not here", sorted({*enabled} - {*used})),
    )


class UsedKeys:
    """The keys that a query uses, or would use if all that is ignored were trusted."""

    def __init__(self, resolved: Resolved, context: QueryContext) -> None:
        self._resolved = resolved
        self._context = context

    @functools.cached_property
    def _trusted(self) -> AppConfig:
        return resolve(self._resolved.layers).config

    @functools.cached_property
    def _sources(self) -> Mapping[str, str]:
        """Return the sources of the tools that the model is offered, by name, without tools that are not here."""
        tools = self._resolved.config.conversation.tools
        missing = {*tools} - {*without_missing_tools(self._resolved, self._context.cache)[0].conversation.tools}
        return {
            name: settings.source or ""
            for each in (tools, self._trusted.conversation.tools)
            for name in each
            if name not in missing and is_enabled(settings := settings_of(name, each))
        }

    @functools.cached_property
    def _has_title(self) -> bool:
        auto = self._trusted.conversation.title.generate.auto
        return self._context.screen.is_watched if auto == "terminal" else auto

    def has(self, path: KeyPath) -> bool:
        """Return whether a key is among them."""
        match path:
            case ("conversation", "tools", "*", *_):
                return bool(self._sources)
            case ("conversation", "tools", name, *_):
                return name in self._sources
            case ("conversation", "title", *_):
                return self._has_title
            case ("providers", "mcp", name, *_):
                has_tool = any(source.split(".")[:2] == ["mcp", name] for source in self._sources.values())
                return has_tool or any(f"mcp+{name}+" in text for text in self._trusted.conversation.attachments)
            case _:
                return is_of_model(path, self._models(), self._trusted.providers.llm.aliases)

    def _models(self) -> list[str | None]:
        settings = self._trusted.conversation
        summaries = [profile.summary.model for profile in settings.compaction.profiles.values()]
        titles = [settings.title.generate.model] if self._has_title else []
        return [self._resolved.config.assistant.model.id, *summaries, *titles]


def _namers(resolved: Resolved, name: str) -> Literal["conversation", "workspace"] | None:
    """Return what alone names or defines a tool: the conversation, or files that come with the workspace, too."""
    found = contributions(resolved.layers, ("conversation", "tools", name))
    if all(one.layer.origin.kind == "conversation" for one in found):
        return "conversation"
    if all(one.layer.foreign or one.layer.origin.kind == "conversation" for one in found):
        return "workspace"
    defining = [one.layer for one in found if _defines(one.change)]
    return "workspace" if defining and all(layer.foreign for layer in defining) else None


def _defines(change: Change) -> bool:
    return isinstance(change, MapChange) and not {"command", "source"}.isdisjoint(change.entries)


def _is_mistyped(name: str, names: Collection[str]) -> bool:
    import difflib

    return bool(difflib.get_close_matches(name, names, n=1, cutoff=_CLOSE))


_CLOSE = 0.85
"""Two letters of a tool's name are exchanged."""


def _sentences(problem: str, names: Sequence[str]) -> tuple[str, ...]:
    if not names:
        return ()
    shown = ", ".join(map(repr, names[:_SHOWN]))
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return (f"{problem}: {shown}{more}",)


ToolFactory = Callable[[], "Tool"]


class BuiltinTools:
    """The state that decides which of them a request offers, besides the other tools that it offers.

    `held` is the conversation so far, `typed` is what is attached now; `is_structured`: the answer has to fit a schema.
    """

    def __init__(
        self,
        schemes: AttachmentSchemes,
        config: AppConfig,
        held: QueryConversation | None,
        typed: Sequence[Declaration],
        *,
        is_structured: bool,
    ) -> None:
        self._schemes = schemes
        self._config = config
        self._entries: Sequence[AnyEntry] = () if held is None else held.entries
        self._typed = typed
        self._is_structured = is_structured

    @property
    def servers(self) -> Mapping[str, Tool]:
        """The tools of MCP servers by their names."""
        return self._schemes.servers.tools

    def spelled_out(self, names: Collection[str]) -> frozenset[str]:
        """Return the names of tools, where the name of an MCP server means all of its tools."""
        return self._schemes.servers.spelled_out(names)

    def factories(self, model: ModelId, others: Collection[str]) -> Mapping[str, ToolFactory]:
        """Return the factories of those that are of use beside tools with the names `others`."""
        if not (others or self._may_call(model)):
            return {}
        declared = any(not text.startswith("!") for text in self._config.conversation.attachments)
        attaches = declared or any(not declaration.exclude for declaration in self._typed)
        names = automatic_names(self._entries, has_tools=bool(others), attaches=attaches)
        making: Mapping[str, ToolFactory] = {
            "ask_user": _ask_user,
            "recall": _recall,
            "search_history": _search_history,
            "refresh_resource": self._refresh_resource,
        }
        return {name: make for name, make in making.items() if name in names}

    def _may_call(self, model: ModelId) -> bool:
        """Return whether tools that nobody asked for do no harm: many a model of one's own refuses every request."""
        found = find_model(kind_of(self._config.providers.llm, model.provider), model.name)
        vendor = built_in(model.provider)
        is_expected = vendor is not None and vendor.calls_tools
        may_call = found.abilities.tools and (found.known or is_expected)
        return may_call and (found.abilities.structured_with_tools or not self._is_structured)

    def _refresh_resource(self) -> Tool:

        from jp.app.query.sources import AttachedSources
        from jp.tool.context_tools import RefreshResource

        return RefreshResource(AttachedSources(self._schemes, self._config.conversation, self._typed))


def _ask_user() -> Tool:
    from jp.tool.consent import AskUser

    return AskUser()


def _recall() -> Tool:
    from jp.app.query.sources import RecalledContents
    from jp.tool.context_tools import Recall

    return Recall(RecalledContents())


def _search_history() -> Tool:
    from jp.app.query.sources import IndexedHistory
    from jp.tool.context_tools import SearchHistory

    return SearchHistory(IndexedHistory())
