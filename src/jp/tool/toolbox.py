"""The tools that the model may call: built-in ones, declared ones, and those of MCP servers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec
from msgspec.structs import replace

from jp import suggestions
from jp.config.entries import Enable, RuleConfig, Section, ToolConfig
from jp.conversation.entries import AnyEntry, ChatRequest, RequestContext
from jp.conversation.thread import ToolDefinition
from jp.entry_points import entries_of, load_entry, package_of
from jp.errors import ConfigurationError, JpError, UsageError
from jp.remedies import Option, SetSettings, phrase
from jp.tool.base import Previewed, ReadsOnly, Tool, Toolbox, ToolInvocation, ToolOutput

if TYPE_CHECKING:
    from jp.tool.files.access import FileNames


_READING = frozenset({"fs_grep_files", "fs_list_files", "fs_read_file"})
FILE_TOOLS = _READING | {"fs_create_file", "fs_delete_file", "fs_modify_file", "fs_move_file"}
"""The names of the tools that work on files."""


def file_tool(name: str, names: FileNames) -> Tool:
    """Return the tool that works on files and has this name. Its module is imported now."""
    if name in _READING:
        from jp.tool.files.read_tools import TOOLS
    else:
        from jp.tool.files.write_tools import TOOLS
    return TOOLS[name](names)


class BuiltIn(msgspec.Struct, frozen=True):
    """It comes with jp."""

    @property
    def text(self) -> str:
        """Return the value of `source`."""
        return "builtin"


class Local(msgspec.Struct, frozen=True):
    """It is a command that the configuration has."""

    @property
    def text(self) -> str:
        """Return the value of `source`."""
        return "local"


class OnServer(msgspec.Struct, frozen=True):
    """An MCP server has it, under the name `tool`."""

    server: str
    tool: str

    @property
    def text(self) -> str:
        """Return the value of `source`."""
        return f"mcp.{self.server}.{self.tool}"


class InPackage(msgspec.Struct, frozen=True):
    """Another Python package brings it, if any does."""

    @property
    def text(self) -> str:
        """Return a word for a person: no `source` has this value."""
        return "package"


ToolSource = BuiltIn | Local | OnServer | InPackage


def source_of(name: str, settings: ToolConfig, built_in: Collection[str]) -> ToolSource:
    """Return where the tool `name` comes from. `built_in` are the names of those that come with jp.

    Without a `source`, a tool with a command is local; else it comes with jp, or with another package.

    Raises:
        ConfigurationError: the source is none.
    """
    match (settings.source or "").split(".", 2):
        case [""]:
            if settings.command is not None:
                return Local()
            return BuiltIn() if name in built_in else InPackage()
        case ["builtin"]:
            return BuiltIn()
        case ["local", *_]:
            return Local()
        case ["mcp", server, *tool] if server and tool != [""]:
            return OnServer(server, tool[0] if tool else name)
        case _:
            raise ConfigurationError(
                f"'conversation.tools.{name}.source' cannot be {settings.source!r}",
                hint="it is `builtin`, `local`, `mcp.SERVER`, `mcp.SERVER.TOOL` or `mcp.SERVER.*`",
            )


RECALL = "recall"
SEARCH = "search_history"
REFRESH = "refresh_resource"

HISTORY_TOOLS = frozenset({RECALL, SEARCH})
"""Those that read what a view hides. Their results are copies of it."""

CONTENT_TOOLS = frozenset({*HISTORY_TOOLS, REFRESH})
"""Those that read what a conversation has."""

AUTOMATIC = frozenset({*CONTENT_TOOLS, "ask_user", "describe_tools"})
"""All of them, by name."""

_UNATTENDED = ToolConfig(enable="always", run="unattended")
AUTOMATIC_SETTINGS: Mapping[str, ToolConfig] = {
    **dict.fromkeys(sorted(AUTOMATIC), _UNATTENDED),
    REFRESH: ToolConfig(enable="always", run="unattended", rules=(RuleConfig(arguments={"uri": "cmd:**"}, run="ask"),)),
}
"""Default settings of each source: a tool that runs a command asks as a command does."""


def automatic_names(entries: Iterable[AnyEntry], *, has_tools: bool, attaches: bool) -> frozenset[str]:
    """Return which of them the next request of a conversation with these entries offers.

    All where it offers other tools (`has_tools`). Those that read what a conversation has, besides, where something is
    attached (`attaches`) and wherever a request has attached something or offered tools before, undone or not. A
    compaction adds none: tools that appear in mid-conversation change the prefix of everything in it.
    """
    if has_tools:
        return AUTOMATIC
    return CONTENT_TOOLS if attaches or any(map(_offered_some, entries)) else frozenset()


def _offered_some(entry: AnyEntry) -> bool:
    match entry:
        case ChatRequest(resources=resources, attachments=attachments):
            return bool(resources or attachments)
        case RequestContext(tools=tools):
            return tools is not None
        case _:
            return False


S = TypeVar("S", bound=Section)

ALL = "*"
"""The name under which a configuration says what holds for every tool that does not say otherwise."""

_NOTHING = ToolConfig()
_LONGEST_NAME = 64


def settings_of(name: str, settings: Mapping[str, ToolConfig]) -> ToolConfig:
    """Return the settings of a tool, completed by the defaults for all. `settings` is `conversation.tools`."""
    return settings_over(settings.get(ALL, _NOTHING), settings.get(name, _NOTHING))


def is_enabled(settings: ToolConfig) -> bool:
    """Return whether the model is offered a tool: it is off until it is enabled."""
    return settings.enable is True or settings.enable == "always"


def enabled_names(known: Iterable[str], settings: Mapping[str, ToolConfig]) -> list[str]:
    """Return those of the `known` tools that the model is offered, sorted. `settings` is `conversation.tools`."""
    every = settings.get(ALL, _NOTHING)
    said = ((name, settings.get(name, _NOTHING)) for name in sorted(known))
    return [name for name, own in said if is_enabled(every if own.enable is None else own)]


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
    """Return a tool's `own` settings, and where it says nothing, those that hold for `every` tool."""
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
    """Return the definitions for the model, sorted by name: the same tools always make the same request."""
    return tuple(toolbox[name].tool.definition for name in sorted(toolbox))


