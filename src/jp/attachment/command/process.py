"""A program that is run to its end: no input, a group of its own, bounds on its output and its time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

import msgspec
from anyio import CancelScope, create_task_group, current_time, move_on_after, wait_readable
from anyio.to_thread import run_sync

_CHUNK = 64 * 1024


class ProcessLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How long, in seconds.

    `timeout_secs` is for the program; `grace_secs` for what it does after it was asked to end, and for what it leaves
    behind to close its output.
    """

    timeout_secs: float = 120.0
    grace_secs: float = 1.0


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How a program ended. A negative `exit_code` is the number of the signal that ended it."""

    exit_code: int
    stdout: bytes
    stderr: bytes


class TooMuchOutputError(Exception):
    """Its output has more bytes than allowed."""


class TooSlowError(Exception):
    """It did not end in time."""


async def run(
    words: Sequence[str], *, directory: str, environment: Mapping[str, str], max_bytes: int, limits: ProcessLimits
) -> Ended:
    """Run the program `words[0]`, a path, to its end. `max_bytes` bounds both outputs together.

    Whatever ends this, nothing of the program's group goes on.

    Raises:
        OSError: it cannot be started.
        TooMuchOutputError: and it was killed.
        TooSlowError: likewise.
    """
    process = _start(words, directory, environment)
    running = _Running(process, max_bytes)
    with process:
        try:
            with move_on_after(limits.timeout_secs) as time:
                await running.watch(limits.grace_secs)
        finally:
            with CancelScope(shield=True):
                await running.end(limits.grace_secs)
    if running.is_over_bound:
        raise TooMuchOutputError
    if time.cancelled_caught:
        raise TooSlowError
    return Ended(exit_code=process.returncode, stdout=bytes(running.stdout), stderr=bytes(running.stderr))


def _start(words: Sequence[str], directory: str, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - the words go to it as they are
        words,
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


class _Running:
    """A program that runs, and what it has said."""

    def __init__(self, process: subprocess.Popen[bytes], max_bytes: int) -> None:
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.is_over_bound = False
        self._process = process
        self._max_bytes = max_bytes
        self._has_exited = False

    async def watch(self, grace_secs: float) -> None:
        """Collect what it says until it has exited and closed its output."""
        async with create_task_group() as readers:
            for stream, said in ((self._process.stdout, self.stdout), (self._process.stderr, self.stderr)):
                if stream is not None:
                    readers.start_soon(self._read, stream.fileno(), said, readers.cancel_scope)
            await self._exit()
            # What it left behind may hold its output open for as long as it likes.
            readers.cancel_scope.deadline = current_time() + grace_secs

    async def _read(self, descriptor: int, said: bytearray, scope: CancelScope) -> None:
        os.set_blocking(descriptor, False)
        while not self.is_over_bound:
            await wait_readable(descriptor)
            with suppress(BlockingIOError):
                chunk = os.read(descriptor, _CHUNK)
                if not chunk:
                    return
                said += chunk
            if len(self.stdout) + len(self.stderr) > self._max_bytes:
                self.is_over_bound = True
                scope.cancel()

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
