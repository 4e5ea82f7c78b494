"""What servers have said of their tools, kept by the configuration of the server. Losing it loses nothing.

A request goes out with what is kept here, while the server is being started beside it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from jp.config.tools import McpServerConfig
from jp.errors import StorageError
from jp.mcp.definitions import Listing
from jp.reading import read_beginning

_VERSION = 1
_LARGEST = 8 * 1024 * 1024


class _File(msgspec.Struct, frozen=True, kw_only=True):
    version: int
    listing: msgspec.Raw


def fingerprint(config: McpServerConfig, directory: Path) -> str:
    """What tells the configuration of a server from another one, as the name of a file.

    A program that is started in another `directory` may be another one. Values of variables and headers are no part
    of it: they are secrets, and change.
    """
    import hashlib

    identity = (
        config.command,
        config.arguments,
        sorted(config.variables),
        sorted(config.environment),
        config.url,
        sorted(config.headers),
        sorted(config.headers_env.items()),
        "" if config.command is None else os.fsencode(directory).hex(),
    )
    return hashlib.sha256(msgspec.json.encode(identity)).hexdigest()


class ListingCache:
    """The listings in a directory, which need not exist."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def path(self, key: str) -> Path:
        """Where the listing of a server is; `key` is its fingerprint."""
        return self._directory / f"{key}.json"

    def read(self, key: str) -> Listing | None:
        """What is kept of a server; None where that is nothing, or cannot be read."""
        try:
            data = read_beginning(self.path(key), _LARGEST + 1)
            stored = msgspec.json.decode(data, type=_File)
            return msgspec.json.decode(stored.listing, type=Listing) if stored.version == _VERSION else None
        except (OSError, ValueError, RecursionError):  # msgspec's errors are ValueErrors
            return None

    def write(self, key: str, listing: Listing) -> None:
        """Keep a listing in the place of the one that is there.

        Raises:
            StorageError: it could not be written; what was there still is.
        """
        path = self.path(key)
        temporary = path.with_name(f".{os.getpid()}.{os.urandom(6).hex()}.tmp")
        stored = _File(version=_VERSION, listing=msgspec.Raw(msgspec.json.encode(listing)))
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
