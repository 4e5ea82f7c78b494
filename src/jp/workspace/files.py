"""Changes on disk that happen whole or not at all, and the words for those that fail."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

from jp.errors import StorageError

_LOCKLESS = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})
_DENIED = frozenset({errno.EACCES, errno.EPERM})
_READING = frozenset({"read", "list"})
_REMEDIES = {
    errno.EISDIR: "A directory lies where a file has to be: move it away.",
    errno.EEXIST: "A file lies where a directory has to be: move it away.",
    errno.ENOTDIR: "A file lies where a directory has to be: move it away, or let JP_USER_DATA_DIR name another place.",
    errno.ELOOP: "It is a link, and jp follows none here: put the file itself in its place.",
    errno.ESPIPE: "It is a pipe: put a file in its place.",
    errno.EFBIG: "Raise this process's limit on the size of files (`ulimit -f`).",
    errno.EIO: "The disk reports an error of its own: look at the system's log, and back up what is there.",
    errno.EMFILE: "This process has too many files open: raise its limit (`ulimit -n`) and run the command again.",
    errno.ENFILE: "The system has too many files open: close programs and run the command again.",
    errno.ENAMETOOLONG: "The path is too long: use a directory with a shorter one (`--workspace`, JP_USER_DATA_DIR).",
    errno.EROFS: "The file system is read-only; `jp query --no-persist` asks without writing anything.",
    errno.ENOSPC: "Free some space on the disk and run the command again.",
    errno.EDQUOT: "Free some of your quota on the disk (`quota`) and run the command again.",
    errno.ENOENT: "It has gone meanwhile: see with `ls -ld` which directory of its path is there.",
    errno.EBUSY: "Another program uses it: end that and run the command again.",
    errno.ETXTBSY: "Another program uses it: end that and run the command again.",
    errno.ESTALE: "The network's file system has lost it: mount it again and run the command again.",
    errno.ETIMEDOUT: "The network's file system does not answer: look at its mount and run the command again.",
    errno.EMLINK: "The directory is full: move some of what is in it to another place.",
    errno.ENOMEM: "The system has no memory left: close programs and run the command again.",
    errno.EXDEV: "The two places are on different file systems: use places on one.",
}
_OTHERWISE = (
    "Look at that path with `ls -ld`, and at its file system with `df`; `jp query --no-persist` writes nothing."
)
_UNSYNCABLE = frozenset({errno.EINVAL, errno.ENOTSUP})


def failure(action: str, path: Path, error: OSError) -> StorageError:
    """The error for a call that failed; `action` such as `write`."""
    return StorageError(f"cannot {action} {str(path)!r}: {error.strerror or error}", hint=_hint(action, error.errno))


def _hint(action: str, number: int | None) -> str:
    if action == "lock" and number in _LOCKLESS:
        return (
            "Its file system has no locks (NFS without lockd): let JP_USER_DATA_DIR name a directory on a local disk, "
            "where jp keeps its locks."
        )
    if number in _DENIED and action in _READING:
        return "Check who may read it: `ls -ld` shows that of a path."
    if number in _DENIED:
        return "Check who may write there (`ls -ld`); `jp query --no-persist` asks without writing anything."
    return _OTHERWISE if number is None else _REMEDIES.get(number, _OTHERWISE)


def make_directories(path: Path, *, private: bool = False) -> None:
    """Create `path` and what is missing above it; `private` ones are for the user alone.

    Raises:
        StorageError: it could not be created.
    """
    try:
        _make_directories(path, 0o700 if private else 0o777)
    except OSError as error:
        raise failure("create", path, error) from error


def _make_directories(path: Path, mode: int) -> None:
    if path.is_dir():
        return
    if path.parent != path:
        _make_directories(path.parent, mode)
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
    """A file that did not exist before.

    Raises:
        FileExistsError: it does.
        OSError: it could not be written; nothing of it is left.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        write_all(descriptor, data)
    except BaseException:
        with contextlib.suppress(OSError):
            path.unlink()
        raise
    finally:
        os.close(descriptor)


def temporary_beside(path: Path) -> Path:
    """A hidden name in the same directory that nobody else uses."""
    return path.with_name(f".{path.name}.{os.urandom(6).hex()}.tmp")


def replace_file(path: Path, data: bytes) -> None:
    """Write `path` so that readers see what it held before, or all of `data`, and nothing else.

    Raises:
        StorageError: it could not be written; what it held before is still there.
    """
    temporary = temporary_beside(path)
    try:
        create_file(temporary, data)
        try:
            temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
    except OSError as error:
        raise failure("write", path, error) from error


def read_file(path: Path) -> bytes:
    """All of a regular file, the last link of `path` not followed: a stranger's repository may hold links to anywhere.

    Raises:
        OSError: it cannot be read, or is none (`ELOOP`).
    """
    # Without O_NONBLOCK, opening a pipe would wait for its writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        return read_all(descriptor)
    finally:
        os.close(descriptor)


def read_all(descriptor: int) -> bytes:
    """A file from its start to its end."""
    chunks: list[bytes] = []
    offset = 0
    size = os.fstat(descriptor).st_size
    while chunk := os.pread(descriptor, max(size - offset, 0) + 1, offset):
        chunks.append(chunk)
        offset += len(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def sync_descriptor(descriptor: int) -> None:
    """Have the disk keep what was written; file systems that know no such thing are left alone."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _UNSYNCABLE:
            raise


def sync_file(path: Path) -> None:
    """Have the disk keep a file that was written and closed before; one that is gone needs nothing."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        sync_descriptor(descriptor)
    finally:
        os.close(descriptor)
