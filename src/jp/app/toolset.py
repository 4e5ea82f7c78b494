"""Every tool that a configuration knows, and what jp's own tools are joined with."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from msgspec.structs import replace

from jp.config.entries import ToolConfig
from jp.config.model import AppConfig
from jp.errors import ConfigurationError, JpError
from jp.tool import toolbox
from jp.tool.toolbox import (
    ALL,
    FILE_TOOLS,
    STANDING,
    STANDING_SETTINGS,
    BuiltIn,
    InPackage,
    Local,
    OnServer,
    ToolSource,
    check_offered,
    enabled_names,
    file_tool,
    settings_of,
    settings_over,
    source_of,
    unknown_tool,
)
from jp.tool.web_fetch import FetchedPage, RefusedFetchError

if TYPE_CHECKING:
    from jp.tool.base import ConfiguredTool, Tool, Toolbox
    from jp.tool.files.territory import Ignored


class AttachmentNames:
    """See the port, `jp.tool.files.territory.FileSurroundings`."""

    def real_path(self, path: str) -> str:
        """See the port."""
        from jp.attachment.file_paths import CanonicalNames

        return CanonicalNames().real_path(path)

    def uri(self, path: str) -> str:
        """See the port."""
        from jp.attachment.file_paths import CanonicalNames

        return CanonicalNames().uri(path)

    def mime_type(self, path: str) -> str:
        """See the port."""
        from jp.attachment.media import text_type

        return text_type(path)

    def ignored(self, base: str, root: str) -> Ignored:
        """See the port."""
        from jp.attachment.file_walk import IgnoreRules

        return IgnoreRules.around(base, root)

    def private(self) -> Sequence[str]:
        """See the port."""
        return private_directories()


def private_directories() -> Sequence[str]:
    """Return where jp keeps data (keys, trust, conversations), what is remembered, and the user's own configuration."""
    import os
    from contextlib import suppress

    from jp.errors import StorageError
    from jp.workspace.layout import user_cache_directory, user_config_directory, user_data_directory

    directories = [] if (configuration := user_config_directory(os.environ)) is None else [configuration]
    # Without a home, nothing is kept.
    with suppress(StorageError):
        directories += [user_data_directory(), user_cache_directory()]
    return [str(directory) for directory in directories]


class AttachmentWeb:
    """See the port, `jp.tool.web_fetch.Web`."""

    async def fetch(self, url: str, *, allows_local: bool) -> FetchedPage:
        """See the port.

        Raises:
            JpError: see the port.
        """
        from jp.attachment.base import Declaration, ResolveContext
        from jp.attachment.web import HttpHandler
        from jp.attachment.web_address import OWN_NETWORK, PUBLIC, is_local, parse_address

        address = parse_address(url)
        if address.credentials:
            raise JpError(f"{address.shown!r} was given with a name and a password, which are not sent")
        if is_local(address.host) and not allows_local:
            raise JpError(f"{address.shown!r} lies in the user's own network, which must not be reached")
        from jp.attachment.web_client import RefusedError

        # What resolves an address of the web looks at no directory.
        context = ResolveContext(root=Path("/"), cwd=Path("/"))
        try:
            declaration = Declaration(uri=address.text, written=address.text)
            reach = OWN_NETWORK if allows_local else PUBLIC
            found = await HttpHandler().fetch(declaration, context, scope=reach)
        except RefusedError as error:
            raise RefusedFetchError(error.message, status=error.status) from None
        return FetchedPage(resources=found.resolution.resources, notices=found.resolution.notices, status=found.status)


def _file_tool(name: str) -> Tool:
    return file_tool(name, AttachmentNames())


def _run_command() -> Tool:
    from jp.tool.execution import Sandbox
    from jp.tool.local import RunCommand

    return RunCommand(Sandbox(name="run_command", default="workspace-write", private=private_directories))


def _web_fetch() -> Tool:

    from jp.tool.web_fetch import WebFetch

    return WebFetch(AttachmentWeb())


