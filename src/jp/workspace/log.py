"""Append entries to a conversation's log, and convert the log of the original JP first."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, TypeVar

from msgspec.structs import replace

from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    CycleEnd,
    Header,
    Original,
    UnwritableEntryError,
)
from jp.conversation.resource import Carrier
from jp.conversation.thread import map_carriers
from jp.conversation.turns import repair
from jp.errors import StorageError
from jp.file_access import LIST
from jp.remedies import Option, Show, phrase
from jp.workspace.blobs import BlobStore, stored
from jp.workspace.files import (
    SYSTEM,
    Stamps,
    create_file,
    failure,
    open_file,
    opened,
    parent_of,
    read_all,
    storage_errors,
    sync_descriptor,
    sync_file,
    temporary_beside,
    write_all,
)
from jp.workspace.layout import BASE_CONFIG, EVENTS, METADATA
from jp.workspace.lifecycle import line_of, new_nonce, stamped
from jp.workspace.lock import LockedError
from jp.workspace.store import LogMissingError, Stream, log_notices, missing_log, parse_log, read_stream


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
            raise LockedError(msg, hint="wait until that user or container is done") from None
        except OSError:
            # A file system without locks; the conversation's own lock is held.
            pass
        return cls(descriptor, path)

    @classmethod
    def create(cls, path: Path, data: bytes) -> LogFile:
        """Create a log that holds `data`, open for appending: all of it or nothing, whenever this process dies.

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
            raise LockedError(msg, hint="run the command again: it continues what is there") from None
        except OSError as error:
            raise failure("write", path, error) from error
        created = cls(descriptor, path)
        created._end = len(data)
        return created

    def read(self) -> bytes:
        """Return the whole file.

        Raises:
            StorageError: it cannot be read.
        """
        with storage_errors("read", self.path):
            data = read_all(self._open_descriptor())
        self._end = len(data)
        return data

    def append(self, line: bytes) -> None:
        """Add a line whole, or nothing of it; before it a newline, where the last line lacks one.

        Raises:
            StorageError: it could not be written, or the file is no longer the one that was opened.
        """
        descriptor = self._open_descriptor()
        self._check_untouched(descriptor)
        with storage_errors("write", self.path):
            self._cut_torn(descriptor)
            self._write(descriptor, line)

    def cut(self, end: int, torn: bytes) -> Path:
        """Cut off what lies from `end` on, which is `torn`; the path under which it is kept.

        Raises:
            StorageError: it could not be kept or not be cut; the log is as it was.
        """
        with storage_errors("repair", self.path):
            kept = self._keep(torn)
            os.ftruncate(self._open_descriptor(), end)
            self._end = end
        return kept

    def sync_also(self, *paths: Path) -> None:
        """Make the next `sync` flush these files, too."""
        self._unsynced = paths

    def sync(self) -> None:
        """Flush it to disk.

        Raises:
            OSError: the disk reports an error.
        """
        for path in self._unsynced:
            sync_file(path)
        self._unsynced = ()
        sync_descriptor(self._open_descriptor())

    def close(self) -> None:
        """Close the file. Closing again does nothing."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)

    def _open_descriptor(self) -> int:
        if self._descriptor is None:
            raise StorageError(f"{str(self.path)!r} is closed")
        return self._descriptor

    def _check_untouched(self, descriptor: int) -> None:
        """Raise if a checkout or an editor has replaced or shortened the file: what jp adds would be lost."""
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
            hint = phrase("look at it with `", Show("answer"), "`, then run the command again")
            raise StorageError(msg, hint=hint)

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


C = TypeVar("C", bound=Carrier)


def with_nonce(entry: AnyEntry, stamps: Stamps) -> AnyEntry:
    """Return a header with a random nonce if it has none: the author of the file could predict a derived one."""
    return replace(entry, nonce=new_nonce(stamps)) if isinstance(entry, Header) and not entry.nonce else entry


def original_notices(entries: Sequence[AnyEntry]) -> tuple[str, ...]:
    """Return notices about a conversation of the original: sources that jp does not read again, unsigned reasoning."""
    notices: list[str] = []
    if named := [text for entry in entries for text in _declared_by(entry)]:
        shown = ", ".join(map(repr, dict.fromkeys(named)))
        told = f"attached before this conversation came to jp, so not again: {shown}; "
        notices.append(phrase(told, Option.ATTACH, " reads a source afresh"))
    if unsigned := sum(map(_is_unsigned, entries)):
        pieces = "1 piece" if unsigned == 1 else f"{unsigned:,} pieces"
        why = "that its model did not sign: sent, as any foreign reasoning, only to servers that take it as text"
        notices.append(f"{pieces} of reasoning {why}")
    return tuple(notices)


def _is_unsigned(entry: AnyEntry) -> bool:
    """Return whether an entry is reasoning of which nothing says whose it is."""
    return isinstance(entry, ChatResponse) and bool(entry.reasoning) and "provider" not in (entry.metadata or {})


def _declared_by(entry: AnyEntry) -> tuple[str, ...]:
    match entry:
        case ChatRequest(attachments=attachments) | Header(original=Original(attachments=attachments)):
            return attachments
        case _:
            return ()


class ConversionSink:
    """A sink for the lines of a converted log.

    Lines are held back until `start`, so that a repair alone is no reason to write. With the first
    line after it the log is written in one step: the converted entries, what was held back, and that line.
    """

    def __init__(self, path: Path, converted: Sequence[AnyEntry], blobs: BlobStore) -> None:
        self._path = path
        self._converted = tuple(converted)
        self._blobs = blobs
        self._held: list[bytes] = []
        self._is_started = False
        self._file: LogFile | None = None

    def start(self) -> None:
        """Write the lines that are appended from now on."""
        self._is_started = True

    def append(self, line: bytes) -> None:
        """Add a line, its newline included, whole or not at all.

        Raises:
            LockedError: another process has written the log meanwhile.
            StorageError: it could not be written.
        """
        if self._file is not None:
            self._file.append(line)
        elif self._is_started:
            converted = (line_of(map_carriers(entry, self._stored)) for entry in self._converted)
            self._file = LogFile.create(self._path, b"".join((*converted, *self._held, line)))
        else:
            self._held.append(line)

    def sync(self) -> None:
        """Flush everything that was appended to disk.

        Raises:
            OSError: the disk reports an error.
        """
        if self._file is not None:
            self._file.sync()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _stored(self, carrier: C, /) -> C:
        return stored(carrier, self._blobs)


class Sink(Protocol):
    """A sink for lines."""

    def append(self, line: bytes) -> None:
        """Add a line, its newline included, whole or not at all.

        Raises:
            StorageError: it could not be written.
        """
        ...

    def sync(self) -> None:
        """Flush everything that was appended to disk.

        Raises:
            OSError: the disk reports an error.
        """
        ...

    def close(self) -> None:
        """Close it."""
        ...


class NowhereSink:
    """A sink for conversations in memory, which keeps nothing."""

    def append(self, line: bytes) -> None:
        """Do nothing: nothing is kept."""

    def sync(self) -> None:
        """Do nothing: nothing is kept."""

    def close(self) -> None:
        """Do nothing: nothing is open."""


class Log:
    """The log of one conversation, open for appending. Its opener holds the conversation's lock.

    What was appended survives the death of this process at once, and a power failure from the next `cycle_end` on:
    waiting for the disk at every entry would delay the first word of an answer. `notices` are about
    problems found and repaired when it was opened. `directory` is the conversation's, None for one in memory.
    """

    def __init__(self, stream: Stream, *, sink: Sink, stamps: Stamps = SYSTEM, directory: Path | None = None) -> None:
        self._stream = stream
        self.directory = directory
        self._sink = sink
        self._stamps = stamps
        self._last = _last_id(stream.entries)
        self._unsynced = False
        self._sync_error: OSError | None = None
        self._found = len(stream.entries)
        self.notices = stream.notices

    @property
    def entries(self) -> Sequence[AnyEntry]:
        """Return the stream so far, content in the form in which it is stored."""
        return self._stream.entries

    @property
    def fresh(self) -> Sequence[AnyEntry]:
        """Return the entries that were appended since it was opened, with repairs."""
        return self._stream.entries[self._found :]

    def append(self, entry: AnyEntry) -> AnyEntry:
        """Stamp `entry`, store its large content, append it and flush. The result has its content as it came.

        An `id` and an `at` that are there already stay.

        Raises:
            StorageError: it could not be written; the log holds nothing of it, and more may be appended.
        """
        return self.append_together((entry,))[0]

    def append_together(self, entries: Sequence[AnyEntry]) -> tuple[AnyEntry, ...]:
        """Append several entries in one step: whatever happens to this process, the log has all of them or none.

        See `append`. They must not name each other: ids are given here.

        Raises:
            StorageError: they could not be written.
        """
        whole = stamped(entries, self._stamps, after=self._last)
        try:
            kept = [map_carriers(entry, self._stored) for entry in whole]
            lines = b"".join(map(line_of, kept))
        except (UnicodeEncodeError, UnwritableEntryError) as error:
            msg = f"an entry cannot be written: {error}"
            raise StorageError(msg, hint="text has to be UTF-8; nothing of this entry was kept") from None
        self._sink.append(lines)
        self._stream.entries.extend(kept)
        self._last = _last_id(kept) or self._last
        self._unsynced = True
        if any(isinstance(entry, CycleEnd) for entry in kept):
            self._sync()
        return tuple(whole)

    def load(self, carrier: C, /) -> C:
        """Return the carrier with its content inline, read from the blob store where it lies there.

        Raises:
            StorageError: the blob is missing or damaged.
        """
        return self._stream.load(carrier)

    def close(self) -> None:
        """Flush everything to disk and close the file. Closing again does nothing.

        Raises:
            StorageError: the disk reported an error; what was appended last may not survive a power failure.
        """
        self._sync()
        self._sink.close()
        if self._sync_error is not None:
            error, self._sync_error = self._sync_error, None
            msg = f"the disk reported an error, the newest entries may be lost: {error.strerror or error}"
            hint = phrase("check the disk, and look at the conversation with `", Show("answer"), "`")
            raise StorageError(msg, hint=hint)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _stored(self, carrier: C, /) -> C:
        return stored(carrier, self._stream.blobs)

    def _sync(self) -> None:
        if not self._unsynced:
            return
        self._unsynced = False
        try:
            # Blobs first: an entry that survives must not name one that did not.
            self._stream.blobs.sync()
            self._sink.sync()
        except OSError as error:
            self._sync_error = error


def _last_id(entries: Sequence[AnyEntry]) -> str:
    return next((entry.id for entry in reversed(entries) if entry.id), "")


def open_log(directory: Path, blobs: BlobStore, *, stamps: Stamps = SYSTEM) -> Log:
    """Open the log in `directory` for appending; the conversation's lock must be held.

    An unterminated last line is cut off and kept beside the log; what a crash left open is closed by new entries. Of a
    conversation of the original JP the log comes into being with the first entry that is appended.

    Raises:
        LockedError: a process that knows another lock (another user's, a container's) writes it.
        StorageError: there is none, it is damaged, or it cannot be written.
    """
    try:
        file = LogFile.open(directory / EVENTS)
    except LogMissingError:
        return _open_original(directory, blobs, stamps)
    try:
        entries, notices = _without_torn_end(file)
        notices += log_notices(directory, entries)
        if len(entries) == 1:
            file.sync_also(directory / METADATA, directory / BASE_CONFIG)
        stream = Stream(conversation=directory.name, entries=entries, blobs=blobs, notices=notices)
        return _repaired(Log(stream, sink=file, stamps=stamps, directory=directory))
    except BaseException:
        file.close()
        raise


def _open_original(directory: Path, blobs: BlobStore, stamps: Stamps) -> Log:
    """Return the log of a conversation of the original's; nothing is written yet."""
    stream = read_stream(directory, blobs)
    stream.entries[0] = with_nonce(stream.entries[0], stamps)
    sink = ConversionSink(directory / EVENTS, stream.entries, blobs)
    log = _repaired(Log(stream, sink=sink, stamps=stamps, directory=directory))
    log.notices += original_notices(stream.entries)
    sink.start()
    return log


def open_in_memory(stream: Stream, *, stamps: Stamps = SYSTEM) -> Log:
    """Return a log in memory that starts with `stream`, which grows with it; only content is written, to its blobs."""
    return _repaired(Log(stream, sink=NowhereSink(), stamps=stamps))


def _without_torn_end(file: LogFile) -> tuple[list[AnyEntry], tuple[str, ...]]:
    data = file.read()
    parsed = parse_log(data, file.path)
    if parsed.end < len(data):
        kept = file.cut(parsed.end, data[parsed.end :])
        notice = f"the last line of {str(file.path)!r} was not whole: it was cut off and is kept in {kept.name!r}"
        return parsed.entries, (notice,)
    if not parsed.terminated:
        file.append(b"")
    return parsed.entries, ()


def _repaired(log: Log) -> Log:
    mending = repair(log.entries)
    for entry in mending.entries:
        log.append(entry)
    log.notices += mending.notices
    return log
