"""A server that jp starts: a process in a group of its own, which ends with the session."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from anyio import CancelScope, move_on_after, wait_readable, wait_writable
from anyio.to_thread import run_sync

_CHUNK = 64 * 1024
_LONGEST_LINE = 2000
_LAST_WORDS = 300

GRACE_SECS = 0.3
"""How long a server may take to end: first by itself, when its input is closed, and again when it is asked to."""


class ServerProcess:
    """A program whose standard input and output are a session. What it says on the third stream is for people."""

    def __init__(self, words: Sequence[str], *, directory: str, environment: Mapping[str, str]) -> None:
        """Start `words[0]`, which is a path.

        Raises:
            OSError: it cannot be started.
        """
        pipes = [os.pipe() for _ in range(3)]
        (its_input, self._input), (self._output, its_output), (self._errors, its_errors) = pipes
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the words go to it as they are
                words,
                cwd=directory,
                env=environment,
                stdin=its_input,
                stdout=its_output,
                stderr=its_errors,
                start_new_session=True,
            )
        except (OSError, ValueError):
            self._close(self._input, self._output, self._errors)
            raise
        finally:
            self._close(its_input, its_output, its_errors)
        for descriptor in (self._input, self._output, self._errors):
            os.set_blocking(descriptor, False)
        self._has_exited = False
        self._is_over = False
        self._takes_input = True
        self.last_words = ""

    @staticmethod
    def _close(*descriptors: int) -> None:
        for descriptor in descriptors:
            os.close(descriptor)

    @property
    def exit_code(self) -> int | None:
        """How it ended, the number of a signal being negative; None while it runs."""
        return self._process.returncode

    async def read(self) -> bytes:
        """What it says next on its standard output; nothing at the end."""
        return await _read(self._output)

    async def write(self, data: bytes) -> None:
        """Write `data` to its standard input.

        Raises:
            OSError: it does not take any more.
        """
        rest = memoryview(data)
        while rest:
            await wait_writable(self._input)
            with suppress(BlockingIOError):
                rest = rest[os.write(self._input, rest[:_CHUNK]) :]

    async def listen(self, say: Callable[[str], None]) -> None:
        """Pass on, line by line, what it says for people, and keep the last of it."""
        begun = b""
        while chunk := await _read(self._errors):
            *lines, begun = (begun + chunk).split(b"\n")
            begun = begun[:_LONGEST_LINE]
            for line in lines:
                self._pass_on(line, say)
        self._pass_on(begun, say)

    def _pass_on(self, line: bytes, say: Callable[[str], None]) -> None:
        text = line[:_LONGEST_LINE].decode("utf-8", "replace").rstrip()
        if text:
            self.last_words = text[:_LAST_WORDS]
            say(text)

    def kill(self) -> None:
        """End it and everything of its group at once, unless it has ended."""
        if not self._is_over:
            self._signal(signal.SIGKILL)

    async def end(self) -> None:
        """Let nothing of its group go on. It may end by itself first. Cancelling does not shorten this."""
        with CancelScope(shield=True):
            self.close_input()
            await self._exit_within_grace()
            if not self._has_exited:
                self._signal(signal.SIGTERM)
                await self._exit_within_grace()
            self.kill()
            # From here on its number may be another one's.
            self._is_over = True
            with move_on_after(GRACE_SECS):
                await run_sync(self._process.wait, abandon_on_cancel=True)

    async def _exit_within_grace(self) -> None:
        with move_on_after(GRACE_SECS):
            await run_sync(_await_exit, self._process, abandon_on_cancel=True)
            self._has_exited = True

    def close_input(self) -> None:
        """Tell it that nothing more comes. Nobody may be writing."""
        if self._takes_input:
            self._takes_input = False
            os.close(self._input)

    def close(self) -> None:
        """Let go of its outputs. Nobody may be reading them."""
        self._close(self._output, self._errors)

    def _signal(self, number: int) -> None:
        # macOS refuses where only zombies are left.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


async def _read(descriptor: int) -> bytes:
    while True:
        await wait_readable(descriptor)
        with suppress(BlockingIOError):
            return os.read(descriptor, _CHUNK)


def _await_exit(process: subprocess.Popen[bytes]) -> None:
    """Wait in a thread. Where the system can tell without forgetting it, its number stays taken until it is reaped."""
    if sys.platform == "linux":
        with suppress(ChildProcessError):
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    else:
        process.wait()
