"""Which conversations there are, found without opening a stream."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from jp.conversation.ids import ConversationId
from jp.errors import StorageError
from jp.file_access import LIST, open_child_directory, read_whole
from jp.workspace.files import SMALL, failure, open_directory, opened
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
    for name in directory_names(storage.conversations):
        has_archive = has_archive or name == ARCHIVE
        if (conversation_id := conversation_id_of(name)) is not None:
            seen.add(conversation_id)
            yield conversation_id, storage.conversations / name
    if has_archive:
        for name in directory_names(storage.archive):
            conversation_id = conversation_id_of(name)
            if conversation_id is not None and conversation_id not in seen:
                yield conversation_id, storage.archive / name


def directory_names(directory: Path, *, links: bool = False) -> list[str]:
    """The names of the directories in `directory`, or with `links` of the links; none where it is missing.

    Raises:
        StorageError: it cannot be listed.
    """
    try:
        with opened(directory, LIST) as descriptor, os.scandir(descriptor) as found:
            if links:
                return [entry.name for entry in found if entry.is_symlink()]
            return [entry.name for entry in found if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise failure("list", directory, error) from error


def infos_of(found: Sequence[tuple[ConversationId, Path, bool]]) -> list[ConversationInfo]:
    """What is known of these conversations, each with its directory and whether it is local; oldest first."""
    with contextlib.ExitStack() as stack:
        parents = {directory.parent for _, directory, _ in found}
        above = {parent: stack.enter_context(opened(parent)) for parent in parents if parent.is_dir()}
        infos = [
            info_of(conversation_id, directory, local=local, above=above.get(directory.parent))
            for conversation_id, directory, local in found
        ]
    return sorted(infos, key=lambda info: info.id.deciseconds)


def info_of(
    conversation_id: ConversationId, directory: Path, *, local: bool, above: int | None = None
) -> ConversationInfo:
    """What is known of the conversation in `directory`, whose parent may be open as `above`.

    Damaged metadata is reported, not raised.
    """
    metadata, problem, last_written = Metadata(), "", None
    file = directory / METADATA
    try:
        within = open_directory(directory) if above is None else open_child_directory(above, directory.name)
        try:
            last_written = _last_written(within)
            metadata = decode_metadata(read_whole(METADATA, SMALL, follows=False, within=within), file)
        finally:
            os.close(within)
    except FileNotFoundError:
        pass
    except OSError as error:
        problem = failure("read", file, error).message
    except StorageError as error:
        problem = error.message
    last_activity = _last_activity(directory, metadata) if last_written is None else last_written
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


def _last_written(directory: int) -> float | None:
    try:
        return os.stat(EVENTS, dir_fd=directory, follow_symlinks=False).st_mtime
    except OSError:
        return None


def _last_activity(directory: Path, metadata: Metadata) -> float:
    """When a conversation without a log of jp's was active last."""
    if metadata.last_activated_at is not None:
        # A clone gives all files the same date, and the original says it itself.
        from jp.conversation.original_events import moment_of

        if (moment := moment_of(metadata.last_activated_at)) is not None:
            return moment.milliseconds / 1000
    for candidate in (directory / ORIGINAL_EVENTS, directory):
        with contextlib.suppress(OSError):
            return candidate.stat(follow_symlinks=False).st_mtime
    return 0.0
