from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from jp.tool.files.changes import difference


def numbered(count: int) -> str:
    return "".join(f"{number}\n" for number in range(1, count + 1))


def test_a_change_is_shown_with_three_lines_around_it() -> None:
    old = numbered(20)

    found = difference("a.txt", old, old.replace("10\n", "ten\n10b\n", 1))

    assert found.lines == (
        "--- a.txt",
        "+++ a.txt",
        "@@ -7,7 +7,8 @@",
        " 7",
        " 8",
        " 9",
        "-10",
        "+ten",
        "+10b",
        " 11",
        " 12",
        " 13",
    )
    assert (found.first, found.last) == (10, 11)


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ("a", "b", ("@@ -1 +1 @@", "-a", "\\ No newline at end of file", "+b", "\\ No newline at end of file")),
        ("a\n", "a", ("@@ -1 +1 @@", "-a", "+a", "\\ No newline at end of file")),
        ("", "a\n", ("@@ -0,0 +1 @@", "+a")),
        ("a\n", "", ("@@ -1 +0,0 @@", "-a")),
    ],
)
def test_ends_of_files_are_shown_as_diff_shows_them(old: str, new: str, lines: tuple[str, ...]) -> None:
    assert difference("f", old, new).lines[2:] == lines


@pytest.mark.parametrize("count", [20, 3000])
def test_a_patch_program_makes_the_new_text_of_the_old_one(tmp_path: Path, count: int) -> None:
    if shutil.which("patch") is None:
        pytest.skip("there is no `patch`")
    chosen = random.Random(count)
    lines = [f"{chosen.randrange(9)}" for _ in range(count)]
    changed = [f"{line}!" if chosen.random() < 0.5 else line for line in lines if chosen.random() < 0.9]
    old, new = "\n".join(lines), "\n".join(changed) + "\n"
    file = tmp_path / "file"
    file.write_text(old, encoding="utf-8")
    found = difference("file", old, new)

    subprocess.run(["patch", "-s", "file"], cwd=tmp_path, input="\n".join([*found.lines, ""]).encode(), check=True)

    assert file.read_text(encoding="utf-8") == new


def test_a_long_diff_is_cut_and_says_so() -> None:
    found = difference("f", "", numbered(10))

    assert found.text(5).split("\n") == [*found.lines[:5], "… 8 more lines of the diff"]
    assert found.text(13) == "\n".join(found.lines)


def test_lines_that_are_taken_away_have_the_place_where_they_were() -> None:
    found = difference("f", numbered(9), numbered(9).replace("5\n", ""))

    assert (found.first, found.last) == (5, 5)