def unknown_tool(where: str, name: str, known: Collection[str]) -> ConfigurationError:
    """Return what is said where something names a tool that there is not; `where` is what does."""
    return ConfigurationError(f"{where} names an unknown tool {name!r}", hint=nearest(name, known))


def nearest(name: str, known: Collection[str]) -> str:
    """Return which of the `known` names may be meant, for a hint."""
    names = sorted(known)
    near = suggestions.closest_names(name, names)
    return f"did you mean {near[0]!r}?" if near else f"the tools are: {', '.join(names) or 'none'}"


OFF = "!"
"""Prefix of the name of a tool that is removed."""

_WILD = frozenset("*?[")


class ToolSwitch:
    """Switches tools on and off, one after the other.

    `settings` is `conversation.tools`, `names` are the tools that patterns match. `is_known` says whether there is a
    tool of some other name, too. `groups` has for tools that are named in a body the name that speaks for all of them.
    """

    def __init__(
        self,
        settings: Mapping[str, ToolConfig],
        names: Collection[str],
        is_known: Callable[[str], bool],
        *,
        groups: Mapping[str, str] | None = None,
    ) -> None:
        self._settings = settings
        self._names = names
        self._is_known = is_known
        self._groups = groups or {}
        self._switched: dict[str, bool] = {}

    def switch(self, specifications: Sequence[str]) -> dict[str, bool]:
        """Return which tools change, by name: whether they are offered from now on.

        A specification is a tool's name or a pattern, with `!` before it to take away. A pattern leaves alone what is
        offered by name only (`explicit`) or in any case (`always`).

        Raises:
            UsageError: a name or a pattern means no tool, or a tool that is always offered is to be taken away.
        """
        for text in specifications:
            name = text.removeprefix(OFF)
            if _WILD.isdisjoint(name):
                self._switch_one(name, on=name == text)
            else:
                self._switch_all(name, on=name == text)
        return self._switched

    def _switch_one(self, name: str, *, on: bool) -> None:
        option = _option(on=on)
        if not self._is_known(name):
            raise UsageError(phrase(option, f" names an unknown tool {name!r}"), hint=nearest(name, self._names))
        state = self._state(name)
        if not on and state == "always":
            setting = SetSettings((f"conversation.tools.{name}.enable=false",), scope="run")
            raise UsageError(
                phrase(option, f" cannot take {name!r} away: it is always offered"),
                hint=phrase("the configuration says so; `", setting, "` overrides it"),
            )
        if on is not _is_offered(state):
            self._switched[name] = on

    def _switch_all(self, pattern: str, *, on: bool) -> None:
        found = [name for name in sorted(self._names) if fnmatchcase(name, pattern)]
        if not found:
            message = phrase(_option(on=on), f" {pattern!r} matches no tool")
            raise UsageError(message, hint=nearest(pattern, self._names))
        for name in found:
            state = self._state(name)
            if state not in {"explicit", "always"} and on is not _is_offered(state):
                self._switched[name] = on

    def _state(self, name: str) -> Enable | None:
        for spoken in (name, self._groups.get(name, name)):
            if spoken in self._switched:
                return self._switched[spoken]
        return settings_of(name, self._settings).enable


