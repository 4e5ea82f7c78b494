"""jp at a sixth of its price: a process that has imported jp already (`zygote`) forks for each run.

Everything but the start of Python and the imports is as in `running`: a process of its own with its own arguments,
directory, environment, streams, signals and exit code. What depends on how Python starts (encodings, other programs
around it, what is imported when) has to use `running`. For scripts that run `jp` there is `search_path`.
"""

from __future__ import annotations

import contextlib
import json
import marshal
import os
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from io import BufferedReader
from pathlib import Path
from time import monotonic
from typing import BinaryIO, NamedTuple

import in_turn
import stand_in
import zygote
from running import TIMEOUT_SECS, Result, home_beside, isolated_environment
from zygote import SIZE, received

_SHARED = "JP_TESTS_SERVER"
"""The environment variable that names the directory of the server that several test processes share."""


class Server(NamedTuple):
    """Where the process that forks is reached; it ends with the process that has started it."""

    directory: Path

    @property
    def door(self) -> str:
        """The socket that takes requests."""
        return str(self.directory / "door")

    @property
    def programs(self) -> Path:
        """A directory with an executable `jp` that has it fork one."""
        return self.directory / "programs"


@cache
def server() -> Server:
    """Return the server that these tests share, or start one where none is shared yet."""
    if shared := os.environ.get(_SHARED):
        return Server(Path(shared))
    ours, theirs = os.pipe()
    door = socket.socket(socket.AF_UNIX)
    started = Server(Path(tempfile.mkdtemp(prefix="jp-tests-")))
    door.bind(started.door)
    door.listen(socket.SOMAXCONN)
    started.programs.mkdir()
    words = (sys.executable, "-IS", str(stand_in.__file__), started.door)
    program = started.programs / "jp"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    os.set_inheritable(ours, True)  # noqa: FBT003 - os takes it by position only
    door.set_inheritable(True)
    command = [sys.executable, str(zygote.__file__), str(ours), str(door.fileno())]
    # Who runs the tests may read the ends of these streams to their end.
    silent = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1)]
    environment = isolated_environment(Path(tempfile.gettempdir()))
    os.posix_spawn(sys.executable, command, environment, file_actions=silent, setpgroup=0)
    os.close(ours)
    door.close()
    _lifelines.append(theirs)
    return started


_lifelines: list[int] = []
"""The ends of pipes that nobody writes to: a server ends when this process has ended."""


def share() -> None:
    """Have all processes that this one starts share one server."""
    os.environ[_SHARED] = str(server().directory)


def search_path(*before: Path) -> str:
    """A PATH on which a script finds such a `jp`, behind the directories `before`.

    Each is in a session of its own: it has no controlling terminal, and a signal to the script's group does not reach
    it, but what is sent to the process itself does.
    """
    around = isolated_environment(Path())["PATH"]
    return os.pathsep.join([*map(str, before), str(server().programs), around])


