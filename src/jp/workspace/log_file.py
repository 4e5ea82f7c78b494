"""The file of a log: lines are added whole, or taken back."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

from jp.errors import StorageError
from jp.file_access import LIST
from jp.workspace.files import (
    create_file,
    failure,
    open_file,
    opened,
    parent_of,
    read_all,
    sync_descriptor,
    sync_file,
    temporary_beside,
    write_all,
)
from jp.workspace.lock import LockedError
from jp.workspace.store import missing_log


class LogFile:
    """An `events.jsonl` that is open for appending. What it costs does not depend on its size."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor: int | None = descriptor
        self._unsynced: tuple[Path, ...] = ()
        self._torn_from: int | None = None
        self._end = 0
        self.path = path

    @classmethod
    def open(cls, path: Path) -> LogFile:
        """Open an existing log. Links are not followed: a stranger's repository may hold links to anywhere.

        Raises:
            LockedError: another process has it open for appending.
            StorageError: there is none, or it cannot be written.
        """
        try:
            descriptor = open_file(path, os.O_RDWR | os.O_APPEND | os.O_NONBLOCK)
        except (FileNotFoundError, NotADirectoryError):
            raise missing_log(path.parent) from None
        except OSError as error:
            raise failure("write", path, error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            msg = f"{str(path)!r} is being written by a process with another user data directory"
            raise LockedError(msg, hint="Wait until that user or container is done.") from None
        except OSError:
            # A file system without locks; the conversation's own lock is held all the same.
            pass
        return cls(descriptor, path)

    @classmethod
    def create(cls, path: Path, data: bytes) -> LogFile:
        """A new log that holds `data`, open for appending: all of it or nothing, whenever this process dies.

        The conversation's lock must be held: what an earlier attempt left behind is taken away.

        Raises:
            LockedError: there is a log now; a process that knows another lock was first.
            StorageError: it could not be written; nothing of it is left.
        """
        temporary = temporary_beside(path)
        try:
            _remove_leftovers(path)
            descriptor = open_file(temporary, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL)
            try:
                with contextlib.suppress(OSError):
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                write_all(descriptor, data)
                sync_descriptor(descriptor)
                _put_in_place(temporary, path)
            except BaseException:
                os.close(descriptor)
                with contextlib.suppress(OSError):
                    temporary.unlink()
                raise
        except FileExistsError:
            msg = f"{str(path)!r} was written by another process just now"
            raise LockedError(msg, hint="Run the command again: it continues what is there.") from None
        except OSError as error:
            raise failure("write", path, error) from error
        created = cls(descriptor, path)
        created._end = len(data)
        return created

    def read(self) -> bytes:
        """All of it.

        Raises:
            StorageError: it cannot be read.
        """
        try:
            data = read_all(self._open_descriptor())
        except OSError as error:
            raise failure("read", self.path, error) from error
        self._end = len(data)
        return data

    def append(self, line: bytes) -> None:
        """Add a line whole, or nothing of it; before it a newline, where the last line lacks one.

        Raises:
            StorageError: it could not be written, or the file is no longer the one that was opened.
        """
        descriptor = self._open_descriptor()
        self._check_untouched(descriptor)
        try:
            self._cut_torn(descriptor)
            self._write(descriptor, line)
        except OSError as error:
            raise failure("write", self.path, error) from error

    def cut(self, end: int, torn: bytes) -> Path:
        """Cut off what lies from `end` on, which is `torn`; the path under which it is kept.

        Raises:
            StorageError: it could not be kept or not be cut; the log is as it was.
        """
        try:
            kept = self._keep(torn)
            os.ftruncate(self._open_descriptor(), end)
            self._end = end
        except OSError as error:
            raise failure("mend", self.path, error) from error
        return kept

    def sync_also(self, *paths: Path) -> None:
        """Have the next `sync` cover these files, too."""
        self._unsynced = paths

    def sync(self) -> None:
        """Have the disk keep it.

        Raises:
            OSError: the disk reports an error.
        """
        for path in self._unsynced:
            sync_file(path)
        self._unsynced = ()
        sync_descriptor(self._open_descriptor())

    def close(self) -> None:
        """Let go of the file. Closing again does nothing."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)

    def _open_descriptor(self) -> int:
        if self._descriptor is None:
            raise StorageError(f"{str(self.path)!r} is closed")
        return self._descriptor

    def _check_untouched(self, descriptor: int) -> None:
        """A checkout or an editor may put another file in place, or write over it: what jp adds would be lost."""
        change = ""
        try:
            opened = os.fstat(descriptor)
            if not os.path.samestat(opened, self.path.stat(follow_symlinks=False)):
                change = "removed or replaced"
            elif self._torn_from is None and opened.st_size < self._end:
                change = "shortened"
        except OSError:
            change = "removed or replaced"
        if change:
            msg = f"{str(self.path)!r} was {change} by another program while jp was writing it"
            raise StorageError(msg, hint="Look at it with `jp conversation print`, then run the command again.")

    def _write(self, descriptor: int, line: bytes) -> None:
        size = os.fstat(descriptor).st_size
        # Somebody who edits the log by hand may have left the last line open.
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            line = b"\n" + line
        self._torn_from = size
        try:
            # One call, except where the disk takes only a part: then the next one says why.
            write_all(descriptor, line)
        except BaseException:
            # Where even this fails, the next append tries again before it writes.
            with contextlib.suppress(OSError):
                self._cut_torn(descriptor)
            raise
        self._torn_from = None
        self._end = size + len(line)

    def _cut_torn(self, descriptor: int) -> None:
        if self._torn_from is not None:
            os.ftruncate(descriptor, self._torn_from)
            self._torn_from = None

    def _keep(self, torn: bytes) -> Path:
        number = 1
        while True:
            path = self.path.with_name(f"{self.path.name}.torn-{number}")
            try:
                create_file(path, torn)
            except FileExistsError:
                number += 1
            else:
                return path


def _remove_leftovers(path: Path) -> None:
    with contextlib.suppress(OSError), opened(path.parent, LIST) as directory:
        with os.scandir(directory) as found:
            names = [entry.name for entry in found]
        for name in names:
            if name.startswith(f".{path.name}.") and name.endswith(".tmp"):
                os.unlink(name, dir_fd=directory)


def _put_in_place(temporary: Path, path: Path) -> None:
    """Give a file its name, unless there is one of that name."""
    with parent_of(path) as (directory, name):
        beside = os.fspath(temporary) if directory is None else temporary.name
        try:
            # Unlike a rename, a link leaves alone what another process has just created.
            os.link(beside, name, src_dir_fd=directory, dst_dir_fd=directory)
        except FileExistsError:
            raise
        except OSError as error:
            # A file system without hard links.
            if os.path.lexists(path):
                raise FileExistsError from error
            os.rename(beside, name, src_dir_fd=directory, dst_dir_fd=directory)
        else:
            os.unlink(beside, dir_fd=directory)
