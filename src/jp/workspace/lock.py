"""The lock for one writer of a conversation: the operating system releases it when its process dies."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from jp.errors import ExitCode, JpError
from jp.remedies import Option, UseOption, phrase
from jp.workspace.files import SMALL, SYSTEM, failure, make_directories, open_file, read_file, timestamp

_FIRST_PAUSE = 0.01
_LONGEST_PAUSE = 0.25


class LockedError(JpError):
    """Another process writes this conversation."""

    exit_code = ExitCode.LOCKED


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """The process that holds a lock, according to its file; for messages only."""

    pid: int
    acquired_at: str


_holder_decoder = msgspec.json.Decoder(Holder)


class Lock:
    """The lock on `subject`, a conversation's id. Without a path there is nothing to lock and nothing is written.

    As a context manager it releases on the way out; acquire it first.
    """

    def __init__(self, path: Path | None, *, subject: str) -> None:
        self._path = path
        self._subject = subject
        self._descriptor: int | None = None
        self._held = False

    @property
    def held(self) -> bool:
        """Return whether this object holds the lock."""
        return self._held

    def acquire(self, *, patience: float | None, waiting: Callable[[str], None]) -> None:
        """Wait for the lock, at most `patience` seconds (None: for ever; 0: not at all).

        `waiting` is called once, with a sentence, when it is not free.

        Raises:
            LockedError: somebody else still holds it.
            StorageError: the file cannot be created.
        """
        for pause in self._attempts(patience=patience, waiting=waiting):
            time.sleep(pause)

    async def acquire_async(self, *, patience: float | None, waiting: Callable[[str], None]) -> None:
        """Acquire the lock like `acquire`, in an event loop; cancellation leaves nothing behind."""
        import anyio

        for pause in self._attempts(patience=patience, waiting=waiting):
            await anyio.sleep(pause)

    def release(self) -> None:
        """Release the lock, if it is held."""
        self._held = False
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, 0)
            os.close(descriptor)

    def remove_file(self) -> None:
        """Delete the file of a lock that is held, for a conversation that is gone.

        A waiting process finds that the path is no longer the file that it locked, and tries again.
        """
        if self._held and self._path is not None:
            with contextlib.suppress(OSError):
                self._path.unlink()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()

    def _attempts(self, *, patience: float | None, waiting: Callable[[str], None]) -> Iterator[float]:
        deadline = None if patience is None else time.monotonic() + patience
        pause = 0.0
        while not self._try():
            left = _LONGEST_PAUSE if deadline is None else deadline - time.monotonic()
            if left <= 0:
                raise self._locked()
            if not pause:
                waiting(f"waiting for conversation {self._subject!r}, which {self._whose()} is writing")
            pause = min(max(2 * pause, _FIRST_PAUSE), _LONGEST_PAUSE)
            yield min(pause, left)

    def _try(self) -> bool:
        if self._held or self._path is None:
            self._held = True
            return True
        try:
            self._descriptor = _locked_descriptor(self._path)
        except OSError as error:
            raise failure("lock", self._path, error) from error
        if self._descriptor is None:
            return False
        self._held = True
        _write_holder(self._descriptor)
        return True

    def _locked(self) -> LockedError:
        msg = f"conversation {self._subject!r} is locked: {self._whose()} is writing it"
        hint = phrase("wait for it with `", UseOption(Option.PATIENCE, "60s"), "`, or use another conversation")
        return LockedError(msg, hint=hint)

    def _whose(self) -> str:
        holder = None if self._path is None else _read_holder(self._path)
        return "another process" if holder is None else f"process {holder.pid} (since {holder.acquired_at})"


def _locked_descriptor(path: Path) -> int | None:
    """Return the file at `path`, open and locked; None where somebody else has locked it."""
    make_directories(path.parent, private=True)
    while True:
        descriptor = open_file(path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        if _is_still_at(descriptor, path):
            return descriptor
        os.close(descriptor)


def _is_still_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _write_holder(descriptor: int) -> None:
    holder = Holder(pid=os.getpid(), acquired_at=timestamp(SYSTEM.now()))
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, msgspec.json.encode(holder), 0)


def _read_holder(path: Path) -> Holder | None:
    try:
        return _holder_decoder.decode(read_file(path, most=SMALL))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
