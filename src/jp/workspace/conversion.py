"""The first append to a conversation of the original JP: its log comes into being, with all that was there before."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from jp.conversation.entries import AnyEntry, ChatRequest, Header, Original, encode
from jp.conversation.resource import Carrier
from jp.conversation.thread import map_carriers
from jp.workspace.blobs import BlobStore, stored
from jp.workspace.lifecycle import new_nonce
from jp.workspace.log_file import LogFile
from jp.workspace.stamp import Stamps

C = TypeVar("C", bound=Carrier)


def unforeseeable(entry: AnyEntry, stamps: Stamps) -> AnyEntry:
    """A header with a nonce where it has none: who wrote the original's file could foresee one that is made of it."""
    return replace(entry, nonce=new_nonce(stamps)) if isinstance(entry, Header) and not entry.nonce else entry


def delivery_notices(entries: Sequence[AnyEntry]) -> tuple[str, ...]:
    """What to say where the original attached sources: running a stranger's commands again helps nobody."""
    named = [text for entry in entries for text in _declared_by(entry)]
    if not named:
        return ()
    shown = ", ".join(map(repr, dict.fromkeys(named)))
    return (f"attached before this conversation came to jp, so not again: {shown}; --attach reads a source afresh",)


def _declared_by(entry: AnyEntry) -> tuple[str, ...]:
    match entry:
        case ChatRequest(attachments=attachments) | Header(original=Original(attachments=attachments)):
            return attachments
        case _:
            return ()


class ConvertingSink:
    """Where the lines of a converted log go.

    Lines are held back until `start`, so that mending what a crash left open is no reason to write. With the first
    line after it the log is written in one step: the converted entries, what was held back, and that line.
    """

    def __init__(self, path: Path, converted: Sequence[AnyEntry], blobs: BlobStore) -> None:
        self._path = path
        self._converted = tuple(converted)
        self._blobs = blobs
        self._held: list[bytes] = []
        self._is_started = False
        self._file: LogFile | None = None

    def start(self) -> None:
        """What is appended from now on is said by somebody."""
        self._is_started = True

    def append(self, line: bytes) -> None:
        """Add a line, its newline included, whole or not at all.

        Raises:
            LockedError: another process has written the log meanwhile.
            StorageError: it could not be written.
        """
        if self._file is not None:
            self._file.append(line)
        elif self._is_started:
            self._file = LogFile.create(self._path, b"".join((*map(self._line, self._converted), *self._held, line)))
        else:
            self._held.append(line)

    def sync(self) -> None:
        """Have everything that was appended survive a power failure.

        Raises:
            OSError: the disk reports an error.
        """
        if self._file is not None:
            self._file.sync()

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()

    def _line(self, entry: AnyEntry) -> bytes:
        return encode(map_carriers(entry, self._stored)) + b"\n"

    def _stored(self, carrier: C, /) -> C:
        return stored(carrier, self._blobs)
