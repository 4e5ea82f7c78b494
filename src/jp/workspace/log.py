"""The open log of one conversation: stamping, storing large content, appending, repairing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, TypeVar

from msgspec.structs import replace

from jp.conversation.entries import AnyEntry, CycleEnd, Unknown, UnwritableEntryError, encode
from jp.conversation.ids import ENTROPY_BYTES, entry_id
from jp.conversation.repair import repair
from jp.conversation.resource import Carrier
from jp.conversation.thread import map_carriers
from jp.errors import StorageError
from jp.workspace.blobs import BlobStore, stored
from jp.workspace.layout import BASE_CONFIG, EVENTS, METADATA
from jp.workspace.log_file import LogFile
from jp.workspace.stamp import SYSTEM, Stamps, timestamp
from jp.workspace.store import LogMissingError, Stream, change_notices, parse_log, read_stream

C = TypeVar("C", bound=Carrier)


class Sink(Protocol):
    """Where lines go."""

    def append(self, line: bytes) -> None:
        """Add a line, its newline included, whole or not at all.

        Raises:
            StorageError: it could not be written.
        """
        ...

    def sync(self) -> None:
        """Have everything that was appended survive a power failure.

        Raises:
            OSError: the disk reports an error.
        """
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


class NowhereSink:
    """Keeps nothing: for conversations that live in memory."""

    def append(self, line: bytes) -> None:
        """Nothing is kept."""

    def sync(self) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Nothing is held."""


class Log:
    """The log of one conversation, open for appending, the conversation's lock held by whoever opened it.

    What was appended survives the death of this process at once, and a power failure from the next `cycle_end` on:
    waiting for the disk at every entry would delay the first word of an answer. `notices` says what was found and
    mended when it was opened. `directory` is where the conversation lies, None for one that is only in memory.
    """

    def __init__(self, stream: Stream, *, sink: Sink, stamps: Stamps = SYSTEM, directory: Path | None = None) -> None:
        self._stream = stream
        self.directory = directory
        self._sink = sink
        self._stamps = stamps
        self._last = next((entry.id for entry in reversed(stream.entries) if entry.id), "")
        self._unsynced = False
        self._sync_error: OSError | None = None
        self._found = len(stream.entries)
        self.notices = stream.notices

    @property
    def entries(self) -> Sequence[AnyEntry]:
        """The stream so far, content in the form in which it is stored."""
        return self._stream.entries

    @property
    def fresh(self) -> Sequence[AnyEntry]:
        """What was appended since it was opened, repairs included."""
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
        last, stamped, kept, lines = self._last, list[AnyEntry](), list[AnyEntry](), list[bytes]()
        try:
            for entry in entries:
                stamped.append(self._stamped(entry, after=last))
                kept.append(map_carriers(stamped[-1], self._stored))
                last = kept[-1].id or last
                # Between the tokens of an unknown entry there may be line breaks; in strings JSON has none.
                lines.append(encode(kept[-1]).replace(b"\n", b" ") + b"\n")
        except (UnicodeEncodeError, UnwritableEntryError) as error:
            msg = f"an entry cannot be written: {error}"
            raise StorageError(msg, hint="Text has to be UTF-8; nothing of this entry was kept.") from None
        self._sink.append(b"".join(lines))
        self._stream.entries.extend(kept)
        self._last = last
        self._unsynced = True
        if any(isinstance(entry, CycleEnd) for entry in kept):
            self._sync()
        return tuple(stamped)

    def load(self, carrier: C, /) -> C:
        """The carrier with its content inline, read from the blob store where it lies there.

        Raises:
            StorageError: the blob is missing or damaged.
        """
        return self._stream.load(carrier)

    def close(self) -> None:
        """Have the disk keep everything, and let go of the file. Closing again does nothing.

        Raises:
            StorageError: the disk reported an error; what was appended last may not survive a power failure.
        """
        self._sync()
        self._sink.close()
        if self._sync_error is not None:
            error, self._sync_error = self._sync_error, None
            msg = f"the disk reported an error, the newest entries may be lost: {error.strerror or error}"
            raise StorageError(msg, hint="Check the disk, and look at the conversation with `jp conversation print`.")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _stamped(self, entry: AnyEntry, *, after: str) -> AnyEntry:
        if isinstance(entry, Unknown) or (entry.id and entry.at):
            return entry
        now = self._stamps.now()
        fresh = entry.id or entry_id(milliseconds=now, entropy=self._stamps.entropy(ENTROPY_BYTES), last=after)
        return replace(entry, id=fresh, at=entry.at or timestamp(now))

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
        entries, notices = _mended(file)
        notices += change_notices(directory, entries)
        if len(entries) == 1:
            file.sync_also(directory / METADATA, directory / BASE_CONFIG)
        stream = Stream(conversation=directory.name, entries=entries, blobs=blobs, notices=notices)
        return _repaired(Log(stream, sink=file, stamps=stamps, directory=directory))
    except BaseException:
        file.close()
        raise


def _open_original(directory: Path, blobs: BlobStore, stamps: Stamps) -> Log:
    """The log of a conversation of the original's; nothing is written yet."""
    from jp.workspace.conversion import ConvertingSink, delivery_notices, unforeseeable

    stream = read_stream(directory, blobs)
    stream.entries[0] = unforeseeable(stream.entries[0], stamps)
    sink = ConvertingSink(directory / EVENTS, stream.entries, blobs)
    log = _repaired(Log(stream, sink=sink, stamps=stamps, directory=directory))
    log.notices += delivery_notices(stream.entries)
    sink.start()
    return log


def open_in_memory(stream: Stream, *, stamps: Stamps = SYSTEM) -> Log:
    """A log that starts with `stream`, which grows with it; what is appended is written nowhere but to its blobs."""
    return _repaired(Log(stream, sink=NowhereSink(), stamps=stamps))


def _mended(file: LogFile) -> tuple[list[AnyEntry], tuple[str, ...]]:
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
