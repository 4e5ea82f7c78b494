"""Reading one file, as it is at this moment, without ever waiting for what is no file.

A path is opened name by name from a directory, and no name may be a link: whoever swaps a directory for a link
between the check of a path and its use gets an error, not another file.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

import msgspec

from jp.attachment.media import HEAD, may_be_sent

# Where the system has O_PATH, passing through a directory does not take the right to list it.
_PASS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Opening a pipe would wait for its writer.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CHUNK = 1024 * 1024


class NotAFileError(Exception):
    """A pipe, a socket or a device; `mode` says which."""

    def __init__(self, mode: int) -> None:
        super().__init__(mode)
        self.mode = mode


class TooLargeError(Exception):
    """More than `max_bytes`; `size` is what is known of it. `may_be_sent`: it might be text, an image or a PDF."""

    def __init__(self, size: int, *, may_be_sent: bool) -> None:
        super().__init__(size)
        self.size = size
        self.may_be_sent = may_be_sent


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What was read, and when the file had been changed last: RFC 3339, UTC; None for a time beyond the calendar."""

    data: bytes
    last_modified: str | None


class Glance(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a file that was not read: how large it says that it is, and how it begins."""

    size: int
    head: bytes


def open_below(base: str, names: Sequence[str], flags: int) -> int:
    """Open what `names` lead to from the directory `base`; no name may be a link.

    Raises:
        OSError: it is not there any more, or became a link.
    """
    if not names:
        return os.open(base, flags)
    directory = os.open(base, _PASS & ~os.O_NOFOLLOW)
    try:
        for name in names[:-1]:
            below = os.open(name, _PASS, dir_fd=directory)
            os.close(directory)
            directory = below
        return os.open(names[-1], flags, dir_fd=directory)
    finally:
        os.close(directory)


def open_directory(base: str, names: Sequence[str]) -> int:
    """Open a directory for listing. See `open_below`."""
    return open_below(base, names, _LIST)


def read(base: str, names: Sequence[str], max_bytes: int) -> Snapshot:
    """Read the regular file that `names` lead to from `base`.

    Raises:
        NotAFileError: it is no regular file.
        TooLargeError: it has more than `max_bytes` bytes; it has not been read.
        OSError: see `open_below`.
    """
    descriptor = open_below(base, names, _READ)
    try:
        status = _status(descriptor)
        if status.st_size > max_bytes:
            raise TooLargeError(status.st_size, may_be_sent=may_be_sent(os.read(descriptor, HEAD)))
        data = _content(descriptor, max_bytes)
    finally:
        os.close(descriptor)
    return Snapshot(data=data, last_modified=_moment(status.st_mtime))


def glance(base: str, names: Sequence[str]) -> Glance:
    """Look at the regular file that `names` lead to from `base`.

    Raises:
        NotAFileError: it is no regular file.
        OSError: see `open_below`.
    """
    descriptor = open_below(base, names, _READ)
    try:
        return Glance(size=_status(descriptor).st_size, head=os.read(descriptor, HEAD))
    finally:
        os.close(descriptor)


def _status(descriptor: int) -> os.stat_result:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise NotAFileError(status.st_mode)
    return status


def _content(descriptor: int, max_bytes: int) -> bytes:
    """Everything up to the end: a file may grow while it is read, and those of /proc say that they are empty."""
    chunks: list[bytes] = []
    size = 0
    while chunk := os.read(descriptor, _CHUNK):
        chunks.append(chunk)
        size += len(chunk)
        if size > max_bytes:
            raise TooLargeError(size, may_be_sent=may_be_sent(chunks[0]))
    return b"".join(chunks)


def _moment(seconds: float) -> str | None:
    from datetime import UTC, datetime

    try:
        return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return None
