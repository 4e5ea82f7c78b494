"""A program that is run to its end: a group of its own, bounds on its output and its time."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

import msgspec
from anyio import CancelScope, create_task_group, current_time, move_on_after, wait_readable, wait_writable
from anyio.abc import TaskGroup
from msgspec.structs import replace

from jp.process.guardian import GuardedProcess

if TYPE_CHECKING:
    from jp.process.sandbox.policy import Confinement

_CHUNK = 64 * 1024


class ProcessLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Time limits, in seconds.

    `timeout_secs` is for the program, `math.inf` where it may take as long as it likes; `grace_secs` for what it does
    after it was asked to end, and for what it leaves behind to close its output.
    """

    timeout_secs: float = 120.0
    grace_secs: float = 1.0


class OutputLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Output limits, in bytes.

    Of each output `kept` are kept, half from its beginning and half from its end; what lies between is read and
    forgotten. A program that prints more than `most` on both together is stopped.
    """

    kept: int
    most: int


class Captured(msgspec.Struct, frozen=True, kw_only=True):
    """Output of a program: all of it, or a beginning and an end between which `omitted` bytes are missing."""

    head: bytes
    tail: bytes = b""
    omitted: int = 0


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a program. A negative `exit_code` is the number of the signal that ended it.

    `stopped` says why it was not left to end by itself: it took too long, or it printed too much.
    """

    exit_code: int
    stdout: Captured
    stderr: Captured
    stopped: Literal["time", "output"] | None = None


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """A program to run: `words[0]` is a path. `stdin` is what it may read, None where that is nothing.

    Nothing in `words` and `environment` may hold a zero byte. `sandbox` confines it, None where nothing does.
    """

    words: Sequence[str]
    directory: str
    environment: Mapping[str, str]
    stdin: bytes | None = None
    sandbox: Confinement | None = None


async def run(program: Program, *, output: OutputLimits, limits: ProcessLimits) -> Ended:
    """Run a program to its end. Whatever ends this, or jp, nothing that the program started goes on.

    Raises:
        OSError: it cannot be started.
        SandboxError: it must not run, because it cannot be confined.
    """
    if program.sandbox is None:
        return await _run(program, output=output, limits=limits)
    from jp.process.sandbox.launching import confined

    command = (program.words, program.environment)
    with confined(*command, directory=program.directory, confinement=program.sandbox) as launch:
        confined_program = replace(program, words=launch.words, environment=launch.environment)
        return await _run(confined_program, output=output, limits=limits)


async def _run(program: Program, *, output: OutputLimits, limits: ProcessLimits) -> Ended:
    process = GuardedProcess(
        program.words,
        directory=program.directory,
        environment=program.environment,
        has_input=program.stdin is not None,
    )
    running = _Running(process, output)
    try:
        with move_on_after(limits.timeout_secs) as time:
            await running.watch(program.stdin, limits.grace_secs)
    finally:
        await process.end(limits.grace_secs)
        process.close()
    stopped = "output" if running.is_over_bound else "time" if time.cancelled_caught else None
    return Ended(
        exit_code=-signal.SIGKILL if process.exit_code is None else process.exit_code,
        stdout=running.stdout.captured(),
        stderr=running.stderr.captured(),
        stopped=stopped,
    )


class _Kept:
    """The beginning and the end of what a stream says."""

    def __init__(self, kept: int) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._omitted = 0
        self._of_tail = kept // 2
        self._of_head = kept - self._of_tail

    def add(self, chunk: bytes) -> None:
        room = self._of_head - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        if len(self._tail) > 2 * self._of_tail + _CHUNK:
            self._trim()

    def _trim(self) -> None:
        excess = len(self._tail) - self._of_tail
        if excess > 0:
            del self._tail[:excess]
            self._omitted += excess

    def captured(self) -> Captured:
        self._trim()
        return Captured(head=bytes(self._head), tail=bytes(self._tail), omitted=self._omitted)


class _Running:
    """A program that runs, and what it has said."""

    def __init__(self, process: GuardedProcess, output: OutputLimits) -> None:
        self.stdout = _Kept(output.kept)
        self.stderr = _Kept(output.kept)
        self.is_over_bound = False
        self._process = process
        self._most = output.most
        self._read_bytes = 0

    async def watch(self, stdin: bytes | None, grace_secs: float) -> None:
        """Give it what it may read, and collect what it says until it has exited and closed its output."""
        async with create_task_group() as pipes:
            self._serve(pipes, stdin)
            await self._process.wait()
            # What it left behind may hold its output open for as long as it likes.
            pipes.cancel_scope.deadline = current_time() + grace_secs

    def _serve(self, pipes: TaskGroup, stdin: bytes | None) -> None:
        for descriptor, kept in ((self._process.stdout, self.stdout), (self._process.stderr, self.stderr)):
            pipes.start_soon(self._read, descriptor, kept, pipes.cancel_scope)
        if stdin is not None:
            pipes.start_soon(self._write, stdin)

    async def _read(self, descriptor: int, kept: _Kept, scope: CancelScope) -> None:
        os.set_blocking(descriptor, False)
        while not self.is_over_bound:
            await wait_readable(descriptor)
            with suppress(BlockingIOError):
                chunk = os.read(descriptor, _CHUNK)
                if not chunk:
                    return
                kept.add(chunk)
                self._read_bytes += len(chunk)
            if self._read_bytes > self._most:
                self.is_over_bound = True
                scope.cancel()

    async def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        os.set_blocking(self._process.stdin, False)
        # It need not read all that it may.
        with suppress(BrokenPipeError):
            while rest:
                await wait_writable(self._process.stdin)
                with suppress(BlockingIOError):
                    rest = rest[os.write(self._process.stdin, rest[:_CHUNK]) :]
        self._process.close_input()
