"""What stands on the PATH of scripts as `jp` (`forked.search_path`): has a `zygote` fork the one that is meant.

That one gets this process's arguments, streams, directory and environment; signals are handed on, and this process ends
as it does. It is in a session of its own. To start Python with as little as this takes a tenth of what jp needs.
"""

from __future__ import annotations

import marshal
import os
import sys

# What `socket` and `signal` add to these takes longer to import than all the rest.
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
else:
    import _signal


def main() -> None:
    """Be it."""
    to_server = socket(AF_UNIX, SOCK_STREAM)
    to_server.connect(sys.argv[1])
    streams = b"".join(stream.to_bytes(4, sys.byteorder) for stream in range(3))
    to_server.sendmsg([b"\0"], [(SOL_SOCKET, SCM_RIGHTS, streams)])
    directory = os.getcwd()  # noqa: PTH109 - `pathlib`, too, takes longer to import
    request = {"arguments": sys.argv[2:], "cwd": directory, "env": dict(os.environ), "script": "", "terminal": ""}
    message = marshal.dumps(request)
    to_server.sendall(len(message).to_bytes(4) + message)
    child = _number(to_server)
    for number in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP):
        _signal.signal(number, lambda number, _: os.kill(child, number))
    code = os.waitstatus_to_exitcode(_number(to_server))
    if code < 0:
        _signal.signal(-code, _signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _number(to_server: socket) -> int:
    data = to_server.recv(4)
    if len(data) < 4:
        sys.exit("the process that forks jp does not answer")
    return int.from_bytes(data)


if __name__ == "__main__":
    main()
