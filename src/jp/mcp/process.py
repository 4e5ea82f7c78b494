"""A server that jp starts: a process in a group of its own, which ends with the session."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from anyio import CancelScope, move_on_after, wait_readable, wait_writable

from jp.process.guardian import GuardedProcess

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
        self._process = GuardedProcess(words, directory=directory, environment=environment)
        for descriptor in (self._process.stdin, self._process.stdout, self._process.stderr):
            os.set_blocking(descriptor, False)
        self.last_words = ""

    @property
    def exit_code(self) -> int | None:
        """How it ended, the number of a signal being negative; None while it runs."""
        return self._process.exit_code

    async def read(self) -> bytes:
        """What it says next on its standard output; nothing at the end."""
        return await _read(self._process.stdout)

    async def write(self, data: bytes) -> None:
        """Write `data` to its standard input.

        Raises:
            OSError: it does not take any more.
        """
        rest = memoryview(data)
        while rest:
            await wait_writable(self._process.stdin)
            with suppress(BlockingIOError):
                rest = rest[os.write(self._process.stdin, rest[:_CHUNK]) :]

    async def listen(self, say: Callable[[str], None]) -> None:
        """Pass on, line by line, what it says for people, and keep the last of it."""
        begun = b""
        while chunk := await _read(self._process.stderr):
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
        """End it and everything that it started at once, unless it has ended."""
        self._process.kill()

    async def end(self) -> None:
        """Let nothing that it started go on. It may end by itself first. Cancelling does not shorten this."""
        with CancelScope(shield=True):
            self._process.close_input()
            with move_on_after(GRACE_SECS):
                await self._process.wait()
            await self._process.end(GRACE_SECS)

    def close_input(self) -> None:
        """Tell it that nothing more comes. Nobody may be writing."""
        self._process.close_input()

    def close(self) -> None:
        """Let go of its outputs. Nobody may be reading them."""
        self._process.close()


async def _read(descriptor: int) -> bytes:
    while True:
        await wait_readable(descriptor)
        with suppress(BlockingIOError):
            return os.read(descriptor, _CHUNK)
