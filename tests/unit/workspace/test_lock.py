from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import anyio
import pytest

from disk_faults import error, failing_disk
from jp.cli.terminal.wording import worded
from jp.errors import ExitCode, StorageError
from jp.workspace.lock import Lock, LockedError


def lock_at(path: Path) -> Lock:
    return Lock(path, subject="jp-c17")


def no_waiting(text: str) -> None:
    raise AssertionError(text)


def ignored(text: str) -> None:
    pass


def test_a_free_lock_is_acquired_at_once_and_says_who_holds_it(tmp_path: Path) -> None:
    path = tmp_path / "locks" / "a.lock"
    lock = lock_at(path)

    lock.acquire(patience=0, waiting=no_waiting)

    assert lock.held
    holder = json.loads(path.read_text(encoding="utf-8"))
    assert holder["pid"] == os.getpid()
    assert holder["acquired_at"].endswith("Z")
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_lock_that_somebody_holds_is_an_error_of_its_own_exit_code(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with lock_at(path) as first:
        first.acquire(patience=0, waiting=no_waiting)
        with pytest.raises(LockedError, match=rf"'jp-c17' is locked: process {os.getpid()} ") as caught:
            lock_at(path).acquire(patience=0, waiting=ignored)

    assert caught.value.exit_code is ExitCode.LOCKED
    assert "--wait" in worded(caught.value.hint)


def test_without_patience_nobody_is_told_to_wait(tmp_path: Path) -> None:
    with lock_at(tmp_path / "a.lock") as first:
        first.acquire(patience=0, waiting=no_waiting)
        with pytest.raises(LockedError):
            lock_at(tmp_path / "a.lock").acquire(patience=0, waiting=no_waiting)


def test_who_waits_is_told_once_and_gets_it_when_it_is_released(tmp_path: Path) -> None:
    first = lock_at(tmp_path / "a.lock")
    first.acquire(patience=0, waiting=no_waiting)
    told: list[str] = []

    def waiting(text: str) -> None:
        told.append(text)
        first.release()

    second = lock_at(tmp_path / "a.lock")
    second.acquire(patience=None, waiting=waiting)

    assert second.held
    assert not first.held
    assert len(told) == 1
    assert f"process {os.getpid()}" in told[0]


def test_patience_ends(tmp_path: Path) -> None:
    told: list[str] = []
    with lock_at(tmp_path / "a.lock") as first:
        first.acquire(patience=0, waiting=no_waiting)
        with pytest.raises(LockedError):
            lock_at(tmp_path / "a.lock").acquire(patience=0.05, waiting=told.append)

    assert len(told) == 1


@pytest.mark.parametrize("content", [b"", b"garbage", b'{"pid":"x"}', b"\xff"], ids=repr)
def test_a_holder_that_cannot_be_read_is_another_process(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.lock"
    with lock_at(path) as first:
        first.acquire(patience=0, waiting=no_waiting)
        path.write_bytes(content)
        with pytest.raises(LockedError, match="another process is writing"):
            lock_at(path).acquire(patience=0, waiting=ignored)


def test_a_released_lock_names_nobody_and_can_be_taken_again(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    lock = lock_at(path)
    for _ in range(2):
        lock.acquire(patience=0, waiting=no_waiting)
        lock.release()
        lock.release()

    assert path.read_bytes() == b""


def test_acquiring_what_is_held_already_is_nothing(tmp_path: Path) -> None:
    with lock_at(tmp_path / "a.lock") as lock:
        lock.acquire(patience=0, waiting=no_waiting)
        lock.acquire(patience=0, waiting=no_waiting)

        assert lock.held


def test_a_lock_whose_file_was_deleted_while_one_waited_is_taken_on_the_new_file(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    first = lock_at(path)
    first.acquire(patience=0, waiting=no_waiting)

    def removed(text: str) -> None:
        first.remove_file()
        first.release()

    with lock_at(path) as second:
        second.acquire(patience=None, waiting=removed)
        assert path.exists()
        with pytest.raises(LockedError):
            lock_at(path).acquire(patience=0, waiting=ignored)


def test_a_file_deleted_between_opening_and_locking_is_not_mistaken_for_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.lock"
    real = os.fstat
    opened: list[int] = []

    def deleted_once(descriptor: int) -> os.stat_result:
        if not opened:
            path.unlink()
        opened.append(descriptor)
        return real(descriptor)

    monkeypatch.setattr(os, "fstat", deleted_once)
    lock = lock_at(path)
    lock.acquire(patience=0, waiting=no_waiting)
    monkeypatch.undo()

    assert len(opened) == 2
    with pytest.raises(LockedError):
        lock_at(path).acquire(patience=0, waiting=ignored)
    lock.release()


def test_only_the_holder_removes_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with lock_at(path) as lock:
        lock.acquire(patience=0, waiting=no_waiting)
        lock_at(path).remove_file()
        assert path.exists()
        lock.remove_file()
        assert not path.exists()


def test_a_lock_without_a_path_locks_nothing() -> None:
    one, other = Lock(None, subject="a"), Lock(None, subject="a")
    one.acquire(patience=0, waiting=no_waiting)
    other.acquire(patience=0, waiting=no_waiting)

    assert one.held
    assert other.held
    one.remove_file()
    one.release()
    assert not one.held


def test_an_event_loop_goes_on_while_a_task_waits(tmp_path: Path) -> None:
    first = lock_at(tmp_path / "a.lock")
    first.acquire(patience=0, waiting=no_waiting)
    second = lock_at(tmp_path / "a.lock")

    async def run() -> None:
        asked = anyio.Event()

        async def wait() -> None:
            await second.acquire_async(patience=None, waiting=lambda _: asked.set())

        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                await asked.wait()
                assert not second.held
                first.release()

    anyio.run(run)

    assert second.held
    second.release()


def test_a_cancelled_task_leaves_nothing_behind(tmp_path: Path) -> None:
    first = lock_at(tmp_path / "a.lock")
    first.acquire(patience=0, waiting=no_waiting)
    second = lock_at(tmp_path / "a.lock")

    async def run() -> None:
        with anyio.fail_after(5), anyio.CancelScope() as scope:
            await second.acquire_async(patience=None, waiting=lambda _: scope.cancel())

    anyio.run(run)

    assert not second.held
    first.release()
    second.acquire(patience=0, waiting=no_waiting)
    second.release()


def test_a_directory_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with failing_disk(tmp_path, at=1, fault=error(errno.EROFS)), pytest.raises(StorageError) as caught:
        lock_at(tmp_path / "a.lock").acquire(patience=0, waiting=no_waiting)

    assert caught.value.exit_code is ExitCode.FAILURE
    assert "--no-persist" in worded(caught.value.hint)


def test_a_file_system_without_locks_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOTSUP, "not supported")

    monkeypatch.setattr("fcntl.flock", unsupported)

    with pytest.raises(StorageError, match="cannot lock"):
        lock_at(tmp_path / "a.lock").acquire(patience=0, waiting=no_waiting)


@pytest.mark.parametrize("at", [2, 3], ids=["truncate", "write"])
def test_a_full_disk_does_not_prevent_locking(tmp_path: Path, at: int) -> None:
    with failing_disk(tmp_path, at=at, fault=error(errno.ENOSPC)), lock_at(tmp_path / "a.lock") as lock:
        lock.acquire(patience=0, waiting=no_waiting)
        assert lock.held
