"""Retention: conversations that are not stored, expire, or are archived."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from jp.conversation.entries import JsonObject
from jp.conversation.ids import ConversationId
from jp.errors import StorageError
from jp.workspace.blobs import MemoryBlobs
from jp.workspace.files import seconds_of, timestamp
from jp.workspace.layout import ORIGINAL_EVENTS, directory_name, is_in_archive, storage_at
from jp.workspace.lifecycle import first_free_id, named_in, new_header, remove_conversation
from jp.workspace.listing import ConversationInfo, Metadata, info_of, read_metadata
from jp.workspace.lock import Lock, LockedError
from jp.workspace.log import Log, open_in_memory
from jp.workspace.relocation import copy_conversation, leave_archive, remove_leftover, unmark
from jp.workspace.session import (
    SESSIONS,
    TERMINAL,
    Session,
    SessionFile,
    SessionKey,
    Visit,
    leader_mark,
    read_session,
    write_session,
)
from jp.workspace.store import Stream, original_of
from jp.workspace.workspace import ConversationNotFoundError, Workspace, storage_of

if TYPE_CHECKING:
    from jp.workspace.lifecycle import Seed


class _MemoryConversation(msgspec.Struct, kw_only=True):
    """A conversation in memory."""

    info: ConversationInfo
    base_config: JsonObject
    stream: Stream


class EphemeralWorkspace:
    """A workspace in memory until the process ends. Conversations on disk are read, without locks."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._held: dict[ConversationId, _MemoryConversation] = {}
        self._removed: set[ConversationId] = set()
        self.root = workspace.root
        self.user_data = workspace.user_data

    def conversations(self) -> list[ConversationInfo]:
        """See `Workspace`."""
        found = {info.id: info for info in self._workspace.conversations() if info.id not in self._removed}
        found |= {held.info.id: held.info for held in self._held.values()}
        return sorted(found.values(), key=lambda info: info.id.deciseconds)

    def ids(self, wanted: Collection[ConversationId] | None = None) -> set[ConversationId]:
        """See `Workspace`."""
        held = set(self._held) if wanted is None else self._held.keys() & set(wanted)
        return (self._workspace.ids(wanted) - self._removed) | held

    def get(self, conversation_id: ConversationId) -> ConversationInfo:
        """See `Workspace`."""
        if (held := self._held.get(conversation_id)) is not None:
            return held.info
        if conversation_id in self._removed:
            raise ConversationNotFoundError(f"conversation {str(conversation_id)!r} was removed")
        return self._workspace.get(conversation_id)

    def read(self, info: ConversationInfo) -> Stream:
        """See `Workspace`."""
        held = self._held.get(info.id)
        return self._workspace.read(info) if held is None else held.stream

    def base_config(self, info: ConversationInfo) -> JsonObject:
        """See `Workspace`."""
        held = self._held.get(info.id)
        return self._workspace.base_config(info) if held is None else held.base_config

    def create(
        self,
        base_config: JsonObject,
        metadata: Metadata,
        *,
        local: bool = False,
        topic: str = "",
        seed: Seed | None = None,
    ) -> ConversationInfo:
        """See `Workspace`. Its directory does not exist."""
        stamps = self._workspace.stamps
        conversation_id = first_free_id(stamps, self.ids())
        info = ConversationInfo(
            id=conversation_id,
            directory=Path(directory_name(conversation_id, metadata.title or topic)),
            local=local,
            metadata=metadata,
            last_activity=stamps.now() / 1000,
        )
        header = new_header(stamps, nonce="" if seed is None else seed.nonce)
        stream = Stream(conversation=info.directory.name, entries=[header], blobs=MemoryBlobs())
        if seed is not None:
            from jp.workspace.lifecycle import stamped

            entries = [*stream.entries, *stamped(seed.entries, stamps)]
            stream = replace(stream, entries=entries, blobs=MemoryBlobs(seed.blobs))
        self._held[conversation_id] = _MemoryConversation(info=info, base_config=base_config, stream=stream)
        return info

    def lock(self, info: ConversationInfo) -> Lock:
        """Return a lock that locks nothing: what is not written disturbs nobody."""
        return Lock(None, subject=info.id)

    def open(self, info: ConversationInfo, lock: Lock) -> Log:
        """See `Workspace`. What is appended is gone with the process."""
        held = self._hold(info)
        return open_in_memory(held.stream, stamps=self._workspace.stamps)

    def update_metadata(
        self, info: ConversationInfo, lock: Lock, change: Callable[[Metadata], Metadata]
    ) -> ConversationInfo:
        """See `Workspace`."""
        held = self._hold(info)
        held.info = replace(held.info, metadata=change(held.info.metadata))
        return held.info

    def remove(self, info: ConversationInfo, lock: Lock | None) -> None:
        """See `Workspace`. What is on disk stays there."""
        self._held.pop(info.id, None)
        self._removed.add(info.id)
        if lock is not None:
            lock.release()

    def session(self, key: SessionKey | None) -> Session:
        """See `Workspace`. What is activated is forgotten with the process."""
        return self._workspace.session(key, existing=self.ids, persistent=False)

    def _hold(self, info: ConversationInfo) -> _MemoryConversation:
        held = self._held.get(info.id)
        if held is None:
            stream = self._workspace.read(info)
            if original_of(stream.entries) is not None:
                from jp.workspace.log import with_nonce

                stream.entries[0] = with_nonce(stream.entries[0], self._workspace.stamps)
            held = _MemoryConversation(
                info=info,
                base_config=self._workspace.base_config(info),
                stream=replace(stream, blobs=MemoryBlobs(stream.blobs)),
            )
            self._held[info.id] = held
        return held


