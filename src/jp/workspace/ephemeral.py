"""A workspace of which everything is read and nothing is written: `--no-persist`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from jp.conversation.entries import JsonObject
from jp.conversation.ids import ConversationId
from jp.workspace.blobs import MemoryBlobs
from jp.workspace.layout import directory_name
from jp.workspace.lifecycle import first_free_id, new_header
from jp.workspace.listing import ConversationInfo
from jp.workspace.lock import Lock
from jp.workspace.log import Log, open_in_memory
from jp.workspace.metadata import Metadata
from jp.workspace.session import Session, SessionKey
from jp.workspace.store import Stream, original_of
from jp.workspace.workspace import ConversationNotFoundError, Workspace

if TYPE_CHECKING:
    from jp.workspace.lifecycle import Seed


class _Held(msgspec.Struct, kw_only=True):
    """A conversation as this process sees it."""

    info: ConversationInfo
    base_config: JsonObject
    stream: Stream


class EphemeralWorkspace:
    """What `Workspace` offers, kept in memory until the process ends. Conversations on disk are read, without locks."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._held: dict[ConversationId, _Held] = {}
        self._removed: set[ConversationId] = set()
        self.root = workspace.root
        self.user_data = workspace.user_data

    def conversations(self) -> list[ConversationInfo]:
        """See `Workspace`."""
        found = {info.id: info for info in self._workspace.conversations() if info.id not in self._removed}
        found |= {held.info.id: held.info for held in self._held.values()}
        return sorted(found.values(), key=lambda info: info.id.deciseconds)

    def ids(self) -> set[ConversationId]:
        """See `Workspace`."""
        return (self._workspace.ids() - self._removed) | set(self._held)

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
        self._held[conversation_id] = _Held(info=info, base_config=base_config, stream=stream)
        return info

    def lock(self, info: ConversationInfo) -> Lock:
        """A lock that locks nothing: what is not written disturbs nobody."""
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

    def _hold(self, info: ConversationInfo) -> _Held:
        held = self._held.get(info.id)
        if held is None:
            stream = self._workspace.read(info)
            if original_of(stream.entries) is not None:
                from jp.workspace.conversion import unforeseeable

                stream.entries[0] = unforeseeable(stream.entries[0], self._workspace.stamps)
            held = _Held(
                info=info,
                base_config=self._workspace.base_config(info),
                stream=replace(stream, blobs=MemoryBlobs(stream.blobs)),
            )
            self._held[info.id] = held
        return held
