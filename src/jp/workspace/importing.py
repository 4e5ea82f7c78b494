"""Importing conversations from elsewhere: all of them or none."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from jp.conversation.entries import AnyEntry
from jp.conversation.ids import ConversationId
from jp.conversation.original import without_mark
from jp.conversation.original_events import moment_of
from jp.errors import StorageError, UsageError
from jp.workspace.blobs import BlobStore, DiskBlobs
from jp.workspace.files import (
    create_file,
    failure,
    make_directories,
    read_file,
    read_optional,
    storage_errors,
    sync_file,
    timestamp,
)
from jp.workspace.layout import (
    ARCHIVE,
    BASE_CONFIG,
    EVENTS,
    MARKER,
    METADATA,
    ORIGINAL_EVENTS,
    Storage,
    conversation_id_of,
    storage_at,
    storage_directory,
)
from jp.workspace.lifecycle import named_in, place_conversation, remove_conversation
from jp.workspace.listing import ConversationInfo, Metadata, decode_metadata, directories_in, info_of, rewritten
from jp.workspace.store import parse_log, read_base_config, read_original
from jp.workspace.workspace import Workspace

_LOGS = (EVENTS, ORIGINAL_EVENTS)


class ImportSource(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation that was read whole. `files` are its files as they are, without a torn last line of the log.

    `since` is when it was created, in deciseconds since the Unix epoch, None if nothing says so; its `id` is None
    where its directory is not named after one. `named` are the checksums of content that lies in `blobs`.
    """

    directory: Path
    id: ConversationId | None
    since: int | None
    files: Mapping[str, bytes]
    metadata: Metadata
    named: frozenset[str]
    blobs: BlobStore
    modified_ns: int

    @property
    def log(self) -> str:
        """Return the name of the file that counts."""
        return EVENTS if EVENTS in self.files else ORIGINAL_EVENTS


def find_sources(path: Path) -> list[Path]:
    """Return the directories of conversations that `path` names: itself, or those in it, such as in a workspace.

    Raises:
        UsageError: there is none.
        StorageError: it cannot be looked into.
    """
    if not path.is_dir():
        what = "is not a directory" if path.exists() else "does not exist"
        hint = "name the directory of a conversation, or one that holds several, such as a workspace"
        raise UsageError(f"{str(path)!r} {what}", hint=hint)
    if _is_conversation(path):
        return [path]
    for place in (path / MARKER / "conversations", path / "conversations", path):
        if found := [*_conversations_in(place), *_conversations_in(place / ARCHIVE)]:
            return found
    hint = f"the directory of a conversation holds {EVENTS!r}, or {ORIGINAL_EVENTS!r} of the original JP"
    raise UsageError(f"{str(path)!r} holds no conversation", hint=hint)


def _conversations_in(place: Path) -> list[Path]:
    try:
        return sorted(path for path in place.iterdir() if not path.name.startswith(".") and _is_conversation(path))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise failure("list", place, error) from error


def _is_conversation(directory: Path) -> bool:
    return any((directory / name).is_file() for name in _LOGS)


def read_source(directory: Path) -> ImportSource:
    """Read a conversation with all that is said of it.

    Raises:
        StorageError: a file cannot be read, or is malformed.
    """
    names = (METADATA, BASE_CONFIG, *_LOGS)
    files = {name: data for name in names if (data := read_optional(directory / name)) is not None}
    metadata = decode_metadata(files.get(METADATA, b""), directory)
    read_base_config(directory)
    entries, log = _entries(directory, files)
    conversation = conversation_id_of(directory.name)
    path = directory / (EVENTS if EVENTS in files else ORIGINAL_EVENTS)
    with storage_errors("read", path):
        modified = path.stat().st_mtime_ns
    return ImportSource(
        directory=directory,
        id=conversation,
        since=_created(entries) if conversation is None else conversation.deciseconds,
        files=files if log is None else {**files, EVENTS: log},
        metadata=metadata,
        named=frozenset(named_in(entries)),
        blobs=DiskBlobs(Storage(storage_directory(directory.absolute()), private=False).blobs),
        modified_ns=modified,
    )


def _entries(directory: Path, files: Mapping[str, bytes]) -> tuple[Sequence[AnyEntry], bytes | None]:
    """Return the entries, and the whole lines of the log where there is one."""
    if EVENTS not in files:
        return read_original(directory), None
    data = files[EVENTS]
    parsed = parse_log(data, directory / EVENTS)
    return parsed.entries, data[: parsed.end] + (b"" if parsed.terminated else b"\n")


