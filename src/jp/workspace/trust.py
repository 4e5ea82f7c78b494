"""Which of a workspace's declared values the user has accepted, kept where no repository can write."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from pathlib import Path

import msgspec

from jp.workspace.files import SMALL, make_directories, read_file, replace_file
from jp.workspace.layout import path_digest
from jp.workspace.stamp import SYSTEM, Stamps, timestamp


class _Trust(msgspec.Struct, frozen=True, kw_only=True):
    root: str
    accepted: tuple[str, ...]
    trusted_at: str


_decoder = msgspec.json.Decoder(_Trust)


class TrustStore:
    """The hashes of what the user has accepted for the workspace at `root`, or for one `conversation` of it.

    A workspace is known by its path here, not by `.jp/.id`: a stranger's repository can bring any id along, and the
    same values run other files elsewhere. A store that is not `persistent` remembers in memory only.
    """

    def __init__(
        self,
        root: Path,
        *,
        user_data: Path,
        conversation: str = "",
        persistent: bool = True,
        stamps: Stamps = SYSTEM,
    ) -> None:
        self._root = root
        name = f"{path_digest(root)}-{conversation}" if conversation else path_digest(root)
        self._path = user_data / "trust" / f"{name}.json"
        self._persistent = persistent
        self._stamps = stamps
        self._remembered: frozenset[str] = frozenset()

    def accepted(self) -> frozenset[str]:
        """What was accepted so far. What cannot be read was not."""
        try:
            return self._remembered | frozenset(_decoder.decode(read_file(self._path, most=SMALL)).accepted)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return self._remembered

    def accept(self, hashes: Collection[str]) -> None:
        """Accept these, too.

        Raises:
            StorageError: it could not be written.
        """
        before = self.accepted()
        if before.issuperset(hashes):
            return
        if self._persistent:
            decision = _Trust(
                root=str(self._root).encode(errors="backslashreplace").decode(),
                accepted=tuple(sorted(before.union(hashes))),
                trusted_at=timestamp(self._stamps.now()),
            )
            make_directories(self._path.parent, private=True)
            replace_file(self._path, msgspec.json.format(msgspec.json.encode(decision), indent=2) + b"\n")
        self._remembered = self._remembered.union(hashes)

    def forget(self) -> None:
        """Accept nothing any more; what cannot be deleted stays."""
        self._remembered = frozenset()
        if self._persistent:
            with contextlib.suppress(OSError):
                self._path.unlink()
