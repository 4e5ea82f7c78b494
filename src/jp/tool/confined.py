"""Opening a file inside a directory, and none outside, even while somebody swaps directories for links."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Protocol

import msgspec

from jp.errors import JpError

_DIRECTORY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, a FIFO that took the file's place after it was looked at would block for ever.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class FileAccessError(JpError):
    """A file is missing, out of bounds or of a kind that is not read."""


class FileNames(Protocol):
    """How names are spelled: the same as for attachments, so that one file has one URI, whoever read it."""

    def real_path(self, path: str) -> str:
        """`path`, which is absolute, without symlinks, each name as its directory lists it.

        Raises:
            OSError: a name is too long.
        """
        ...

    def uri(self, path: str) -> str:
        """The canonical URI of a real path."""
        ...


class ConfinedFile(msgspec.Struct, frozen=True, kw_only=True):
    """An open regular file; who gets it closes `descriptor`.

    `path` is its real path, `relative` the same from the root.
    """

    descriptor: int
    path: str
    relative: str
    size: int


def open_confined(root: Path, path: str, names: FileNames) -> ConfinedFile:
    """Open the regular file `path`, which is absolute or relative to `root`, for reading.

    Symlinks are followed as long as they stay inside `root`. Whatever becomes a link after that is refused: each
    directory is opened relative to the one before it.

    Raises:
        FileAccessError: the path leaves `root`, or names nothing, a directory or a device.
    """
    try:
        base, target = _resolved(root, path, names)
        relative = target.removeprefix(base.rstrip("/") + "/")
        if target == base:
            raise FileAccessError(f"{path!r} is a directory")
        if relative == target:
            raise FileAccessError(f"{path!r} is outside of {str(root)!r}, where files may be read")
        descriptor, size = _open_below(base, relative.split("/"), path)
    except FileNotFoundError:
        raise FileAccessError(f"there is no file {path!r}") from None
    except OSError as error:
        raise FileAccessError(f"cannot read {path!r}: {error.strerror}") from None
    return ConfinedFile(descriptor=descriptor, path=target, relative=relative, size=size)


def _resolved(root: Path, path: str, names: FileNames) -> tuple[str, str]:
    try:
        is_path = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        is_path = False
    if not is_path:
        raise FileAccessError(f"{path!r} is not a path")
    base = names.real_path(str(root.absolute()))
    return base, names.real_path(str(Path(base, path)))


def _open_below(base: str, steps: list[str], shown: str) -> tuple[int, int]:
    directory = os.open(base, _DIRECTORY)
    try:
        for step in steps[:-1]:
            child = os.open(step, _DIRECTORY, dir_fd=directory)
            os.close(directory)
            directory = child
        # A device is not even opened: that alone can have an effect.
        _require_regular(os.stat(steps[-1], dir_fd=directory, follow_symlinks=False), shown)
        descriptor = os.open(steps[-1], _FILE, dir_fd=directory)
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
