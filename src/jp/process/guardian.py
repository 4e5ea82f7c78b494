"""A program that is run to its end: a group of its own, bounds on its output and its time."""

from __future__ import annotations

import errno
import fcntl
import gc
import itertools
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, NoReturn

import msgspec
from anyio import CancelScope, create_task_group, current_time, move_on_after, wait_readable, wait_writable
from anyio.abc import TaskGroup
from msgspec.structs import replace

if TYPE_CHECKING:
    from jp.process.sandbox.policy import Confinement


_SET_DUMPABLE = 4
_SET_CHILD_SUBREAPER = 36
"""Options of Linux's prctl(2)."""

_PATIENCE_SECS = 2.0
"""Seconds for a killed process to be gone."""

_INT_SIZE = 4
_LEASH, _REPORT, _FIRST_UNUSED = 3, 4, 5
_LOWEST_COPY = 16
_AS_DEFAULT = (signal.SIGPIPE, signal.SIGXFSZ)
"""Signals that Python ignores; what is ignored would be inherited."""
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP, signal.SIGPIPE)


_ending: list[int] = []
"""Guardians that have nothing left to do, and perhaps have not ended yet."""


class _Command(NamedTuple):
    words: list[bytes]
    directory: bytes
    environment: dict[bytes, bytes]


class GuardedProcess:
    """A running program, behind its guardian, with our ends of its standard streams."""

    def __init__(
        self, words: Sequence[str], *, directory: str, environment: Mapping[str, str], has_input: bool = True
    ) -> None:
        """Start the program.

        From the first program on, no other process of the same user can read jp's memory and environment (Linux).

        Args:
            words: the program's path and its arguments.
            directory: where it runs.
            environment: all its variables.
            has_input: whether it can be written to; else its standard input is empty.

        Raises:
            OSError: it cannot be started.
            ValueError: a word or a variable cannot be handed to a program.
        """
        command = _Command(
            [_encoded(word) for word in words],
            _encoded(directory),
            {_encoded(name): _encoded(value) for name, value in environment.items()},
        )
        self.exit_code: int | None = None
        """Exit code of the program, a signal as its negative number; None until it was waited for."""
        _prctl(_SET_DUMPABLE, 0)
        _reap_guardians()
        pipes = _pipes(5)
        (its_input, self.stdin), (its_leash, self._leash) = pipes[:2]
        (self.stdout, its_output), (self.stderr, its_errors), (self._report, its_report) = pipes[2:]
        self._open = {self.stdin, self.stdout, self.stderr, self._leash, self._report}
        try:
            self._guardian = os.fork()
            if self._guardian == 0:
                _guard(command, (its_input, its_output, its_errors, its_leash, its_report))
        except OSError:
            self._close(*self._open)
            raise
        finally:
            for descriptor in (its_input, its_leash, its_output, its_errors, its_report):
                os.close(descriptor)
        error = self._next_report()
        if error != 0:
            self._close(*self._open)
            _ending.append(self._guardian)
            number = abs(error or errno.ECHILD)
            raise OSError(number, os.strerror(number), directory if error is not None and error < 0 else words[0])
        if not has_input:
            self.close_input()

    def _next_report(self) -> int | None:
        data = os.read(self._report, _INT_SIZE)
        return int.from_bytes(data, sys.byteorder, signed=True) if len(data) == _INT_SIZE else None

    def _close(self, *descriptors: int) -> None:
        for descriptor in self._open.intersection(descriptors):
            self._open.remove(descriptor)
            os.close(descriptor)

    async def wait(self) -> None:
        """Wait until the program itself has ended; what it started may still run. One task at a time."""
        if self.exit_code is None and self._report in self._open:
            await wait_readable(self._report)
            status = self._next_report()
            # A guardian that reports nothing was killed: its program is out of reach.
            self.exit_code = -signal.SIGKILL if status is None else os.waitstatus_to_exitcode(status)

    def signal(self, number: int) -> None:
        """Send a signal to the program's process group, unless the program has ended."""
        if self._leash in self._open:
            with suppress(BrokenPipeError):
                os.write(self._leash, bytes((number,)))

    def kill(self) -> None:
        """Kill the program and everything that it started, without waiting until it is gone."""
        self._close(self._leash)

    async def end(self, grace_secs: float) -> None:
        """Ask the program to end, kill what still runs after `grace_secs`, and wait until it is gone.

        Cancelling does not shorten this. What jp may not kill, a program that runs as another user, is not waited for.
        """
        with CancelScope(shield=True):
            if self.exit_code is None:
                self.signal(signal.SIGTERM)
                with move_on_after(grace_secs):
                    await self.wait()
            self.kill()
            with move_on_after(_PATIENCE_SECS):
                await self.wait()
                if self._report in self._open:
                    await wait_readable(self._report)  # its end: nothing is left
        if self.exit_code is None:
            self.exit_code = -signal.SIGKILL
        _ending.append(self._guardian)
        self._close(self._report)

    def close(self) -> None:
        """Let go of the streams. Nobody may be reading or writing."""
        self._close(*self._open)

    def close_input(self) -> None:
        """Tell the program that nothing more comes. Nobody may be writing."""
        self._close(self.stdin)


