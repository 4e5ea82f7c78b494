"""Keys of providers: where they come from, in which order, and what is said where there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, assert_never

import msgspec

from jp.errors import AuthenticationError, ConfigurationError

KeySource = Literal["environment", "keyring", "file"]

_SHOWN = 4
_SHORTEST_SHOWN = 16
"""Of a shorter key the last characters would be too large a part."""


class FoundKey(msgspec.Struct, frozen=True):
    """A key, and where it was found: `where` is a variable's name, or a file's path. It is never shown as a whole."""

    key: str
    source: KeySource
    where: str = ""

    def __repr__(self) -> str:
        """All but the key."""
        return f"FoundKey({self.ending!r}, {self.source!r}, {self.where!r})"

    @property
    def ending(self) -> str:
        """What tells it from other keys: its last characters, or nothing where it is short."""
        return f"…{self.key[-_SHOWN:]}" if len(self.key) >= _SHORTEST_SHOWN else ""

    @property
    def place(self) -> str:
        """Where it was found, in words."""
        match self.source:
            case "environment":
                return self.where
            case "keyring":
                return "the keyring"
            case "file":
                return repr(self.where)
            case _:
                assert_never(self.source)


class StoredKeys(Protocol):
    """Keys that the user has stored. Whoever declares it asks only where the environment has none."""

    def find(self, provider: str) -> FoundKey | None:
        """The key that is stored for a provider.

        Raises:
            JpError: what is stored may not be used, or cannot be read.
        """
        ...

    def may_have(self, provider: str) -> bool:
        """Whether it is worth asking, for whom can do without a key: this is cheap."""
        ...


def find_key(
    provider: str, variables: Sequence[str], *, environ: Mapping[str, str], stored: StoredKeys | None
) -> FoundKey | None:
    """The key of a provider: that of the first of `variables` which is set, else the stored one.

    Raises:
        ConfigurationError: it has characters that no header can carry; it is not shown.
        JpError: what is stored cannot be read.
    """
    for variable in dict.fromkeys(variables):
        key = environ.get(variable, "").strip()
        if key:
            check_key(key, f"the key in {variable!r}", hint=f"export {variable}=… again")
            return FoundKey(key, "environment", variable)
    found = None if stored is None else stored.find(provider)
    if found is not None:
        check_key(found.key, f"the key in {found.place}", hint=f"store it again: `jp keys set {provider}`")
    return found


def check_key(key: str, what: str, *, hint: str) -> None:
    """Refuse a key that no header can carry, without showing it.

    Raises:
        ConfigurationError: it has such characters.
    """
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ConfigurationError(f"{what} has characters that no key has", hint=hint)


def missing_key(provider: str, variable: str) -> AuthenticationError:
    """What is said where there is no key."""
    message = f"no API key for {provider!r}: the environment variable {variable!r} is not set, and no key is stored"
    return AuthenticationError(message, hint=f"store one with `jp keys set {provider}`, or export {variable}=…")


def hint_for_wanted(provider: str, variable: str) -> str:
    """What mends it where a server that usually needs no key wants one. `variable` is empty where it has none."""
    exported = f", or export {variable}=…" if variable else ""
    return f"it wants a key: store one with `jp keys set {provider}`{exported}"


def hint_for_rejected(provider: str, found: FoundKey) -> str:
    """What mends it where the provider does not accept a key."""
    if found.source == "environment":
        return f"check the key in {found.where}, or unset it and store one with `jp keys set {provider}`"
    return f"replace the key in {found.place}: `jp keys set {provider}`"
