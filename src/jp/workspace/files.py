"""Changes on disk that happen whole or not at all, and the words for those that fail."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

from jp.errors import StorageError
from jp.reading import read_whole

_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
_DENIED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_READING = frozenset({"read", "list"})
_REMEDIES = {
    errno.EISDIR: "A directory lies where a file has to be: move it away.",
    errno.EEXIST: "A file lies where a directory has to be: move it away.",
    errno.ENOTDIR: "A file lies where a directory has to be: move it away, or let JP_USER_DATA_DIR name another place.",
    errno.ELOOP: "It is a link, and jp follows none here: put the file itself in its place.",
    errno.ESPIPE: "It is a pipe: put a file in its place.",
    errno.ENODEV: "Put a file in its place.",
}
LARGEST = 2 * 1024 * 1024 * 1024
"""How many bytes a log, or the content of a blob, may have to be read."""

SMALL = 16 * 1024 * 1024
"""How many any other file of a workspace may have."""

_TOO_LARGE_TO_READ = "Nothing that jp writes is that large: move it away, or restore it from a copy."
_TOO_LARGE_TO_WRITE = "Raise this process's limit on the size of files (`ulimit -f`)."
_UNSYNCABLE = frozenset({errno.EINVAL, errno.ENOTSUP})


def failure(action: str, path: Path, error: OSError) -> StorageError:
    """The error for a call that failed; `action` such as `write`."""
    return StorageError(f"cannot {action} {str(path)!r}: {error.strerror or error}", hint=_hint(action, error.errno))


def _hint(action: str, number: int | None) -> str:
    if number in _SPACE:
        return "Free some space on the disk and run the command again."
    if number == errno.EFBIG:
        return _TOO_LARGE_TO_READ if action in _READING else _TOO_LARGE_TO_WRITE
    if number in _DENIED and action in _READING:
        return "Check who may read it: `ls -ld` shows that of a path."
    if number in _DENIED:
        return "Check who may write there (`ls -ld`); `jp query --no-persist` asks without writing anything."
    if number == errno.EIO:
        return "The disk reports an error of its own: look at the system's log, and back up what is there."
    return "" if number is None else _REMEDIES.get(number, "")


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


def read_file(path: Path, *, most: int = LARGEST) -> bytes:
    """All of a regular file, the last link of `path` not followed: a stranger's repository may hold links to anywhere.

    Raises:
        OSError: it cannot be read, is none, or has more than `most` bytes (`EFBIG`).
    """
    return read_whole(path, most, follows=False)


def read_all(descriptor: int) -> bytes:
    """A file from its start to its end.

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
