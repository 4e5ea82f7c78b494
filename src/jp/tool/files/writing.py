"""Writing a file so that nobody ever sees half of it: aside first, then in its place by one step."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from threading import Lock

from jp.tool.files.opening import Content, read_in, require_regular, status_of
from jp.tool.files.territory import FileAccessError, Place

REPLACING = Lock()
"""Held from the last look at a file to its replacement: other calls replace files too."""

_ASIDE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def create(directory: int, place: Place, data: bytes) -> None:
    """Write a file that is not there yet, with the permissions that new files have.

    Raises:
        FileAccessError: something is there.
        OSError: the operating system refuses.
    """
    name = place.names[-1]
    with _aside(directory, data, 0o666) as aside:
        try:
            put_where_nothing_is(directory, aside, directory, name)
        except FileExistsError:
            raise FileAccessError(f"{place.written!r} was created meanwhile, so nothing was written") from None


def replace(directory: int, place: Place, data: bytes, *, known: Content) -> None:
    """Write a file anew, with the permissions and, where that is allowed, the owner that it has.

    Raises:
        FileAccessError: it is not what is `known` of it any more: then it stays as it is.
        OSError: the operating system refuses.
    """
    name = place.names[-1]
    # Putting another file in its place would not need the right to write to it.
    if not os.access(name, os.W_OK, dir_fd=directory):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    with _aside(directory, data, 0o600) as aside:
        _give(directory, aside, known)
        with REPLACING:
            if read_in(directory, place).data != known.data:
                raise FileAccessError(f"{place.written!r} was changed meanwhile, so nothing was written; read it again")
            os.rename(aside, name, src_dir_fd=directory, dst_dir_fd=directory)


def put_where_nothing_is(source: int, name: str, target: int, new_name: str) -> None:
    """Give a file another name, and never to another file's cost.

    Raises:
        FileExistsError: the name is taken.
        OSError: the operating system refuses.
    """
    try:
        os.link(name, new_name, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:
        # There are file systems without links: take the name first, then put the file there.
        os.close(os.open(new_name, _ASIDE, 0o600, dir_fd=target))
        try:
            os.rename(name, new_name, src_dir_fd=source, dst_dir_fd=target)
        except OSError:
            os.unlink(new_name, dir_fd=target)
            raise
    else:
        _take_away(source, name, target, new_name)


def _take_away(source: int, name: str, target: int, new_name: str) -> None:
    """Take the first of a file's two names, and where that is refused the second: it never keeps both."""
    try:
        os.unlink(name, dir_fd=source)
    except FileNotFoundError:  # somebody else took it away; the file has its new name
        return
    except OSError:
        os.unlink(new_name, dir_fd=target)
        raise


def put_over(source: int, name: str, target: int, place: Place) -> None:
    """Give a file the name of another one, which is lost.

    Raises:
        FileAccessError: what has the name is no regular file.
        OSError: the operating system refuses.
    """
    status = status_of(target, place.names[-1])
    if status is not None:
        require_regular(status, place)
    os.rename(name, place.names[-1], src_dir_fd=source, dst_dir_fd=target)


@contextmanager
def _aside(directory: int, data: bytes, mode: int) -> Generator[str]:
    """A new file with `data` under a name of its own, which is gone afterwards if it still has that name."""
    name = f".jp-{os.urandom(6).hex()}.tmp"
    descriptor = os.open(name, _ASIDE, mode, dir_fd=directory)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123  a descriptor has no path
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        yield name
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=directory)


def _give(directory: int, name: str, known: Content) -> None:
    """Make owner and permissions of a new file those that are `known`."""
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    try:
        status = os.fstat(descriptor)
        mode = known.mode
        if (status.st_uid, status.st_gid) != (known.owner, known.group):
            try:
                os.fchown(descriptor, known.owner, known.group)
            except OSError:
                # Whose file it becomes, theirs must not be the rights that were somebody else's.
                mode &= ~(stat.S_ISUID | stat.S_ISGID)
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)
