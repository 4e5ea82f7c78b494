"""Connections to servers of the tests' own, in this process."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import anyio

from jp.config.entries import McpServerConfig
from jp.errors import JpError
from jp.mcp.connection import Connection, ServerContext
from jp.mcp.definitions import Elicitation, FormAnswer, Listing
from jp.mcp.session import Call

T = TypeVar("T")

SERVER = str(Path(__file__).with_name("mcp_server.py"))
PATIENCE = 30.0


class Heard:
    """Everything that a connection tells."""

    def __init__(self) -> None:
        self.logged: list[str] = []
        self.listings: list[Listing] = []
        self.failures: list[str] = []
        self.listed_again = anyio.Event()

    def log(self, text: str) -> None:
        self.logged.append(text)

    def listed(self, server: str, listing: Listing) -> None:
        del server
        self.listings.append(listing)
        if len(self.listings) > 1:
            self.listed_again.set()

    def failed(self, server: str, error: JpError) -> None:
        del server
        self.failures.append(error.message)


def server(**environment: str) -> McpServerConfig:
    """The tests' own server, as a user configures it."""
    return McpServerConfig(command=sys.executable, arguments=("-S", "-I", SERVER), environment=environment)


@asynccontextmanager
async def connected(
    config: McpServerConfig, directory: Path, *, environment: Mapping[str, str] = os.environ
) -> AsyncGenerator[tuple[Connection, Heard]]:
    """A connection that has begun."""
    heard = Heard()
    around = ServerContext(directory=directory, cwd=Path.cwd(), environment=environment)
    connection = Connection("s", config, around, heard)
    with anyio.fail_after(PATIENCE):
        connection.begin()
        try:
            yield connection, heard
        finally:
            await connection.close()


def with_server(
    work: Callable[[Connection, Heard], Awaitable[T]], directory: Path, config: McpServerConfig | None = None
) -> T:
    """What `work` gives with a connection."""

    async def run() -> T:
        async with connected(config or server(), directory) as (connection, heard):
            return await work(connection, heard)
        raise AssertionError

    return anyio.run(run)


async def _declines(elicitation: Elicitation) -> FormAnswer:
    del elicitation
    return FormAnswer(action="decline")


def calling(
    tool: str,
    *,
    progress: Callable[[str], None] = lambda _: None,
    elicit: Callable[[Elicitation], Awaitable[FormAnswer]] = _declines,
    **arguments: object,
) -> Call:
    """A call of a tool."""
    return Call(tool=tool, arguments=arguments, progress=progress, elicit=elicit)
