"""Conversations of the original JP, read from its files, which are never written."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from jp.config.stored import OriginalSettings
from jp.conversation.entries import AnyEntry, JsonObject, Original
from jp.conversation.ids import ConversationId
from jp.conversation.original import MalformedOriginalError, convert
from jp.errors import StorageError
from jp.workspace.files import failure, read_file
from jp.workspace.layout import ORIGINAL_EVENTS, conversation_id_of


class OriginalDamagedError(StorageError):
    """A file of the original's does not hold what it should."""


def read_original(directory: Path, base_config: Callable[[Path], JsonObject]) -> list[AnyEntry]:
    """The entries of the conversation in `directory`, with a header; content is inline.

    Raises:
        FileNotFoundError: there is no conversation of the original's.
        NotADirectoryError: it is no directory.
        StorageError: it cannot be read, or is malformed.
    """
    path = directory / ORIGINAL_EVENTS
    data = _read(path)
    conversation = conversation_id_of(directory.name) or ConversationId.at(0)
    try:
        return convert(data, conversation, OriginalSettings(base_config(directory)))
    except MalformedOriginalError as error:
        hint = "Mend the file by hand or restore it from a copy; jp never skips a part of a conversation."
        raise OriginalDamagedError(f"{str(path)!r}: {error.message}", hint=hint) from None


def has_changed(path: Path, original: Original, *, since: Path) -> bool:
    """Whether the file at `path` is no longer the one that the log `since` was converted from; not where it is gone."""
    try:
        found = path.stat()
        if found.st_size != original.size:
            return True
        # Who writes a file of the same size gives it a new date, and reading it would cost more than the log.
        is_newer = found.st_mtime_ns > since.stat().st_mtime_ns
        return is_newer and hashlib.sha256(_read(path)).hexdigest() != original.sha256
    except (OSError, StorageError):
        return False


def _read(path: Path) -> bytes:
    try:
        return read_file(path)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise failure("read", path, error) from error
