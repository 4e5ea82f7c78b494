"""Workspaces: finding them, and the conversations they hold."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from jp.conversation.entries import JsonObject
from jp.conversation.ids import ConversationId
from jp.errors import StorageError, UsageError
from jp.remedies import Show, phrase
from jp.workspace.blobs import BlobStore, DiskBlobs
from jp.workspace.files import SMALL, SYSTEM, Stamps, create_file, make_directories, read_file, storage_errors
from jp.workspace.layout import (
    MARKER,
    MOVED,
    Storage,
    conversation_id_of,
    create_id,
    explicit_root,
    find_root,
    path_digest,
    search_index_path,
    storage_at,
    storage_directory,
    storages_of,
    user_data_directory,
)
from jp.workspace.listing import (
    ConversationInfo,
    Metadata,
    directories_in,
    directory_names,
    info_of,
    infos_of,
    update_metadata,
)
from jp.workspace.lock import Lock
from jp.workspace.log import Log, open_log
from jp.workspace.session import SESSIONS, ExistingIds, Session, SessionKey
from jp.workspace.store import Stream, read_base_config, read_stream
from jp.workspace.trust import require_own

if TYPE_CHECKING:
    from jp.workspace.lifecycle import Seed

_REPLACE_LINK = "put the directory itself in its place"
_NEVER_COMMITTED = "# Written by jp.\n/.id\n*.tmp\n*.torn-*\n/conversations/.*\n"
_PRIVATE = "/conversations/\n/blobs/\n"
# Git must not change line ends: the checksum of a blob is that of its bytes.
# Branches that continued one conversation merge into a log with the turns of both.
_ATTRIBUTES = """# Written by jp.
/conversations/** -text
/conversations/**/events.jsonl -text merge=union
/blobs/** -text -diff
"""


class ConversationNotFoundError(UsageError):
    """No conversation has this id."""


class Workspace:
    """The conversations of a directory tree with a `.jp` directory, or the user's own ones outside any.

    `root` is None outside any. Writing to an existing conversation requires its lock.
    """

    def __init__(self, root: Path | None, *, user_data: Path, stamps: Stamps = SYSTEM) -> None:
        self.root = root
        self.user_data = user_data
        self.stamps = stamps
        self._shared = storage_at(root, user_data, local=False)

    def conversations(self) -> list[ConversationInfo]:
        """Return all conversations, oldest first. No log is opened.

        Raises:
            StorageError: a directory cannot be listed.
        """
        return infos_of(self._directories())

    def ids(self, wanted: Collection[ConversationId] | None = None) -> set[ConversationId]:
        """Return the ids of all conversations; of those in `wanted` only, which takes little time among many others.

        Raises:
            StorageError: a directory cannot be listed.
        """
        storages = storages_of(self.root, self.user_data)
        return {conversation_id for storage, _ in storages for conversation_id, _ in directories_in(storage, wanted)}

    def get(self, conversation_id: ConversationId) -> ConversationInfo:
        """Return the conversation with this id.

        Raises:
            ConversationNotFoundError: there is none.
            StorageError: there are several, or a directory cannot be listed.
        """
        found = [(directory, local) for _, directory, local in self._directories((conversation_id,))]
        if not found:
            self._refuse_link(conversation_id)
            msg = f"there is no conversation {str(conversation_id)!r} here"
            raise ConversationNotFoundError(
                msg, hint=phrase("list the conversations with `", Show("conversations"), "`")
            )
        if len(found) > 1:
            names = " and ".join(sorted(repr(str(directory)) for directory, _ in found))
            msg = f"several conversations have the id {str(conversation_id)!r}: {names}"
            raise StorageError(msg, hint="give one of the directories another number, a later one that is free")
        directory, local = found[0]
        return info_of(conversation_id, directory, local=local)

    def read(self, info: ConversationInfo) -> Stream:
        """Return the entries of a conversation.

        Raises:
            StorageError: the log is missing or damaged.
        """
        return read_stream(info.directory, self._blobs(info))

    def base_config(self, info: ConversationInfo) -> JsonObject:
        """Return the configuration that a conversation was created with.

        Raises:
            StorageError: the file is damaged.
        """
        return read_base_config(info.directory)

    def create(
        self,
        base_config: JsonObject,
        metadata: Metadata,
        *,
        local: bool = False,
        topic: str = "",
        seed: Seed | None = None,
    ) -> ConversationInfo:
        """Create a conversation; a `local` one lies in the user's data directory. `topic` names it without a title.

        A `seed` gives it entries to start with.

        Raises:
            StorageError: it could not be written; nothing of it is left.
        """
        silo = storage_at(self.root, self.user_data, local=True, create=local)
        target, other = (silo, self._shared) if local else (self._shared, silo)
        others = [] if target == other else [other]
        from jp.workspace.lifecycle import create_conversation

        conversation_id, directory = create_conversation(
            target, others, files=(base_config, metadata), topic=topic, stamps=self.stamps, seed=seed
        )
        return info_of(conversation_id, directory, local=local and self.root is not None)

    def lock(self, info: ConversationInfo) -> Lock:
        """Return the lock of a conversation, not acquired yet."""
        name = f"{info.id.digits}-{path_digest(info.directory)}.lock"
        return Lock(self.user_data / "locks" / name, subject=info.id)

    def open(self, info: ConversationInfo, lock: Lock) -> Log:
        """Open the log of a conversation for appending until it is closed, repaired if a writer died.

        Raises:
            LockedError: a process that knows another lock writes it.
            StorageError: the log is missing, damaged or cannot be written.
        """
        _check_held(lock)
        self._check_still_here(info)
        return open_log(info.directory, self._blobs(info), stamps=self.stamps)

    def update_metadata(
        self, info: ConversationInfo, lock: Lock, change: Callable[[Metadata], Metadata]
    ) -> ConversationInfo:
        """Change a conversation's metadata; `change` gets what is on disk now.

        Raises:
            StorageError: the file is damaged or cannot be written.
        """
        _check_held(lock)
        self._check_still_here(info)
        update_metadata(info.directory, change)
        return info_of(info.id, info.directory, local=info.local)

    def remove(self, info: ConversationInfo, lock: Lock | None) -> None:
        """Remove a conversation, also from the search index.

        Its lock is released; None means a conversation that no other process knows.

        Raises:
            StorageError: it could not be removed.
        """
        from jp.workspace.lifecycle import remove_conversation

        if lock is not None:
            _check_held(lock)
        remove_conversation(self._storage_of(info), info.directory, stamps=self.stamps)
        if (index := search_index_path()) is not None and index.exists():
            from jp.workspace.search_index import forget

            forget(index, info.directory)
        if lock is not None:
            lock.remove_file()
            lock.release()

    def session(
        self,
        key: SessionKey | None,
        *,
        existing: ExistingIds | None = None,
        persistent: bool = True,
    ) -> Session:
        """Return the session of the terminal with this key; `existing` returns which conversations are there."""
        return Session(
            key,
            directory=self._sessions,
            existing=self.ids if existing is None else existing,
            stamps=self.stamps,
            persistent=persistent,
        )

    def _sessions(self, *, create: bool) -> Path:
        return storage_at(self.root, self.user_data, local=True, create=create).directory / SESSIONS

    def _directories(self, wanted: Collection[ConversationId] | None = None) -> list[tuple[ConversationId, Path, bool]]:
        found = [
            (conversation_id, directory, local)
            for storage, local in storages_of(self.root, self.user_data)
            for conversation_id, directory in directories_in(storage, wanted)
        ]
        if len({conversation_id for conversation_id, _, _ in found}) == len(found):
            return found
        from jp.workspace.relocation import without_leftovers

        return without_leftovers(found)

    def _refuse_link(self, conversation_id: ConversationId) -> None:
        """Raise if the directory of a conversation is a link, which jp does not follow."""
        for storage, _ in storages_of(self.root, self.user_data):
            for name in directory_names(storage.conversations, links=True):
                if conversation_id_of(name) == conversation_id:
                    where = str(storage.conversations / name)
                    raise StorageError(f"{where!r} is a link, and jp follows none here", hint=_REPLACE_LINK)

    def _check_still_here(self, info: ConversationInfo) -> None:
        """Refuse a directory that was moved away; the mark of a move that came to nothing is taken back."""
        if not (info.directory / MOVED).exists():
            return
        from jp.workspace.relocation import unmark

        if self.get(info.id).directory != info.directory:
            msg = f"conversation {str(info.id)!r} was moved to another place just now"
            raise StorageError(msg, hint="run the command again")
        unmark(info.directory)

    def _blobs(self, info: ConversationInfo) -> BlobStore:
        storage = self._storage_of(info)
        return DiskBlobs(storage.blobs, private=storage.private)

    def _storage_of(self, info: ConversationInfo) -> Storage:
        return storage_of(info, self._shared)


def name_lock(name: str, *, root: Path | None, user_data: Path) -> Lock:
    """Return the lock of a name that a conversation of a workspace is to get, not acquired yet."""
    digest = hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
    return Lock(user_data / "locks" / f"{path_digest(root or user_data)}-{digest}.lock", subject=name)


def storage_of(info: ConversationInfo, shared: Storage) -> Storage:
    """Return the storage of a conversation in a workspace whose own conversations are in `shared`."""
    directory = storage_directory(info.directory)
    return Storage(directory, private=directory != shared.directory or shared.private)


def _check_held(lock: Lock) -> None:
    if not lock.held:
        msg = "the conversation's lock is not held"
        raise RuntimeError(msg)


def find_workspace(
    start: Path, *, explicit: Path | None = None, user_data: Path | None = None, stamps: Stamps = SYSTEM
) -> Workspace:
    """Return the workspace that `start` lies in, or that `explicit` is the root of; the user's own outside any.

    Raises:
        WorkspaceNotFoundError: `explicit` is no workspace's root.
        UnsafeWorkspaceError: it belongs to another user, or its `.jp` is a link.
        StorageError: there is no place for the user's data.
    """
    root = find_root(start) if explicit is None else explicit_root(explicit)
    known = user_data_directory() if user_data is None else user_data
    if root is not None:
        require_own(root, known)
    return Workspace(root, user_data=known, stamps=stamps)


def keeps_out_of_git(root: Path) -> bool:
    """Return whether the `.jp/.gitignore` of the workspace at `root` names its conversations."""
    try:
        lines = read_file(root / MARKER / ".gitignore", most=SMALL).splitlines()
    except OSError:
        return False
    return not {line.encode() for line in _PRIVATE.split()}.isdisjoint(lines)


def create_workspace(root: Path, *, commit_conversations: bool) -> None:
    """Make `root` a workspace. What is there already stays as it is.

    Where a file system cannot give it an id (one without hard links), it is known by its path.

    Raises:
        StorageError: it could not be written.
    """
    marker = root / MARKER
    make_directories(marker)
    files = {".gitignore": _NEVER_COMMITTED if commit_conversations else _NEVER_COMMITTED + _PRIVATE}
    if commit_conversations:
        files[".gitattributes"] = _ATTRIBUTES
    for name, text in files.items():
        with storage_errors("write", marker / name), suppress(FileExistsError):
            create_file(marker / name, text.encode())
    create_id(marker)
