"""Opening a file inside a directory, and none outside, even while somebody swaps directories for links."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec

from jp.errors import JpError

_DIRECTORY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, a FIFO that took the file's place after it was looked at would block for ever.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class FileAccessError(JpError):
    """A file is missing, out of bounds or of a kind that is not read."""


class ConfinedFile(msgspec.Struct, frozen=True, kw_only=True):
    """An open regular file; who gets it closes `descriptor`.

    `path` is absolute, free of symlinks and as the file system spells it; `relative` is the same from the root.
    """

    descriptor: int
    path: bytes
    relative: bytes
    size: int


def open_confined(root: Path, path: str) -> ConfinedFile:
    """Open the regular file `path`, which is absolute or relative to `root`, for reading.

    Symlinks are followed as long as they stay inside `root`. Whatever becomes a link after that is refused: each
    directory is opened relative to the one before it.

    Raises:
        FileAccessError: the path leaves `root`, or names nothing, a directory or a device.
    """
    base, target = _resolved(root, path)
    prefix = base.rstrip(b"/") + b"/"
    if target == base:
        raise FileAccessError(f"{path!r} is a directory")
    if not target.startswith(prefix):
        raise FileAccessError(f"{path!r} is outside of {str(root)!r}, where files may be read")
    relative = target.removeprefix(prefix)
    try:
        descriptor, size = _open_below(base, relative.split(b"/"), path)
    except FileNotFoundError:
        raise FileAccessError(f"there is no file {path!r}") from None
    except OSError as error:
        raise FileAccessError(f"cannot read {path!r}: {error.strerror}") from None
    return ConfinedFile(descriptor=descriptor, path=_as_spelled(target, descriptor), relative=relative, size=size)


def _resolved(root: Path, path: str) -> tuple[bytes, bytes]:
    if "\0" in path:
        raise FileAccessError(f"{path!r} is not a path")
    try:
        base = os.path.realpath(os.fsencode(root))
        return base, os.path.realpath(os.path.join(base, os.fsencode(path)))  # noqa: PTH118  paths are bytes here
    except UnicodeEncodeError:
        raise FileAccessError(f"{path!r} is not a path") from None


def _open_below(base: bytes, names: list[bytes], shown: str) -> tuple[int, int]:
    directory = os.open(base, _DIRECTORY)
    try:
        for name in names[:-1]:
            child = os.open(name, _DIRECTORY, dir_fd=directory)
            os.close(directory)
            directory = child
        # A device is not even opened: that alone can have an effect.
        _require_regular(os.stat(names[-1], dir_fd=directory, follow_symlinks=False), shown)
        descriptor = os.open(names[-1], _FILE, dir_fd=directory)
    finally:
        os.close(directory)
    try:
        return descriptor, _require_regular(os.fstat(descriptor), shown)
    except FileAccessError:
        os.close(descriptor)
        raise


def _require_regular(status: os.stat_result, shown: str) -> int:
    if stat.S_ISDIR(status.st_mode):
        raise FileAccessError(f"{shown!r} is a directory")
    if not stat.S_ISREG(status.st_mode):
        raise FileAccessError(f"{shown!r} is not a regular file")
    return status.st_size


def _as_spelled(path: bytes, descriptor: int) -> bytes:
    """`path` as its file system spells it, in NFC where that form names the same file."""
    import fcntl

    # Only macOS has it: its names differ in case and Unicode form from what finds them.
    get_path: int | None = getattr(fcntl, "F_GETPATH", None)
    if get_path is not None:
        path = fcntl.fcntl(descriptor, get_path, bytes(1024)).rstrip(b"\0")
    if path.isascii():
        return path
    from unicodedata import normalize

    composed = os.fsencode(normalize("NFC", os.fsdecode(path)))
    try:
        same = composed == path or os.path.samestat(os.stat(composed), os.fstat(descriptor))  # noqa: PTH116  bytes
    except OSError:
        return path
    return composed if same else path
