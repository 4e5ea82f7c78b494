from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path

import pytest

from disk_faults import error, failing_disk
from jp.errors import StorageError
from jp.workspace.blobs import BlobDamagedError, BlobError, BlobMissingError, BlobStore, DiskBlobs, MemoryBlobs

OLD = 1_000_000_000


def test_a_blob_lies_raw_under_its_checksum(tmp_path: Path) -> None:
    sha256 = DiskBlobs(tmp_path / "blobs").put(b"content")

    assert sha256 == hashlib.sha256(b"content").hexdigest()
    path = tmp_path / "blobs" / sha256[:2] / sha256[2:4] / sha256
    assert path.read_bytes() == b"content"


@pytest.mark.parametrize("kind", ["disk", "memory"])
@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 5000], ids=["empty", "small", "large"])
def test_what_was_put_is_got(tmp_path: Path, kind: str, data: bytes) -> None:
    blobs: BlobStore = DiskBlobs(tmp_path) if kind == "disk" else MemoryBlobs()

    sha256 = blobs.put(data)
    blobs.sync()

    assert blobs.get(sha256) == data


def test_the_same_content_is_kept_once_and_counts_as_used_now(tmp_path: Path) -> None:
    blobs = DiskBlobs(tmp_path)
    path = blobs.path(blobs.put(b"content"))
    os.utime(path, (OLD, OLD))
    before = path.stat()

    blobs.put(b"content")

    assert path.stat().st_ino == before.st_ino
    assert path.stat().st_mtime > OLD
    assert [other.name for other in path.parent.iterdir()] == [path.name]


def test_a_blob_of_another_size_is_written_anew(tmp_path: Path) -> None:
    blobs = DiskBlobs(tmp_path)
    sha256 = blobs.put(b"content")
    blobs.path(sha256).write_bytes(b"")

    blobs.put(b"content")

    assert blobs.get(sha256) == b"content"


def test_a_blob_that_was_damaged_is_repaired_by_who_has_its_content(tmp_path: Path) -> None:
    blobs = DiskBlobs(tmp_path)
    sha256 = blobs.put(b"content")
    blobs.path(sha256).write_bytes(b"CONTENT")

    blobs.put(b"content")

    assert blobs.get(sha256) == b"content"


def test_a_blob_that_cannot_be_touched_is_written_anew(tmp_path: Path) -> None:
    blobs = DiskBlobs(tmp_path)
    sha256 = blobs.put(b"content")
    os.utime(blobs.path(sha256), (OLD, OLD))

    with failing_disk(tmp_path, at=1, fault=error(errno.EPERM)) as disk:
        blobs.put(b"content")

    assert disk.calls[0] == "utime"
    assert blobs.path(sha256).stat().st_mtime > OLD


@pytest.mark.parametrize("at", range(1, 7))
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO], ids=["full", "broken"])
def test_a_blob_that_cannot_be_written_is_an_error_and_leaves_nothing(tmp_path: Path, at: int, number: int) -> None:
    blobs = DiskBlobs(tmp_path / "blobs")

    with failing_disk(tmp_path, at=at, fault=error(number)) as disk, pytest.raises(StorageError) as caught:
        blobs.put(b"content")

    assert disk.calls[:3] == ["mkdir", "mkdir", "mkdir"][:at]
    assert caught.value.hint
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert blobs.get(blobs.put(b"content")) == b"content"


def test_a_missing_blob_is_named(tmp_path: Path) -> None:
    sha256 = hashlib.sha256(b"content").hexdigest()

    with pytest.raises(BlobMissingError, match=sha256) as caught:
        DiskBlobs(tmp_path).get(sha256)
    assert caught.value.hint
    with pytest.raises(BlobMissingError, match=sha256):
        MemoryBlobs().get(sha256)


@pytest.mark.parametrize("content", [b"", b"conten", b"CONTENT", b"content\r\n"])
def test_a_damaged_blob_is_named(tmp_path: Path, content: bytes) -> None:
    blobs = DiskBlobs(tmp_path)
    sha256 = blobs.put(b"content")
    blobs.path(sha256).write_bytes(content)

    with pytest.raises(BlobDamagedError, match=sha256) as caught:
        blobs.get(sha256)
    assert caught.value.hint


@pytest.mark.parametrize("name", ["../../../etc/passwd", "", "a" * 63, "A" * 64, "g" * 64, "a" * 64 + "\n"])
def test_a_name_that_is_no_checksum_leads_nowhere(tmp_path: Path, name: str) -> None:
    with pytest.raises(BlobDamagedError, match="not the sha256"):
        DiskBlobs(tmp_path).get(name)


def test_a_blob_that_is_a_link_or_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    blobs = DiskBlobs(tmp_path)
    sha256 = blobs.put(b"content")
    (tmp_path / "copy").write_bytes(b"content")
    blobs.path(sha256).unlink()
    blobs.path(sha256).symlink_to(tmp_path / "copy")

    with pytest.raises(BlobError, match="cannot read"):
        blobs.get(sha256)


def test_syncing_covers_what_was_written_and_not_what_was_there(tmp_path: Path) -> None:
    DiskBlobs(tmp_path).put(b"one")
    blobs = DiskBlobs(tmp_path)
    blobs.put(b"one")
    blobs.put(b"two")
    with failing_disk(tmp_path) as disk:
        blobs.sync()
        blobs.sync()

    assert disk.calls == ["fsync"]


def test_a_sync_that_fails_is_tried_again(tmp_path: Path) -> None:
    blobs = DiskBlobs(tmp_path)
    blobs.put(b"one")

    with failing_disk(tmp_path, at=1, fault=error(errno.EIO)), pytest.raises(OSError, match="Input/output"):
        blobs.sync()
    with failing_disk(tmp_path) as disk:
        blobs.sync()

    assert disk.calls == ["fsync"]


def test_memory_over_a_disk_reads_both_and_writes_one(tmp_path: Path) -> None:
    below = DiskBlobs(tmp_path)
    old = below.put(b"old")
    blobs = MemoryBlobs(below)

    new = blobs.put(b"new")

    assert blobs.get(old) == b"old"
    assert blobs.get(new) == b"new"
    with pytest.raises(BlobMissingError):
        below.get(new)
