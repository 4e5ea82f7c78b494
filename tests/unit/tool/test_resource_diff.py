from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from jp.context.markers import checksum_of
from jp.tool.context_tools import Version, short_diff

LINES = "".join(f"line {number}\n" for number in range(400))


def diff(before: str, after: str) -> str | None:
    return short_diff(
        "file:///w/a", Version(text=before, place="the attachment at turn 0"), Version(text=after, place="now")
    )


def test_a_small_change_is_told_with_both_places_and_checksums() -> None:
    after = LINES.replace("line 200\n", "line two hundred\n")

    assert diff(LINES, after) == (
        "file:///w/a has changed since the attachment at turn 0. What is different now:\n"
        f"--- the attachment at turn 0 (checksum: sha256:{checksum_of(LINES)[:12]})\n"
        f"+++ now (checksum: sha256:{checksum_of(after)[:12]})\n"
        "@@ -198,7 +198,7 @@\n"
        " line 197\n line 198\n line 199\n-line 200\n+line two hundred\n line 201\n line 202\n line 203\n"
    )


@pytest.mark.skipif(shutil.which("patch") is None, reason="there is no program that applies diffs")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (LINES, "first\n" + LINES),
        (LINES, LINES + "last"),
        (LINES + "no end", LINES + "no end\n"),
        (LINES, LINES.replace("line 20", "line twenty")),
        (LINES, LINES[: len(LINES) // 2] + LINES[len(LINES) // 2 + 40 :]),
        (LINES.replace("line 7\n", "\u2028 line\x0b7\r\n"), LINES),
        ("a\n" + LINES, LINES),
        ("", LINES),
    ],
)
def test_a_diff_makes_the_one_text_of_the_other(before: str, after: str, tmp_path: Path) -> None:
    padding = "".join(f"padding {number}\n" for number in range(3_000))
    before, after = (before, after + padding) if not before else (padding + before, padding + after)
    file = tmp_path / "a"
    file.write_text(before, encoding="utf-8", newline="")

    found = diff(before, after)

    if found is None:
        assert not before
        return
    (tmp_path / "change").write_text(found, encoding="utf-8", newline="")
    subprocess.run(["patch", "--quiet", "--binary", str(file), str(tmp_path / "change")], check=True)
    assert file.read_text(encoding="utf-8") == after.replace("\r\n", "\n")


def test_what_differs_in_half_of_its_lines_has_no_short_diff() -> None:
    assert diff(LINES, LINES.replace("line", "LINE")) is None
    assert diff("short\n", "shorter\n") is None


def test_very_many_lines_are_not_compared() -> None:
    many = "".join(f"{number}\n" for number in range(30_000))

    assert diff(f"a\n{many}a\n", f"b\n{many}b\n") is None
    assert diff(f"a\n{many}", f"b\n{many}") is not None


def test_equal_texts_have_no_difference() -> None:
    found = diff(LINES, LINES)

    assert found is not None
    assert "@@" not in found
