"""A terminal with a person at it: runs a shell command, waits for what is shown, types."""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import select
import signal
import subprocess
import termios
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from time import monotonic
from typing import Any, TypeAlias

from forked import Forked, fork
from running import TIMEOUT_SECS, home_beside, isolated_environment
from screen import Screen

Process: TypeAlias = subprocess.Popen[bytes] | Forked

CTRL_C = "\x03"
CTRL_D = "\x04"
SIZE = 80, 24
"""Columns and rows."""

_UNFINISHED = re.compile(r"\x1b(?:\[[0-9;?]*|\][^\x00-\x1f]*\x1b?)?\Z")
_LINK = re.compile(r"\x1b\]8;;[^\x00-\x1f]*\x1b\\")
_ERASED = re.compile(r"\r\x1b\[K[^\n]*(?=\r\x1b\[K)")

# A session leader without a terminal gets the one that it opens.
_TAKE_TERMINAL = ': <"$0"; '


class Terminal:
    """What runs at a terminal. `shown` is all that was shown so far, control sequences included."""

    def __init__(self, ours: int, modes: list[Any], process: Process) -> None:
        rows, columns = termios.tcgetwinsize(ours)
        self._screen = Screen(columns, rows)
        self._drawn = 0
        self.process = process
        self.shown = ""
        self._ours = ours
        self._modes = modes
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._seen = 0
        self._asked = 0
        self._is_open = True

    @property
    def stays(self) -> str:
        """What was shown, without the lines that were erased again, and without links."""
        return _LINK.sub("", _ERASED.sub("\r\x1b[K", self.shown).replace("\r\x1b[K", ""))

    @property
    def screen(self) -> Screen:
        """What a person sees, and saw before it was scrolled away. Not where the size of the window was changed."""
        new = self.shown[self._drawn :]
        self._drawn = len(self.shown)
        return self._screen.feed(new)

    def question(self, pattern: str) -> str:
        """Wait for rows on the screen that match, below those of the question before; one row of them if it is one."""
        compiled = re.compile(pattern, re.MULTILINE)
        deadline = monotonic() + TIMEOUT_SECS
        while True:
            lines = self.screen.lines
            rows = "\n".join(lines[self._asked :])
            if (found := compiled.search(rows)) is not None and not _UNFINISHED.search(self.shown):
                break
            assert self._read(deadline), f"{pattern!r} did not come: {rows!r}"
        self._asked += rows.count("\n", 0, found.end()) + 1
        self._seen = len(self.shown)
        return found[0]

    def expect(self, pattern: str) -> str:
        """Wait for text that matches the regular expression after what was expected before, and take it."""
        compiled = re.compile(pattern)
        deadline = monotonic() + TIMEOUT_SECS
        while (found := compiled.search(self.shown, self._seen)) is None:
            assert self._read(deadline), f"{pattern!r} did not come: {self.shown[self._seen :]!r}"
        self._seen = found.end()
        return found[0]

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._ours, text.encode())

    def resize(self, columns: int, rows: int = 24) -> None:
        """Change the size of the window."""
        termios.tcsetwinsize(self._ours, (rows, columns))

    def hang_up(self) -> None:
        """Close the window: who runs in it is told, and can no more read or write there."""
        if self._is_open:
            self._is_open = False
            os.close(self._ours)

    def ends_within(self, seconds: float) -> bool:
        """Whether the program ends in this time, what it shows unread."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        return self.process.returncode is not None

    def finish(self) -> int:
        """Wait for the program to end; its exit code, negative where a signal ended it.

        The terminal must be as it was found.
        """
        deadline = monotonic() + TIMEOUT_SECS
        while self._read(deadline):
            continue
        code = self.process.wait(TIMEOUT_SECS)
        assert termios.tcgetattr(self._ours) == self._modes
        return code

    def _read(self, deadline: float) -> bool:
        """Take what is shown next; False where nothing comes any more."""
        readable, _, _ = select.select([self._ours], [], [], max(0.0, deadline - monotonic()))
        assert readable, f"nothing came for {TIMEOUT_SECS} s after {self.shown[self._seen :]!r}"
        try:
            data = os.read(self._ours, 65536)
        except OSError:  # Linux says so where nobody has it open any more
            data = b""
        self.shown += self._decoder.decode(data).replace("\r\n", "\n")
        return bool(data)


def at_terminal(
    command: str, *, cwd: Path, env: Mapping[str, str] | None = None, size: tuple[int, int] = SIZE
) -> AbstractContextManager[Terminal]:
    """Run a shell's `command` in a session of its own, whose terminal we are; `jp` is on PATH.

    `env` is added to an isolated environment, in which the terminal alone tells sessions of jp apart. Where jp runs
    alone, `jp_at_terminal` costs a fifth.
    """

    def start(device: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["/bin/sh", "-c", _TAKE_TERMINAL + command, os.ttyname(device)],
            cwd=cwd,
            env=_environment(cwd, env),
            stdin=device,
            stdout=device,
            stderr=device,
            start_new_session=True,
        )

    return _attended(start, size)


def jp_at_terminal(
    *arguments: str,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    size: tuple[int, int] = SIZE,
    stdin: int | None = None,
    stdout: int | None = None,
    script: Path | None = None,
) -> AbstractContextManager[Terminal]:
    """Run `jp` as `at_terminal` runs `exec jp`, forked from a process that has imported it.

    `stdin` and `stdout` are descriptors of what stands there instead of the terminal, `script` is Python that runs
    instead of `jp`.
    """

    def start(device: int) -> Forked:
        streams = (device if stdin is None else stdin, device if stdout is None else stdout, device)
        environment = _environment(cwd, env)
        device_name = os.ttyname(device)
        return Forked(fork(*arguments, cwd=cwd, env=environment, streams=streams, script=script, terminal=device_name))

    return _attended(start, size)


def _environment(cwd: Path, env: Mapping[str, str] | None) -> dict[str, str]:
    return isolated_environment(
        home_beside(cwd), **{"TERM": "xterm-256color", "JP_SESSION": "", "PAGER": "cat", **(env or {})}
    )


@contextmanager
def _attended(start: Callable[[int], Process], size: tuple[int, int]) -> Generator[Terminal]:
    """What `start` runs at the device that it is given; killed when we leave."""
    ours, theirs = os.openpty()
    try:
        columns, rows = size
        termios.tcsetwinsize(ours, (rows, columns))
        modes = termios.tcgetattr(ours)
        terminal = Terminal(ours, modes, start(theirs))
        os.close(theirs)
        ours = theirs = -1
        try:
            yield terminal
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(terminal.process.pid, signal.SIGKILL)
            terminal.process.wait(TIMEOUT_SECS)
            terminal.hang_up()
    finally:
        for descriptor in (ours, theirs):
            if descriptor >= 0:
                os.close(descriptor)
