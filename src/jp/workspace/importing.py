"""Bringing conversations from elsewhere in: all of them or none."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from jp.conversation.ids import ConversationId
from jp.conversation.original import without_mark
from jp.errors import StorageError
from jp.workspace.blobs import DiskBlobs
from jp.workspace.files import failure, read_file, sync_file
from jp.workspace.import_source import ImportSource
from jp.workspace.layout import EVENTS, METADATA, Storage, storage_at
from jp.workspace.lifecycle import place_conversation, remove_conversation
from jp.workspace.listing import ConversationInfo, directories_in, info_of
from jp.workspace.metadata import rewritten
from jp.workspace.stamp import timestamp
from jp.workspace.workspace import Workspace


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a source: a new conversation, or where `is_new` is false the one that holds all of it already."""

    source: ImportSource
    info: ConversationInfo
    is_new: bool


def import_conversations(workspace: Workspace, sources: Sequence[ImportSource], *, local: bool) -> list[Imported]:
    """Copy conversations into `workspace`, with the content that they name.

    Each keeps its id where that is free, else it gets the next one that is. What brings nothing new is left out.

    Raises:
        StorageError: content is missing, or something could not be written; no conversation of them is left.
    """
    target = storage_at(workspace.root, workspace.user_data, local=local, create=local)
    other = storage_at(workspace.root, workspace.user_data, local=not local)
    importer = _Importer(workspace, target, [] if other == target else [other], local=local)
    try:
        return [importer.take(source) for source in sources]
    except BaseException:
        importer.take_back()
        raise


class _Importer:
    """Remembers what it has brought in."""

    def __init__(self, workspace: Workspace, target: Storage, others: Sequence[Storage], *, local: bool) -> None:
        self._workspace = workspace
        self._target = target
        self._others = others
        self._local = local and workspace.root is not None
        self._made: list[Path] = []

    def take(self, source: ImportSource) -> Imported:
        since = source.since
        while since is not None and (found := self._existing(since)):
            for directory, local in found:
                if _holds(directory, source):
                    info = info_of(ConversationId.at(since), directory, local=local)
                    return Imported(source=source, info=info, is_new=False)
            since += 1
        self._copy_blobs(source)
        return Imported(source=source, info=self._place(source, since), is_new=True)

    def take_back(self) -> None:
        """Remove what was brought in; its content stays, for others may share it."""
        for directory in self._made:
            with contextlib.suppress(StorageError):
                remove_conversation(self._target, directory, stamps=self._workspace.stamps)

    def _existing(self, deciseconds: int) -> list[tuple[Path, bool]]:
        wanted = ConversationId.at(deciseconds)
        return [
            (directory, self._local if storage == self._target else not self._local)
            for storage in (self._target, *self._others)
            for conversation, directory in directories_in(storage)
            if conversation == wanted
        ]

    def _copy_blobs(self, source: ImportSource) -> None:
        target = DiskBlobs(self._target.blobs, private=self._target.private)
        for sha256 in sorted(source.named):
            target.adopt(sha256, target if target.path(sha256).exists() else source.blobs)
        try:
            target.sync()
        except OSError as error:
            raise failure("write", target.directory, error) from error

    def _place(self, source: ImportSource, since: int | None) -> ConversationInfo:
        stamps = self._workspace.stamps
        # Who imports a conversation wants to keep it.
        metadata = replace(source.metadata, imported_at=timestamp(stamps.now()), expires_at=None)
        files = {**source.files, METADATA: rewritten(source.files.get(METADATA, b""), metadata)}
        words = source.directory.name if source.id is None else source.directory.name.partition("-")[2]
        conversation, directory = place_conversation(
            self._target, self._others, files, words=words or metadata.title or "", stamps=stamps, since=since
        )
        self._made.append(directory)
        with contextlib.suppress(OSError):
            os.utime(directory / source.log, ns=(source.modified_ns, source.modified_ns))
        try:
            for name in files:
                sync_file(directory / name)
        except OSError as error:
            raise failure("write", directory, error) from error
        return info_of(conversation, directory, local=self._local)


def _holds(directory: Path, source: ImportSource) -> bool:
    """Whether all that `source` says is in `directory` already, which may have gone on since."""
    try:
        found = read_file(directory / source.log)
    except OSError:
        return False
    own = source.files[source.log]
    if source.log == EVENTS:
        return found.startswith(own)
    try:
        before, after = (msgspec.json.decode(without_mark(data), type=list[msgspec.Raw]) for data in (own, found))
    except msgspec.DecodeError:
        return False
    return [bytes(item) for item in before] == [bytes(item) for item in after[: len(before)]]
