"""`run_jp` at a sixth of its price: a process that has imported jp already forks for each run.

Everything but the start of Python and the imports is as in `running.run_jp`: a process of its own with its own
arguments, directory, environment, streams, signals and exit code. What depends on how Python starts (encodings, other
programs around it) has to use `running.run_jp`.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from running import TIMEOUT_SECS, Result, home_beside, isolated_environment

_SIZE = struct.Struct("!I")


@cache
def _server() -> socket.socket:
    """The connection to the process that forks; it ends with the test runner."""
    ours, theirs = socket.socketpair()
    ours.settimeout(TIMEOUT_SECS)
    theirs.set_inheritable(True)
    command = [sys.executable, str(Path(__file__)), str(theirs.fileno())]
    # Who runs the tests may read the ends of these streams to their end.
    silent = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1)]
    environment = isolated_environment(Path(tempfile.gettempdir()))
    os.posix_spawn(sys.executable, command, environment, file_actions=silent)
    theirs.close()
    return ours


def run_jp(
    *arguments: str, cwd: Path, env: Mapping[str, str] | None = None, stdin: str | bytes | None = None
) -> Result:
    """See `running.run_jp`. What is said is collected in files."""
    request = {
        "arguments": arguments,
        "cwd": str(cwd),
        "env": isolated_environment(home_beside(cwd), **(env or {})),
    }
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin.encode() if isinstance(stdin, str) else stdin or b"")
        given.seek(0)
        with Path(os.devnull).open("rb") as nothing:
            descriptors = [(nothing if stdin is None else given).fileno(), out.fileno(), err.fileno()]
            message = json.dumps(request).encode()
            server = _server()
            socket.send_fds(server, [_SIZE.pack(len(message))], descriptors)
            server.sendall(message)
            (status,) = _SIZE.unpack(_received(server, _SIZE.size))
        out.seek(0)
        err.seek(0)
        said = out.read().decode(errors="replace"), err.read().decode(errors="replace")
    return Result(os.waitstatus_to_exitcode(status), *said)


def _received(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def _serve(connection: socket.socket) -> None:
    while True:
        data, descriptors, _, _ = socket.recv_fds(connection, _SIZE.size, 3)
        if not data:
            return
        (size,) = _SIZE.unpack(data)
        request = json.loads(_received(connection, size))
        child = os.fork()
        if child == 0:
            connection.close()
            _become(request["arguments"], request["cwd"], request["env"], descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        _, status = os.waitpid(child, 0)
        connection.sendall(_SIZE.pack(status))


def _become(arguments: list[str], cwd: str, env: dict[str, str], descriptors: list[int]) -> None:
    """Be what `python -m jp` would be, and do not return."""
    from jp.__main__ import main

    os.setsid()
    os.chdir(cwd)
    for target, descriptor in enumerate(descriptors):
        os.dup2(descriptor, target)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(env)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - it lives as long as the process
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - likewise
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - likewise
    sys.argv[1:] = arguments
    main()


if __name__ == "__main__":
    import contextlib
    import gc
    import pkgutil
    from importlib import import_module

    import jp

    for module in pkgutil.walk_packages(jp.__path__, "jp."):
        # Who needs a module that cannot be imported fails by itself.
        with contextlib.suppress(ImportError, SyntaxError, NameError):
            if not module.name.endswith("__main__"):
                import_module(module.name)
    for name in ("anyio._backends._asyncio", "asyncio", "rich.console", "tomlkit", "tomllib", "difflib", "tempfile"):
        import_module(name)
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as ours_there:
        _serve(ours_there)
