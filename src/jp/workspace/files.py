"""Files and directories that others may change at the same time, and the timestamps in them."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable, Generator
from pathlib import Path

import msgspec

from jp.errors import StorageError
from jp.file_access import PASS, open_child_directory, open_directory_below, open_regular, read_whole
from jp.remedies import Ask, Option, UseOption, phrase


class Stamps(msgspec.Struct, frozen=True, kw_only=True):
    """`now` gives milliseconds since the Unix epoch, `entropy` that many random bytes."""

    now: Callable[[], int]
    entropy: Callable[[int], bytes]


def _milliseconds() -> int:
    return time.time_ns() // 1_000_000


SYSTEM = Stamps(now=_milliseconds, entropy=os.urandom)
"""The wall clock and the operating system's random numbers."""


def timestamp(milliseconds: int) -> str:
    """Return a moment since the Unix epoch as RFC 3339, UTC, such as `2026-11-20T18:00:00.000Z`."""
    seconds, rest = divmod(milliseconds, 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest:03d}Z"


def seconds_of(moment: str) -> float | None:
    """Return a moment of a conversation's metadata in seconds since the Unix epoch; None where it is no moment.

    Without a zone it is UTC, as the original JP writes it.
    """
    from datetime import UTC, datetime

    try:
        found = datetime.fromisoformat(moment)
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


MARKER = ".jp"
_IN_MARKER = f"/{MARKER}/"
_BASE = PASS & ~os.O_NOFOLLOW

_LOCKLESS = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})
_DENIED = frozenset({errno.EACCES, errno.EPERM})
_READING = frozenset({"read", "list"})
_UNWRITTEN = Ask((UseOption(Option.NO_PERSIST),))
_REMEDIES = {
    errno.EISDIR: "a directory lies where a file has to be: move it away",
    errno.EEXIST: "a file lies where a directory has to be: move it away",
    errno.ENOTDIR: "a file lies where a directory has to be: move it away, or let JP_USER_DATA_DIR name another place",
    errno.ELOOP: "it is a link, and jp follows none here: put the file itself in its place",
    errno.ESPIPE: "it is a pipe: put a file in its place",
    errno.ENODEV: "put a file in its place",
    errno.EIO: "the disk reports an error of its own: look at the system's log, and back up what is there",
    errno.EMFILE: "this process has too many files open: raise its limit (`ulimit -n`) and run the command again",
    errno.ENFILE: "the system has too many files open: close programs and run the command again",
    errno.ENAMETOOLONG: phrase(
        "the path is too long: use a directory with a shorter one (`", Option.WORKSPACE, "`, JP_USER_DATA_DIR)."
    ),
    errno.EROFS: phrase("the file system is read-only; `", _UNWRITTEN, "` asks without writing anything."),
    errno.ENOSPC: "free some space on the disk and run the command again",
    errno.EDQUOT: "free some of your quota on the disk (`quota`) and run the command again",
    errno.ENOENT: "it has gone meanwhile: see with `ls -ld` which directory of its path is there",
    errno.EBUSY: "another program uses it: end that and run the command again",
    errno.ETXTBSY: "another program uses it: end that and run the command again",
    errno.ESTALE: "the network's file system has lost it: mount it again and run the command again",
    errno.ETIMEDOUT: "the network's file system does not answer: look at its mount and run the command again",
    errno.EMLINK: "the directory is full: move some of what is in it to another place",
    errno.ENOMEM: "the system has no memory left: close programs and run the command again",
    errno.EXDEV: "the two places are on different file systems: use places on one",
}
_OTHERWISE = phrase(
    "look at that path with `ls -ld`, and at its file system with `df`; `", _UNWRITTEN, "` writes nothing."
)
LARGEST = 2 * 1024 * 1024 * 1024
"""The most bytes of a log or of a blob that are read."""

SMALL = 16 * 1024 * 1024
"""The most bytes of any other file of a workspace."""

_TOO_LARGE_TO_READ = "nothing that jp writes is that large: move it away, or restore it from a copy"
_TOO_LARGE_TO_WRITE = "raise this process's limit on the size of files (`ulimit -f`)"
_UNSYNCABLE = frozenset({errno.EINVAL, errno.ENOTSUP})


def failure(action: str, path: Path, error: OSError) -> StorageError:
    """Return the error of a failed call; `action` is a verb such as `write`."""
    return StorageError(f"cannot {action} {str(path)!r}: {error.strerror or error}", hint=_hint(action, error.errno))


@contextlib.contextmanager
def storage_errors(action: str, path: Path) -> Generator[None]:
    """Raise the error of `failure` where the operating system refuses something in the block."""
    try:
        yield
    except OSError as error:
        raise failure(action, path, error) from error


def _hint(action: str, number: int | None) -> str:
    if number == errno.EFBIG:
        return _TOO_LARGE_TO_READ if action in _READING else _TOO_LARGE_TO_WRITE
    if action == "lock" and number in _LOCKLESS:
        return (
            "its file system has no locks (NFS without lockd): let JP_USER_DATA_DIR name a directory on a local disk, "
            "where jp keeps its locks"
        )
    if number in _DENIED and action in _READING:
        return "check who may read it: `ls -ld` shows that of a path"
    if number in _DENIED:
        return phrase("check who may write there (`ls -ld`); `", _UNWRITTEN, "` asks without writing anything.")
    return _OTHERWISE if number is None else _REMEDIES.get(number, _OTHERWISE)


def open_file(path: Path, flags: int, mode: int = 0o666) -> int:
    """Open a file. Neither it nor, from a workspace's `.jp` on, a directory above it may be a link.

    A stranger's repository may hold links to anywhere. What is above `.jp` is the user's own.

    Raises:
        OSError: it cannot be opened, or a link is in the way (`ELOOP`).
    """
    with parent_of(path) as (directory, name):
        return os.open(name, flags | os.O_NOFOLLOW, mode, dir_fd=directory)


