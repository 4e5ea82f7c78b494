"""What the user has stored: in the keyring where there is one, else in a file."""

from __future__ import annotations

from collections.abc import Callable

from jp.provider.key_file import KeyFile
from jp.provider.key_ring import KeyRing, KeyRingError
from jp.provider.keys import FoundKey


class KeyStorage:
    """The `StoredKeys` of a user. `open_ring` is called once, when the first key is asked for or stored.

    That a key is in the keyring is noted in the file, under an empty text: a keyring takes long to be asked.
    """

    def __init__(self, file: KeyFile, open_ring: Callable[[], KeyRing | None]) -> None:
        self._file = file
        self._open_ring = open_ring
        self._rings: list[KeyRing | None] = []

    def find(self, provider: str) -> FoundKey | None:
        """The key that is stored for a provider: the keyring's, else the file's.

        A keyring that does not answer has none, unless the file has none either.

        Raises:
            ConfigurationError: the file may not be used, or is not what it should be.
            KeyRingError: it does not answer, and the file has no key.
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
        """Whether a key has been stored for a provider, as far as the file says.

        Raises:
            ConfigurationError: the file may not be used, or is not what it should be.
            StorageError: it cannot be read.
        """
        return self._file.get(provider) is not None

    def store(self, provider: str, key: str) -> FoundKey:
        """Store a key; where it is kept then. Another place that held one for the provider holds none any more.

        Raises:
            ConfigurationError: the file may not be used, or is not what it should be.
            KeyRingError: the keyring holds another key, and does not take this one.
            StorageError: it could not be stored.
        """
        if self._is_in_ring(provider, key):
            self._file.set(provider, "")
            return FoundKey(key, "keyring")
        self._file.set(provider, key)
        return FoundKey(key, "file", str(self._file.path))

    def remove(self, provider: str) -> list[str]:
        """Remove a key wherever it is stored; the places in words, none where there was none.

        Raises:
            ConfigurationError: the file may not be used, or is not what it should be.
            KeyRingError: the keyring does not answer.
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
        """Whether the keyring took the key.

        Raises:
            KeyRingError: it did not and holds another one, which would be used.
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
