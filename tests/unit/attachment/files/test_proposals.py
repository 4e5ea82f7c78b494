from __future__ import annotations

from pathlib import Path

import pytest

from jp.attachment import files as module
from jp.attachment.base import ResolveContext
from jp.attachment.files import first_missing, suggested_paths


def write(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()


def proposed(root: Path, path: str) -> list[str]:
    found = suggested_paths(str(root / path), ResolveContext(root=root, cwd=root))
    return [str(place.relative_to(root)) for place in found]


@pytest.mark.parametrize(
    ("files", "typed", "expected"),
    [
        ("a.txt", "A.TXT", ["a.txt"]),
        ("src/main.rs", "src/mian.rs", ["src/main.rs"]),
        ("main.rs", "main.py", ["main.rs"]),
        ("readme.md", "readme", ["readme.md"]),
        (".envrc", ".env", [".envrc"]),
        ("sp_ace.txt other.txt", "nosuch.txt", []),
        ("a.txt", "b.txt", []),
        ("", "a.txt", []),
        ("src/deep/main.py", "main.py", ["src/deep/main.py"]),
        ("src/deep/x", "deep", ["src/deep"]),
        ("source/main.rs", "sorce/main.rs", ["source/main.rs"]),
        ("source/main.rs", "sorce/other.rs", ["source"]),
        ("src/main.py/x", "src/main.py/x/y", ["src/main.py/x"]),
        ("README.md docs/readme.md", "readme.md", ["README.md", "docs/readme.md"]),
        ("one/x.py two/x.py three/x.py", "tow/x.py", ["two/x.py", "one/x.py"]),
        ("maim.py deep/main.py", "main.py", ["deep/main.py"]),
    ],
)
def test_what_was_meant_is_proposed(tmp_path: Path, files: str, typed: str, expected: list[str]) -> None:
    write(tmp_path, *files.split())

    assert proposed(tmp_path, typed) == expected


def test_what_no_directory_stands_for_is_not_proposed(tmp_path: Path) -> None:
    write(tmp_path, ".git/main.py", ".jp/main.py", ".hidden/main.py", "target/main.py", ".gitignore")
    (tmp_path / ".gitignore").write_text("target\n", encoding="utf-8")

    assert proposed(tmp_path, "main.py") == []


def test_outside_of_the_root_only_the_directory_is_looked_at(tmp_path: Path) -> None:
    write(tmp_path, "work/x", "other/deep/main.py", "other/maim.rs")
    context = ResolveContext(root=tmp_path / "work", cwd=tmp_path / "work")

    assert suggested_paths(str(tmp_path / "other" / "main.py"), context) == [tmp_path / "other" / "maim.rs"]


def test_links_are_not_walked(tmp_path: Path) -> None:
    write(tmp_path, "elsewhere/main.py", "work/x")
    (tmp_path / "work" / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "work" / "loop").symlink_to(tmp_path / "work")

    assert proposed(tmp_path / "work", "main.py") == []


def test_a_walk_looks_at_a_bounded_number_of_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "a/1", "a/2", "b/deep/main.py")
    assert proposed(tmp_path, "main.py") == ["b/deep/main.py"]

    monkeypatch.setattr(module, "_NAMES_WALKED", 4)

    assert proposed(tmp_path, "main.py") == []


def test_a_path_fails_first_where_its_directory_is(tmp_path: Path) -> None:
    write(tmp_path, "a/b")

    assert first_missing(str(tmp_path / "a" / "c" / "d")) == tmp_path / "a" / "c"
    assert first_missing(str(tmp_path / "a" / "b" / "c")) == tmp_path / "a" / "b"