def _pipes(count: int) -> list[tuple[int, int]]:
    """Pairs of what is read and what is written."""
    pipes: list[tuple[int, int]] = []
    try:
        pipes.extend(os.pipe() for _ in range(count))
    except OSError:
        for descriptor in itertools.chain(*pipes):
            os.close(descriptor)
        raise
    return pipes


def _reap_guardians() -> None:
    _ending[:] = [guardian for guardian in _ending if os.waitpid(guardian, os.WNOHANG)[0] == 0]


def _encoded(text: str) -> bytes:
    data = os.fsencode(text)
    if b"\0" in data:
        raise ValueError("embedded null byte")
    return data


@cache
def _system_prctl() -> Callable[..., int] | None:
    if sys.platform != "linux":
        return None
    try:
        from ctypes import CDLL, c_int, c_ulong

        function = CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        return None
    function.argtypes = (c_int, c_ulong, c_ulong, c_ulong, c_ulong)
    return function


def _prctl(option: int, value: int) -> None:
    """Set an attribute of this process; nothing happens where the system has none."""
    function = _system_prctl()
    if function is not None:
        function(option, value, 0, 0, 0)


def _guard(command: _Command, descriptors: tuple[int, int, int, int, int]) -> NoReturn:
    """Be the guardian, in a fork of jp: nothing of jp may be touched but what is given here."""
    try:
        gc.disable()  # a finalizer would act on what belongs to jp
        signal.set_wakeup_fd(-1)
        os.setsid()
        _take_descriptors(descriptors)
        _prctl(_SET_CHILD_SUBREAPER, 1)
        woken, wake = os.pipe()
        os.set_blocking(woken, False)
        os.set_blocking(wake, False)
        signal.signal(signal.SIGCHLD, _look_up)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        program = _start(command)
        for number in _IGNORED:
            signal.signal(number, signal.SIG_IGN)
        for stream in range(_LEASH):
            os.close(stream)
        _tell(0)
        _kill_descendants(program, has_ended=_watch(program, woken))
        os.close(_REPORT)  # to free the memory that it shares with jp takes milliseconds, for which nobody has to wait
    finally:
        os._exit(0)


def _look_up(number: int, frame: object) -> None:
    """Let SIGCHLD write to the pipe that is waited for."""


def _take_descriptors(descriptors: tuple[int, ...]) -> None:
    """Have the five at 0 to 4, and no other: jp's locks, and the leashes of other guardians, end with jp only."""
    copies = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, _LOWEST_COPY) for descriptor in descriptors]
    for target, copy in enumerate(copies):
        os.dup2(copy, target, inheritable=target < _LEASH)
    os.closerange(_FIRST_UNUSED, os.sysconf("SC_OPEN_MAX"))


def _tell(value: int) -> None:
    with suppress(BrokenPipeError):
        os.write(_REPORT, value.to_bytes(_INT_SIZE, sys.byteorder, signed=True))


