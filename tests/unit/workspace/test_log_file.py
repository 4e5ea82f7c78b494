from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from disk_faults import Call, error, failing_disk, short
from jp.cli.terminal.wording import worded
from jp.errors import ExitCode, StorageError
from jp.workspace.lock import LockedError
from jp.workspace.log import LogFile
from jp.workspace.store import LogMissingError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"one\n")
    return path


def test_lines_are_added_at_the_end(path: Path) -> None:
    file = LogFile.open(path)
    file.append(b"two\n")
    file.append(b"three\n")

    assert file.read() == path.read_bytes() == b"one\ntwo\nthree\n"
    file.close()
    file.close()


def test_a_line_is_one_write(path: Path) -> None:
    with failing_disk(path.parent) as disk:
        file = LogFile.open(path)
        file.append(b"x" * 1_000_000 + b"\n")
        file.close()

    assert disk.calls == ["open", "write"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG], ids=errno.errorcode.get)
def test_a_write_that_fails_leaves_nothing_and_more_can_be_appended(path: Path, number: int) -> None:
    with failing_disk(path.parent, at=2, fault=error(number)) as disk:
        file = LogFile.open(path)
        with pytest.raises(StorageError, match="cannot write") as caught:
            file.append(b"two\n")
        assert path.read_bytes() == b"one\n"
        file.append(b"three\n")
        file.close()

    assert disk.calls == ["open", "write", "ftruncate", "write"]
    assert caught.value.hint
    assert path.read_bytes() == b"one\nthree\n"


def test_a_write_that_takes_a_part_is_continued(path: Path) -> None:
    with failing_disk(path.parent, at=2, fault=short) as disk:
        file = LogFile.open(path)
        file.append(b"two\n")
        file.close()

    assert disk.calls == ["open", "write", "write"]
    assert path.read_bytes() == b"one\ntwo\n"


def test_a_part_that_cannot_be_continued_leaves_nothing_and_more_can_be_appended(path: Path) -> None:
    with failing_disk(path.parent) as disk:
        disk.break_calls({2: short, 3: error(errno.ENOSPC)})
        file = LogFile.open(path)
        with pytest.raises(StorageError, match="No space") as caught:
            file.append(b"two\n")
        assert path.read_bytes() == b"one\n"
        file.append(b"three\n")
        file.close()

    assert "space" in caught.value.hint
    assert path.read_bytes() == b"one\nthree\n"


def test_an_interrupt_in_the_middle_of_a_write_leaves_nothing(path: Path) -> None:
    def interrupted(name: str, call: Call, arguments: tuple[object, ...]) -> None:
        call(*arguments)
        raise KeyboardInterrupt

    with failing_disk(path.parent, at=2, fault=interrupted):
        file = LogFile.open(path)
        with pytest.raises(KeyboardInterrupt):
            file.append(b"two\n")
        file.close()

    assert path.read_bytes() == b"one\n"


def test_where_cutting_fails_too_it_is_tried_again_before_the_next_line(path: Path) -> None:
    with failing_disk(path.parent) as disk:
        file = LogFile.open(path)
        disk.break_calls({1: short, 2: error(errno.ENOSPC), 3: error(errno.EIO), 4: error(errno.EIO)})
        with pytest.raises(StorageError, match="No space"):
            file.append(b"two\n")
        assert path.read_bytes() == b"one\ntw"
        with pytest.raises(StorageError, match="Input/output"):
            file.append(b"three\n")
        assert path.read_bytes() == b"one\ntw"
        file.append(b"four\n")
        file.close()

    assert disk.calls == ["write", "write", "ftruncate", "ftruncate", "ftruncate", "write"]
    assert path.read_bytes() == b"one\nfour\n"


def test_what_is_cut_off_is_kept_beside_the_log(path: Path) -> None:
    path.write_bytes(b"one\ntw")
    file = LogFile.open(path)

    kept = file.cut(4, b"tw")
    file.close()

    assert kept == path.with_name("events.jsonl.torn-1")
    assert kept.read_bytes() == b"tw"
    assert path.read_bytes() == b"one\n"


def test_what_was_cut_off_before_is_not_overwritten(path: Path) -> None:
    path.write_bytes(b"one\ntw")
    path.with_name("events.jsonl.torn-1").write_bytes(b"earlier")
    file = LogFile.open(path)

    kept = file.cut(4, b"tw")
    file.close()

    assert kept.name == "events.jsonl.torn-2"
    assert path.with_name("events.jsonl.torn-1").read_bytes() == b"earlier"


