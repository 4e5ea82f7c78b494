"""A shell at a terminal, which finds a `jp` that is forked in its own session; run as a script, this leads it.

What `forked.search_path` offers is in a session of its own. Here, each `jp` has the shell's terminal, and is in the
process group of who asks for it (`stand_in`), which hands signals on: at Ctrl-C it gets two.
"""

from __future__ import annotations

import marshal
import os
import shlex
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import stand_in
from zygote import SIZE, Request, enter, received, run

if TYPE_CHECKING:
    from terminal import Terminal

Handler: TypeAlias = Callable[[int, FrameType | None], Any] | int | signal.Handlers | None

_PEER = struct.Struct("3i")


def shell_at_terminal(
    command: str, *, cwd: Path, env: Mapping[str, str] | None = None
) -> AbstractContextManager[Terminal]:
    """See `terminal.at_terminal`, of whose price a `jp` costs a quarter here."""
    from forked import server
    from terminal import jp_at_terminal

    return jp_at_terminal(command, str(server().programs.parent), cwd=cwd, env=env, script=Path(__file__))


def _lead(command: str, directory: str) -> int:
    """Run the shell; its exit code. `directory` is one whose name is short enough for a socket's."""
    for_jp = signal.signal(signal.SIGINT, _be_there)
    with TemporaryDirectory(dir=directory) as scratch, socket.socket(socket.AF_UNIX) as door:
        door.bind(f"{scratch}/door")
        door.listen()
        words = shlex.join((sys.executable, "-IS", str(stand_in.__file__), f"{scratch}/door"))
        jp = Path(scratch) / "jp"
        jp.write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
        jp.chmod(0o755)
        answering = os.fork()
        if not answering:
            _answer(door, for_jp)
        try:
            path = f"{scratch}{os.pathsep}{os.environ['PATH']}"
            return subprocess.call(["/bin/sh", "-c", command], env={**os.environ, "PATH": path})
        finally:
            os.kill(answering, signal.SIGKILL)
            os.waitpid(answering, 0)


def _be_there(number: int, frame: object) -> None:
    """Ctrl-C is for the shell and its programs."""


def _answer(door: socket.socket, for_jp: Handler) -> NoReturn:
    """Fork for everybody who comes. What becomes of the forks is nothing to wait for: this is killed at the end."""
    while True:
        caller, _ = door.accept()
        if not os.fork():
            _serve(caller, for_jp)
        caller.close()


def _serve(caller: socket.socket, for_jp: Handler) -> NoReturn:
    """Fork `jp`, and tell its process id, and at its end its wait status."""
    _, streams, _, _ = socket.recv_fds(caller, 1, 3)
    request: Request = marshal.loads(received(caller, *SIZE.unpack(received(caller, SIZE.size))))  # noqa: S302 - ours
    child = os.fork()
    if not child:
        try:
            process, _, _ = _PEER.unpack(caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
            os.setpgid(0, os.getpgid(process))
            signal.signal(signal.SIGINT, for_jp)
            enter(request, streams)
            run(request)
        finally:
            os._exit(1)
    for stream in streams:
        os.close(stream)
    caller.sendall(SIZE.pack(child))
    caller.sendall(SIZE.pack(os.waitpid(child, 0)[1]))
    os._exit(0)


if __name__ == "__main__":
    os._exit(_lead(*sys.argv[1:]))