def _start(command: _Command) -> int:
    """Start the program in a group of its own.

    Where it cannot be started, report why and end: the number of the error, negative where its directory is the cause.
    """
    sign = -1
    try:
        os.chdir(command.directory)
        sign = 1
        return os.posix_spawn(command.words[0], command.words, command.environment, setpgroup=0, setsigdef=_AS_DEFAULT)
    except OSError as error:
        _tell(sign * (error.errno or 1))
        os._exit(0)


def _watch(program: int, woken: int) -> bool:
    """Hand on signals and tell how the program ended, until the leash is closed; whether it has ended by then."""
    has_ended = False
    while True:
        readable, _, _ = select.select([_LEASH, woken], [], [])
        if woken in readable:
            os.read(woken, 4096)
            has_ended = _reap_ended(program) or has_ended
        if _LEASH in readable:
            orders = os.read(_LEASH, 64)
            if not orders:
                return has_ended
            for number in () if has_ended else orders:
                _signal_group(program, number)


def _reap_ended(program: int) -> bool:
    """Reap what has ended; whether the program is among it."""
    found = False
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            found = _is_program(program, *ended) or found
    return found


def _is_program(program: int, process: int, status: int) -> bool:
    if process == program:
        _tell(status)
    return process == program


def _signal_group(program: int, number: int) -> None:
    # macOS refuses where only zombies are left.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(program, number)


def _kill_descendants(program: int, *, has_ended: bool) -> None:
    """Kill generation after generation, until no child is left: the children of who was killed become children here."""
    if not has_ended or _system_prctl() is None or not os.access("/proc/self/stat", os.R_OK):
        _signal_group(program, signal.SIGKILL)
    with suppress(ChildProcessError):  # none is left
        while True:
            ended = os.waitpid(-1, os.WNOHANG)
            if not ended[0]:
                _kill(_descendants(os.getpid()))
                ended = os.waitpid(-1, 0)
            _is_program(program, *ended)


def _kill(processes: Sequence[int]) -> None:
    for process in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL)


def _descendants(ancestor: int) -> list[int]:
    """Return all processes below one: those that are its children only by now come with the next call."""
    children: dict[int, list[int]] = {}
    for process, parent in _linux_processes() if sys.platform == "linux" else _listed_processes():
        children.setdefault(parent, []).append(process)
    found = children.get(ancestor, [])
    if sys.platform == "linux":
        return found  # the number of a child cannot be another process's before it is reaped here
    for process in found:
        found.extend(children.get(process, ()))
    return found


def _linux_processes() -> Iterator[tuple[int, int]]:
    """Yield the number of each process, and its parent's."""
    for place in Path("/proc").glob("[1-9]*/stat"):
        with suppress(OSError):
            # The program's name, in parentheses, may hold anything.
            yield int(place.parent.name), int(place.read_bytes().rpartition(b")")[2].split()[1])


def _listed_processes() -> Iterator[tuple[int, int]]:
    """See `_linux_processes`, for systems without /proc."""
    output, its_output = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, its_output, 1)]
    with suppress(OSError):
        lister = os.posix_spawn("/bin/ps", ["ps", "-A", "-o", "pid=,ppid="], {}, file_actions=actions)
        os.close(its_output)
        with os.fdopen(output, encoding="ascii", errors="replace") as listed:
            rows = [line.split() for line in listed]
        os.waitpid(lister, 0)
        yield from ((int(process), int(parent)) for process, parent in rows)


_CHUNK = 64 * 1024


class ProcessLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Time limits, in seconds.

    `timeout_secs` is for the program, `math.inf` where it may take as long as it likes; `grace_secs` for what it does
    after it was asked to end, and for what it leaves behind to close its output.
    """

    timeout_secs: float = 120.0
    grace_secs: float = 1.0


class OutputLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Output limits, in bytes.

    Of each output `kept` are kept, half from its beginning and half from its end; what lies between is read and
    forgotten. A program that prints more than `most` on both together is stopped.
    """

    kept: int
    most: int


