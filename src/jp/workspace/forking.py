"""What a new conversation starts with: entries of another one, and the content that they name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from jp.conversation.carriers import carriers_in, map_carriers
from jp.conversation.codec import encode
from jp.conversation.entries import AnyEntry, JsonObject, Unknown
from jp.conversation.ids import ENTROPY_BYTES, ConversationId, entry_id
from jp.conversation.resource import Carrier
from jp.workspace.blobs import BlobStore, DiskBlobs
from jp.workspace.content import stored
from jp.workspace.files import failure, sync_file
from jp.workspace.layout import Storage
from jp.workspace.lifecycle import first_files, new_header, place_conversation, remove_conversation
from jp.workspace.metadata import Metadata
from jp.workspace.stamp import Stamps, timestamp

C = TypeVar("C", bound=Carrier)


class Seed(msgspec.Struct, frozen=True, kw_only=True):
    """Entries for a new log, without a header, and where their content lies.

    `nonce` is that of the log that they come from, empty where it has none: with it, what is shown of them stays what
    it was.
    """

    entries: Sequence[AnyEntry]
    blobs: BlobStore
    nonce: str = ""


def plant_conversation(
    seed: Seed,
    storage: Storage,
    others: Sequence[Storage],
    *,
    files: tuple[JsonObject, Metadata],
    topic: str,
    stamps: Stamps,
) -> tuple[ConversationId, Path]:
    """A new conversation whose log starts with `seed`; see `lifecycle.create_conversation`.

    `files` are its base configuration and its metadata. What it names is on the disk when it appears.

    Raises:
        StorageError: content is missing, or something could not be written; nothing of it is left but content.
    """
    log = b"".join([_line(new_header(stamps, nonce=seed.nonce)), *planted(seed, storage, stamps)])
    base_config, metadata = files
    first = first_files(base_config, metadata, log)
    conversation_id, directory = place_conversation(
        storage, others, first, words=metadata.title or topic, stamps=stamps
    )
    try:
        for name in first:
            sync_file(directory / name)
    except OSError as error:
        remove_conversation(storage, directory, stamps=stamps)
        raise failure("write", directory, error) from error
    return conversation_id, directory


def planted(seed: Seed, storage: Storage, stamps: Stamps) -> list[bytes]:
    """The lines of a log after its header. The content that they name is in `storage` then, and on the disk.

    Content is read only where it lies in another place.

    Raises:
        StorageError: content is missing, or could not be written.
    """
    target = DiskBlobs(storage.blobs, private=storage.private)

    def kept(carrier: C, /) -> C:
        return stored(carrier, target)

    for sha256 in named_in(seed.entries):
        target.adopt(sha256, seed.blobs)
    lines = [_line(map_carriers(entry, kept)) for entry in stamped(seed.entries, stamps)]
    try:
        target.sync()
    except OSError as error:
        raise failure("write", storage.blobs, error) from error
    return lines


def named_in(entries: Sequence[AnyEntry]) -> set[str]:
    """The checksums of the blobs that entries name."""
    return {carrier.sha256 for entry in entries for carrier in carriers_in(entry) if carrier.sha256 is not None}


def stamped(entries: Sequence[AnyEntry], stamps: Stamps) -> list[AnyEntry]:
    """The entries, with an id and a moment where they lack them."""
    found: list[AnyEntry] = []
    last = ""
    for entry in entries:
        whole = entry
        if not isinstance(entry, Unknown) and not (entry.id and entry.at):
            now = stamps.now()
            fresh = entry_id(milliseconds=now, entropy=stamps.entropy(ENTROPY_BYTES), last=last)
            whole = replace(entry, id=entry.id or fresh, at=entry.at or timestamp(now))
        last = whole.id or last
        found.append(whole)
    return found


def _line(entry: AnyEntry) -> bytes:
    # Between the tokens of an unknown entry there may be line breaks; in strings JSON has none.
    return encode(entry).replace(b"\n", b" ") + b"\n"
