"""From the configuration of a server to what is started, or what is sent."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from jp.config.tools import McpServerConfig
from jp.errors import ConfigurationError
from jp.mcp.errors import ServerError
from jp.mcp.process import ServerProcess
from jp.process.environment import child_environment
from jp.process.programs import find_program

if TYPE_CHECKING:
    from jp.process.sandbox.policy import Confinement


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """Where servers are started: in `directory`, and with what of jp's own environment. `cwd` is jp's own place.

    `private` are the directories of jp itself, which a confined server cannot read.
    """

    directory: Path
    cwd: Path
    environment: Mapping[str, str]
    private: tuple[str, ...] = ()


def check(name: str, config: McpServerConfig) -> None:
    """See that a configuration says what the server is.

    Raises:
        ConfigurationError: it says nothing, or two things.
    """
    if (config.command is None) == (config.url is None):
        what = "neither a command nor a URL" if config.url is None else "both a command and a URL"
        raise ConfigurationError(
            f"the MCP server {name!r} has {what}",
            hint=f"set `providers.mcp.{name}.command` to a program, or `providers.mcp.{name}.url` to an address",
        )
    if config.url is not None and config.sandbox.mode not in {None, "off"}:
        raise ConfigurationError(
            f"the MCP server {name!r} is at an address, where no sandbox confines it",
            hint=f"remove `providers.mcp.{name}.sandbox`",
        )


def confinement(config: McpServerConfig, around: Surroundings) -> Confinement | None:
    """Return the limits of a server's program; None where it has none. Nobody is asked before it starts."""
    if config.sandbox.mode in {None, "off"}:
        return None
    from jp.process.sandbox.policy import confinement_of

    root = str(around.directory.absolute())
    return confinement_of(config.sandbox, default="off", root=root, private=around.private)


@contextmanager
def started(name: str, config: McpServerConfig, around: Surroundings) -> Generator[ServerProcess]:
    """Start the program of a server; leave the context once it has ended.

    It gets none of jp's environment that may be a secret and was not named.

    Raises:
        ConfigurationError: there is no such program.
        ServerError: it cannot be started.
        SandboxError: it must not run, because it cannot be confined.
    """
    directory = str(around.directory)
    command = os.path.expanduser(config.command or "")  # noqa: PTH111 - text
    environment = {
        **child_environment(around.environment, cwd=str(around.cwd), directory=directory, named=config.variables),
        **config.environment,
    }
    program = find_program(command, directory, environment)
    if program is None:
        raise ConfigurationError(
            f"the program {command!r} of the MCP server {name!r} is not there",
            hint=f"install it, or give its path in `providers.mcp.{name}.command`",
        )
    words, limits = (program, *config.arguments), confinement(config, around)
    with ExitStack() as stack:
        try:
            if limits is not None:
                from jp.process.sandbox.launching import confined

                launch = stack.enter_context(confined(words, environment, directory=directory, confinement=limits))
                words, environment = tuple(launch.words), dict(launch.environment)
            process = ServerProcess(words, directory=directory, environment=environment)
        except (OSError, ValueError) as error:
            raise _not_started(name, program, error) from None
        yield process


def _not_started(name: str, program: str, error: OSError | ValueError) -> ServerError:
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    message = f"the MCP server {name!r} cannot be started: {program!r}: {why}"
    return ServerError(message, hint=f"see `jp config get providers.mcp.{name}`")


def headers_of(name: str, config: McpServerConfig, environment: Mapping[str, str]) -> dict[str, str]:
    """The headers of each request to a server.

    Raises:
        ConfigurationError: a variable that holds one is not set.
    """
    headers = dict(config.headers)
    for header, variable in config.headers_env.items():
        value = environment.get(variable, "").strip()
        if not value:
            raise ConfigurationError(
                f"the header {header!r} of the MCP server {name!r} is in the variable {variable!r}, which is not set",
                hint=f"export {variable}=…",
            )
        headers[header] = value
    return headers