class CapturedOutput(msgspec.Struct, frozen=True, kw_only=True):
    """Output of a program: all of it, or a beginning and an end between which `omitted` bytes are missing."""

    head: bytes
    tail: bytes = b""
    omitted: int = 0


class ProcessResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a program. A negative `exit_code` is the number of the signal that ended it.

    `stopped` says why it was not left to end by itself: it took too long, or it printed too much.
    """

    exit_code: int
    stdout: CapturedOutput
    stderr: CapturedOutput
    stopped: Literal["time", "output"] | None = None


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """A program to run: `words[0]` is a path. `stdin` is what it may read, None where that is nothing.

    Nothing in `words` and `environment` may hold a zero byte. `sandbox` confines it, None where nothing does.
    """

    words: Sequence[str]
    directory: str
    environment: Mapping[str, str]
    stdin: bytes | None = None
    sandbox: Confinement | None = None


async def run(program: Program, *, output: OutputLimits, limits: ProcessLimits) -> ProcessResult:
    """Run a program to its end. Whatever ends this, or jp, nothing that the program started goes on.

    Raises:
        OSError: it cannot be started.
        SandboxError: it must not run, because it cannot be confined.
    """
    if program.sandbox is None:
        return await _run(program, output=output, limits=limits)
    from jp.process.sandbox.launcher import confined

    command = (program.words, program.environment)
    with confined(*command, directory=program.directory, confinement=program.sandbox) as launch:
        confined_program = replace(program, words=launch.words, environment=launch.environment)
        return await _run(confined_program, output=output, limits=limits)


async def _run(program: Program, *, output: OutputLimits, limits: ProcessLimits) -> ProcessResult:
    process = GuardedProcess(
        program.words,
        directory=program.directory,
        environment=program.environment,
        has_input=program.stdin is not None,
    )
    running = _OutputReader(process, output)
    try:
        with move_on_after(limits.timeout_secs) as time:
            await running.watch(program.stdin, limits.grace_secs)
    finally:
        await process.end(limits.grace_secs)
        process.close()
    stopped = "output" if running.is_over_bound else "time" if time.cancelled_caught else None
    return ProcessResult(
        exit_code=-signal.SIGKILL if process.exit_code is None else process.exit_code,
        stdout=running.stdout.captured(),
        stderr=running.stderr.captured(),
        stopped=stopped,
    )


class _OutputBuffer:
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

    def captured(self) -> CapturedOutput:
        self._trim()
        return CapturedOutput(head=bytes(self._head), tail=bytes(self._tail), omitted=self._omitted)


class _OutputReader:
    """A program that runs, and what it has said."""

    def __init__(self, process: GuardedProcess, output: OutputLimits) -> None:
        self.stdout = _OutputBuffer(output.kept)
        self.stderr = _OutputBuffer(output.kept)
        self.is_over_bound = False
        self._process = process
        self._most = output.most
        self._read_bytes = 0

    async def watch(self, stdin: bytes | None, grace_secs: float) -> None:
        """Give it what it may read, and collect what it says until it has exited and closed its output."""
        async with create_task_group() as pipes:
            self._serve(pipes, stdin)
            await self._process.wait()
            # What it left behind may hold its output open for as long as it likes.
            pipes.cancel_scope.deadline = current_time() + grace_secs

    def _serve(self, pipes: TaskGroup, stdin: bytes | None) -> None:
        for descriptor, kept in ((self._process.stdout, self.stdout), (self._process.stderr, self.stderr)):
            pipes.start_soon(self._read, descriptor, kept, pipes.cancel_scope)
        if stdin is not None:
            pipes.start_soon(self._write, stdin)

    async def _read(self, descriptor: int, kept: _OutputBuffer, scope: CancelScope) -> None:
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
        rest = memoryview(data)
        os.set_blocking(self._process.stdin, False)
        # It need not read all that it may.
        with suppress(BrokenPipeError):
            while rest:
                await wait_writable(self._process.stdin)
                with suppress(BlockingIOError):
                    rest = rest[os.write(self._process.stdin, rest[:_CHUNK]) :]
        self._process.close_input()