BUILT_IN: Mapping[str, Callable[[], Tool]] = {
    **{name: partial(_file_tool, name) for name in sorted(FILE_TOOLS)},
    "run_command": _run_command,
    "web_fetch": _web_fetch,
}
"""A function that imports and makes the tool, for each that is off until it is enabled."""

STANDING_TOOLS = tuple(sorted(toolbox.STANDING))
"""The names of those that a request offers by itself where they are of use."""


_UNSET = ToolConfig()
_NAMES = frozenset({*BUILT_IN, *STANDING})

Making = Callable[[], "Tool"]
Standing = Callable[[Collection[str]], Mapping[str, Making]]
"""The makers of those of `STANDING` that are of use to a conversation which is offered tools of these other names."""


def _standing_settings(name: str, own: ToolConfig) -> ToolConfig:
    """The settings of a tool that is offered by itself: its rules follow those that the configuration has for it."""
    usual = STANDING_SETTINGS[name]
    return replace(settings_over(usual, own), rules=(*own.rules, *usual.rules))


class Toolset:
    """The tools of a configuration, by name. Nothing of them is imported before it is asked for.

    `cache_directory` is where what other packages provide is remembered, None for nowhere. `standing` is of the
    conversation for which they are: without one, none is offered by itself. `servers` are the tools of MCP servers by
    their names, where `config` has them all; without it, only the configuration says what there is, and none is made.
    `root` is the workspace's, of whose id local tools are told.
    """

    def __init__(
        self,
        config: AppConfig,
        *,
        cache_directory: Path | None = None,
        standing: Standing | None = None,
        servers: Mapping[str, Tool] | None = None,
        root: Path | None = None,
    ) -> None:
        self._config = config
        self._cache_directory = cache_directory
        self._standing = standing
        self._servers = servers
        self._root = root
        self._tools: dict[str, Tool] = {}
        named = config.conversation.tools
        over = {name: _standing_settings(name, named.get(name, _UNSET)) for name in STANDING}
        self.settings: Mapping[str, ToolConfig] = {**named, **over}

    @cached_property
    def _packaged(self) -> dict[str, str]:
        from jp.tool.toolbox import third_party_tools

        return third_party_tools(self._cache_directory)

    @cached_property
    def names(self) -> Sequence[str]:
        """The tools that come with jp, and those that the configuration names and that there are, sorted."""
        named = {name for name in self.settings if name != ALL and self.is_known(name)}
        return sorted({*_NAMES, *named})

    @property
    def all_names(self) -> Sequence[str]:
        """Besides, those that other packages bring and that nobody named."""
        return sorted({*self.names, *self._packaged})

    def source(self, name: str) -> ToolSource:
        """Return the source of a tool, if there is one of that name.

        Raises:
            ConfigurationError: what the configuration says of that is wrong.
        """
        return source_of(name, self.settings.get(name, _UNSET), _NAMES)

    def is_known(self, name: str) -> bool:
        """Return whether there is such a tool.

        Raises:
            ConfigurationError: what the configuration says of its source is wrong.
        """
        match self.source(name):
            case BuiltIn():
                return name in _NAMES
            case Local():
                return self.settings[name].command is not None
            case OnServer(server=server):
                return server in self._config.providers.mcp if self._servers is None else name in self._servers
            case InPackage():
                return self._may_be_on_server(name) or name in self._packaged
            case _ as never:
                assert_never(never)

    def _may_be_on_server(self, name: str) -> bool:
        """Return whether a name belongs to those of a server that nobody has asked yet."""
        if self._servers is not None or not self._config.providers.mcp:
            return False
        from jp.tool.mcp import groups_of, member_of

        return member_of(name, self.settings.get(name, _UNSET), groups_of(self.settings)) is not None

    def check(self) -> None:
        """See that there is every tool that the configuration names.

        Raises:
            ConfigurationError: there is not.
        """
        for name in self.settings:
            if name != ALL and not self.is_known(name):
                raise self.unknown(name)
            self._check_sandbox(name)

    def _check_sandbox(self, name: str) -> None:
        """Refuse a sandbox for a tool that starts no program of its own: none would confine it."""
        source = self.source(name)
        own = self._config.conversation.tools.get(name, _UNSET)
        if name in {ALL, "run_command"} or isinstance(source, Local) or own.sandbox == _UNSET.sandbox:
            return
        if isinstance(source, OnServer):
            raise ConfigurationError(
                f"the tool {name!r} is confined as its MCP server is",
                hint=f"set `providers.mcp.{source.server}.sandbox` instead",
            )
        raise ConfigurationError(
            f"the tool {name!r} acts in jp's own process, where no sandbox confines it",
            hint=f"remove `conversation.tools.{name}.sandbox`",
        )

    def tool(self, name: str) -> Tool:
        """The tool of that name.

        Raises:
            ConfigurationError: there is none, it does not load, or it has no use here.
        """
        if name not in self._tools:
            self._tools[name] = self._made(name)
        return self._tools[name]

    def configured(self, name: str) -> ConfiguredTool:
        """The tool of that name with its settings.

        Raises:
            ConfigurationError: see `tool`.
        """
        from jp.tool.base import ConfiguredTool

        self._check_sandbox(name)
        return ConfiguredTool(tool=self.tool(name), settings=settings_of(name, self.settings))

    def toolbox(self) -> Toolbox:
        """The tools that the model is offered, sorted by name.

        Raises:
            ConfigurationError: the configuration names one that there is not, or one cannot be offered.
        """
        self.check()
        enabled = enabled_names(self.names, self.settings)
        others = [name for name in enabled if name not in STANDING]
        of_use = self._makers(others)
        offered = [*others, *(name for name in enabled if name in of_use)]
        for name in offered:
            check_offered(name)
        toolbox = {name: self.configured(name) for name in offered}
        if "describe_tools" in enabled and _has_more_to_say(toolbox):
            toolbox["describe_tools"] = self.configured("describe_tools")
        return dict(sorted(toolbox.items()))

    def _made(self, name: str) -> Tool:
        match self.source(name):
            case BuiltIn() if name in _NAMES:
                return self._built_in(name)
            case Local() if self.settings[name].command is not None:
                from jp.tool.local import LocalTool
                from jp.workspace.layout import workspace_id

                settings = settings_of(name, self.settings)
                return LocalTool(name, settings, workspace_id=workspace_id(self._root), private=private_directories)
            case OnServer() if self._servers is not None and name in self._servers:
                return self._servers[name]
            case InPackage() if name in self._packaged:
                from jp.tool.toolbox import load

                return load(name, self._packaged[name])
            case BuiltIn() | InPackage() | Local() | OnServer():
                raise self.unknown(name)
            case _ as never:
                assert_never(never)

    def _built_in(self, name: str) -> Tool:
        if name == "describe_tools":
            from jp.tool.context_tools import DescribeTools

            return DescribeTools(self.toolbox)
        make = BUILT_IN.get(name) or self._makers(_NAMES).get(name)
        if make is None:
            raise ConfigurationError(
                f"the tool {name!r} works in a conversation only", hint="the model is offered it where it is of use"
            )
        return make()

    def _makers(self, others: Collection[str]) -> Mapping[str, Making]:
        return {} if self._standing is None else self._standing(others)

    def unknown(self, name: str) -> ConfigurationError:
        """Return the error for a tool that the configuration names and that does not exist."""
        match self.source(name):
            case OnServer(server=server):
                return ConfigurationError(
                    f"the tool {name!r} is on the MCP server {server!r}, which is not known",
                    hint=f"declare it as `providers.mcp.{server}`",
                )
            case Local():
                return ConfigurationError(
                    f"the local tool {name!r} has no command", hint=f"set `conversation.tools.{name}.command`"
                )
            case _:
                return unknown_tool("'conversation.tools'", name, self.all_names)


def _has_more_to_say(toolbox: Toolbox) -> bool:
    if not toolbox:
        return False
    from jp.tool.context_tools import has_more_to_say

    return any(map(has_more_to_say, toolbox.values()))
