"""The creation and removal of a conversation's directory, each in one step that a crash cannot split."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from jp.conversation.entries import FORMAT, AnyEntry, Header, JsonObject, Unknown, encode
from jp.conversation.ids import ENTROPY_BYTES, ConversationId, entry_id
from jp.conversation.resource import Carrier
from jp.conversation.thread import carriers_in, map_carriers
from jp.errors import StorageError
from jp.file_access import LIST
from jp.workspace.blobs import BlobStore, DiskBlobs, stored
from jp.workspace.files import (
    Stamps,
    create_file,
    failure,
    make_directories,
    opened,
    parent_of,
    storage_errors,
    sync_file,
    timestamp,
)
from jp.workspace.layout import (
    ARCHIVE,
    BASE_CONFIG,
    EVENTS,
    METADATA,
    ORIGINAL_EVENTS,
    Storage,
    conversation_id_of,
    directory_name,
    is_in_archive,
)
from jp.workspace.listing import Metadata, encode_metadata

_RESERVATION = re.compile(r"\.([0-9]{1,18})\.new")
_LEFTOVER = re.compile(r"\.[0-9]+\.new|\.removed-.*", re.DOTALL)
_LEFTOVER_AGE_SECONDS = 24 * 60 * 60
_NONCE_BYTES = 8
_FILES = (EVENTS, ORIGINAL_EVENTS, METADATA, BASE_CONFIG)


def new_header(stamps: Stamps, *, nonce: str = "") -> Header:
    """Return the first line of a new log, which takes the `nonce` of another one over."""
    now = stamps.now()
    at = timestamp(now)
    return Header(
        id=entry_id(milliseconds=now, entropy=stamps.entropy(ENTROPY_BYTES)),
        at=at,
        format=FORMAT,
        created_at=at,
        nonce=nonce or new_nonce(stamps),
    )


def new_nonce(stamps: Stamps) -> str:
    """Return a nonce for the markers of one log."""
    return stamps.entropy(_NONCE_BYTES).hex()


def first_free_id(stamps: Stamps, taken: set[ConversationId]) -> ConversationId:
    """Return the id of a conversation that is created now, or a little later where those are taken."""
    return _free_id(stamps.now() // 100, taken)


def _free_id(deciseconds: int, taken: set[ConversationId]) -> ConversationId:
    while ConversationId.at(deciseconds) in taken:
        deciseconds += 1
    return ConversationId.at(deciseconds)


class Seed(msgspec.Struct, frozen=True, kw_only=True):
    """Entries for a new log, without a header, and the store of their content.

    `nonce` is that of the log that they come from, empty where it has none: with it, what is shown of them stays what
    it was.
    """

    entries: Sequence[AnyEntry]
    blobs: BlobStore
    nonce: str = ""


def create_conversation(
    storage: Storage,
    others: Sequence[Storage],
    *,
    files: tuple[JsonObject, Metadata],
    stamps: Stamps,
    topic: str = "",
    seed: Seed | None = None,
) -> tuple[ConversationId, Path]:
    """Create a conversation whose log has a header and the entries of `seed`; return its id and its directory.

    It is written under a hidden name and then renamed, so that there is all of it or nothing. What a seed names is on
    the disk when it appears.

    Args:
        storage: the storage that gets it.
        others: other storages in which its id must be free.
        files: its base configuration and its metadata.
        stamps: the clock.
        topic: words that name its directory where it has no title.
        seed: entries to start with.

    Raises:
        StorageError: content is missing, or something could not be written; nothing of it is left but content.
    """
    lines = [line_of(new_header(stamps, nonce="" if seed is None else seed.nonce))]
    lines += [] if seed is None else _seeded(seed, storage, stamps)
    base_config, metadata = files
    first = first_files(base_config, metadata, b"".join(lines))
    conversation_id, directory = place_conversation(
        storage, others, first, words=metadata.title or topic, stamps=stamps
    )
    try:
        with storage_errors("write", directory):
            for name in () if seed is None else first:
                sync_file(directory / name)
    except StorageError:
        remove_conversation(storage, directory, stamps=stamps)
        raise
    return conversation_id, directory


def first_files(base_config: JsonObject, metadata: Metadata, log: bytes) -> dict[str, bytes]:
    """Return the files of a new conversation by name. Its first words have no secrets."""
    from jp.context.redaction import redact

    if metadata.first_words:
        metadata = replace(metadata, first_words=redact(metadata.first_words).text)
    config = msgspec.json.format(msgspec.json.encode(base_config), indent=2)
    return {METADATA: encode_metadata(metadata), BASE_CONFIG: config + b"\n", EVENTS: log}


def place_conversation(
    storage: Storage,
    others: Sequence[Storage],
    files: Mapping[str, bytes],
    *,
    words: str,
    stamps: Stamps,
    since: int | None = None,
) -> tuple[ConversationId, Path]:
    """Create a conversation with these files; see `create_conversation`. `words` name its directory.

    Its id is the first free one from `since` on, deciseconds since the Unix epoch; None means now.

    Raises:
        StorageError: it could not be written; nothing of it is left.
    """
    make_directories(storage.conversations, private=storage.private)
    conversation_id, reservation, names = _reserve(storage, others, stamps.now() // 100 if since is None else since)
    _sweep(storage, names, now=stamps.now() / 1000)
    directory = storage.conversations / directory_name(conversation_id, words)
    try:
        with storage_errors("create", directory):
            for name, data in files.items():
                create_file(reservation / name, data)
            _rename(reservation, directory.name)
    except BaseException:
        _delete(reservation)
        raise
    return conversation_id, directory


def remove_conversation(storage: Storage, directory: Path, *, stamps: Stamps) -> None:
    """Remove a conversation; its lock must be held. Blobs stay: others may share them.

    Raises:
        StorageError: it is no conversation, or could not be removed; it is there as before.
    """
    if not any((directory / name).exists() for name in _FILES):
        msg = f"{str(directory)!r} holds nothing of a conversation"
        raise StorageError(msg, hint="look at it, and delete it by hand if it is not needed")
    hidden = storage.conversations / f".removed-{directory.name}-{os.urandom(4).hex()}"
    with storage_errors("remove", directory):
        if is_in_archive(directory):
            directory.rename(hidden)
        else:
            _rename(directory, hidden.name)
    _delete(hidden)
    with contextlib.suppress(StorageError):
        _sweep(storage, _names_in(storage.conversations), now=stamps.now() / 1000)


def _reserve(storage: Storage, others: Sequence[Storage], since: int) -> tuple[ConversationId, Path, list[str]]:
    """Reserve a free id; return it, the hidden directory that reserves it, and the names that are beside it.

    A process that has this directory looks for other uses of the id, so of two that want the same one at most one goes
    on.
    """
    taken: set[ConversationId] = set()
    while True:
        conversation_id = _free_id(since, taken)
        reservation = storage.conversations / f".{conversation_id.digits}.new"
        try:
            with parent_of(reservation) as (above, name):
                os.mkdir(name, 0o700 if storage.private else 0o777, dir_fd=above)
        except FileExistsError:
            taken.add(conversation_id)
            continue
        except OSError as error:
            raise failure("create", reservation, error) from error
        names = _names_in(storage.conversations)
        taken.update(_ids_in(storage, names, since, reserved=False))
        for other in others:
            taken.update(_ids_in(other, _names_in(other.conversations), since, reserved=True))
        if conversation_id not in taken:
            return conversation_id, reservation, names
        _delete(reservation)


def _ids_in(storage: Storage, names: list[str], since: int, *, reserved: bool) -> set[ConversationId]:
    """Return the ids of conversations that were created `since` then, and maybe of others.

    `names` are those in the directory of its conversations, which is listed once: among many, that takes milliseconds.
    """
    if ARCHIVE in names and storage.archive.is_dir():
        names = names + _names_in(storage.archive)
    least, size = str(since), len(str(since))
    # Nothing is called for each of many names. Only with as many digits does the order of texts say which is later.
    names = [name for name in names if name >= least or name[0] == "." or name[size : size + 1] != "-"]
    ids = {found for name in names if (found := conversation_id_of(name)) is not None}
    if reserved:
        ids |= {ConversationId.parse(match[1]) for name in names if (match := _RESERVATION.fullmatch(name))}
    return ids


def _names_in(directory: Path) -> list[str]:
    try:
        with opened(directory, LIST) as descriptor:
            return os.listdir(descriptor)  # noqa: PTH208 - it is open
    except FileNotFoundError:
        return []
    except OSError as error:
        raise failure("list", directory, error) from error


def _sweep(storage: Storage, names: Sequence[str], *, now: float) -> None:
    """Delete what processes that were killed left behind, a day ago or earlier, of these names in the directory."""
    leftovers = [name for name in names if name[0] == "." and _LEFTOVER.fullmatch(name) is not None]
    if not leftovers:
        return
    with contextlib.suppress(OSError), opened(storage.conversations, LIST) as directory:
        for name in leftovers:
            status = os.stat(name, dir_fd=directory, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode) and now - status.st_mtime > _LEFTOVER_AGE_SECONDS:
                _delete(storage.conversations / name)


def _delete(directory: Path) -> None:
    import shutil

    with contextlib.suppress(OSError), parent_of(directory) as (above, name):
        shutil.rmtree(name, ignore_errors=True, dir_fd=above)


def _rename(directory: Path, name: str) -> None:
    """Give a directory another name in the same one."""
    with parent_of(directory) as (above, before):
        after = os.fspath(directory.with_name(name)) if above is None else name
        os.rename(before, after, src_dir_fd=above, dst_dir_fd=above)


C = TypeVar("C", bound=Carrier)


def _seeded(seed: Seed, storage: Storage, stamps: Stamps) -> list[bytes]:
    """Return the lines of a log after its header. Content that lies in another place is copied to `storage`.

    Raises:
        StorageError: content is missing, or could not be written.
    """
    target = DiskBlobs(storage.blobs, private=storage.private)

    def kept(carrier: C, /) -> C:
        return stored(carrier, target)

    for sha256 in named_in(seed.entries):
        target.adopt(sha256, seed.blobs)
    lines = [line_of(map_carriers(entry, kept)) for entry in stamped(seed.entries, stamps)]
    with storage_errors("write", storage.blobs):
        target.sync()
    return lines


def named_in(entries: Sequence[AnyEntry]) -> set[str]:
    """Return the checksums of the blobs that entries name."""
    return {carrier.sha256 for entry in entries for carrier in carriers_in(entry) if carrier.sha256 is not None}


def stamped(entries: Sequence[AnyEntry], stamps: Stamps, *, after: str = "") -> list[AnyEntry]:
    """Return the entries with an id and a moment where they lack them; ids follow the id `after`."""
    found: list[AnyEntry] = []
    for entry in entries:
        whole = entry
        if not isinstance(entry, Unknown) and not (entry.id and entry.at):
            now = stamps.now()
            fresh = entry.id or entry_id(milliseconds=now, entropy=stamps.entropy(ENTROPY_BYTES), last=after)
            whole = replace(entry, id=fresh, at=entry.at or timestamp(now))
        after = whole.id or after
        found.append(whole)
    return found


def line_of(entry: AnyEntry) -> bytes:
    """Return the line of a log that holds an entry.

    Raises:
        UnwritableEntryError: it holds what JSON cannot.
    """
    # Between the tokens of an unknown entry there may be line breaks; in strings JSON has none.
    return encode(entry).replace(b"\n", b" ") + b"\n"
