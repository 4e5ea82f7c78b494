"""A connection to an MCP server: started concurrently, used as soon as it is ready, closed with its turn."""

from __future__ import annotations

import math
import os
from collections.abc import Awaitable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec
from anyio import CancelScope, Event, create_task_group, current_time, move_on_after
from anyio.to_thread import run_sync

from jp.config.entries import McpServerConfig
from jp.errors import ConfigurationError, JpError
from jp.mcp.definitions import ClosedError, EndedError, Handshake, Listing, ServerError, UnauthorizedError
from jp.mcp.session import Call, CallResult, Session, SessionListener, error_of, may_need_discover, open_session
from jp.mcp.transport import HttpTransport, ServerProcess, StdioTransport
from jp.process.environment import child_environment, exit_code_text, find_program
from jp.remedies import Show, phrase

if TYPE_CHECKING:
    from asyncio import Task

    from jp.conversation.resource import Resource
    from jp.process.sandbox.policy import Confinement


class ServerContext(msgspec.Struct, frozen=True, kw_only=True):
    """Context of servers. They run in `directory` with jp's `environment`; `cwd` is jp's working directory.

    `private` are directories of jp, which a confined server cannot read.
    """

    directory: Path
    cwd: Path
    environment: Mapping[str, str]
    private: tuple[str, ...] = ()


def check(name: str, config: McpServerConfig) -> None:
    """Check that a configuration has a command or a URL.

    Raises:
        ConfigurationError: it has neither, both, or a sandbox for a URL.
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


def confinement(config: McpServerConfig, around: ServerContext) -> Confinement | None:
    """Return the confinement of a server's program; None for none. It starts without a question."""
    if config.sandbox.mode in {None, "off"}:
        return None
    from jp.process.sandbox.policy import confinement_of

    root = str(around.directory.absolute())
    return confinement_of(config.sandbox, default="off", root=root, private=around.private)


