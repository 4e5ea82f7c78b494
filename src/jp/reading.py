"""Files that are read by name: whoever put something else there must not keep jp waiting, nor fill its memory."""

from __future__ import annotations

import errno
import os
import re
import stat

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
    descriptor = open_regular(path, follows=follows, within=within)
    try:
        # A file may say that it has nothing, and give something all the same.
        data = None if os.fstat(descriptor).st_size > most else _read(descriptor, most + 1)
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
    descriptor = open_regular(path, follows=follows)
    try:
        return _read(descriptor, most)
    finally:
        os.close(descriptor)


def open_regular(path: str | os.PathLike[str], *, follows: bool = True, within: int | None = None) -> int:
    """Return a descriptor from which what `read_beginning` takes can be read; for `within` see `read_whole`.

    Raises:
        OSError: see `read_beginning`.
    """
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
        _check(descriptor, os.fspath(path))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check(descriptor: int, path: str) -> None:
    kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
    if kind == stat.S_IFDIR:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if kind == stat.S_IFIFO and re.fullmatch(_ALREADY_OPEN, path):
        os.set_blocking(descriptor, True)
    elif kind in _KINDS:
        raise OSError(*_KINDS[kind])


def _read(descriptor: int, most: int) -> bytes:
    chunks: list[bytes] = []
    # With one byte more than it has, a file comes in one piece.
    piece = min(os.fstat(descriptor).st_size + 1, most) or _PIECE
    while most > 0 and (chunk := os.read(descriptor, min(piece, most))):
        chunks.append(chunk)
        most -= len(chunk)
        piece = _PIECE
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)