def _is_offered(state: Enable | None) -> bool:
    return state is True or state == "always"


def _option(*, on: bool) -> Option:
    return Option.TOOL if on else Option.DISABLED_TOOL


GROUP = "jp.tools"
"""The entry point group. The name of an entry is the tool's name, its value a tool or a callable that gives one."""

_REMEDY = "update or uninstall the package that provides it"
_CACHE_NAME = "tools.json"


class ToolDefectError(JpError):
    """A tool of another package did what no tool may do."""


def third_party_tools(cache_directory: Path | None) -> dict[str, str]:
    """Return the entry points of other packages: a value such as `package.module:Tool` for each tool's name.

    `cache_directory` may be missing or not writable: then every call searches again.
    """
    return entries_of(GROUP, None if cache_directory is None else cache_directory / _CACHE_NAME)


def load(name: str, value: str) -> Tool:
    """Import the tool that an entry point names.

    Raises:
        ConfigurationError: it cannot be imported, or is no tool of that name.
    """
    try:
        found = load_entry(value)
        tool = found if hasattr(found, "definition") and not isinstance(found, type) else _made(found)
        definition = _definition(tool)
    except (Exception, SystemExit) as error:
        message = f"the tool {name!r} comes from {package_of(GROUP, name, value)}, which failed to load: {error}"
        raise ConfigurationError(message, hint=_REMEDY) from error
    if definition is None or definition.name != name or not callable(getattr(tool, "run", None)):
        message = f"the tool {name!r} comes from {package_of(GROUP, name, value)}, which is no tool of that name"
        raise ConfigurationError(message, hint=_REMEDY)
    return _Checked(cast("Tool", tool), definition)


def _made(found: object) -> object:
    if not callable(found):
        raise TypeError("it is neither a tool nor a callable that gives one")
    make = cast("Callable[[], object]", found)
    return make()


def _definition(tool: object) -> ToolDefinition | None:
    """Return what a tool says of itself, None where that is no definition. It is asked once: it must not change."""
    said = getattr(tool, "definition", None)
    if not isinstance(said, ToolDefinition):
        return None
    return msgspec.convert(msgspec.to_builtins(said), ToolDefinition)


class _Checked:
    """A tool whose results are looked at: what is none is the tool's defect, not jp's."""

    def __init__(self, tool: Tool, definition: ToolDefinition) -> None:
        self._tool = tool
        self._definition = definition

    @property
    def definition(self) -> ToolDefinition:
        """See the port."""
        return self._definition

    @property
    def reads_only(self) -> bool:
        """See `ReadsOnly`."""
        return isinstance(self._tool, ReadsOnly) and bool(self._tool.reads_only)

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        """See the port.

        Raises:
            ToolDefectError: what came is no output.
        """
        return _checked(self._definition.name, await self._tool.run(invocation))

    async def preview(self, invocation: ToolInvocation) -> str | None:
        """See `Previewed`: what the tool says of a call, if it says anything."""
        return await self._tool.preview(invocation) if isinstance(self._tool, Previewed) else None


def _checked(name: str, output: object) -> ToolOutput:
    if not isinstance(output, ToolOutput):
        raise ToolDefectError(f"{name} gave {type(output).__name__!r} where a ToolOutput has to be")
    return output
