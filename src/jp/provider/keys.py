"""Keys of providers: their sources in order, and the messages for a missing or rejected key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, assert_never

import msgspec

from jp.errors import AuthenticationError, ConfigurationError
from jp.remedies import StoreKey, phrase

KeySource = Literal["environment", "keyring", "file"]

_SHOWN = 4
_SHORTEST_SHOWN = 16
"""Length from which the last characters of a key are shown; they would be too large a part of a shorter one."""


class FoundKey(msgspec.Struct, frozen=True):
    """A key and its source: `where` is the name of a variable or the path of a file. The whole key is never shown."""

    key: str
    source: KeySource
    where: str = ""

    def __repr__(self) -> str:
        """Return every field but the key."""
        return f"FoundKey({self.ending!r}, {self.source!r}, {self.where!r})"

    @property
    def ending(self) -> str:
        """The last characters of the key, to tell it from others; empty for a short key."""
        return f"…{self.key[-_SHOWN:]}" if len(self.key) >= _SHORTEST_SHOWN else ""

    @property
    def place(self) -> str:
        """The source of the key, in words."""
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
    """Keys that the user has stored; they are read only if the environment has none."""

    def find(self, provider: str) -> FoundKey | None:
        """Return the stored key of a provider.

        Raises:
            JpError: the stored key may not be used or cannot be read.
        """
        ...

    def may_have(self, provider: str) -> bool:
        """Return whether a key may be stored; this is cheap, for providers that also work without a key."""
        ...


def find_key(
    provider: str, variables: Sequence[str], *, environ: Mapping[str, str], stored: StoredKeys | None
) -> FoundKey | None:
    """Return the key of a provider: that of the first of `variables` that is set, else the stored one.

    Raises:
        ConfigurationError: the key, which is not shown, has characters that a header cannot have.
        JpError: the stored key cannot be read.
    """
    for variable in dict.fromkeys(variables):
        key = environ.get(variable, "").strip()
        if key:
            check_key(key, f"the key in {variable!r}", hint=f"export {variable}=… again")
            return FoundKey(key, "environment", variable)
    found = None if stored is None else stored.find(provider)
    if found is not None:
        check_key(found.key, f"the key in {found.place}", hint=phrase("store it again: `", StoreKey(provider), "`"))
    return found


def check_key(key: str, what: str, *, hint: str) -> None:
    """Raise for a key that a header cannot contain, without showing it.

    Raises:
        ConfigurationError: it has such characters.
    """
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ConfigurationError(f"{what} has characters that are not valid in a key", hint=hint)


def missing_key(provider: str, variable: str) -> AuthenticationError:
    """Return the error for a missing key."""
    message = f"no API key for {provider!r}: the environment variable {variable!r} is not set, and no key is stored"
    return AuthenticationError(
        message, hint=phrase("store one with `", StoreKey(provider), f"`, or export {variable}=…")
    )


def hint_for_required(provider: str, variable: str) -> str:
    """Return the hint for a server that usually needs no key and asks for one; `variable` is empty if it has none."""
    exported = f", or export {variable}=…" if variable else ""
    return phrase("it needs a key: store one with `", StoreKey(provider), f"`{exported}")


def hint_for_rejected(provider: str, found: FoundKey) -> str:
    """Return the hint for a key that the provider rejects."""
    if found.source == "environment":
        return phrase(f"check the key in {found.where}, or unset it and store one with `", StoreKey(provider), "`")
    return phrase(f"replace the key in {found.place}: `", StoreKey(provider), "`")