def _created(entries: Sequence[AnyEntry]) -> int | None:
    moments = (moment_of(entry.at) for entry in entries[:2])
    found = [moment.milliseconds // 100 for moment in moments if moment is not None and moment.milliseconds]
    return found[0] if found else None


class MergeSides(msgspec.Struct, frozen=True):
    """Both sides of a file with the conflict markers of git, each as its branch has it."""

    ours: bytes
    theirs: bytes

    @property
    def both(self) -> bytes:
        """Return our lines, then those that only the other side has: what `merge=union` writes, without duplicates."""
        ours = self.ours.splitlines()
        known = set(ours)
        lines = [*ours, *(line for line in dict.fromkeys(self.theirs.splitlines()) if line not in known)]
        return b"".join(line + b"\n" for line in lines if line.strip())


def merge_sides(data: bytes) -> MergeSides | None:
    """Return the sides of a file with conflict markers; None where it has none, or they are not whole."""
    sides: dict[str, list[bytes]] = {"ours": [], "base": [], "theirs": []}
    side = ""
    is_conflict = False
    for line in data.splitlines(keepends=True):
        marker = line[:7]
        if marker == b"<<<<<<<" and not side:
            side, is_conflict = "ours", True
        elif marker == b"|||||||" and side == "ours":
            side = "base"
        elif marker == b"=======" and side in {"ours", "base"}:
            side = "theirs"
        elif marker == b">>>>>>>" and side == "theirs":
            side = ""
        else:
            for name in (side,) if side else ("ours", "theirs"):
                sides[name].append(line)
    return MergeSides(b"".join(sides["ours"]), b"".join(sides["theirs"])) if is_conflict and not side else None


_BUNDLE_FORMAT = b'{"format":1}\n'
_BUNDLE_NAMES = frozenset({METADATA, BASE_CONFIG, *_LOGS})
_LARGEST_BUNDLE = 8 * 2**30


def pack(source: ImportSource) -> bytes:
    """Return a conversation as a ZIP file with its files, and the content that they name under `blobs/SHA256`.

    Raises:
        StorageError: content is missing or damaged.
    """
    from io import BytesIO
    from zipfile import ZIP_DEFLATED, ZipFile

    written = BytesIO()
    with ZipFile(written, "w", ZIP_DEFLATED) as bundle:
        bundle.writestr("jp-bundle.json", _BUNDLE_FORMAT)
        for name, data in source.files.items():
            bundle.writestr(f"{source.directory.name}/{name}", data)
        for sha256 in sorted(source.named):
            bundle.writestr(f"blobs/{sha256}", source.blobs.get(sha256))
    return written.getvalue()


def is_bundle(path: Path) -> bool:
    """Return whether the file at `path` may be a bundle: a ZIP file."""
    from zipfile import is_zipfile

    return is_zipfile(path) or path.suffix == ".zip"


def unpack(path: Path, target: Path) -> None:
    """Write what the bundle at `path` holds into the new storage `target`.

    Raises:
        UsageError: it is no bundle, or one of another version.
        StorageError: it is damaged.
    """
    from zipfile import BadZipFile, ZipFile

    hint = "export the conversation again, as a bundle"
    try:
        with ZipFile(path) as bundle:
            names = bundle.namelist()
            if "jp-bundle.json" not in names or bundle.read("jp-bundle.json") != _BUNDLE_FORMAT:
                raise UsageError(f"{str(path)!r} is no bundle that this version of jp reads", hint=hint)
            if sum(info.file_size for info in bundle.infolist()) > _LARGEST_BUNDLE:
                raise UsageError(f"{str(path)!r} is larger than any bundle that jp writes", hint=hint)
            for name in names:
                _unpack_file(name, bundle.read(name), target)
    except (BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise UsageError(f"{str(path)!r} is no bundle: {error}", hint=hint) from None
    except OSError as error:
        raise failure("read", path, error) from error


def _unpack_file(name: str, data: bytes, target: Path) -> None:
    directory, _, file = name.partition("/")
    if directory == "blobs" and DiskBlobs(target / "blobs", private=True).put(data) != file:
        raise StorageError(f"the bundle is damaged: {name!r} holds something else", hint="export it again")
    if conversation_id_of(directory) is not None and file in _BUNDLE_NAMES:
        make_directories(target / "conversations" / directory, private=True)
        create_file(target / "conversations" / directory / file, data)


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """The result for a source: a new conversation, or if `is_new` is false the one that has all of it already."""

    source: ImportSource
    info: ConversationInfo
    is_new: bool


def import_conversations(
    workspace: Workspace,
    sources: Sequence[ImportSource],
    *,
    local: bool,
    progress: Callable[[str], object] = lambda _: None,
) -> list[Imported]:
    """Copy conversations into `workspace`, with the content that they name.

    Each keeps its id if that is free, else it gets the next free one. A source without anything new is not copied.
    `progress` is told what is done.

    Raises:
        StorageError: content is missing, or something could not be written; no conversation of them is left.
    """
    target = storage_at(workspace.root, workspace.user_data, local=local, create=local)
    other = storage_at(workspace.root, workspace.user_data, local=not local)
    importer = _Importer(workspace, target, [] if other == target else [other], local=local)
    done: list[Imported] = []
    try:
        for source in sources:
            progress(f"writing conversation {len(done) + 1:,} of {len(sources):,}")
            done.append(importer.take(source))
    except BaseException:
        importer.take_back()
        raise
    return done


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
        with storage_errors("write", target.directory):
            target.sync()

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
        with storage_errors("write", directory):
            for name in files:
                sync_file(directory / name)
        return info_of(conversation, directory, local=self._local)


def _holds(directory: Path, source: ImportSource) -> bool:
    """Return whether all that `source` says is in `directory` already, which may have gone on since."""
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
