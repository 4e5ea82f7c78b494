"""The process behind `forked`: it has imported jp, and becomes `jp` in a child for each request.

A request is a connection that brings one byte, with three descriptors (stdin, stdout and stderr), and the length of a
marshalled dictionary with the dictionary behind it. It is told the child's process id as soon as it runs, and its wait
status when it has ended. Any number of children run at once.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import marshal
import os
import pkgutil
import runpy
import select
import shutil
import signal
import socket
import struct
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TypedDict

import anthropic_wire as wire
from loopback import Loopback, Reply, sse
from running import home_beside, isolated_environment
from stage import make_workspace

SIZE = struct.Struct("!I")

_STANDARD_STREAMS = 3
_MOST_DESCRIPTORS = 1024
"""Nothing here has a descriptor above this one."""
_LARGE_PAGE = 1 << 21
_COLLAPSE = 25
"""`MADV_COLLAPSE`, which Python has no name for."""


REHEARSED = (
    ("query", "hello"),
    ("query", "--id", ".", "--format", "json", "more"),
    ("conversation", "ls"),
    ("conversation", "print", "last"),
    ("conversation", "ls", "--format", "json"),
    ("conversation", "compact", "last"),
)
"""What is run before anybody asks for anything."""

_ASKED = {
    "JP_CFG_ASSISTANT_MODEL_ID": "anthropic/claude-haiku-4-5",
    "ANTHROPIC_API_KEY": "sk-ant-test-0123456789",
}


class Request(TypedDict):
    """What the child has to become. `script` is run instead of `jp`; `terminal` is the device that it controls."""

    arguments: list[str]
    cwd: str
    env: dict[str, str]
    script: str
    terminal: str


def received(connection: socket.socket, size: int) -> bytes:
    """So many bytes, however they come."""
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def serve(door: socket.socket, lifeline: int) -> None:
    """Fork for every connection to the `door`, until the other end of the pipe `lifeline` is closed."""
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, _be_woken)
    running: dict[int, socket.socket] = {}
    while True:
        readable, _, _ = select.select([door, lifeline, woken], [], [])
        if woken in readable:
            os.read(woken, 4096)
            _report(running)
        if door in readable:
            caller, _ = door.accept()
            _, streams, _, _ = socket.recv_fds(caller, 1, _STANDARD_STREAMS)
            if len(streams) == _STANDARD_STREAMS:
                _start([*streams, caller.detach()], running)
        if lifeline in readable:
            return


def _start(descriptors: list[int], running: dict[int, socket.socket]) -> None:
    """Have a child become what is asked for."""
    with contextlib.ExitStack() as here:
        for descriptor in descriptors[:_STANDARD_STREAMS]:
            here.callback(os.close, descriptor)
        teller = here.enter_context(socket.socket(fileno=descriptors[_STANDARD_STREAMS]))
        # Who has asked may have left already.
        with contextlib.suppress(EOFError, OSError):
            message = received(teller, *SIZE.unpack(received(teller, SIZE.size)))
            request: Request = marshal.loads(message)  # noqa: S302 - from our own tests
            child = os.fork()
            if child == 0:
                _become(request, descriptors)
            running[child] = teller.dup()


def _be_woken(number: int, frame: object) -> None:
    """What is ignored wakes nobody."""


def _report(running: dict[int, socket.socket]) -> None:
    for child in list(running):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            # Who has started it may have left already.
            with running.pop(child) as teller, contextlib.suppress(OSError):
                teller.sendall(SIZE.pack(status))


def _become(request: Request, descriptors: list[int]) -> None:
    """Be what `python -m jp` or `python script` would be, and do not return."""
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        enter(request, descriptors[:_STANDARD_STREAMS])
        if request["terminal"]:  # a session leader without one gets the one that it opens
            os.close(os.open(request["terminal"], os.O_RDWR))
        os.write(descriptors[_STANDARD_STREAMS], SIZE.pack(os.getpid()))
        run(request)
    except BaseException:  # noqa: BLE001 - above here another server would go on
        traceback.print_exc()
    finally:
        os._exit(1)


def enter(request: Request, streams: Sequence[int]) -> None:
    """Have the directory, the standard streams and the environment that are asked for."""
    os.chdir(request["cwd"])
    for target, descriptor in enumerate(streams):
        os.dup2(descriptor, target)
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()


def run(request: Request) -> None:
    """Run `jp` or the script, as if Python had just started. It ends the process."""
    os.closerange(_STANDARD_STREAMS, _MOST_DESCRIPTORS)
    sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115 - stays open
    sys.stdout = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115 - likewise
    sys.stderr = open(  # noqa: SIM115 - likewise
        2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False
    )
    sys.argv = [request["script"] or sys.argv[0], *request["arguments"]]
    if request["script"]:
        runpy.run_path(request["script"], run_name="__main__")
    else:
        from jp.__main__ import main

        main()


def _import_everything() -> None:
    import jp

    for module in pkgutil.walk_packages(jp.__path__, "jp."):
        # Who needs a module that cannot be imported fails by itself.
        with contextlib.suppress(ImportError, SyntaxError, NameError):
            if not module.name.endswith("__main__"):
                import_module(module.name)
    for name in (
        "anyio._backends._asyncio",
        "asyncio",
        "difflib",
        "encodings.utf_16_le",
        "httpcore2",
        "jinja2.sandbox",
        "jsonschema",
        "keyring.backends.null",
        "markdown_it",
        "mcp.client.streamable_http",
        "prompt_toolkit.application",
        "prompt_toolkit.input.vt100",
        "prompt_toolkit.layout",
        "rich.console",
        "tempfile",
        "tomlkit",
        "tomllib",
        "truststore",
    ):
        import_module(name)
    with contextlib.suppress(ImportError):  # keyring needs it before Python 3.12
        import_module("importlib_metadata")


def _read_annotations() -> None:
    """Let msgspec and Typer read what every process would read anew; who needs what cannot be read fails by itself."""
    import msgspec

    from jp.cli.command_line import commands, loading
    from jp.config.model import Section
    from jp.config.schema import Table

    ours = [vars(module).values() for name, module in list(sys.modules.items()) if name.startswith("jp.")]
    for kind in itertools.chain(*ours):
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            with contextlib.suppress(Exception):
                msgspec.convert({}, kind)
        if isinstance(kind, type) and issubclass(kind, Section):
            table = Table(kind)
            with contextlib.suppress(Exception):
                _ = table.fields, table.others
    loading.build = cache(loading.build)
    for path, command in commands.walk(commands.ROOT):
        with contextlib.suppress(Exception):
            loading.LoadedCommand(command, path)


def _rehearse() -> None:
    """Ask a question and look at what has been kept, once without any effect: each child finds at hand what this makes.

    That is what Python and libraries learn of code that has run, which each child would learn anew and for itself only.
    """
    from jp.cli.app import run

    environment, directory, streams = dict(os.environ), Path.cwd(), (sys.stdout, sys.stderr)
    with tempfile.TemporaryDirectory() as scratch, Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        work = Path(scratch) / "work"
        os.environ.clear()
        os.environ.update(isolated_environment(home_beside(work)))
        os.chdir(make_workspace(work))
        sys.stdout = sys.stderr = nowhere
        for words in REHEARSED * 2:
            run(words)
        answer = Reply(body=sse(wire.start(), *wire.text(0, "Hello."), *wire.ending()))
        with Loopback(otherwise=answer) as server:
            os.environ.update(_ASKED, JP_CFG_PROVIDERS_LLM_ANTHROPIC_BASE_URL=server.url)
            run(REHEARSED[0])
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(directory)
        sys.stdout, sys.stderr = streams


def _gather_memory() -> None:
    """Have Linux keep what was imported in few large pages: to fork and to end a process takes an eighth less then."""
    from ctypes import CDLL, c_size_t, c_void_p

    maps = Path("/proc/self/maps")
    if not maps.exists():
        return
    for line in maps.read_text(encoding="utf-8", errors="replace").splitlines():
        place, permissions, _, _, inode, *name = line.split()
        if permissions == "rw-p" and inode == "0" and name in ([], ["[heap]"]):
            start, end = (int(address, 16) for address in place.split("-"))
            start = -(-start // _LARGE_PAGE) * _LARGE_PAGE
            # Where it is not known or not possible, all stays as it was.
            CDLL(None).madvise(c_void_p(start), c_size_t(max(0, end - start) // _LARGE_PAGE * _LARGE_PAGE), _COLLAPSE)


if __name__ == "__main__":
    _import_everything()
    _read_annotations()
    # Where jp is broken, the tests say so.
    with contextlib.suppress(ImportError, SyntaxError, NameError):
        _rehearse()
    gc.collect()
    gc.freeze()
    _gather_memory()
    with socket.socket(fileno=int(sys.argv[2])) as ours_to_all:
        try:
            serve(ours_to_all, int(sys.argv[1]))
        finally:
            shutil.rmtree(Path(ours_to_all.getsockname()).parent)
