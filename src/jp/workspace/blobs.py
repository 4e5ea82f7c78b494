"""Blobs: large content by its checksum, stored once for all conversations of a storage."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Protocol, TypeVar

from msgspec.structs import replace

from jp.conversation.resource import (
    AudioBlock,
    BinaryContent,
    Carrier,
    ImageBlock,
    Payload,
    Resource,
    StoredContent,
    TextContent,
    content_of,
    raw_bytes,
)
from jp.errors import StorageError
from jp.file_access import LIST
from jp.remedies import Option, UseOption, join, phrase
from jp.workspace.files import (
    failure,
    make_directories,
    opened,
    read_file,
    replace_file,
    storage_errors,
    sync_file,
)

_SHA256 = re.compile(r"[0-9a-f]{64}")


class BlobError(StorageError):
    """A blob cannot be read."""


class BlobMissingError(BlobError):
    """A blob that an entry names is not there."""


class BlobDamagedError(BlobError):
    """A blob does not hold what its name says."""


class BlobStore(Protocol):
    """A store of raw content. Blobs never change, so a store may keep copies of another's."""

    def put(self, data: bytes) -> str:
        """Keep `data` and give its sha256; what is there already counts as used just now.

        Raises:
            StorageError: it could not be kept.
        """
        ...

    def get(self, sha256: str) -> bytes:
        """Return the content with this sha256, verified.

        Raises:
            BlobError: it is missing, damaged or cannot be read.
        """
        ...

    def sync(self) -> None:
        """Flush everything that was put to disk.

        Raises:
            OSError: the disk reports an error.
        """
        ...


class DiskBlobs:
    """Blobs as files, `ab/cd/<sha256>` under a directory."""

    def __init__(self, directory: Path, *, private: bool = False) -> None:
        self.directory = directory
        self._private = private
        self._unsynced: list[Path] = []

    def path(self, sha256: str) -> Path:
        """Return the path of the blob with this checksum.

        Raises:
            BlobDamagedError: `sha256` is no checksum.
        """
        if _SHA256.fullmatch(sha256) is None:
            msg = f"{sha256!r} is not the sha256 of a blob"
            raise BlobDamagedError(msg, hint="an entry of the log names it: correct that line by hand")
        return self.directory / sha256[:2] / sha256[2:4] / sha256

    def put(self, data: bytes) -> str:
        """See `BlobStore`."""
        sha256 = hashlib.sha256(data).hexdigest()
        path = self.path(sha256)
        if not self._touch(path, data):
            make_directories(path.parent, private=self._private)
            replace_file(path, data)
            self._unsynced.append(path)
        return sha256

    def get(self, sha256: str) -> bytes:
        """See `BlobStore`."""
        path = self.path(sha256)
        try:
            data = read_file(path)
        except FileNotFoundError:
            msg = f"blob {sha256!r} is missing: there is no {str(path)!r}"
            raise BlobMissingError(msg, hint="restore the file from a copy or a clone of the workspace") from None
        except OSError as error:
            trouble = failure("read", path, error)
            raise BlobError(trouble.message, hint=trouble.hint) from error
        if hashlib.sha256(data).hexdigest() != sha256:
            msg = f"blob {sha256!r} is damaged: {str(path)!r} holds something else"
            raise BlobDamagedError(msg, hint="restore the file from a copy or a clone of the workspace")
        return data

    def adopt(self, sha256: str, source: BlobStore) -> None:
        """Copy a blob of `source`; if both are the same place, it counts as used just now.

        Raises:
            BlobError: `source` is another place and cannot give it.
            StorageError: it could not be kept.
        """
        if isinstance(source, DiskBlobs) and source.directory == self.directory:
            path = self.path(sha256)
            with contextlib.suppress(OSError), locked_directory(path.parent, fcntl.LOCK_SH) as directory:
                os.utime(path.name, dir_fd=directory, follow_symlinks=False)
        else:
            self.put(source.get(sha256))

    def adopt_all(self, checksums: Iterable[str], source: BlobStore) -> None:
        """Copy these blobs of `source`, and flush them to disk.

        Raises:
            BlobError: `source` is another place and cannot give one.
            StorageError: one could not be kept.
        """
        for sha256 in sorted(checksums):
            self.adopt(sha256, source)
        with storage_errors("write", self.directory):
            self.sync()

    def sync(self) -> None:
        """See `BlobStore`."""
        while self._unsynced:
            sync_file(self._unsynced[-1])
            self._unsynced.pop()

    def _touch(self, path: Path, data: bytes) -> bool:
        # A blob that a power failure or a failing disk has damaged is written again; one that cannot be touched
        # could be collected as unused before the entry that names it is written.
        with contextlib.suppress(OSError), locked_directory(path.parent, fcntl.LOCK_SH) as directory:
            status = os.stat(path.name, dir_fd=directory, follow_symlinks=False)
            if status.st_size == len(data) and read_file(path) == data:
                os.utime(path.name, dir_fd=directory, follow_symlinks=False)
                return True
        return False


