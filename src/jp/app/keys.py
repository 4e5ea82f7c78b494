"""The stored keys of providers, for whoever asks one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jp.provider.key_storage import KeyRing, KeyStorage
    from jp.provider.keys import FoundKey


class UserKeys:
    """The stored keys. Nothing is imported or read before one is asked for, and none gets into what jp says."""

    def find(self, provider: str) -> FoundKey | None:
        """The key that is stored for a provider.

        Raises:
            JpError: what is stored may not be used, or cannot be read.
        """
        from jp.render.sanitize import keep_secret

        found = open_key_storage().find(provider)
        if found is not None:
            keep_secret(found.key)
        return found

    def may_have(self, provider: str) -> bool:
        """Return whether a key has been stored for a provider."""
        return open_key_storage().may_have(provider)


def open_key_storage() -> KeyStorage:
    """Open the storage of the user's keys: the keyring, and a file in the user's data directory.

    Raises:
        StorageError: there is no place for the user's data.
    """
    from jp.provider.key_storage import KeyFile, KeyStorage
    from jp.workspace.layout import user_data_directory

    def ring() -> KeyRing | None:
        from jp.provider.key_storage import open_ring

        return open_ring()

    return KeyStorage(KeyFile(user_data_directory() / "keys.json"), ring)
