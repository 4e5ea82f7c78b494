"""Which conversations there are, found without opening a stream."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from jp.conversation.ids import ConversationId
from jp.errors import StorageError
from jp.workspace.files import failure, read_file
from jp.workspace.layout import EVENTS, METADATA, ORIGINAL_EVENTS, Storage, conversation_id_of
from jp.workspace.metadata import Metadata, decode_metadata


class ConversationInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a conversation without opening it.

    `last_activity` is when its log was last written, in seconds since the Unix epoch; of a conversation of the
    original JP, what its metadata says. `local` ones lie in the user's data directory though there is a workspace.
    `problem` says why its metadata could not be read.
    """

    id: ConversationId
    directory: Path
    local: bool
    metadata: Metadata
    last_activity: float
    problem: str = ""


def directories_in(storage: Storage) -> Iterator[tuple[ConversationId, Path]]:
    """The conversations of a storage: id and directory, in no order.

    Raises:
        StorageError: the storage cannot be read.
    """
    try:
        with os.scandir(storage.conversations) as found:
            entries = list(found)
    except FileNotFoundError:
        return
    except OSError as error:
        raise failure("list", storage.conversations, error) from error
    for entry in entries:
        conversation_id = conversation_id_of(entry.name)
        if conversation_id is not None and entry.is_dir(follow_symlinks=False):
            yield conversation_id, Path(entry.path)


def info_of(conversation_id: ConversationId, directory: Path, *, local: bool) -> ConversationInfo:
    """What is known of the conversation in `directory`. Damaged metadata is reported, not raised."""
    metadata, problem = Metadata(), ""
    file = directory / METADATA
    try:
        metadata = decode_metadata(read_file(file), file)
    except FileNotFoundError:
        pass
    except OSError as error:
        problem = failure("read", file, error).message
    except StorageError as error:
        problem = error.message
    return ConversationInfo(
        id=conversation_id,
        directory=directory,
        local=local,
        metadata=metadata,
        last_activity=_last_activity(directory, metadata),
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