@contextlib.contextmanager
def locked_directory(directory: Path, operation: int) -> Generator[int]:
    """Lock a directory of blobs until the end of the block: shared to touch one, exclusively to remove one.

    So a blob that a writer is about to name is either touched before its age is read, or gone before it is touched.

    Raises:
        OSError: it is not there, or a link is in the way.
    """
    with opened(directory, LIST) as descriptor:
        # A file system without locks: the age of a blob protects it still.
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, operation)
        yield descriptor


class MemoryBlobs:
    """Blobs that are kept until the process ends, over a store that is only read."""

    def __init__(self, under: BlobStore | None = None) -> None:
        self._under = under
        self._blobs: dict[str, bytes] = {}

    def put(self, data: bytes) -> str:
        """See `BlobStore`."""
        sha256 = hashlib.sha256(data).hexdigest()
        self._blobs[sha256] = data
        return sha256

    def get(self, sha256: str) -> bytes:
        """See `BlobStore`."""
        if (data := self._blobs.get(sha256)) is not None:
            return data
        if self._under is None:
            raise BlobMissingError(f"blob {sha256!r} is missing")
        return self._under.get(sha256)

    def sync(self) -> None:
        """Do nothing: nothing is kept."""


INLINE_BYTES = 4096
"""Content of up to this many bytes stays in its line."""

C = TypeVar("C", bound=Carrier)


def stored(carrier: C, blobs: BlobStore) -> C:
    """Return the carrier as the log has it: its content in the blob store if it is large.

    Raises:
        StorageError: the content could not be stored.
    """
    content = content_of(carrier)
    if isinstance(content, StoredContent):
        return carrier
    data = raw_bytes(content)
    if len(data) <= INLINE_BYTES:
        return carrier
    sha256 = blobs.put(data)
    if isinstance(carrier, (ImageBlock, AudioBlock)):
        return replace(carrier, blob=None, sha256=sha256, size=len(data))
    chars, lines = _text_measures(content)
    named = replace(carrier, text=None, sha256=sha256, size=len(data), chars=chars, lines=lines)
    return named if isinstance(carrier, Payload) else replace(named, blob=None)


def _text_measures(content: TextContent | BinaryContent) -> tuple[int | None, int | None]:
    if isinstance(content, BinaryContent):
        return None, None
    text = content.text
    return len(text), text.count("\n") + (not text.endswith("\n"))


def inlined(carrier: C, blobs: BlobStore, *, conversation: str) -> C:
    """Return the carrier with its content inline; `conversation` is for messages.

    Raises:
        BlobError: it lies in the blob store and is missing or damaged there.
    """
    if carrier.sha256 is None:
        return carrier
    try:
        return with_content(carrier, blobs.get(carrier.sha256))
    except BlobError as error:
        whose = f" of {carrier.name or carrier.uri!r}" if isinstance(carrier, Resource) else ""
        message = f"conversation {conversation!r}: content{whose} cannot be read: {error.message}"
        raise type(error)(message, hint=_remedy(carrier, error)) from error


def _remedy(carrier: Carrier, error: BlobError) -> str:
    is_lost = isinstance(error, BlobMissingError | BlobDamagedError)
    if not is_lost or not isinstance(carrier, Resource) or "#" in carrier.uri:
        return error.hint
    from shlex import quote

    attaching = UseOption(Option.ATTACH, quote(carrier.uri))
    again = phrase("if it has not changed since, attach it again: `", attaching, "`")
    return join("; ", (again, error.hint))


def with_content(carrier: C, data: bytes) -> C:
    """Return the carrier with `data` inline as the content that it names.

    Raises:
        BlobDamagedError: it names text, and `data` is none.
    """
    if isinstance(carrier, (ImageBlock, AudioBlock)):
        return replace(carrier, blob=data, sha256=None, size=None)
    if isinstance(carrier, Resource) and carrier.chars is None:
        return replace(carrier, blob=data, sha256=None, size=None, lines=None)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        msg = f"blob {carrier.sha256!r} is not the text that an entry says it is"
        raise BlobDamagedError(msg, hint="an entry of the log names it: correct that line by hand") from None
    return replace(carrier, text=text, sha256=None, size=None, chars=None, lines=None)
