"""A configuration file, replaced in one step by one that is valid."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from jp.config.extends import load_group
from jp.errors import ConfigurationError, StorageError

_HINT = "Check who may write there, and that the disk has room; the file is as it was."


@contextmanager
def exclusive(directory: Path) -> Generator[None]:
    """Hold a lock on a directory, so that two commands do not undo each other's edit; make it where it is missing.

    Raises:
        StorageError: it cannot be used.
    """
    import fcntl

    try:
        directory.mkdir(parents=True, exist_ok=True)
        handle = os.open(directory, os.O_RDONLY)
    except OSError as error:
        msg = f"{str(directory)!r} cannot be used: {error.strerror}"
        raise StorageError(msg, hint=_HINT) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _check_extensions(written: Path, target: Path) -> None:
    """Refuse a file whose `extends` leads to what is not there, before it takes the place of one that could be read."""
    try:
        load_group(written, kind="user", root=None, foreign=False)
    except ConfigurationError as error:
        raise ConfigurationError(error.message.replace(str(written), str(target)), hint=error.hint) from None


def replace_file(path: Path, text: str) -> None:
    """Write a file beside `path` (where a link leads) and put it in its place, with its permissions.

    Raises:
        ConfigurationError: it extends what is not there; the file is as it was.
        StorageError: it could not be written; the file is as it was.
    """
    target = Path(os.path.realpath(path))
    written = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        written.unlink(missing_ok=True)
        handle = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(handle, "wb") as file:
            if target.exists():
                os.fchmod(file.fileno(), target.stat().st_mode & 0o777)
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        if not path.is_symlink():  # what it extends is relative to the link
            _check_extensions(written, target)
        written.replace(target)
    except ConfigurationError:
        written.unlink(missing_ok=True)
        raise
    except OSError as error:
        written.unlink(missing_ok=True)
        msg = f"{str(path)!r} could not be written: {error.strerror}"
        raise StorageError(msg, hint=_HINT) from None
