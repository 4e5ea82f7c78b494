"""Every tool that a configuration knows: jp's own, the user's commands, those of MCP servers and of other packages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from jp.cli.built_in_tools import BUILT_IN
from jp.config.model import AppConfig
from jp.config.tools import ToolConfig
from jp.errors import ConfigurationError
from jp.tool.sources import BuiltIn, InPackage, Local, OnServer, ToolSource, source_of
from jp.tool.toolbox import ALL, build_toolbox, check_offered, enabled_names, unknown_tool

if TYPE_CHECKING:
    from jp.tool.base import Tool, Toolbox

_UNSET = ToolConfig()


class Toolset:
    """The tools of a configuration, by name. Nothing of them is imported before it is asked for.

    `cache_directory` is where what other packages provide is remembered, None for nowhere. `joined` makes tools that
    need a port: whoever has it joins them.
    """

    def __init__(
        self,
        config: AppConfig,
        *,
        cache_directory: Path | None = None,
        joined: Mapping[str, Callable[[], Tool]] | None = None,
    ) -> None:
        self._config = config
        self._settings = config.conversation.tools
        self._own = {**BUILT_IN, **(joined or {})}
        self._cache_directory = cache_directory
        self._tools: dict[str, Tool] = {}

    @cached_property
    def _packaged(self) -> dict[str, str]:
        from jp.tool.third_party import third_party_tools

        return third_party_tools(self._cache_directory)

    @cached_property
    def names(self) -> Sequence[str]:
        """The tools that come with jp, and those that the configuration names and that there are, sorted."""
        named = {name for name in self._settings if name != ALL and self.is_known(name)}
        return sorted({*self._own, *named})

    @property
    def all_names(self) -> Sequence[str]:
        """Besides, those that other packages bring and that nobody named."""
        return sorted({*self.names, *self._packaged})

    def source(self, name: str) -> ToolSource:
        """Where a tool comes from, if there is one of that name.

        Raises:
            ConfigurationError: what the configuration says of that is wrong.
        """
        return source_of(name, self._settings.get(name, _UNSET), self._own.keys())

    def is_known(self, name: str) -> bool:
        """Whether there is such a tool.

        Raises:
            ConfigurationError: what the configuration says of its source is wrong.
        """
        match self.source(name):
            case BuiltIn():
                return name in self._own
            case Local() | OnServer():
                return False
            case InPackage():
                return name in self._packaged
            case _ as never:
                assert_never(never)

    def check(self) -> None:
        """See that there is every tool that the configuration names.

        Raises:
            ConfigurationError: there is not.
        """
        for name in self._settings:
            if name != ALL and not self.is_known(name):
                raise self._unknown(name)

    def tool(self, name: str) -> Tool:
        """The tool of that name.

        Raises:
            ConfigurationError: there is none, or it does not load.
        """
        if name not in self._tools:
            self._tools[name] = self._made(name)
        return self._tools[name]

    def toolbox(self) -> Toolbox:
        """The tools that the model is offered.

        Raises:
            ConfigurationError: the configuration names one that there is not, or one cannot be offered.
        """
        self.check()
        names = enabled_names(self.names, self._settings)
        for name in names:
            check_offered(name)
        return build_toolbox([self.tool(name) for name in names], self._settings)

    def _made(self, name: str) -> Tool:
        match self.source(name):
            case BuiltIn() if name in self._own:
                return self._own[name]()
            case InPackage() if name in self._packaged:
                from jp.tool.third_party import load

                return load(name, self._packaged[name])
            case BuiltIn() | InPackage() | Local() | OnServer():
                raise self._unknown(name)
            case _ as never:
                assert_never(never)

    def _unknown(self, name: str) -> ConfigurationError:
        match self.source(name):
            case OnServer(server=server):
                return ConfigurationError(
                    f"the tool {name!r} is on the MCP server {server!r}, which is not known",
                    hint=f"declare it as `providers.mcp.{server}`",
                )
            case _:
                return unknown_tool("'conversation.tools'", name, self.all_names)
