from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from disk_faults import Call, error, failing_disk, short
from jp.cli.terminal.wording import worded
from jp.errors import StorageError
from jp.workspace.files import (
    create_file,
    failure,
    make_directories,
    read_file,
    replace_file,
    sync_descriptor,
    sync_file,
)


def test_directories_are_created_with_what_is_missing_above(tmp_path: Path) -> None:
    make_directories(tmp_path / "a" / "b" / "c")
    make_directories(tmp_path / "a" / "b" / "c")

    assert (tmp_path / "a" / "b" / "c").is_dir()


def test_private_directories_are_the_users_alone_at_every_level(tmp_path: Path) -> None:
    make_directories(tmp_path / "a" / "b", private=True)

    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700


def test_a_file_in_the_place_of_a_directory_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("", encoding="utf-8")

    with pytest.raises(StorageError, match=r"cannot create '.*/a/b'"):
        make_directories(tmp_path / "a" / "b")


def test_a_directory_that_another_process_creates_first_is_as_good(tmp_path: Path) -> None:
    def created_by_another(name: str, call: Call, arguments: tuple[Any, ...]) -> None:
        call(*arguments)
        call(*arguments)

    with failing_disk(tmp_path, at=1, fault=created_by_another):
        make_directories(tmp_path / "a")

    assert (tmp_path / "a").is_dir()


def test_a_file_is_created_only_where_there_is_none(tmp_path: Path) -> None:
    create_file(tmp_path / "a", b"one")

    with pytest.raises(FileExistsError):
        create_file(tmp_path / "a", b"two")
    assert (tmp_path / "a").read_bytes() == b"one"


def test_a_file_that_cannot_be_written_whole_leaves_nothing(tmp_path: Path) -> None:
    with failing_disk(tmp_path, at=2, fault=error(errno.ENOSPC)), pytest.raises(OSError, match="space"):
        create_file(tmp_path / "a", b"one")

    assert list(tmp_path.iterdir()) == []


def test_a_short_write_is_continued(tmp_path: Path) -> None:
    with failing_disk(tmp_path, at=2, fault=short):
        create_file(tmp_path / "a", b"a content of some bytes")

    assert (tmp_path / "a").read_bytes() == b"a content of some bytes"


def test_replacing_a_file_gives_it_all_of_the_new_content(tmp_path: Path) -> None:
    replace_file(tmp_path / "a", b"one")
    replace_file(tmp_path / "a", b"two")

    assert (tmp_path / "a").read_bytes() == b"two"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("at", [1, 2, 3], ids=["open", "write", "rename"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS], ids=["full", "broken", "read-only"])
def test_replacing_that_fails_leaves_the_file_as_it_was(tmp_path: Path, at: int, number: int) -> None:
    replace_file(tmp_path / "a", b"one")

    with (
        failing_disk(tmp_path, at=at, fault=error(number)),
        pytest.raises(StorageError, match="cannot write") as caught,
    ):
        replace_file(tmp_path / "a", b"two")

    assert caught.value.hint
    assert (tmp_path / "a").read_bytes() == b"one"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize(
    ("action", "number", "mends"),
    [
        ("read", errno.EACCES, "ls -ld"),
        ("list", errno.EACCES, "ls -ld"),
        ("write", errno.EACCES, "--no-persist"),
        ("write", errno.ENOSPC, "space"),
        ("read", errno.EISDIR, "move it away"),
        ("create", errno.EEXIST, "move it away"),
        ("list", errno.ENOTDIR, "JP_USER_DATA_DIR"),
        ("read", errno.ELOOP, "link"),
        ("read", errno.ESPIPE, "pipe"),
    ],
)
def test_an_error_says_what_mends_it(action: str, number: int, mends: str) -> None:
    assert mends in worded(failure(action, Path("x"), OSError(number, os.strerror(number))).hint)


def test_reading_gives_the_whole_file(tmp_path: Path) -> None:
    data = os.urandom(300_000)
    (tmp_path / "a").write_bytes(data)
    (tmp_path / "empty").write_bytes(b"")

    assert read_file(tmp_path / "a") == data
    assert read_file(tmp_path / "empty") == b""


def test_reading_follows_no_link_and_waits_for_no_pipe(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(OSError, match="symbolic"):
        read_file(tmp_path / "link")
    with pytest.raises(OSError, match="it is a named pipe, not a file"):
        read_file(tmp_path / "pipe")
    with pytest.raises(IsADirectoryError):
        read_file(tmp_path)


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EDQUOT, "free some of your quota"),
        (errno.EFBIG, "ulimit -f"),
        (errno.EROFS, "--no-persist"),
        (errno.EACCES, "--no-persist"),
        (errno.EIO, "system's log"),
        (errno.ENAMETOOLONG, "JP_USER_DATA_DIR"),
        (errno.EMFILE, "ulimit -n"),
        *((number, "") for number in sorted(errno.errorcode)),
    ],
    ids=str,
)
def test_a_failure_says_what_failed_and_what_mends_it(number: int, hint: str) -> None:
    trouble = failure("write", Path("/a/b"), OSError(number, os.strerror(number)))

    assert trouble.message == f"cannot write '/a/b': {os.strerror(number)}"
    assert hint in worded(trouble.hint)
    assert trouble.hint != ""


@pytest.mark.parametrize("number", sorted({errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS}))
def test_a_file_system_without_locks_is_said_with_what_moves_the_lock(number: int) -> None:
    trouble = failure("lock", Path("/a/b"), OSError(number, os.strerror(number)))

    assert trouble.hint.startswith("its file system has no locks")
    assert "JP_USER_DATA_DIR" in trouble.hint


def test_syncing_a_file_that_is_gone_is_nothing(tmp_path: Path) -> None:
    sync_file(tmp_path / "gone")


def test_a_file_system_that_cannot_sync_is_left_alone_and_a_broken_disk_is_reported(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as file:
        pass
    with failing_disk(tmp_path, at=1, fault=error(errno.EINVAL)):
        sync_file(tmp_path / "a")
    with failing_disk(tmp_path, at=1, fault=error(errno.EIO)), pytest.raises(OSError, match="Input/output"):
        sync_file(tmp_path / "a")

    assert file.closed
    with pytest.raises(OSError, match="descriptor"):
        sync_descriptor(10_000)
