"""Open and read files and directories safely: no link is followed unseen, no pipe waited for."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from jp.errors import StorageError

if TYPE_CHECKING:
    from pathlib import Path

# Where the system has O_PATH, passing through a directory does not take the right to list it.
PASS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_child_directory(directory: int | None, name: str, flags: int = PASS) -> int:
    """Open the directory `name` in `directory`. The caller closes it.

    Raises:
        OSError: it is missing, or is no directory; a link is none (`ELOOP`).
    """
    try:
        return os.open(name, flags, dir_fd=directory)
    except NotADirectoryError:
        if flags & os.O_NOFOLLOW and stat.S_ISLNK(os.lstat(name, dir_fd=directory).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from None
        raise


def open_directory_below(base: str, names: Sequence[str], flags: int = PASS, *, base_flags: int | None = None) -> int:
    """Open the directory that `names` lead to from `base`. The caller closes it.

    Args:
        base: a directory, opened with `base_flags`, or with `flags` where these are None.
        names: names of directories, each in the one before it; none may be a link.
        flags: how each of them is opened, such as `PASS` or `LIST`.
        base_flags: such as those without `O_NOFOLLOW`, where `base` may be a link.

    Raises:
        OSError: one is missing, or is no directory; a link is none (`ELOOP`).
    """
    directory = open_child_directory(None, base, flags if base_flags is None else base_flags)
    for name in names:
        try:
            below = open_child_directory(directory, name, flags)
        finally:
            os.close(directory)
        directory = below
    return directory


_PIECE = 1 << 20
_ALREADY_OPEN = r"/dev/(stdin|fd/[0-9]+)|/proc/[^/]+/fd/[0-9]+"
_KINDS = {
    stat.S_IFIFO: (errno.ESPIPE, "it is a named pipe, not a file"),
    stat.S_IFSOCK: (errno.ENODEV, "it is a socket, not a file"),
    stat.S_IFCHR: (errno.ENODEV, "it is a device, not a file"),
    stat.S_IFBLK: (errno.ENODEV, "it is a device, not a file"),
}


def read_whole(path: str | os.PathLike[str], most: int, *, follows: bool = True, within: int | None = None) -> bytes:
    """Return all of a regular file; a relative `path` starts at the directory that is open as `within`.

    Raises:
        OSError: see `read_beginning`; also where it has more than `most` bytes (EFBIG).
    """
    descriptor, found = _open_regular(path, follows=follows, within=within)
    try:
        # The size of a file in /proc is 0 although it has content.
        data = None if found.st_size > most else _read(descriptor, most + 1, found)
    finally:
        os.close(descriptor)
    if data is None or len(data) > most:
        raise OSError(errno.EFBIG, f"it has more than {most:,} bytes")
    return data


def read_beginning(path: str | os.PathLike[str], most: int, *, follows: bool = True) -> bytes:
    """Return the first `most` bytes of a regular file, all where it has no more.

    A pipe is read to its end where the name says that this process has it open, such as a shell's `<(command)`.

    Raises:
        OSError: it cannot be read, or is something else than a file; without `follows` also where it is a link (ELOOP).
    """
    descriptor, found = _open_regular(path, follows=follows, within=None)
    try:
        return _read(descriptor, most, found)
    finally:
        os.close(descriptor)


def open_regular(path: str | os.PathLike[str], *, follows: bool = True, within: int | None = None) -> int:
    """Return a descriptor from which what `read_beginning` takes can be read; for `within` see `read_whole`.

    Raises:
        OSError: see `read_beginning`.
    """
    return _open_regular(path, follows=follows, within=within)[0]


def _open_regular(path: str | os.PathLike[str], *, follows: bool, within: int | None) -> tuple[int, os.stat_result]:
    # Without O_NONBLOCK, opening a pipe would wait for its writer; without O_NOCTTY, a terminal would become jp's.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY | (0 if follows else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags, dir_fd=within)
    except OSError as error:
        # What Linux and macOS say of a socket.
        if error.errno in {errno.ENXIO, errno.EOPNOTSUPP}:
            raise OSError(*_KINDS[stat.S_IFSOCK]) from None
        raise
    try:
        return descriptor, _checked(descriptor, os.fspath(path))
    except BaseException:
        os.close(descriptor)
        raise


def replace_cached(path: Path, data: bytes) -> None:
    """Write a file that can be made again, with its directories; readers see the earlier one or all of `data`.

    Raises:
        StorageError: it could not be written; the earlier one is unchanged.
    """
    temporary = path.with_name(f".{os.getpid()}.{os.urandom(6).hex()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(data)
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        message = f"cannot write {str(path)!r}: {error.strerror or error}"
        raise StorageError(message, hint="check its directory with `ls -ld`; `df` shows whether it is full") from None


def _checked(descriptor: int, path: str) -> os.stat_result:
    found = os.fstat(descriptor)
    kind = stat.S_IFMT(found.st_mode)
    if kind == stat.S_IFDIR:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if kind == stat.S_IFIFO and re.fullmatch(_ALREADY_OPEN, path):
        os.set_blocking(descriptor, True)
    elif kind in _KINDS:
        raise OSError(*_KINDS[kind])
    return found


def _read(descriptor: int, most: int, found: os.stat_result) -> bytes:
    chunks: list[bytes] = []
    # With one byte more than it has, a file comes in one piece, and its end shows in that.
    piece = min(found.st_size + 1, most) or _PIECE
    while most > 0 and (chunk := os.read(descriptor, min(piece, most))):
        chunks.append(chunk)
        if len(chunk) == found.st_size < piece and stat.S_ISREG(found.st_mode):
            break
        most -= len(chunk)
        piece = _PIECE
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)
