"""Which conversations there are, found without opening a stream."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec.structs import replace

from jp.conversation.ids import ConversationId
from jp.errors import StorageError
from jp.workspace.files import SMALL, failure, read_file
from jp.workspace.layout import (
    ARCHIVE,
    EVENTS,
    METADATA,
    ORIGINAL_EVENTS,
    Storage,
    conversation_id_of,
    is_in_archive,
)
from jp.workspace.metadata import Metadata, decode_metadata
from jp.workspace.stamp import timestamp


class ConversationInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a conversation without opening it.

    `last_activity` is when its log was last written, in seconds since the Unix epoch; of a conversation of the
    original JP, what its metadata says. `local` ones lie in the user's data directory though there is a workspace.
    `problem` says why its metadata could not be read. `metadata` is what the file says, but what lies in the archive
    of the original JP is archived in any case, at its last activity where nothing says when.
    """

    id: ConversationId
    directory: Path
    local: bool
    metadata: Metadata
    last_activity: float
    problem: str = ""


def directories_in(storage: Storage) -> Iterator[tuple[ConversationId, Path]]:
    """The conversations of a storage: id and directory, in no order; those in the original's archive come last.

    Of two with one id, the one that is not in the archive counts: a merge in git brings the other one back.

    Raises:
        StorageError: the storage cannot be read.
    """
    seen: set[ConversationId] = set()
    has_archive = False
    for entry in _scanned(storage.conversations):
        has_archive = has_archive or (entry.name == ARCHIVE and entry.is_dir(follow_symlinks=False))
        if (conversation_id := _id_of(entry)) is not None:
            seen.add(conversation_id)
            yield conversation_id, Path(entry.path)
    if has_archive:
        for entry in _scanned(storage.archive):
            conversation_id = _id_of(entry)
            if conversation_id is not None and conversation_id not in seen:
                yield conversation_id, Path(entry.path)


def _scanned(directory: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as found:
            return list(found)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise failure("list", directory, error) from error


def _id_of(entry: os.DirEntry[str]) -> ConversationId | None:
    conversation_id = conversation_id_of(entry.name)
    return conversation_id if conversation_id is not None and entry.is_dir(follow_symlinks=False) else None


def info_of(conversation_id: ConversationId, directory: Path, *, local: bool) -> ConversationInfo:
    """What is known of the conversation in `directory`. Damaged metadata is reported, not raised."""
    metadata, problem = Metadata(), ""
    file = directory / METADATA
    try:
        metadata = decode_metadata(read_file(file, most=SMALL), file)
    except FileNotFoundError:
        pass
    except OSError as error:
        problem = failure("read", file, error).message
    except StorageError as error:
        problem = error.message
    last_activity = _last_activity(directory, metadata)
    if metadata.archived_at is None and is_in_archive(directory):
        metadata = replace(metadata, archived_at=timestamp(int(last_activity * 1000)))
    return ConversationInfo(
        id=conversation_id,
        directory=directory,
        local=local,
        metadata=metadata,
        last_activity=last_activity,
        problem=problem,
    )


def _last_activity(directory: Path, metadata: Metadata) -> float:
    with contextlib.suppress(OSError):
        return (directory / EVENTS).stat().st_mtime
    if metadata.last_activated_at is not None:
        # A clone gives all files the same date, and the original says it itself.
        from jp.conversation.original_values import moment_of

        if (moment := moment_of(metadata.last_activated_at)) is not None:
            return moment.milliseconds / 1000
    for candidate in (directory / ORIGINAL_EVENTS, directory):
        with contextlib.suppress(OSError):
            return candidate.stat().st_mtime
    return 0.0
