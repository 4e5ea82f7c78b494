from __future__ import annotations

import re

import pytest

from jp.tool.delivery import Address, bounded, media_note, shares

ADDRESS = Address(nonce="n0nce", handle="0123abcd")
MARKER = re.compile(r"\[\[cut:n0nce:0123abcd:\+(\d+)\]\] from offset (\d+)\n?")
LINES = "".join(f"line {number} is fine\n" for number in range(4_000))


def cut(text: str, limit: int, *, keeps_errors: bool = True) -> str:
    found = bounded(text, limit, ADDRESS, keeps_errors=keeps_errors)
    assert found is not None
    return found


def whole_again(shown: str, text: str) -> str:
    """`shown` with what its markers stand for."""
    data = text.encode()

    def part(match: re.Match[str]) -> str:
        start = int(match[2])
        return data[start:].decode()[: int(match[1])]

    return MARKER.sub(part, shown)


def test_a_text_that_fits_is_not_cut() -> None:
    assert bounded("x" * 100, 100, ADDRESS, keeps_errors=True) is None


@pytest.mark.parametrize("limit", [200, 1_000, 16 * 1024])
@pytest.mark.parametrize("text", [LINES, "é" * 60_000, "x" * 90_000, "漢字\n" * 20_000])
def test_a_cut_text_is_its_beginning_and_its_end_in_so_many_bytes(text: str, limit: int) -> None:
    shown = cut(text, limit)

    assert len(shown.encode()) <= limit
    assert text.startswith(shown[:20])
    assert text.endswith(shown[-20:])
    assert len(MARKER.findall(shown)) == 1


def test_lines_are_kept_whole_and_the_markers_say_from_where_on_what_is_missing_can_be_recalled() -> None:
    text = LINES[:40_000] + "src/a.py:3: error: bad\n" + LINES[40_000:]

    shown = cut(text, 4_096)

    assert len(MARKER.findall(shown)) == 2
    assert whole_again(shown, text) == text
    assert all(line in text for line in MARKER.sub("", shown).splitlines(keepends=True))


@pytest.mark.parametrize(
    "error",
    [
        "src/lexer.rs:3:5: error[E0308]: mismatched types",
        "AssertionError: 1 != 2",
        "main.c:7:1: fatal error: missing.h: No such file",
        "thread 'main' panicked at src/main.rs:4:5:",
        "  --- FAIL: TestParse (0.00s)",
        "FAILED tests/test_a.py::test_b - assert 0",
        "not ok 3 - parses",
        "Traceback (most recent call last):",
        "src/a.ts(3,5): error TS2322: Type 'string' is not assignable",
        'Exception in thread "main" java.lang.NullPointerException',
        "  ✕ renders the page (12 ms)",
    ],
)
def test_an_error_in_the_middle_survives(error: str) -> None:
    text = f"{LINES[:30_000]}\n{error}\n  explained here\n{LINES[30_000:]}3 failed, 9 passed in 2.1 s\n"

    shown = cut(text, 2_048)

    assert error in shown
    assert shown.endswith("3 failed, 9 passed in 2.1 s\n")
    assert error not in cut(text, 2_048, keeps_errors=False)


def test_the_first_error_and_the_last_one_survive_among_many() -> None:
    errors = "".join(f"a.c:{number}: error: number {number}\n" for number in range(3_000))
    text = f"{LINES}{errors}{LINES}"

    shown = cut(text, 4_096)

    assert "error: number 0\n" in shown
    assert "error: number 2999\n" in shown


def test_what_tells_of_errors_counts_only_where_it_is_not_shown_anyway() -> None:
    text = "error: at the beginning\n" + LINES + "error: at the end\n"

    assert len(MARKER.findall(cut(text, 2_048))) == 1


def test_errors_that_stand_together_are_shown_together() -> None:
    text = f"{LINES}a.c:1: error: one\na.c:2: error: two\nFAILED all\n{LINES}"

    shown = cut(text, 8_192)

    assert "error: one\na.c:2: error: two\nFAILED all\n" in shown
    assert len(MARKER.findall(shown)) == 2


def test_a_long_line_is_shown_around_its_error() -> None:
    text = "x" * 50_000 + " error: in the middle of it " + "é" * 50_000

    shown = cut(text, 2_048)

    assert "error: in the middle of it" in shown
    assert len(shown.encode()) <= 2_048


def test_where_there_is_no_room_a_marker_is_all() -> None:
    assert MARKER.fullmatch(cut(LINES, 1))
    assert MARKER.fullmatch(cut(f"{LINES}error: here\n{LINES}", 40))


def test_a_text_that_is_shorter_than_its_marker_stays() -> None:
    assert bounded("short", 1, ADDRESS, keeps_errors=False) is None


def test_cutting_twice_changes_nothing() -> None:
    shown = cut(LINES, 4_096)

    assert bounded(shown, 4_096, ADDRESS, keeps_errors=True) is None


@pytest.mark.parametrize(
    ("sizes", "limit", "expected"),
    [([], 10, 10), ([3, 4], 10, 10), ([3, 40], 10, 7), ([40, 2, 40], 12, 5), ([9, 9, 9], 2, 0), ([0, 50], 10, 10)],
)
def test_what_small_results_leave_is_shared_by_the_others(sizes: list[int], limit: int, expected: int) -> None:
    share = shares(sizes, limit)

    assert share == expected
    assert sum(min(size, share) for size in sizes) <= limit


def test_what_stands_for_a_picture_says_what_it_is() -> None:
    assert media_note("image/png", 9, ADDRESS) == "[[cut:n0nce:0123abcd:+9]] image/png, too large to be shown"
    assert media_note(None, 9, ADDRESS).endswith("]] binary content, too large to be shown")
