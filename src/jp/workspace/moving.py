"""A conversation that goes from the workspace into the user's own data, or back; or out of the original's archive."""

from __future__ import annotations

from msgspec.structs import replace

from jp.errors import StorageError
from jp.workspace.layout import is_in_archive, storage_at
from jp.workspace.lifecycle import named_in, remove_conversation
from jp.workspace.listing import ConversationInfo, info_of
from jp.workspace.lock import Lock
from jp.workspace.metadata import read_metadata
from jp.workspace.relocation import copy_conversation, leave_archive, remove_leftover, unmark
from jp.workspace.workspace import Workspace, storage_of


def move_conversation(workspace: Workspace, info: ConversationInfo, lock: Lock, *, local: bool) -> ConversationInfo:
    """Move a conversation, whose lock is held, with the content that it names. The lock is released.

    What an earlier move that was interrupted has left of it is taken away.

    Raises:
        StorageError: it could not be moved; there is one of it, where it was or where it was to be.
    """
    target = storage_at(workspace.root, workspace.user_data, local=local, create=True)
    source = storage_of(info, storage_at(workspace.root, workspace.user_data, local=False))
    _check_still_there(workspace, info)
    unmark(info.directory)
    if source == target:
        remove_leftover(storage_at(workspace.root, workspace.user_data, local=not local), info.id)
        return info
    remove_leftover(target, info.id)
    blobs = named_in(workspace.read(info).entries)
    moved = copy_conversation(info.directory, source=source, target=target, blobs=blobs)
    remove_conversation(source, info.directory, stamps=workspace.stamps)
    lock.remove_file()
    lock.release()
    return info_of(info.id, moved, local=local)


def unarchive_conversation(workspace: Workspace, info: ConversationInfo, lock: Lock) -> ConversationInfo:
    """Bring back a conversation, whose lock is held. Out of the original's archive it is moved: the lock is released.

    Raises:
        StorageError: its metadata is damaged, or something could not be written; it is archived as before.
    """
    _check_still_there(workspace, info)
    if read_metadata(info.directory).archived_at is not None:
        info = workspace.update_metadata(info, lock, lambda before: replace(before, archived_at=None))
    if not is_in_archive(info.directory):
        return info
    source = storage_of(info, storage_at(workspace.root, workspace.user_data, local=False))
    moved = leave_archive(info.directory, source)
    lock.remove_file()
    lock.release()
    return info_of(info.id, moved, local=info.local)


def _check_still_there(workspace: Workspace, info: ConversationInfo) -> None:
    if workspace.get(info.id).directory != info.directory:
        raise StorageError(f"conversation {str(info.id)!r} was moved to another place just now", hint="Run it again.")