UNKNOWN_AGE_SECONDS = 7 * 24 * 60 * 60
"""The time for which a session counts after its last activity, if its existence is unknown."""


def active_in_sessions(directory: Path, *, now: float) -> frozenset[str]:
    """Return the ids of the conversations that are active in a terminal; `now` in seconds since the Unix epoch.

    A terminal whose leader is gone does not count.
    """
    files = (file for _, file in _files(directory))
    return frozenset(file.history[0].id for file in files if file.history and _counts(file, now))


def deactivate(directory: Path, gone: Collection[str], *, now: int) -> None:
    """Make no terminal continue one of these conversations by default; `now` in milliseconds.

    Raises:
        StorageError: it could not be written.
    """
    for path, file in _files(directory):
        if file.history and file.history[0].id in gone:
            nothing = Visit(id="", activated_at=timestamp(now))
            write_session(path, replace(file, history=(nothing, *file.history)))


def _files(directory: Path) -> Iterator[tuple[Path, SessionFile]]:
    try:
        paths = sorted(directory.glob("*.json"))
    except OSError:
        return
    for path in paths:
        file = None if path.name.startswith(".") else read_session(path)
        if file is not None:
            yield path, file


def _counts(file: SessionFile, now: float) -> bool:
    if file.source == TERMINAL:
        return _is_alive(file)
    activated = seconds_of(file.history[0].activated_at)
    return activated is not None and now - activated < UNKNOWN_AGE_SECONDS


def _is_alive(file: SessionFile) -> bool:
    """Return whether the session's leader still runs, and is no later process with the same id."""
    if not file.value.isdecimal() or len(file.value) > len(str(2**31)):
        return False
    try:
        os.kill(int(file.value), 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass
    mark = leader_mark(int(file.value))
    return not mark or not file.leader or mark == file.leader


LOOKED_FOR_SECONDS = 60 * 60
"""The time between two searches, because reading the metadata of every conversation delays a query."""

REMOVED_AT_ONCE = 20
"""The most conversations that one command removes."""

_MARK = "swept"


def is_expired(metadata: Metadata, *, now: float) -> bool:
    """Return whether a conversation may be removed at `now`, in seconds since the Unix epoch. Pinned ones stay."""
    if metadata.expires_at is None or metadata.pinned_at is not None:
        return False
    end = seconds_of(metadata.expires_at)
    return end is not None and end <= now


def expired(
    conversations: Sequence[ConversationInfo], active: Collection[str], *, now: float
) -> list[ConversationInfo]:
    """Return the conversations that may be removed now: expired and active in no terminal.

    What the original JP stored stays: it is not jp's to delete.
    """
    return [
        info
        for info in conversations
        if is_expired(info.metadata, now=now)
        and info.id not in active
        and not (info.directory / ORIGINAL_EVENTS).exists()
    ]


def expired_now(workspace: Workspace) -> list[ConversationInfo]:
    """Return the conversations of a workspace that may be removed now.

    Raises:
        StorageError: the conversations cannot be listed.
    """
    now = workspace.stamps.now() / 1000
    own = storage_at(workspace.root, workspace.user_data, local=True).directory
    return expired(workspace.conversations(), active_in_sessions(own / SESSIONS, now=now), now=now)


def remove_expired(workspace: Workspace) -> list[ConversationInfo]:
    """Remove some of the conversations that have expired; those that were. Mostly it only sees that it is early.

    Raises:
        StorageError: the conversations cannot be listed.
    """
    own = storage_at(workspace.root, workspace.user_data, local=True).directory
    if not _is_due(own):
        return []
    found = expired_now(workspace)
    if len(found) <= REMOVED_AT_ONCE:
        with contextlib.suppress(OSError):
            (own / _MARK).touch()
    return remove_all(workspace, found[:REMOVED_AT_ONCE])


def remove_all(workspace: Workspace, found: Iterable[ConversationInfo]) -> list[ConversationInfo]:
    """Remove these expired conversations but those that somebody writes or has decided to keep; those that were."""
    return [info for info in found if _removed(workspace, info)]


def _is_due(directory: Path) -> bool:
    try:
        age = time.time() - (directory / _MARK).stat().st_mtime
    except OSError:
        return True
    return not 0 <= age < LOOKED_FOR_SECONDS


def _removed(workspace: Workspace, info: ConversationInfo) -> bool:
    lock = workspace.lock(info)
    try:
        lock.acquire(patience=0, waiting=lambda _: None)
        with lock:
            # Somebody may have decided to keep it since it was listed.
            if not is_expired(read_metadata(info.directory), now=workspace.stamps.now() / 1000):
                return False
            workspace.remove(info, lock)
    except (LockedError, StorageError):
        return False
    return True


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
        raise StorageError(f"conversation {str(info.id)!r} was moved to another place just now", hint="run it again")
