"""What providers say of their models, in one form, kept in small files."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from jp.errors import StorageError
from jp.provider.listing import Listed
from jp.reading import read_beginning


class Catalogue(msgspec.Struct, frozen=True, kw_only=True):
    """All that a provider listed, when (`at`, RFC 3339 UTC), and at which address."""

    provider: str
    base_url: str
    at: str
    models: tuple[Listed, ...]
    skipped: int = 0

    def find(self, name: str) -> Listed | None:
        """The model that the provider knows by a name."""
        return next((model for model in self.models if name == model.id or name in model.aliases), None)


_VERSION = 1
_LARGEST = 32 * 1024 * 1024


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a provider, if anything; `problem` says why something that is there does not count."""

    catalogue: Catalogue | None = None
    problem: str = ""


class _File(msgspec.Struct, frozen=True, kw_only=True):
    version: int
    catalogue: msgspec.Raw


class CatalogueStore:
    """The catalogues in a directory, which need not exist."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def path(self, provider: str) -> Path:
        """Where the catalogue of a provider is; a server may have any name."""
        from urllib.parse import quote

        return self._directory / f"{quote(provider, safe='')}.json"

    def read(self, provider: str, base_url: str) -> Kept:
        """What is kept of a provider at an address. A list of what another address has says nothing of this one."""
        path = self.path(provider)
        try:
            data = read_beginning(path, _LARGEST)
        except FileNotFoundError:
            return Kept()
        except OSError as error:
            return Kept(problem=f"{str(path)!r} cannot be read: {error.strerror or error}")
        try:
            stored = msgspec.json.decode(data, type=_File)
            if stored.version != _VERSION:
                return Kept(problem=f"{str(path)!r} was written by another version of jp")
            catalogue = msgspec.json.decode(stored.catalogue, type=Catalogue)
        except (ValueError, RecursionError):  # msgspec's errors are ValueErrors
            return Kept(problem=f"{str(path)!r} is not what jp writes there")
        is_meant = (catalogue.provider, catalogue.base_url) == (provider, base_url)
        return Kept(catalogue=catalogue) if is_meant else Kept()

    def write(self, catalogue: Catalogue) -> None:
        """Keep a catalogue in the place of the one that is there.

        Raises:
            StorageError: it could not be written; what was there still is.
        """
        path = self.path(catalogue.provider)
        temporary = path.with_name(f".{os.getpid()}.{os.urandom(6).hex()}.tmp")
        stored = _File(version=_VERSION, catalogue=msgspec.Raw(msgspec.json.encode(catalogue)))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(msgspec.json.encode(stored))
            temporary.replace(path)
        except OSError as error:
            with suppress(OSError):
                temporary.unlink()
            message = f"cannot write {str(path)!r}: {error.strerror or error}"
            raise StorageError(
                message, hint="check its directory with `ls -ld`; `df` shows whether it is full"
            ) from None
