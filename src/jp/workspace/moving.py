"""A conversation that goes from the workspace into the user's own data, or back."""

from __future__ import annotations

from jp.workspace.forking import named_in
from jp.workspace.layout import storage_at
from jp.workspace.lifecycle import remove_conversation
from jp.workspace.listing import ConversationInfo, info_of
from jp.workspace.lock import Lock
from jp.workspace.relocation import copy_conversation, remove_leftover
from jp.workspace.workspace import Workspace, storage_of


def move_conversation(workspace: Workspace, info: ConversationInfo, lock: Lock, *, local: bool) -> ConversationInfo:
    """Move a conversation, whose lock is held, with the content that it names. The lock is released.

    What a move that was interrupted has left where it goes to is taken away first.

    Raises:
        StorageError: it could not be moved, and is where it was.
    """
    target = storage_at(workspace.root, workspace.user_data, local=local, create=True)
    source = storage_of(info, storage_at(workspace.root, workspace.user_data, local=False))
    if source == target:
        return info
    remove_leftover(target, info.id)
    blobs = named_in(workspace.read(info).entries)
    moved = copy_conversation(info.directory, source=source, target=target, blobs=blobs)
    remove_conversation(source, info.directory, stamps=workspace.stamps)
    lock.remove_file()
    lock.release()
    return info_of(info.id, moved, local=local)