def open_directory(path: Path, flags: int = PASS) -> int:
    """Open a directory for use as `dir_fd`, or with `LIST` for listing; see `open_file`."""
    with parent_of(path) as (above, name):
        return open_child_directory(above, name, flags if above is not None else flags & ~os.O_NOFOLLOW)


@contextlib.contextmanager
def opened(path: Path, flags: int = PASS) -> Generator[int]:
    """Open the directory at `path` until the end of the block; see `open_directory`."""
    directory = open_directory(path, flags)
    try:
        yield directory
    finally:
        os.close(directory)


@contextlib.contextmanager
def parent_of(path: Path) -> Generator[tuple[int | None, str]]:
    """Open the directory that holds `path` for use as `dir_fd`; yield it and the name of `path` in it.

    Outside of any workspace's `.jp` they are None and the path itself.

    Raises:
        OSError: it is not there, or a link is in the way (`ELOOP`).
    """
    base, names = _from_marker(path)
    if not names:
        yield None, base
        return
    directory = open_directory_below(base, names[:-1], base_flags=_BASE)
    try:
        yield directory, names[-1]
    finally:
        os.close(directory)


def _from_marker(path: Path) -> tuple[str, list[str]]:
    """Return the path above a workspace's `.jp`, and the names from there on; no names if `path` is in none."""
    text = os.fspath(path)
    at = f"{text}/".rfind(_IN_MARKER)
    return (text, []) if at < 0 else (text[:at] or "/", text[at + 1 :].split("/"))


def make_directories(path: Path, *, private: bool = False) -> None:
    """Create `path` and what is missing above it; `private` ones are for the user alone.

    Raises:
        StorageError: it could not be created.
    """
    with storage_errors("create", path):
        _make_directories(path, 0o700 if private else 0o777)


def _make_directories(path: Path, mode: int) -> None:
    base, names = _from_marker(path)
    if not names:
        _make_plain_directories(path, mode)
        return
    _make_plain_directories(Path(base), mode)
    directory = open_directory_below(base, (), base_flags=_BASE)
    try:
        for name in names:
            below = _entered_or_made(directory, name, mode)
            os.close(directory)
            directory = below
    finally:
        os.close(directory)


def _entered_or_made(directory: int, name: str, mode: int) -> int:
    try:
        return open_child_directory(directory, name)
    except FileNotFoundError:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, mode, dir_fd=directory)
        return open_child_directory(directory, name)


def _make_plain_directories(path: Path, mode: int) -> None:
    if path.is_dir():
        return
    if path.parent != path:
        _make_plain_directories(path.parent, mode)
    try:
        path.mkdir(mode)
    except FileExistsError:
        if not path.is_dir():
            raise


def write_all(descriptor: int, data: bytes) -> None:
    """Write until everything is written."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def create_file(path: Path, data: bytes) -> None:
    """Create a file that did not exist before.

    Raises:
        FileExistsError: it does.
        OSError: it could not be written; nothing of it is left.
    """
    descriptor = open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        write_all(descriptor, data)
    except BaseException:
        with contextlib.suppress(OSError):
            path.unlink()
        raise
    finally:
        os.close(descriptor)


def temporary_beside(path: Path) -> Path:
    """Return an unused hidden name in the same directory."""
    return path.with_name(f".{path.name}.{os.urandom(6).hex()}.tmp")


def replace_file(path: Path, data: bytes) -> None:
    """Write `path` so that readers see what it held before, or all of `data`, and nothing else.

    Raises:
        StorageError: it could not be written; what it held before is still there.
    """
    temporary = temporary_beside(path)
    with storage_errors("write", path):
        create_file(temporary, data)
        try:
            with parent_of(path) as (directory, name):
                beside = os.fspath(temporary) if directory is None else temporary.name
                os.replace(beside, name, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise


def read_file(path: Path, *, most: int = LARGEST) -> bytes:
    """Return all of a regular file; see `open_file`.

    Raises:
        OSError: it cannot be read, is none, or has more than `most` bytes (`EFBIG`).
    """
    with parent_of(path) as (directory, name):
        return read_whole(name, most, follows=False, within=directory)


def read_optional(path: Path, *, most: int = LARGEST) -> bytes | None:
    """Return all of a regular file, None where there is none.

    Raises:
        StorageError: it cannot be read.
    """
    try:
        return read_file(path, most=most)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise failure("read", path, error) from error


def open_to_read(path: Path) -> int:
    """Return a descriptor of a regular file; see `open_file`."""
    with parent_of(path) as (directory, name):
        return open_regular(name, follows=False, within=directory)


def read_all(descriptor: int) -> bytes:
    """Return a file from its start to its end.

    Raises:
        OSError: it cannot be read, or has more than `LARGEST` bytes.
    """
    chunks: list[bytes] = []
    offset = 0
    size = os.fstat(descriptor).st_size
    if size > LARGEST:
        raise OSError(errno.EFBIG, f"it has more than {LARGEST:,} bytes")
    while chunk := os.pread(descriptor, max(size - offset, 0) + 1, offset):
        chunks.append(chunk)
        offset += len(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def sync_descriptor(descriptor: int) -> None:
    """Flush written data to disk, if the file system can do that."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _UNSYNCABLE:
            raise


def sync_file(path: Path) -> None:
    """Flush a file that was written and closed before to disk; a file that is gone needs nothing."""
    try:
        descriptor = open_file(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return
    try:
        sync_descriptor(descriptor)
    finally:
        os.close(descriptor)
