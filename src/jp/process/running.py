"""A program that is run to its end: a group of its own, bounds on its output and its time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

import msgspec
from anyio import CancelScope, create_task_group, current_time, move_on_after, wait_readable, wait_writable
from anyio.abc import TaskGroup
from anyio.to_thread import run_sync
from msgspec.structs import replace

if TYPE_CHECKING:
    from jp.process.sandbox.policy import Confinement

_CHUNK = 64 * 1024


class ProcessLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How long, in seconds.

    `timeout_secs` is for the program, `math.inf` where it may take as long as it likes; `grace_secs` for what it does
    after it was asked to end, and for what it leaves behind to close its output.
    """

    timeout_secs: float = 120.0
    grace_secs: float = 1.0


class OutputLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much, in bytes.

    Of each output `kept` are kept, half from its beginning and half from its end; what lies between is read and
    forgotten. A program that prints more than `most` on both together is stopped.
    """

    kept: int
    most: int


class Captured(msgspec.Struct, frozen=True, kw_only=True):
    """What a program has printed: all of it, or a beginning and an end between which `omitted` bytes are missing."""

    head: bytes
    tail: bytes = b""
    omitted: int = 0


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How a program ended. A negative `exit_code` is the number of the signal that ended it.

    `stopped` says why it was not left to end by itself: it took too long, or it printed too much.
    """

    exit_code: int
    stdout: Captured
    stderr: Captured
    stopped: Literal["time", "output"] | None = None


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """What is run: `words[0]` is a path. `stdin` is what it may read, None where that is nothing.

    Nothing in `words` and `environment` may hold a zero byte. `sandbox` confines it, None where nothing does.
    """

    words: Sequence[str]
    directory: str
    environment: Mapping[str, str]
    stdin: bytes | None = None
    sandbox: Confinement | None = None


async def run(program: Program, *, output: OutputLimits, limits: ProcessLimits) -> Ended:
    """Run a program to its end. Whatever ends this, nothing of the program's group goes on.

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
    process = _start(program)
    running = _Running(process, output)
    with process:
        try:
            with move_on_after(limits.timeout_secs) as time:
                await running.watch(program.stdin, limits.grace_secs)
        finally:
            with CancelScope(shield=True):
                await running.end(limits.grace_secs)
    stopped = "output" if running.is_over_bound else "time" if time.cancelled_caught else None
    return Ended(
        exit_code=process.returncode,
        stdout=running.stdout.captured(),
        stderr=running.stderr.captured(),
        stopped=stopped,
    )


def _start(program: Program) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - the words go to it as they are
        program.words,
        bufsize=0,
        cwd=program.directory,
        env=program.environment,
        stdin=subprocess.DEVNULL if program.stdin is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
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

    def __init__(self, process: subprocess.Popen[bytes], output: OutputLimits) -> None:
        self.stdout = _Kept(output.kept)
        self.stderr = _Kept(output.kept)
        self.is_over_bound = False
        self._process = process
        self._most = output.most
        self._read_bytes = 0
        self._has_exited = False

    async def watch(self, stdin: bytes | None, grace_secs: float) -> None:
        """Give it what it may read, and collect what it says until it has exited and closed its output."""
        async with create_task_group() as pipes:
            self._serve(pipes, stdin)
            await self._exit()
            # What it left behind may hold its output open for as long as it likes.
            pipes.cancel_scope.deadline = current_time() + grace_secs

    def _serve(self, pipes: TaskGroup, stdin: bytes | None) -> None:
        for stream, kept in ((self._process.stdout, self.stdout), (self._process.stderr, self.stderr)):
            if stream is not None:
                pipes.start_soon(self._read, stream.fileno(), kept, pipes.cancel_scope)
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
        stream = self._process.stdin
        if stream is None:
            return
        rest = memoryview(data)
        os.set_blocking(stream.fileno(), False)
        # It need not read all that it may.
        with stream, suppress(BrokenPipeError):
            while rest:
                await wait_writable(stream.fileno())
                with suppress(BlockingIOError):
                    rest = rest[os.write(stream.fileno(), rest[:_CHUNK]) :]

    async def _exit(self) -> None:
        await run_sync(_await_exit, self._process, abandon_on_cancel=True)
        self._has_exited = True

    async def end(self, grace_secs: float) -> None:
        """Let nothing of its group go on; what still runs is asked first."""
        if not self._has_exited:
            self._signal(signal.SIGTERM)
            with move_on_after(grace_secs):
                await self._exit()
        self._signal(signal.SIGKILL)
        await run_sync(self._process.wait)

    def _signal(self, number: int) -> None:
        # macOS refuses where only zombies are left.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


def _await_exit(process: subprocess.Popen[bytes]) -> None:
    """Wait in a thread. Where the system can tell without forgetting it, its number stays taken until it is reaped."""
    if sys.platform == "linux":
        with suppress(ChildProcessError):
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    else:
        process.wait()
