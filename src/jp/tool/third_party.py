"""Tools that other packages add, by entry point."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import msgspec

from jp.conversation.thread import ToolDefinition
from jp.entry_points import entries_of, load_entry, package_of
from jp.errors import ConfigurationError, JpError
from jp.tool.base import Previewed, ReadsOnly, Tool, ToolInvocation, ToolOutput

GROUP = "jp.tools"
"""The entry point group. The name of an entry is the tool's name, its value a tool or a callable that gives one."""

_REMEDY = "update or uninstall the package that provides it"
_CACHE_NAME = "tools.json"


class ToolDefectError(JpError):
    """A tool of another package did what no tool may do."""


def third_party_tools(cache_directory: Path | None) -> dict[str, str]:
    """The entry points of other packages: a value such as `package.module:Tool` for each tool's name.

    `cache_directory` may be missing or not writable: then every call looks anew.
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
    """What a tool says of itself, None where that is no definition. It is asked once: it must not change."""
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
