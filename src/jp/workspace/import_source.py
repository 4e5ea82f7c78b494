"""Conversations that lie elsewhere, found and read to be imported; nothing of them is changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from jp.conversation.entries import AnyEntry
from jp.conversation.ids import ConversationId
from jp.conversation.original_values import moment_of
from jp.errors import UsageError
from jp.workspace.blobs import BlobStore, DiskBlobs
from jp.workspace.files import failure, read_file
from jp.workspace.forking import named_in
from jp.workspace.layout import (
    ARCHIVE,
    BASE_CONFIG,
    EVENTS,
    MARKER,
    METADATA,
    ORIGINAL_EVENTS,
    Storage,
    conversation_id_of,
    storage_directory,
)
from jp.workspace.metadata import Metadata, decode_metadata
from jp.workspace.original import read_original
from jp.workspace.store import parse_log, read_base_config

_LOGS = (EVENTS, ORIGINAL_EVENTS)


class ImportSource(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation that was read whole. `files` are its files as they are, a torn last line of the log left out.

    `since` is when it was created, in deciseconds since the Unix epoch, None where nothing says so; its `id` is None
    where its directory is not named after one. `named` are the checksums of content that lies in `blobs`.
    """

    directory: Path
    id: ConversationId | None
    since: int | None
    files: Mapping[str, bytes]
    metadata: Metadata
    named: frozenset[str]
    blobs: BlobStore
    modified_ns: int

    @property
    def log(self) -> str:
        """The name of the file that counts."""
        return EVENTS if EVENTS in self.files else ORIGINAL_EVENTS


def find_sources(path: Path) -> list[Path]:
    """The directories of conversations that `path` means: itself, or what it holds, if it is a workspace or the like.

    Raises:
        UsageError: there is none.
        StorageError: it cannot be looked into.
    """
    if not path.is_dir():
        what = "is not a directory" if path.exists() else "does not exist"
        hint = "Name the directory of a conversation, or one that holds several, such as a workspace."
        raise UsageError(f"{str(path)!r} {what}", hint=hint)
    if _is_conversation(path):
        return [path]
    for place in (path / MARKER / "conversations", path / "conversations", path):
        if found := [*_conversations_in(place), *_conversations_in(place / ARCHIVE)]:
            return found
    hint = f"The directory of a conversation holds {EVENTS!r}, or {ORIGINAL_EVENTS!r} of the original JP."
    raise UsageError(f"{str(path)!r} holds no conversation", hint=hint)


def _conversations_in(place: Path) -> list[Path]:
    try:
        return sorted(path for path in place.iterdir() if not path.name.startswith(".") and _is_conversation(path))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise failure("list", place, error) from error


def _is_conversation(directory: Path) -> bool:
    return any((directory / name).is_file() for name in _LOGS)


def read_source(directory: Path) -> ImportSource:
    """Read a conversation with all that is said of it.

    Raises:
        StorageError: a file cannot be read, or is malformed.
    """
    files = {name: data for name in (METADATA, BASE_CONFIG, *_LOGS) if (data := _read(directory / name)) is not None}
    metadata = decode_metadata(files.get(METADATA, b""), directory / METADATA)
    read_base_config(directory)
    entries, log = _entries(directory, files)
    conversation = conversation_id_of(directory.name)
    name = EVENTS if EVENTS in files else ORIGINAL_EVENTS
    return ImportSource(
        directory=directory,
        id=conversation,
        since=_created(entries) if conversation is None else conversation.deciseconds,
        files=files if log is None else {**files, EVENTS: log},
        metadata=metadata,
        named=frozenset(named_in(entries)),
        blobs=DiskBlobs(Storage(storage_directory(directory.absolute()), private=False).blobs),
        modified_ns=_modified(directory / name),
    )


def _entries(directory: Path, files: Mapping[str, bytes]) -> tuple[Sequence[AnyEntry], bytes | None]:
    """The entries, and the whole lines of the log where there is one."""
    if EVENTS not in files:
        return read_original(directory, read_base_config), None
    data = files[EVENTS]
    parsed = parse_log(data, directory / EVENTS)
    return parsed.entries, data[: parsed.end] + (b"" if parsed.terminated else b"\n")


def _created(entries: Sequence[AnyEntry]) -> int | None:
    moments = (moment_of(entry.at) for entry in entries[:2])
    found = [moment.milliseconds // 100 for moment in moments if moment is not None and moment.milliseconds]
    return found[0] if found else None


def _modified(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError as error:
        raise failure("read", path, error) from error


def _read(path: Path) -> bytes | None:
    try:
        return read_file(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise failure("read", path, error) from error
