"""A disk that fails: stands between the code under test and the calls that change what lies below a directory."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Call = Callable[..., Any]
Fault = Callable[[str, Call, tuple[Any, ...]], Any]
"""What happens in place of a call: its name, the call itself, its arguments."""

_BY_PATH = ("mkdir", "rename", "replace", "unlink", "link", "utime", "rmdir")
_BY_DESCRIPTOR = ("write", "pwrite", "ftruncate", "fsync")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Disk:
    """Counts the calls below `root` and lets `faults` happen in place of some, by number from 1."""

    def __init__(self, root: Path, faults: Mapping[int, Fault]) -> None:
        self.calls: list[str] = []
        self._root = str(root)
        self._faults = faults
        self._descriptors: set[int] = set()
        self._paths: dict[int, str] = {}
        self._real: dict[str, Call] = {
            name: getattr(os, name) for name in ("open", "close", *_BY_PATH, *_BY_DESCRIPTOR)
        }

    def break_calls(self, faults: Mapping[int, Fault]) -> None:
        """Count anew, and let these faults happen."""
        self.calls.clear()
        self._faults = faults

    def install(self) -> None:
        """Take the place of the calls."""
        for name in _BY_PATH:
            setattr(os, name, self._by_path(name))
        for name in _BY_DESCRIPTOR:
            setattr(os, name, self._by_descriptor(name))
        for name, call in (("open", self._open), ("close", self._close)):
            setattr(os, name, call)

    def remove(self) -> None:
        """Put the calls back."""
        for name, call in self._real.items():
            setattr(os, name, call)

    def _happens(self, name: str, call: Call, *arguments: Any, **named: Any) -> Any:
        self.calls.append(name)
        if (fault := self._faults.get(len(self.calls))) is not None:
            return fault(name, lambda *others: call(*others, **named), arguments)
        return call(*arguments, **named)

    def _whole(self, path: Any, named: Mapping[str, Any]) -> str:
        """The path that a call means, also where it is relative to a directory that is open."""
        if isinstance(path, int):
            return ""
        directory = next((named[name] for name in ("dir_fd", "src_dir_fd") if named.get(name) is not None), None)
        text = os.fsdecode(path)
        return text if directory is None else f"{self._paths.get(directory, '')}/{text}"

    def _ours(self, path: Any, named: Mapping[str, Any]) -> bool:
        return f"{self._whole(path, named)}/".startswith(f"{self._root}/")

    def _open(self, path: Any, flags: int, *arguments: Any, **named: Any) -> Any:
        call = self._real["open"]
        is_ours = self._ours(path, named)
        if is_ours and flags & _WRITING:
            descriptor: int = self._happens("open", call, path, flags, *arguments, **named)
        else:
            descriptor = call(path, flags, *arguments, **named)
        self._paths[descriptor] = self._whole(path, named)
        if is_ours:
            self._descriptors.add(descriptor)
        return descriptor

    def _close(self, descriptor: int) -> None:
        self._descriptors.discard(descriptor)
        self._paths.pop(descriptor, None)
        self._real["close"](descriptor)

    def _by_path(self, name: str) -> Call:
        def interposed(path: Any, *arguments: Any, **named: Any) -> Any:
            if self._ours(path, named):
                return self._happens(name, self._real[name], path, *arguments, **named)
            return self._real[name](path, *arguments, **named)

        return interposed

    def _by_descriptor(self, name: str) -> Call:
        def interposed(descriptor: int, *arguments: Any) -> Any:
            if descriptor in self._descriptors:
                return self._happens(name, self._real[name], descriptor, *arguments)
            return self._real[name](descriptor, *arguments)

        return interposed


@contextmanager
def failing_disk(root: Path, *, at: int = 0, fault: Fault | None = None) -> Generator[Disk]:
    """A disk that fails at its call number `at` (0: never) within the block."""
    disk = Disk(root, {} if fault is None else {at: fault})
    disk.install()
    try:
        yield disk
    finally:
        disk.remove()


def error(number: int) -> Fault:
    """The call fails and does nothing."""

    def fail(name: str, call: Call, arguments: tuple[Any, ...]) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


def short(name: str, call: Call, arguments: tuple[Any, ...]) -> Any:
    """A write takes only half; other calls find no space."""
    if name not in {"write", "pwrite"}:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    descriptor, data, *rest = arguments
    return call(descriptor, bytes(data)[: len(data) // 2], *rest)


def killed_before(name: str, call: Call, arguments: tuple[Any, ...]) -> Any:
    """The process dies before the call."""
    os.kill(os.getpid(), signal.SIGKILL)


def killed_within(name: str, call: Call, arguments: tuple[Any, ...]) -> Any:
    """The process dies when half of a write has arrived."""
    if name in {"write", "pwrite"}:
        short(name, call, arguments)
    os.kill(os.getpid(), signal.SIGKILL)


def killed_after(name: str, call: Call, arguments: tuple[Any, ...]) -> Any:
    """The process dies after the call."""
    call(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)
