"""Moves of a conversation between the workspace and the user's data directory that lose nothing in a crash.

All of it is copied and on the disk before the new directory appears, in one step; then the old one goes. In between,
a mark in the old directory says which of the two counts: where both are there, the one without it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from jp.conversation.ids import ConversationId
from jp.errors import StorageError
from jp.workspace.blobs import DiskBlobs
from jp.workspace.files import create_file, make_directories, read_file, storage_errors, sync_file
from jp.workspace.layout import MOVED, Storage, is_in_archive
from jp.workspace.listing import directories_in

Found = tuple[ConversationId, Path, bool]
"""A conversation, its directory, and whether that is local."""


def without_leftovers(found: Sequence[Found]) -> list[Found]:
    """Return the directories that count: of two with one id not the one that was moved away and not removed yet."""
    ids = [conversation_id for conversation_id, _, _ in found]
    if len(set(ids)) == len(ids):
        return list(found)
    return [item for item in found if ids.count(item[0]) == 1 or not is_marked(item[1])]


def is_marked(directory: Path) -> bool:
    """Return whether somebody began to move the conversation in `directory` away."""
    return (directory / MOVED).exists()


def unmark(directory: Path) -> None:
    """Take back the mark of a move that never came to its end.

    Raises:
        StorageError: that was not possible.
    """
    with storage_errors("write", directory / MOVED):
        (directory / MOVED).unlink(missing_ok=True)


def remove_leftover(storage: Storage, conversation_id: ConversationId) -> None:
    """Take away what is left of a conversation that was moved from `storage` and is coming back."""
    for found, directory in directories_in(storage):
        if found == conversation_id and is_marked(directory):
            shutil.rmtree(directory, ignore_errors=True)


def copy_conversation(directory: Path, *, source: Storage, target: Storage, blobs: Iterable[str]) -> Path:
    """Copy a conversation and the `blobs` that it names to another storage, where it counts from then on.

    Its lock must be held. The old directory is still there, marked.

    Raises:
        StorageError: content is missing, or something could not be written; everything is as before.
    """
    old, new = (DiskBlobs(storage.blobs, private=storage.private) for storage in (source, target))
    new.adopt_all(blobs, old)
    moved = (target.archive if is_in_archive(directory) else target.conversations) / directory.name
    make_directories(moved.parent, private=target.private)
    _check_free(moved)
    reserved = target.conversations / f".{directory.name.partition('-')[0]}.new"
    shutil.rmtree(reserved, ignore_errors=True)
    try:
        with storage_errors("move", directory):
            _copy(directory, reserved, mode=0o700 if target.private else 0o777)
            _appear(directory, reserved, moved)
    except BaseException:
        shutil.rmtree(reserved, ignore_errors=True)
        if not moved.exists():
            with contextlib.suppress(StorageError):
                unmark(directory)
        raise
    return moved


def leave_archive(directory: Path, storage: Storage) -> Path:
    """Bring a conversation out of the original's archive, in one step. Its lock must be held.

    Raises:
        StorageError: that was not possible; it lies where it was.
    """
    moved = storage.conversations / directory.name
    _check_free(moved)
    with storage_errors("move", directory):
        directory.rename(moved)
    return moved


def _check_free(path: Path) -> None:
    if os.path.lexists(path):
        raise StorageError(f"{str(path)!r} is in the way", hint="look at it, and move it away by hand")


def _appear(directory: Path, reserved: Path, moved: Path) -> None:
    create_file(directory / MOVED, b"This conversation was moved; jp removes what is left of it here.\n")
    sync_file(directory)
    reserved.rename(moved)
    sync_file(moved.parent)


def _copy(source: Path, target: Path, *, mode: int) -> None:
    """Copy a directory, links as links, with the times of its files, and flush it to disk."""
    target.mkdir(mode)
    with os.scandir(source) as found:
        entries = list(found)
    for entry in entries:
        copy = target / entry.name
        if entry.name == MOVED:
            continue
        if entry.is_symlink():
            copy.symlink_to(Path(entry.path).readlink())
        elif entry.is_dir():
            _copy(Path(entry.path), copy, mode=mode)
        else:
            create_file(copy, read_file(Path(entry.path)))
            times = entry.stat()
            os.utime(copy, ns=(times.st_atime_ns, times.st_mtime_ns))
            sync_file(copy)
    sync_file(target)
