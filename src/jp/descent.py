"""Opening what is below a directory name by name, so that no link leads elsewhere, whoever swaps names meanwhile."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence

# Where the system has O_PATH, passing through a directory does not take the right to list it.
PASS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def enter(directory: int | None, name: str, flags: int = PASS) -> int:
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


def descend(base: str, names: Sequence[str], flags: int = PASS, *, base_flags: int | None = None) -> int:
    """Open the directory that `names` lead to from `base`. The caller closes it.

    Args:
        base: a directory, opened with `base_flags`, or with `flags` where these are None.
        names: names of directories, each in the one before it; none may be a link.
        flags: how each of them is opened, such as `PASS` or `LIST`.
        base_flags: such as those without `O_NOFOLLOW`, where `base` may be a link.

    Raises:
        OSError: one is missing, or is no directory; a link is none (`ELOOP`).
    """
    directory = enter(None, base, flags if base_flags is None else base_flags)
    for name in names:
        try:
            below = enter(directory, name, flags)
        finally:
            os.close(directory)
        directory = below
    return directory
