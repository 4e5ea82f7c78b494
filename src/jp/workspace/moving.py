"""A conversation that goes from the workspace into the user's own data, or back."""

from __future__ import annotations

from jp.errors import StorageError
from jp.workspace.forking import named_in
from jp.workspace.layout import storage_at
from jp.workspace.lifecycle import remove_conversation
from jp.workspace.listing import ConversationInfo, info_of
from jp.workspace.lock import Lock
from jp.workspace.relocation import copy_conversation, remove_leftover, unmark
from jp.workspace.workspace import Workspace, storage_of


def move_conversation(workspace: Workspace, info: ConversationInfo, lock: Lock, *, local: bool) -> ConversationInfo:
    """Move a conversation, whose lock is held, with the content that it names. The lock is released.

    What an earlier move that was interrupted has left of it is taken away.

    Raises:
        StorageError: it could not be moved; there is one of it, where it was or where it was to be.
    """
    target = storage_at(workspace.root, workspace.user_data, local=local, create=True)
    source = storage_of(info, storage_at(workspace.root, workspace.user_data, local=False))
    if workspace.get(info.id).directory != info.directory:
        raise StorageError(f"conversation {str(info.id)!r} was moved to another place just now", hint="Run it again.")
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
