"""Keys that the user has stored: in the keyring of the system, else in a private file."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol, cast

import msgspec

from jp.errors import AuthenticationError, ConfigurationError, StorageError
from jp.provider.keys import FoundKey
from jp.remedies import StoreKey, phrase

_LARGEST = 1024 * 1024
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class ReadableByOthersError(ConfigurationError):
    """The file's permissions let other users read the keys."""


class KeyFile:
    """A file with one JSON object: keys by provider."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def get(self, provider: str) -> str | None:
        """Return the key of a provider, None if there is none.

        Raises:
            ReadableByOthersError: other users may read the file, so it is not used.
            ConfigurationError: the file is malformed.
            StorageError: it cannot be read.
        """
        return self._read().get(provider)

    def set(self, provider: str, key: str) -> None:
        """Store a key, replacing the earlier one.

        Raises:
            ConfigurationError: the existing file may not be used.
            StorageError: it could not be written; the file is unchanged.
        """
        with self._locked():
            self._write({**self._read(), provider: key})

    def remove(self, provider: str) -> bool:
        """Remove a key, or the empty text that marks one in the keyring; return whether there was a key.

        Raises:
            ConfigurationError: the existing file may not be used.
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
        except (msgspec.DecodeError, RecursionError):  # the message might quote a key
            raise ConfigurationError(
                f"{str(self.path)!r} is not a valid key file",
                hint=phrase("move it away, and store the keys again with `", StoreKey("PROVIDER"), "`"),
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
            raise ConfigurationError(f"{str(self.path)!r} is not a file", hint="move it away")
        if status.st_uid != os.geteuid():
            message = f"{str(self.path)!r} belongs to another user, so its keys are not used"
            raise ReadableByOthersError(message, hint="move it away, or let JP_USER_DATA_DIR name a directory of yours")
        if status.st_mode & _OTHERS:
            import shlex

            message = f"other users may read {str(self.path)!r}, so its keys are not used"
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


_SERVICE = "jp"


class KeyRingError(AuthenticationError):
    """A failed operation of the keyring."""


class Ring(Protocol):
    """A backend of the library."""

    priority: float

    def get_password(self, service: str, username: str) -> str | None:
        """Return the text stored under both names."""
        ...

    def set_password(self, service: str, username: str, password: str) -> None:
        """Store a text."""
        ...

    def delete_password(self, service: str, username: str) -> None:
        """Delete a text."""
        ...


class KeyRing:
    """The keys of jp in a keyring backend that works."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring

    def get(self, provider: str) -> str | None:
        """Return the key of a provider; None if there is none.

        Raises:
            KeyRingError: the keyring does not respond.
        """
        try:
            return self._ring.get_password(_SERVICE, provider)
        except Exception as error:  # noqa: BLE001 - backends raise what their systems do
            raise _failed("read", error) from None

    def set(self, provider: str, key: str) -> None:
        """Store a key, replacing the earlier one.

        Raises:
            KeyRingError: the keyring did not store it.
        """
        try:
            self._ring.set_password(_SERVICE, provider, key)
            kept = self._ring.get_password(_SERVICE, provider)
        except Exception as error:  # noqa: BLE001 - backends raise what their systems do
            raise _failed("write", error) from None
        if kept != key:
            raise KeyRingError("the keyring did not store the key", hint=_WITHOUT)

    def remove(self, provider: str) -> bool:
        """Remove a key, and return whether there was one.

        Raises:
            KeyRingError: the keyring did not remove it.
        """
        if self.get(provider) is None:
            return False
        try:
            self._ring.delete_password(_SERVICE, provider)
        except Exception as error:  # noqa: BLE001 - backends raise what their systems do
            raise _failed("write", error) from None
        return True


def open_ring() -> KeyRing | None:
    """Return the keyring; None if the library is not installed or finds no backend that works."""
    import importlib.util
    import warnings

    if importlib.util.find_spec("keyring") is None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # libraries warn of backends that they do not find
            import keyring

            ring = cast("Ring", keyring.get_keyring())
        works = float(ring.priority) > 0
    except Exception:  # noqa: BLE001 - finding a backend asks the system, which fails in its own ways
        return None
    return KeyRing(ring) if works else None


_WITHOUT = "unlock it, or disable it: PYTHON_KEYRING_BACKEND=keyring.backends.null.Keyring"


def _failed(action: str, error: Exception) -> KeyRingError:
    # The message of a backend might contain the key.
    return KeyRingError(f"cannot {action} the keyring: {type(error).__name__}", hint=_WITHOUT)


class KeyStorage:
    """The `StoredKeys` of a user. `open_ring` is called once, when the first key is read or stored.

    An empty text in the file marks a key that is in the keyring: a keyring is slow to read.
    """

    def __init__(self, file: KeyFile, open_ring: Callable[[], KeyRing | None]) -> None:
        self._file = file
        self._open_ring = open_ring
        self._rings: list[KeyRing | None] = []

    def find(self, provider: str) -> FoundKey | None:
        """Return the stored key of a provider: that of the keyring, else that of the file.

        The error of a keyring that does not respond is raised only if the file has no key.

        Raises:
            ConfigurationError: the file may not be used or is malformed.
            KeyRingError: the keyring does not respond, and the file has no key.
            StorageError: the file cannot be read.
        """
        failed: KeyRingError | None = None
        try:
            found = self._in_ring(provider)
        except KeyRingError as error:
            found, failed = None, error
        if found is None:
            key = self._file.get(provider)
            found = None if not key else FoundKey(key, "file", str(self._file.path))
        if found is None and failed is not None:
            raise failed
        return found

    def may_have(self, provider: str) -> bool:
        """Return whether a key has been stored for a provider, according to the file.

        Raises:
            ConfigurationError: the file may not be used or is malformed.
            StorageError: it cannot be read.
        """
        return self._file.get(provider) is not None

    def store(self, provider: str, key: str) -> FoundKey:
        """Store a key and return its location. A key of the provider in another location is removed.

        Raises:
            ConfigurationError: the file may not be used or is malformed.
            KeyRingError: the keyring has another key, and did not store this one.
            StorageError: it could not be stored.
        """
        if self._is_in_ring(provider, key):
            self._file.set(provider, "")
            return FoundKey(key, "keyring")
        self._file.set(provider, key)
        return FoundKey(key, "file", str(self._file.path))

    def remove(self, provider: str) -> list[str]:
        """Remove a key from every location; return these in words, none if there was no key.

        Raises:
            ConfigurationError: the file may not be used or is malformed.
            KeyRingError: the keyring does not respond.
            StorageError: it could not be removed.
        """
        ring = self._ring()
        places: list[str] = []
        if ring is not None and ring.remove(provider):
            places.append("the keyring")
        if self._file.remove(provider):
            places.append(repr(str(self._file.path)))
        return places

    def _is_in_ring(self, provider: str, key: str) -> bool:
        """Return whether the keyring stored the key.

        Raises:
            KeyRingError: it did not, and has another key, which would be used.
        """
        ring = self._ring()
        if ring is None:
            return False
        try:
            ring.set(provider, key)
        except KeyRingError:
            if self._has_other(provider):
                raise
            return False
        return True

    def _has_other(self, provider: str) -> bool:
        try:
            return self._in_ring(provider) is not None
        except KeyRingError:
            return False

    def _in_ring(self, provider: str) -> FoundKey | None:
        ring = self._ring()
        key = None if ring is None else ring.get(provider)
        return None if not key else FoundKey(key, "keyring")

    def _ring(self) -> KeyRing | None:
        if not self._rings:
            self._rings.append(self._open_ring())
        return self._rings[0]
