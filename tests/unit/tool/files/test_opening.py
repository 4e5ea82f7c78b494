from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from jp.tool.files.access import FileAccess, FileAccessError, read_whole
from plain_names import PlainNames


def read_with(root: Path, path: str, names: PlainNames) -> tuple[str, str]:
    """The real path and the text of a file."""
    place = FileAccess(root, (), names).place(path, "read")
    return place.path, read_whole(place).data.decode()


def read(root: Path, path: str) -> tuple[str, str]:
    return read_with(root, path, PlainNames())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A directory with files, beside one that is out of bounds."""
    inside = tmp_path / "root"
    (inside / "src").mkdir(parents=True)
    (inside / "src" / "a.txt").write_text("inside", encoding="utf-8")
    outside = tmp_path / "root-too"
    outside.mkdir()
    (outside / "secret.txt").write_text("outside", encoding="utf-8")
    return inside


@pytest.mark.parametrize("path", ["src/a.txt", "./src//a.txt", "src/../src/a.txt", "../root/src/a.txt"])
def test_every_spelling_of_a_path_opens_the_same_file(root: Path, path: str) -> None:
    assert read(root, path) == (os.path.realpath(root / "src" / "a.txt"), "inside")


def test_an_absolute_path_inside_is_fine(root: Path) -> None:
    assert read(root, str(root / "src" / "a.txt"))[1] == "inside"


def test_links_are_followed_as_long_as_they_stay_inside(root: Path) -> None:
    (root / "link").symlink_to("src")
    (root / "src" / "b.txt").symlink_to(root / "src" / "a.txt")

    assert read(root, "link/b.txt") == (os.path.realpath(root / "src" / "a.txt"), "inside")


def test_a_root_that_is_reached_through_a_link_is_resolved_too(root: Path) -> None:
    alias = root.parent / "alias"
    alias.symlink_to(root)

    assert read(alias, str(alias / "src" / "a.txt")) == (os.path.realpath(root / "src" / "a.txt"), "inside")


def test_the_root_of_the_file_system_is_a_root_like_any_other(root: Path) -> None:
    assert read(Path("/"), str(root / "src" / "a.txt"))[1] == "inside"


@pytest.mark.parametrize(
    "path",
    ["../root-too/secret.txt", "{outside}/secret.txt", "/etc/passwd", "..", "file-link", "directory-link/secret.txt"],
)
def test_what_leaves_the_root_is_refused(root: Path, path: str) -> None:
    outside = root.parent / "root-too"
    (root / "file-link").symlink_to(outside / "secret.txt")
    (root / "directory-link").symlink_to(outside)
    path = path.format(outside=outside)

    with pytest.raises(FileAccessError) as caught:
        read(root, path)

    assert caught.value.message == f"{path!r} is outside of {str(root)!r}, where files may be read"


def add_fifo(root: Path) -> None:
    os.mkfifo(root / "odd")


def add_socket(root: Path) -> None:
    here = Path.cwd()
    os.chdir(root)  # the address of a socket has a short limit
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("odd")
    finally:
        os.chdir(here)


def add_loop(root: Path) -> None:
    (root / "odd").symlink_to("odd")


@pytest.mark.parametrize("add", [add_fifo, add_socket, add_loop])
def test_nothing_but_a_regular_file_is_opened(root: Path, add: Callable[[Path], None]) -> None:
    add(root)

    with pytest.raises(FileAccessError, match=r"'odd' is (a link, )?not a regular file"):
        read(root, "odd")


def test_a_device_is_refused() -> None:
    with pytest.raises(FileAccessError, match="'null' is not a regular file"):
        read(Path("/dev"), "null")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("missing.txt", "there is no file 'missing.txt'"),
        ("missing/a.txt", "there is no file 'missing/a.txt'"),
        ("src", "'src' is a directory"),
        ("", "'' is a directory"),
        (".", "'.' is a directory"),
        ("src/a.txt/b", "cannot read 'src/a.txt/b': Not a directory"),
        ("x" * 300, f"cannot read {'x' * 300!r}: File name too long"),
        ("a\0b", "'a\\x00b' is not a path"),
        ("\ud800", "'\\ud800' is not a path"),
    ],
)
def test_what_cannot_be_opened_is_named_with_the_reason(root: Path, path: str, message: str) -> None:
    with pytest.raises(FileAccessError) as caught:
        read(root, path)

    assert caught.value.message == message


def test_a_dangling_link_names_nothing(root: Path) -> None:
    (root / "dangling").symlink_to("nowhere")

    with pytest.raises(FileAccessError, match="there is no file 'dangling'"):
        read(root, "dangling")


def test_an_unreadable_file_is_named(root: Path) -> None:
    (root / "src" / "a.txt").chmod(0)
    if os.access(root / "src" / "a.txt", os.R_OK):
        pytest.skip("root may read everything")

    with pytest.raises(FileAccessError, match=r"cannot read 'src/a\.txt': Permission denied"):
        read(root, "src/a.txt")


def swap_file_for_link(root: Path) -> None:
    (root / "src" / "a.txt").unlink()
    (root / "src" / "a.txt").symlink_to(root.parent / "root-too" / "secret.txt")


def swap_directory_for_link(root: Path) -> None:
    (root / "src").rename(root / "moved")
    (root.parent / "root-too" / "a.txt").write_text("outside", encoding="utf-8")
    (root / "src").symlink_to(root.parent / "root-too")


@pytest.mark.parametrize("swap", [swap_file_for_link, swap_directory_for_link])
def test_a_swap_after_the_path_was_checked_opens_nothing(root: Path, swap: Callable[[Path], None]) -> None:
    def swap_it(resolved: str) -> str:
        if resolved.endswith("a.txt"):
            swap(root)
        return resolved

    with pytest.raises(FileAccessError, match=r"'src/a\.txt' is a link, not a regular file|cannot read 'src/a\.txt'"):
        read_with(root, "src/a.txt", PlainNames(swap_it))


def swap_for_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def swap_for_link(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.parents[2] / "root-too" / "secret.txt")


def open_descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))


@pytest.mark.parametrize(
    ("swap", "message"),
    [
        (swap_for_fifo, "'src/a.txt' is not a regular file"),
        (swap_for_link, "cannot read 'src/a.txt': Too many levels of symbolic links"),
    ],
)
def test_a_swap_between_looking_and_opening_opens_nothing_and_never_blocks(
    root: Path, monkeypatch: pytest.MonkeyPatch, swap: Callable[[Path], None], message: str
) -> None:
    look = os.stat

    def look_then_swap(path: bytes, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> os.stat_result:
        found = look(path, dir_fd=dir_fd, follow_symlinks=follow_symlinks)
        swap(root / "src" / "a.txt")
        return found

    before = open_descriptors()
    with monkeypatch.context() as patched:
        patched.setattr(os, "stat", look_then_swap)
        with pytest.raises(FileAccessError) as caught:
            read(root, "src/a.txt")

    assert caught.value.message == message
    assert open_descriptors() == before


def test_no_descriptor_is_left_open_when_something_fails(root: Path) -> None:
    os.mkfifo(root / "src" / "fifo")
    before = open_descriptors()

    for path in ("src/fifo", "src/missing", "src", "src/a.txt/b", ".."):
        with pytest.raises(FileAccessError):
            read(root, path)

    assert open_descriptors() == before


def test_a_name_that_is_not_utf_8_keeps_its_bytes(root: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    try:
        (root / name).write_text("latin", encoding="utf-8")
    except OSError:
        pytest.skip("this file system takes names in UTF-8 only")

    path, text = read(root, name)

    assert text == "latin"
    assert path.endswith(f"/{name}")


def test_names_are_looked_up_as_their_directories_list_them(root: Path) -> None:
    path, text = read_with(root, "SRC/a.txt", PlainNames(lambda path: path.replace("SRC", "src")))

    assert text == "inside"
    assert path.endswith("/src/a.txt")


def test_a_path_that_no_file_system_takes_is_an_error(root: Path) -> None:
    def refuse(path: str) -> str:
        if path.endswith("/a"):
            raise OSError(errno.ENAMETOOLONG, "File name too long", path)
        return path

    with pytest.raises(FileAccessError, match="cannot reach 'a': File name too long"):
        read_with(root, "a", PlainNames(refuse))
