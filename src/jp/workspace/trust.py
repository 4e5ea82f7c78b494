"""Which of a workspace's declared values the user has trusted, kept where no repository can write."""

from __future__ import annotations

from pathlib import Path

import msgspec

from jp.workspace.files import make_directories, read_file, replace_file
from jp.workspace.layout import path_digest
from jp.workspace.stamp import SYSTEM, Stamps, timestamp


class _Trust(msgspec.Struct, frozen=True, kw_only=True):
    root: str
    hash: str
    trusted_at: str


_decoder = msgspec.json.Decoder(_Trust)


class TrustStore:
    """The newest trust decision of the workspace at `root`.

    A workspace is known by its path here, not by `.jp/.id`: a stranger's repository can bring any id along, and the
    same values run other files elsewhere. A store that is not `persistent` remembers in memory only.
    """

    def __init__(self, root: Path, *, user_data: Path, persistent: bool = True, stamps: Stamps = SYSTEM) -> None:
        self._root = root
        self._path = user_data / "trust" / f"{path_digest(root)}.json"
        self._persistent = persistent
        self._stamps = stamps
        self._trusted: str | None = None

    def is_trusted(self, values_hash: str) -> bool:
        """Whether exactly the values with this hash were trusted last. What cannot be read was not."""
        if self._trusted is not None:
            return self._trusted == values_hash
        try:
            decision = _decoder.decode(read_file(self._path))
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return False
        return decision.hash == values_hash

    def trust(self, values_hash: str) -> None:
        """Trust the values with this hash, and no longer those before.

        Raises:
            StorageError: it could not be written.
        """
        if self._persistent:
            decision = _Trust(root=str(self._root), hash=values_hash, trusted_at=timestamp(self._stamps.now()))
            make_directories(self._path.parent, private=True)
            replace_file(self._path, msgspec.json.format(msgspec.json.encode(decision), indent=2) + b"\n")
        self._trusted = values_hash
