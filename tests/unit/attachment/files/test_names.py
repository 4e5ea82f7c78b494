from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from jp.attachment.file_paths import DiskTree, Identity, Names, joined, nfc

COMPOSED = "caf\u00e9"
DECOMPOSED = "cafe\u0301"


class ForgivingTree:
    """A file system as macOS has it: it keeps names as they were given, and finds them in any case and form."""

    def __init__(self, *paths: str, is_readable: bool = True) -> None:
        self._paths = paths
        self._is_readable = is_readable

    def names(self, directory: str) -> Sequence[str]:
        inside = [path.rpartition("/")[2] for path in self._paths if (path.rpartition("/")[0] or "/") == directory]
        return inside if self._is_readable else ()

    def identity(self, path: str) -> Identity | None:
        wanted = nfc(path.casefold())
        found = (index for index, path in enumerate(self._paths) if nfc(path.casefold()) == wanted)
        return next(((1, index) for index in found), None)


def test_a_name_has_the_case_that_its_directory_lists() -> None:
    names = Names(ForgivingTree("/Readme.md"))

    assert names.listed("/", "README.MD") == "Readme.md"


def test_a_name_has_the_unicode_form_that_its_directory_lists() -> None:
    names = Names(ForgivingTree(f"/{DECOMPOSED}"))

    assert names.listed("/", COMPOSED.upper()) == DECOMPOSED


def test_a_decomposed_name_is_composed_in_a_uri() -> None:
    assert Names(ForgivingTree(f"/{DECOMPOSED}")).spelled(f"/{DECOMPOSED}") == f"/{COMPOSED}"


def test_a_name_in_a_directory_that_cannot_be_listed_stays() -> None:
    assert Names(ForgivingTree("/Readme", is_readable=False)).listed("/", "README") == "README"


def test_a_missing_name_stays() -> None:
    assert Names(ForgivingTree("/Readme")).listed("/", "x") == "x"


def touch(directory: Path, *names: str) -> None:
    """Make files of these names, or skip where the file system does not have them as they are."""
    for name in names:
        with suppress(OSError):
            (directory / name).touch()
    if {path.name for path in directory.iterdir()} != set(names):
        pytest.skip("this file system does not tell such names apart")


def test_names_that_differ_in_case_alone_stay_apart(tmp_path: Path) -> None:
    touch(tmp_path, "a", "A")
    names = Names()

    assert names.listed(str(tmp_path), "a") == "a"
    assert names.listed(str(tmp_path), "A") == "A"


def test_hard_links_that_differ_in_case_alone_stay_apart(tmp_path: Path) -> None:
    touch(tmp_path, "a", "A")
    (tmp_path / "A").unlink()
    os.link(tmp_path / "a", tmp_path / "A")
    names = Names()

    assert names.listed(str(tmp_path), "a") == "a"
    assert names.listed(str(tmp_path), "A") == "A"


def test_a_missing_name_is_found_in_its_other_unicode_form(tmp_path: Path) -> None:
    (tmp_path / DECOMPOSED).touch()

    assert Names().listed(str(tmp_path), COMPOSED) == DECOMPOSED


def test_a_missing_name_with_two_other_forms_is_nobodys(tmp_path: Path) -> None:
    # Two marks in either order are two more spellings of one composed name.
    touch(tmp_path, "a\u0323\u0308", "a\u0308\u0323")

    assert Names().listed(str(tmp_path), "\u1ea1\u0308") == "\u1ea1\u0308"


def test_both_forms_in_one_directory_keep_their_own_spelling(tmp_path: Path) -> None:
    touch(tmp_path, COMPOSED, DECOMPOSED)
    names = Names()

    assert names.spelled(joined(str(tmp_path), COMPOSED)).endswith(COMPOSED)
    assert names.spelled(joined(str(tmp_path), DECOMPOSED)).endswith(DECOMPOSED)


def test_bytes_that_are_no_text_are_spelled_as_they_are(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    touch(tmp_path, name)

    assert Names().spelled(joined(str(tmp_path), name)) == joined(str(tmp_path), name)


def test_the_disk_has_nothing_where_nothing_is(tmp_path: Path) -> None:
    tree = DiskTree()

    assert tree.names(str(tmp_path / "x")) == ()
    assert tree.identity(str(tmp_path / "x")) is None
    assert tree.identity("a\0b") is None


def test_a_name_without_letters_is_not_looked_for(tmp_path: Path) -> None:
    (tmp_path / "12").touch()

    assert Names().listed(str(tmp_path), "12") == "12"