def run_script(script: str, *, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a script of the shell, which finds such a `jp` and has no stdin; HOME is beside `cwd`."""
    return subprocess.run(
        ["sh", "-c", script],
        cwd=cwd,
        env=isolated_environment(home_beside(cwd), PATH=search_path()),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=TIMEOUT_SECS,
        check=False,
    )


class Forked:
    """A process whose parent is another one, with what is asked of `subprocess.Popen`."""

    def __init__(self, status: socket.socket) -> None:
        """Wait until the process runs; `status` tells its id, and how it ended."""
        self.returncode: int | None = None
        self._status = status
        (self.pid,) = SIZE.unpack(received(status, SIZE.size))

    def poll(self) -> int | None:
        """The exit code, negative where a signal ended it; None as long as it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float = TIMEOUT_SECS) -> int:
        """The exit code. Raises `subprocess.TimeoutExpired`."""
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("jp", timeout)
            with self._status:
                self.returncode = os.waitstatus_to_exitcode(*SIZE.unpack(received(self._status, SIZE.size)))
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal; nothing where it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it whatever it does."""
        self.send_signal(signal.SIGKILL)


class Started(Forked):
    """A process whose streams are pipes."""

    def __init__(self, status: socket.socket, stdin: BinaryIO, stdout: BufferedReader, stderr: BufferedReader) -> None:
        super().__init__(status)
        self.stdin, self.stdout, self.stderr = stdin, stdout, stderr

    def communicate(self, timeout: float = TIMEOUT_SECS) -> tuple[bytes, bytes]:
        """Close its stdin, and take what it says until it ends. Raises `subprocess.TimeoutExpired`."""
        deadline = monotonic() + timeout
        self.stdin.close()
        said = {self.stdout: b"", self.stderr: b""}
        while streams := [stream for stream in said if not stream.closed]:
            readable: list[BufferedReader] = select.select(streams, [], [], max(0.0, deadline - monotonic()))[0]
            if not readable:
                raise subprocess.TimeoutExpired("jp", timeout)
            for stream in readable:
                data = stream.read1()
                said[stream] += data
                if not data:
                    stream.close()
        self.wait(max(0.0, deadline - monotonic()))
        return said[self.stdout], said[self.stderr]


def fork(
    *arguments: str,
    cwd: Path,
    env: Mapping[str, str],
    streams: Sequence[int],
    script: Path | None = None,
    terminal: str = "",
) -> socket.socket:
    """Have `jp`, or a Python `script`, started with these three streams; what the first argument of `Forked` is.

    `env` is the whole environment, `terminal` the device that the process shall control.
    """
    request = zygote.Request(
        arguments=[str(word) for word in arguments],  # what is marshalled may be of no subclass
        cwd=str(cwd),
        env={name: str(value) for name, value in env.items()},
        script=str(script or ""),
        terminal=terminal,
    )
    message = marshal.dumps({**request})
    status = socket.socket(socket.AF_UNIX)
    status.settimeout(TIMEOUT_SECS)
    status.connect(server().door)
    socket.send_fds(status, [b"\0"], streams)
    status.sendall(SIZE.pack(len(message)) + message)
    return status


def run_jp(
    *arguments: str,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    stdin: str | bytes | None = None,
    script: Path | None = None,
) -> Result:
    """See `running.run_jp`. What is said is collected in files. `script` is Python that runs instead of `jp`."""
    environment = isolated_environment(home_beside(cwd), **(env or {}))
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin.encode() if isinstance(stdin, str) else stdin or b"")
        given.seek(0)
        with Path(os.devnull).open("rb") as nothing:
            streams = [(nothing if stdin is None else given).fileno(), out.fileno(), err.fileno()]
            process = Forked(fork(*arguments, cwd=cwd, env=environment, streams=streams, script=script))
            try:
                code = process.wait()
            finally:
                process.kill()
        out.seek(0)
        err.seek(0)
        said = out.read().decode(errors="replace"), err.read().decode(errors="replace")
    return Result(code, *said)


def prepare(*lines: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None) -> None:
    """Run jp with each of the command lines, in one process, for what a test finds when it begins.

    What is tested is run by itself: here, what one run has read another one need not read.
    """
    done = run_jp(json.dumps(lines), cwd=cwd, env=env, script=Path(in_turn.__file__))
    assert done.code == 0, done


def start_jp(*arguments: str, cwd: Path, env: Mapping[str, str] | None = None, script: Path | None = None) -> Started:
    """See `running.start_jp`."""
    environment = isolated_environment(home_beside(cwd), **(env or {}))
    stdin, to_stdin = os.pipe()
    from_stdout, stdout = os.pipe()
    from_stderr, stderr = os.pipe()
    status = fork(*arguments, cwd=cwd, env=environment, streams=(stdin, stdout, stderr), script=script)
    for descriptor in (stdin, stdout, stderr):
        os.close(descriptor)
    return Started(status, os.fdopen(to_stdin, "wb"), os.fdopen(from_stdout, "rb"), os.fdopen(from_stderr, "rb"))
