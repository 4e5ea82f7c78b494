"""Metadata of conversations, and the list of a workspace's conversations."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from jp.conversation.ids import ConversationId
from jp.errors import StorageError, reason_of
from jp.file_access import LIST, open_child_directory, read_whole
from jp.workspace.files import SMALL, failure, open_directory, opened, read_optional, replace_file, timestamp
from jp.workspace.layout import (
    ARCHIVE,
    EVENTS,
    METADATA,
    ORIGINAL_EVENTS,
    Storage,
    conversation_id_of,
    is_in_archive,
)


class Parent(msgspec.Struct, frozen=True, kw_only=True):
    """The origin of a fork: the turns `from_turn` to `to_turn` (0-based, inclusive) of another conversation."""

    conversation: str
    from_turn: int
    to_turn: int


class Metadata(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`metadata.json`. Moments are RFC 3339. `imported_at` is when a conversation came from elsewhere.

    `untitled` says that the user removed the title, so that jp generates none any more.
    `first_words` are the beginning of the first message, in one line.
    """

    title: str | None = None
    untitled: bool = False
    first_words: str | None = None
    labels: dict[str, str] = {}
    pinned_at: str | None = None
    archived_at: str | None = None
    expires_at: str | None = None
    last_activated_at: str | None = None
    imported_at: str | None = None
    parent: Parent | None = None

    @property
    def wants_title(self) -> bool:
        """Return whether jp may generate a title."""
        return self.title is None and not self.untitled


_decoder = msgspec.json.Decoder(Metadata)
_fields_decoder: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw])
_MOMENTS = ("pinned_at", "archived_at", "expires_at", "last_activated_at")
_HINT = "correct the file by hand, or delete it: title and labels are lost with it, the conversation is not"


def encode_metadata(metadata: Metadata) -> bytes:
    """Return the file's text."""
    return msgspec.json.format(msgspec.json.encode(metadata), indent=2) + b"\n"


def read_metadata(directory: Path) -> Metadata:
    """Return the metadata of the conversation in `directory`; empty where the file is missing.

    Raises:
        StorageError: the file cannot be read.
    """
    return decode_metadata(read_optional(directory / METADATA, most=SMALL) or b"", directory)


def decode_metadata(data: bytes, directory: Path) -> Metadata:
    """Return the metadata in the file of the conversation in `directory`; defaults if it is empty.

    Raises:
        StorageError: it is no JSON object, or a field has a value of another type.
    """
    try:
        return _in_jps_spelling(_decoded(data)) if data else Metadata()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise StorageError(
            f"{str(directory / METADATA)!r} is not what it should be: {reason_of(error)}", hint=_HINT
        ) from None


def _decoded(data: bytes) -> Metadata:
    try:
        return _decoder.decode(data)
    except msgspec.ValidationError:
        # The original's labels need no value.
        fields = msgspec.json.decode(data, type=dict[str, Any])
        labels = fields.get("labels")
        if isinstance(labels, dict):
            named = cast("dict[str, Any]", labels).items()
            fields["labels"] = {name: "" if value is None else value for name, value in named}
        return msgspec.convert(fields, Metadata)


def _in_jps_spelling(metadata: Metadata) -> Metadata:
    """Moments as RFC 3339, where the original wrote them."""
    moments = (metadata.pinned_at, metadata.archived_at, metadata.expires_at, metadata.last_activated_at)
    if not any(moments) or all("T" in moment for moment in moments if moment):
        return metadata

    from jp.conversation.original_events import moment_of

    read = {name: moment_of(moment) for name, moment in zip(_MOMENTS, moments, strict=True)}
    return replace(metadata, **{name: moment.at for name, moment in read.items() if moment is not None})


def update_metadata(directory: Path, change: Callable[[Metadata], Metadata]) -> Metadata:
    """Change the metadata on disk, whole or not at all; fields that this version does not know stay as they are.

    The conversation's lock must be held.

    Raises:
        StorageError: the file cannot be read or written; it is as it was.
    """
    path = directory / METADATA
    data = read_optional(path, most=SMALL) or b""
    before = decode_metadata(data, directory)
    after = change(before)
    if after == before and data:
        return after
    replace_file(path, rewritten(data, after))
    return after


def encode_for_original(metadata: Metadata, last: str) -> bytes:
    """Return the `metadata.json` of the original JP; the conversation was last used at `last` if it does not say so."""
    from jp.conversation.original_events import timestamp_of

    moments = {name: getattr(metadata, name) for name in _MOMENTS} | {
        "last_activated_at": metadata.last_activated_at or last
    }
    fields = {"title": metadata.title, "labels": metadata.labels or None} | {
        name: timestamp_of(moment) if moment else None for name, moment in moments.items()
    }
    kept = {name: value for name, value in fields.items() if value is not None}
    return msgspec.json.format(msgspec.json.encode(kept), indent=2) + b"\n"


def rewritten(data: bytes, after: Metadata) -> bytes:
    """Return the text of a file that held `data`, changed to `after`; fields that this version does not know stay."""
    fields = _fields_decoder.decode(data) if data else {}
    unknown = {name: value for name, value in fields.items() if name not in Metadata.__struct_encode_fields__}
    known = _fields_decoder.decode(msgspec.json.encode(after))
    return msgspec.json.format(msgspec.json.encode(known | unknown), indent=2) + b"\n"


class ConversationInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Information about a conversation that needs no look at its log.

    `last_activity` is when its log was last written, in seconds since the Unix epoch; of a conversation of the
    original JP, what its metadata says. `local` ones lie in the user's data directory though there is a workspace.
    `problem` says why its metadata could not be read. `metadata` is what the file says, but what lies in the archive
    of the original JP is archived in any case, at its last activity where nothing says when.
    """

    id: ConversationId
    directory: Path
    local: bool
    metadata: Metadata
    last_activity: float
    problem: str = ""


def directories_in(
    storage: Storage, wanted: Collection[ConversationId] | None = None
) -> Iterator[tuple[ConversationId, Path]]:
    """Yield the conversations of a storage: id and directory, in no order; those in the original's archive come last.

    Of two with one id, the one that is not in the archive counts: a merge in git brings the other one back.
    With `wanted` only conversations with these ids are looked at, which takes little time among many others.

    Raises:
        StorageError: the storage cannot be read.
    """
    seen: set[ConversationId] = set()
    has_archive = False
    conversations, archive = storage.conversations, storage.archive
    for name in _names_of(conversations, wanted):
        has_archive = has_archive or name == ARCHIVE
        if (conversation_id := conversation_id_of(name)) is not None:
            seen.add(conversation_id)
            yield conversation_id, conversations / name
    if has_archive:
        for name in _names_of(archive, wanted):
            conversation_id = conversation_id_of(name)
            if conversation_id is not None and conversation_id not in seen:
                yield conversation_id, archive / name


def _names_of(directory: Path, wanted: Collection[ConversationId] | None) -> list[str]:
    """Return the names of the directories of conversations in `directory`, and of an archive."""
    if wanted is None:
        return directory_names(directory)
    digits = {conversation_id.digits for conversation_id in wanted}
    try:
        starts = (*digits, ARCHIVE)  # a first look, which is quick among many names
        with opened(directory, LIST) as descriptor:
            named = [name for name in os.listdir(descriptor) if name.startswith(starts)]  # noqa: PTH208 - it is open
            named = [name for name in named if name.partition("-")[0] in digits or name == ARCHIVE]
            return [name for name in named if _is_directory(name, descriptor)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise failure("list", directory, error) from error


def _is_directory(name: str, above: int) -> bool:
    """Return whether a name in an open directory is that of a directory, and of no link."""
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def directory_names(directory: Path, *, links: bool = False) -> list[str]:
    """Return the names of the directories in `directory`, or with `links` of the links; none where it is missing.

    Raises:
        StorageError: it cannot be listed.
    """
    try:
        with opened(directory, LIST) as descriptor, os.scandir(descriptor) as found:
            if links:
                return [entry.name for entry in found if entry.is_symlink()]
            return [entry.name for entry in found if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise failure("list", directory, error) from error


def infos_of(found: Sequence[tuple[ConversationId, Path, bool]]) -> list[ConversationInfo]:
    """Return information about conversations, each given with its directory and whether it is local; oldest first."""
    with contextlib.ExitStack() as stack:
        above: dict[str, int | None] = {}
        infos: list[ConversationInfo] = []
        for conversation_id, directory, local in found:
            parent, _, _ = str(directory).rpartition(os.sep)
            if parent not in above:
                is_there = directory.parent.is_dir()
                above[parent] = stack.enter_context(opened(directory.parent)) if is_there else None
            infos.append(info_of(conversation_id, directory, local=local, above=above[parent]))
    return sorted(infos, key=lambda info: info.id.deciseconds)


def info_of(
    conversation_id: ConversationId, directory: Path, *, local: bool, above: int | None = None
) -> ConversationInfo:
    """Return information about the conversation in `directory`, whose parent may be open as `above`.

    Damaged metadata is reported, not raised.
    """
    metadata, problem, last_written = Metadata(), "", None
    try:
        within = open_directory(directory) if above is None else open_child_directory(above, directory.name)
        try:
            last_written = _last_written(within)
            metadata = decode_metadata(read_whole(METADATA, SMALL, follows=False, within=within), directory)
        finally:
            os.close(within)
    except FileNotFoundError:
        pass
    except OSError as error:
        problem = failure("read", directory / METADATA, error).message
    except StorageError as error:
        problem = error.message
    last_activity = _last_activity(directory, metadata) if last_written is None else last_written
    if metadata.archived_at is None and is_in_archive(directory):
        metadata = replace(metadata, archived_at=timestamp(int(last_activity * 1000)))
    return ConversationInfo(
        id=conversation_id,
        directory=directory,
        local=local,
        metadata=metadata,
        last_activity=last_activity,
        problem=problem,
    )


def _last_written(directory: int) -> float | None:
    try:
        return os.stat(EVENTS, dir_fd=directory, follow_symlinks=False).st_mtime
    except OSError:
        return None


def _last_activity(directory: Path, metadata: Metadata) -> float:
    """Return the last activity of a conversation without a log of jp."""
    if metadata.last_activated_at is not None:
        # A clone gives all files the same date, and the original says it itself.
        from jp.conversation.original_events import moment_of

        if (moment := moment_of(metadata.last_activated_at)) is not None:
            return moment.milliseconds / 1000
    for candidate in (directory / ORIGINAL_EVENTS, directory):
        with contextlib.suppress(OSError):
            return candidate.stat(follow_symlinks=False).st_mtime
    return 0.0
