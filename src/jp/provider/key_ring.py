"""Keys in the keyring of the operating system, through the optional library `keyring`.

The library is imported only where it is asked for a key, and only if it is installed.
"""

from __future__ import annotations

from typing import Protocol, cast

from jp.errors import AuthenticationError

_SERVICE = "jp"


class KeyRingError(AuthenticationError):
    """The keyring does not do what it is asked for."""


class Ring(Protocol):
    """A backend of the library."""

    priority: float

    def get_password(self, service: str, username: str) -> str | None:
        """The text that is kept under both names."""
        ...

    def set_password(self, service: str, username: str, password: str) -> None:
        """Keep a text."""
        ...

    def delete_password(self, service: str, username: str) -> None:
        """Forget it."""
        ...


class KeyRing:
    """The keys that a working backend keeps for jp."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring

    def get(self, provider: str) -> str | None:
        """The key of a provider; None where there is none.

        Raises:
            KeyRingError: the keyring does not tell.
        """
        try:
            return self._ring.get_password(_SERVICE, provider)
        except Exception as error:  # noqa: BLE001 - backends raise what their systems do
            raise _failed("read", error) from None

    def set(self, provider: str, key: str) -> None:
        """Store a key, in the place of the one that is there.

        Raises:
            KeyRingError: the keyring does not keep it.
        """
        try:
            self._ring.set_password(_SERVICE, provider, key)
            kept = self._ring.get_password(_SERVICE, provider)
        except Exception as error:  # noqa: BLE001 - backends raise what their systems do
            raise _failed("write", error) from None
        if kept != key:
            raise KeyRingError("the keyring did not keep the key", hint=_WITHOUT)

    def remove(self, provider: str) -> bool:
        """Remove a key; whether there was one.

        Raises:
            KeyRingError: the keyring does not let it go.
        """
        if self.get(provider) is None:
            return False
        try:
            self._ring.delete_password(_SERVICE, provider)
        except Exception as error:  # noqa: BLE001 - backends raise what their systems do
            raise _failed("write", error) from None
        return True


def open_ring() -> KeyRing | None:
    """The keyring; None where the library is not installed, or finds none that works."""
    import importlib.util
    import warnings

    if importlib.util.find_spec("keyring") is None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of libraries that look for what may not be there
            import keyring

            ring = cast("Ring", keyring.get_keyring())
        works = float(ring.priority) > 0
    except Exception:  # noqa: BLE001 - finding a backend asks the system, which fails in its own ways
        return None
    return KeyRing(ring) if works else None


_WITHOUT = "unlock it, or do without: PYTHON_KEYRING_BACKEND=keyring.backends.null.Keyring"


def _failed(action: str, error: Exception) -> KeyRingError:
    # A backend's message might hold what it was to keep.
    return KeyRingError(f"cannot {action} the keyring: {type(error).__name__}", hint=_WITHOUT)
