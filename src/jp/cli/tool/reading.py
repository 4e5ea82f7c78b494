"""The tools of the configuration in effect, or of a conversation's."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec
import typer

from jp.cli.options import GlobalOptions
from jp.cli.places import AnyWorkspace
from jp.config.layers import Resolved
from jp.conversation.entries import AnyEntry
from jp.conversation.resource import Carrier
from jp.turn.request import InlineLoader, Loader

if TYPE_CHECKING:
    from jp.cli.toolset import Toolset
    from jp.errors import UsageError
    from jp.workspace.listing import ConversationInfo

C = TypeVar("C", bound=Carrier)

OptionalTarget = Annotated[
    str | None, typer.Option("-i", "--id", metavar="TARGET", help="A conversation; without it, what new ones get.")
]
ToolName = Annotated[str, typer.Argument(metavar="NAME", help="The tool's name.")]


class ReadStream(msgspec.Struct, frozen=True):
    """A conversation that is only read, as tools see it."""

    entries: Sequence[AnyEntry]
    loader: Loader

    def load(self, carrier: C, /) -> C:
        """The carrier with its content inline."""
        return self.loader.load(carrier)


class ReadTools(msgspec.Struct, frozen=True, kw_only=True):
    """A workspace's tools, and the conversation whose configuration counts, if one was named."""

    workspace: AnyWorkspace
    info: ConversationInfo | None
    stream: ReadStream
    resolved: Resolved

    @property
    def root(self) -> Path:
        """What file tools are confined to."""
        from jp.cli.places import base_directory

        return base_directory(self.workspace)

    def toolset(self) -> Toolset:
        """The tools."""
        from jp.cli.toolset import Toolset

        return Toolset(self.resolved.config, cache_directory=self.workspace.user_data / "cache")


def read_tools(options: GlobalOptions, target: str | None) -> ReadTools:
    """Read what is known of tools.

    Raises:
        JpError: the configuration or the conversation cannot be read.
    """
    from jp.cli.held import read_conversation
    from jp.cli.places import open_workspace
    from jp.cli.settings import read_sources

    if target is None:
        workspace = open_workspace(options)
        resolved = read_sources(options, workspace).resolve()
        return ReadTools(workspace=workspace, info=None, stream=ReadStream((), InlineLoader()), resolved=resolved)
    read = read_conversation(options, target)
    stream = ReadStream(read.entries, read.loader)
    return ReadTools(workspace=read.workspace, info=read.info, stream=stream, resolved=read.resolved)


@asynccontextmanager
async def opened(options: GlobalOptions, read: ReadTools, name: str) -> AsyncGenerator[Toolset]:
    """The tools, of which `name` can be run; what that takes is started, and ends with the context.

    Raises:
        JpError: a server does not start.
    """
    del options, name
    yield read.toolset()


def unknown_name(name: str, toolset: Toolset) -> UsageError:
    """What is said where the command line names a tool that there is not."""
    from jp.errors import UsageError
    from jp.tool.toolbox import nearest

    return UsageError(f"there is no tool {name!r}", hint=nearest(name, toolset.all_names))