@pytest.mark.parametrize("at", [2, 3, 4], ids=["create", "write", "truncate"])
def test_a_cut_that_fails_leaves_the_log_as_it_was(path: Path, at: int) -> None:
    path.write_bytes(b"one\ntw")
    with failing_disk(path.parent, at=at, fault=error(errno.ENOSPC)):
        file = LogFile.open(path)
        with pytest.raises(StorageError, match="cannot repair"):
            file.cut(4, b"tw")
        file.close()

    assert path.read_bytes() == b"one\ntw"


def test_a_second_writer_is_refused_even_without_the_lock(path: Path) -> None:
    file = LogFile.open(path)

    with pytest.raises(LockedError) as caught:
        LogFile.open(path)
    assert caught.value.exit_code is ExitCode.LOCKED
    assert caught.value.hint
    file.close()
    LogFile.open(path).close()


def test_a_file_system_without_locks_is_written_all_the_same(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOTSUP, "not supported")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    file = LogFile.open(path)
    file.append(b"two\n")
    file.close()

    assert path.read_bytes() == b"one\ntwo\n"


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_log_that_is_not_the_one_that_was_opened_is_not_written_to_in_vain(path: Path, how: str) -> None:
    file = LogFile.open(path)
    path.unlink()
    if how == "replaced":
        path.write_bytes(b"another\n")

    with pytest.raises(StorageError, match="removed or replaced") as caught:
        file.append(b"two\n")
    assert caught.value.hint
    file.close()
    assert not path.exists() or path.read_bytes() == b"another\n"


def test_a_line_that_somebody_left_open_is_ended_first(path: Path) -> None:
    file = LogFile.open(path)
    file.append(b"one\n")
    with path.open("ab") as other:
        other.write(b"by hand")

    file.append(b"two\n")
    file.append(b"three\n")
    file.close()

    assert path.read_bytes().endswith(b"one\nby hand\ntwo\nthree\n")


def test_an_empty_line_only_ends_the_one_before(path: Path) -> None:
    file = LogFile.open(path)
    file.append(b"one")
    file.append(b"")
    file.append(b"")
    file.close()

    assert path.read_bytes().endswith(b"one\n")


def test_a_log_that_was_shortened_is_not_written_to(path: Path) -> None:
    file = LogFile.open(path)
    file.append(b"one\n")
    os.truncate(path, 2)

    with pytest.raises(StorageError, match="was shortened by another program") as caught:
        file.append(b"two\n")
    file.close()

    assert caught.value.hint
    assert path.stat().st_size == 2


def test_a_log_that_was_shortened_since_it_was_read_is_not_written_to(path: Path) -> None:
    path.write_bytes(b"one\ntwo\n")
    file = LogFile.open(path)
    file.read()
    os.truncate(path, 4)

    with pytest.raises(StorageError, match="shortened"):
        file.append(b"three\n")
    file.close()


def test_a_closed_log_takes_nothing(path: Path) -> None:
    file = LogFile.open(path)
    file.close()

    with pytest.raises(StorageError, match="closed"):
        file.append(b"two\n")


def test_a_log_that_cannot_be_opened_is_an_error(path: Path) -> None:
    with failing_disk(path.parent, at=1, fault=error(errno.EROFS)), pytest.raises(StorageError) as caught:
        LogFile.open(path)
    assert "--no-persist" in worded(caught.value.hint)
    with pytest.raises(LogMissingError):
        LogFile.open(path.parent / "gone" / "events.jsonl")


def test_a_log_that_is_a_link_is_not_followed(path: Path) -> None:
    link = path.with_name("link")
    link.symlink_to(path)

    with pytest.raises(StorageError, match="cannot write"):
        LogFile.open(link)


def test_a_log_that_cannot_be_read_is_an_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(descriptor: int, size: int, offset: int) -> bytes:
        raise OSError(errno.EIO, "broken")

    file = LogFile.open(path)
    monkeypatch.setattr(os, "pread", broken)

    with pytest.raises(StorageError, match="cannot read"):
        file.read()
    file.close()


def test_syncing_covers_companions_once(path: Path) -> None:
    companion = path.with_name("metadata.json")
    companion.write_bytes(b"{}")
    with failing_disk(path.parent) as disk:
        file = LogFile.open(path)
        file.sync_also(companion, path.with_name("gone"))
        file.sync()
        file.sync()
        file.close()

    assert disk.calls == ["open", "fsync", "fsync", "fsync"]
