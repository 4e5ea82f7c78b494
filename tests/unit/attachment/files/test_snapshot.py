from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from jp.attachment.file_paths import NotAFileError, TooLargeError, open_below, read
from jp.file_access import LIST


def open_descriptors() -> int:
    return sum(1 for _ in Path("/dev/fd").iterdir())


def test_a_file_is_read_with_its_moment(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    os.utime(tmp_path / "x", (0, 86_400))

    snapshot = read(str(tmp_path), ["x"], 3)

    assert snapshot.data == b"abc"
    assert snapshot.last_modified == "1970-01-02T00:00:00Z"


def test_a_moment_beyond_the_calendar_is_omitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").touch()
    status = (tmp_path / "x").stat()

    def far_away(_: int) -> os.stat_result:
        return os.stat_result((*status[:8], 10**15, *status[9:]))

    monkeypatch.setattr(os, "fstat", far_away)

    assert read(str(tmp_path), ["x"], 3).last_modified is None


def test_one_byte_too_many_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "x").open("wb") as file:
        file.truncate(10**12)

    with pytest.raises(TooLargeError) as raised:
        read(str(tmp_path), ["x"], 10)

    assert raised.value.size == 10**12
    assert not raised.value.may_be_sent


def test_a_file_that_grows_while_it_is_read_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").write_bytes(b"a")

    def grow(_: int, count: int) -> bytes:
        return b"a" * count

    monkeypatch.setattr(os, "read", grow)

    with pytest.raises(TooLargeError) as raised:
        read(str(tmp_path), ["x"], 10)

    assert raised.value.may_be_sent


def test_a_file_that_says_it_is_empty_is_read_to_its_end() -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("only Linux has /proc")

    assert read("/proc", [str(os.getpid()), "status"], 100_000).data.startswith(b"Name:")


def test_a_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x")

    with pytest.raises(NotAFileError):
        read(str(tmp_path), ["x"], 10)


def test_a_socket_and_a_directory_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("x")
        with pytest.raises(OSError, match=r"No such device|not supported"):
            read(str(tmp_path), ["x"], 10)

    with pytest.raises(NotAFileError):
        read(str(tmp_path.parent), [tmp_path.name], 10)


@pytest.mark.parametrize("names", [["link"], ["linked", "x"]])
def test_what_became_a_link_is_refused(names: list[str], tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "x").touch()
    (tmp_path / "link").symlink_to("real/x")
    (tmp_path / "linked").symlink_to("real")

    with pytest.raises(OSError, match=r"symbolic links|Not a directory"):
        read(str(tmp_path), names, 10)


def test_a_directory_that_became_a_link_is_not_listed(tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to("/")

    with pytest.raises(OSError, match=r"symbolic links|Not a directory"):
        open_below(str(tmp_path), ["linked"], LIST)


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "x").write_bytes(b"abc")
    os.mkfifo(tmp_path / "a" / "pipe")
    before = open_descriptors()

    read(str(tmp_path), ["a", "b", "x"], 10)
    for names in (["a", "pipe"], ["a", "b", "missing"], ["a", "missing", "x"], ["a", "b", "x"]):
        with pytest.raises((OSError, NotAFileError, TooLargeError)):
            read(str(tmp_path), names, 2)
    os.close(open_below(str(tmp_path), ["a"], LIST))

    assert open_descriptors() == before
