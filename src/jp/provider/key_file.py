"""Keys in a file that only the user may read: where there is no keyring."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from jp.errors import ConfigurationError, StorageError

_LARGEST = 1024 * 1024
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class ReadableByOthersError(ConfigurationError):
    """The file's permissions let others read the keys."""


class KeyFile:
    """One JSON object: keys by provider."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def get(self, provider: str) -> str | None:
        """The key of a provider, None where there is none.

        Raises:
            ReadableByOthersError: others may read the file, so it is not.
            ConfigurationError: it is not what it should be.
            StorageError: it cannot be read.
        """
        return self._read().get(provider)

    def set(self, provider: str, key: str) -> None:
        """Store a key, in the place of the one that is there.

        Raises:
            ConfigurationError: the file that is there may not be used.
            StorageError: it could not be written; what was there still is.
        """
        with self._locked():
            self._write({**self._read(), provider: key})

    def remove(self, provider: str) -> bool:
        """Remove a key, or the empty text in the place of one; whether there was a key.

        Raises:
            ConfigurationError: the file that is there may not be used.
            StorageError: it could not be written.
        """
        if not self.path.exists():
            return False
        with self._locked():
            keys = dict(self._read())
            removed = keys.pop(provider, None)
            if removed is not None:
                self._write(keys)
        return bool(removed)

    def _read(self) -> Mapping[str, str]:
        try:
            data = self._content()
        except OSError as error:
            raise self._failed("read", error) from None
        try:
            return {} if data is None else msgspec.json.decode(data, type=dict[str, str])
        except (msgspec.DecodeError, RecursionError):  # its message might quote a key
            raise ConfigurationError(
                f"{str(self.path)!r} does not hold keys as jp writes them",
                hint="move it away, and store the keys again with `jp keys set PROVIDER`",
            ) from None

    def _content(self) -> bytes | None:
        try:
            # Without O_NONBLOCK, opening a pipe would wait for its writer.
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            self._check(os.fstat(descriptor))
            return os.read(descriptor, _LARGEST)
        finally:
            os.close(descriptor)

    def _check(self, status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            raise ConfigurationError(f"{str(self.path)!r} is no file", hint="move it away")
        if status.st_uid != os.geteuid():
            message = f"{str(self.path)!r} belongs to another user, so no key is taken from it"
            raise ReadableByOthersError(message, hint="move it away, or let JP_USER_DATA_DIR name a directory of yours")
        if status.st_mode & _OTHERS:
            import shlex

            message = f"others may read {str(self.path)!r}, so no key is taken from it"
            raise ReadableByOthersError(message, hint=f"chmod 600 {shlex.quote(str(self.path))}")

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Hold a lock on the directory, so that two commands do not undo each other's change."""
        import fcntl

        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self.path.parent, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise self._failed("write", error) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _write(self, keys: Mapping[str, str]) -> None:
        target = Path(os.path.realpath(self.path))
        written = target.with_name(f".{target.name}.{os.urandom(6).hex()}.tmp")
        try:
            descriptor = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(msgspec.json.format(msgspec.json.encode(keys, order="sorted"), indent=2) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            written.replace(target)
        except OSError as error:
            with suppress(OSError):
                written.unlink()
            raise self._failed("write", error) from None

    def _failed(self, action: str, error: OSError) -> StorageError:
        message = f"cannot {action} {str(self.path)!r}: {error.strerror or error}"
        return StorageError(message, hint="check its permissions and those of its directory with `ls -ld`")