@contextmanager
def started(name: str, config: McpServerConfig, around: ServerContext) -> Generator[ServerProcess]:
    """Start the program of a server; leave the context after its end.

    Variables of jp's environment that may be secrets are only passed if the configuration names them.

    Raises:
        ConfigurationError: there is no such program.
        ServerError: it cannot be started.
        SandboxError: its confinement is required, and cannot be set up.
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
                from jp.process.sandbox.launcher import confined

                launch = stack.enter_context(confined(words, environment, directory=directory, confinement=limits))
                words, environment = tuple(launch.words), dict(launch.environment)
            process = ServerProcess(words, directory=directory, environment=environment)
        except (OSError, ValueError) as error:
            raise _not_started(name, program, error) from None
        yield process


def _not_started(name: str, program: str, error: OSError | ValueError) -> ServerError:
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    message = f"the MCP server {name!r} cannot be started: {program!r}: {why}"
    return ServerError(message, hint=phrase("see `", Show("setting", f"providers.mcp.{name}"), "`"))


def headers_of(name: str, config: McpServerConfig, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of each request to a server.

    Raises:
        ConfigurationError: the variable of a header is not set.
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


T = TypeVar("T")

_SECS_TO_TELL = 2.0
"""Maximum seconds that an interrupted call waits for the reason."""

_UNAUTHORIZED = frozenset({401, 403})

_SECS_TO_END = 2.0
"""Maximum seconds for an orderly end of a session."""


class Connection:
    """The session with the server `name`.

    It has its own task, which is not canceled with its callers: the server gets the cancellation of a call before the
    session ends. It starts with the `remembered` handshake; if the server does not support that, it is started again
    with the other one.
    """

    def __init__(
        self,
        name: str,
        config: McpServerConfig,
        around: ServerContext,
        listener: SessionListener,
        *,
        remembered: Handshake = "initialize",
    ) -> None:
        self.name = name
        self.config = config
        self._handshake: Handshake = remembered if config.protocol == "auto" else config.protocol
        self._around = around
        self._listener = listener
        self._task: Task[None] | None = None
        self._process: ServerProcess | None = None
        self._session: Session | None = None
        self._failure: JpError | None = None
        self._life = CancelScope()
        self._settled = Event()
        self._closing = Event()
        self._over = Event()
        self._begun_at = 0.0

    def begin(self) -> None:
        """Start the session, unless it was started."""
        if self._task is None:
            from asyncio import create_task

            self._task = create_task(self._run())

    async def close(self) -> None:
        """End the session, and wait until that is done: in order where that does not take too long."""
        if self._task is None:
            return
        self._closing.set()
        with CancelScope(shield=True):
            if self._session is not None:
                with move_on_after(_SECS_TO_END):
                    await self._over.wait()
            elif self._process is not None:
                # It has done nothing yet that it could want to keep.
                self._process.kill()
            self._life.cancel()
            await self._over.wait()

    async def listing(self) -> Listing:
        """Return the tools of the server.

        Raises:
            JpError: the server does not start, or the request failed.
        """
        session = await self._ready()
        return session.listing

    async def call(self, call: Call) -> CallResult:
        """Call a tool.

        Raises:
            JpError: the server does not start, ends, or refuses.
        """
        session = await self._ready()
        return await self._alive(session.call(call))

    async def read(self, uri: str) -> tuple[Resource, ...]:
        """Return the resources of the server at its own `uri`.

        Raises:
            JpError: the server does not start, ends, or refuses.
        """
        session = await self._ready()
        return await self._alive(session.read(uri))

    async def resources(self) -> tuple[str, ...]:
        """Return some URIs that the server lists; none if it lists none.

        Raises:
            JpError: the server does not start, or ends.
        """
        session = await self._ready()
        return await self._alive(session.resources())

    async def _ready(self) -> Session:
        await self._settled.wait()
        if self._failure is not None:
            raise self._failure
        if self._session is None:
            raise ServerError(f"the MCP server {self.name!r} has ended")
        return self._session

    async def _alive(self, answer: Awaitable[T]) -> T:
        """Return the result of a request; if the server ends before, raise the reason."""
        try:
            return await answer
        except ClosedError:
            with move_on_after(_SECS_TO_TELL):
                await self._over.wait()
            raise self._failure or ServerError(f"the MCP server {self.name!r} has ended") from None

    async def _run(self) -> None:
        """Run the session to its end. A failure is stored for its callers."""
        self._begun_at = current_time()
        self._listener.log(f"{self.name}: the server starts")
        try:
            with self._life:
                check(self.name, self.config)
                await run_sync(_import_sdk, abandon_on_cancel=True)
                await self._serve()
        except JpError as error:
            self._failure = error
        except Exception as error:  # noqa: BLE001  any failure of a server is limited to its tools
            self._failure = error_of(self.name, error)
        finally:
            self._session = None
            self._settled.set()
            self._over.set()
            code = None if self._process is None else self._process.exit_code
            how = "" if code is None else f" with exit code {exit_code_text(code)}"
            self._log_timed(f"the server has ended{how}")
        if self._failure is not None and not self._closing.is_set():
            self._listener.failed(self.name, self._failure)

    def _log_timed(self, text: str) -> None:
        """Log something, and how long after the beginning of the start that is."""
        self._listener.log(f"{self.name}: {text} after {current_time() - self._begun_at:.2f} s")

    async def _serve(self) -> None:
        seconds = self.config.startup_timeout_secs or math.inf
        with CancelScope(deadline=current_time() + seconds) as scope:
            try:
                await self._serve_once(scope)
            except Exception as error:
                if not self._has_other_handshake(error):
                    raise
                self._listener.log(
                    f"{self.name}: {error_of(self.name, error).message}; starting with {self._handshake!r}"
                )
                await self._serve_once(scope)
        if scope.cancelled_caught:
            raise ServerError(
                f"the MCP server {self.name!r} did not start within {seconds:g} s",
                hint=f"`providers.mcp.{self.name}.startup_timeout_secs` is how long it may take; -v shows what it says",
            )

    async def _serve_once(self, scope: CancelScope) -> None:
        if self.config.url is None:
            await self._serve_process(scope)
        else:
            await self._serve_url(self.config.url, scope)

    def _has_other_handshake(self, error: Exception) -> bool:
        """Change the handshake if the server may support the other one, and return whether it may.

        A server with `initialize` only may exit on `discover` (the Python SDK up to 1.8 does). One with `discover` only
        responds with an error, so that other failures of `initialize` are final.
        """
        if self.config.protocol != "auto" or self._settled.is_set() or self._closing.is_set():
            return False
        if self._handshake == "discover":
            self._handshake = "initialize"
            return isinstance(error, EndedError)
        self._handshake = "discover"
        return may_need_discover(error)

    async def _serve_process(self, scope: CancelScope) -> None:
        with started(self.name, self.config, self._around) as process:
            await self._serve_started(process, scope)

    async def _serve_started(self, process: ServerProcess, scope: CancelScope) -> None:
        self._process = process
        link = StdioTransport(process, lambda line: self._listener.log(f"{self.name}: {line}"))
        try:
            async with open_session(self.name, link, self._listener, opening=self._handshake) as session:
                await self._open(session, scope, link.ended)
        except Exception as error:
            reason = error_of(self.name, error)
            raise self._ended(process, link) if isinstance(reason, ClosedError) else reason from error
        if not self._closing.is_set():
            raise self._ended(process, link)

    def _ended(self, process: ServerProcess, link: StdioTransport) -> ServerError:
        said = f"; the last that it said: {process.last_words}" if process.last_words else ""
        if link.broken:
            return self._stopped(link.broken, said)
        code = process.exit_code
        how = "" if code is None else f" with exit code {exit_code_text(code)}"
        return EndedError(f"the MCP server {self.name!r} ended{how}{said}")

    def _stopped(self, why: str, said: str = "") -> ServerError:
        return ServerError(f"the MCP server {self.name!r} was stopped: {why}{said}")

    async def _serve_url(self, url: str, scope: CancelScope) -> None:
        link = HttpTransport(url, headers_of(self.name, self.config, self._around.environment))
        try:
            async with open_session(self.name, link, self._listener, opening=self._handshake) as session:
                link.refused = None
                await self._open(session, scope, link.ended)
        except Exception as error:
            if link.broken:
                raise self._stopped(link.broken) from error
            if link.refused is not None:
                raise self._refused(link.refused) from error
            raise
        if link.broken:
            raise self._stopped(link.broken)

    def _refused(self, status: int) -> ServerError:
        message = f"the MCP server {self.name!r} answers with the status {status}"
        if status in _UNAUTHORIZED:
            hint = f"`providers.mcp.{self.name}.headers_env` says in which variables headers with credentials are"
            return UnauthorizedError(message, hint=hint)
        setting = Show("setting", f"providers.mcp.{self.name}")
        return ServerError(message, hint=phrase("`", setting, "` shows its address"))

    async def _open(self, session: Session, scope: CancelScope, ended: Event) -> None:
        """Offer the session until it has `ended` or is closed, without a time limit."""
        scope.deadline = math.inf
        self._session = session
        self._settled.set()
        self._log_timed("the server is ready")
        self._listener.listed(self.name, session.listing)

        async def leave() -> None:
            await ended.wait()
            tasks.cancel_scope.cancel()

        async with create_task_group() as tasks:
            tasks.start_soon(session.follow)
            tasks.start_soon(leave)
            await self._closing.wait()
            tasks.cancel_scope.cancel()


def _import_sdk() -> None:
    """Import the SDK, which takes about a second."""
    from importlib import import_module
    from logging import NullHandler, getLogger

    for module in ("mcp.client", "mcp.client.streamable_http"):
        import_module(module)
    # Without a handler, log records go to stderr.
    for name in ("mcp", "client"):
        getLogger(name).addHandler(NullHandler())
