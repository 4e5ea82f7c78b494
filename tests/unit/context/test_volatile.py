from __future__ import annotations

import pytest

from jp.context.cache_hints import find_volatile, redacted


def kinds(text: str) -> list[str]:
    return [found.kind for found in find_volatile([text])]


@pytest.mark.parametrize(
    "text",
    [
        "It is 2026-11-20T12:34:56Z.",
        "now 2026-11-20 12:34:56.123+02:00",
        "Fri, 20 Nov 2026 12:34:56 +0000",
        "Nov 20 12:34:56 host",
        "November 20, 2026 at 12:34",
        "Today is 2026-11-20.",
        "Current date: 2026-11-20",
        "at 12:34:56",
        "built 1763640000",
        "built 1763640000123",
    ],
)
def test_times_are_found(text: str) -> None:
    assert kinds(text) == ["timestamp"]


@pytest.mark.parametrize(
    "text",
    [
        "session 123e4567-e89b-12d3-a456-426614174000",
        "SESSION 123E4567-E89B-12D3-A456-426614174000",
    ],
)
def test_uuids_are_found(text: str) -> None:
    assert kinds(text) == ["uuid"]


@pytest.mark.parametrize(
    "text",
    [
        "in /tmp/pytest-of-me/run-0",
        "in /private/var/folders/zz/abc/T/x",
        "in /var/tmp/build.1",
        "`/dev/shm/cache`",
        "C:\\Users\\me\\AppData\\Local\\Temp\\run1",
        "/run/user/2026-11-20T12:34:56Z",
        "/private/var/folders/123e4567-e89b-12d3-a456-426614174000",
    ],
)
def test_temporary_directories_are_found(text: str) -> None:
    assert kinds(text)[0] == "temporary_directory"


@pytest.mark.parametrize(
    "text",
    ["Turn #12", "turn: 12", "Messages so far: 1,204", "1,204 tokens left", "request no. 7", "attempt 2 of 5"],
)
def test_counters_are_found(text: str) -> None:
    assert kinds(text) == ["counter"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "API version 2023-06-01, released on 2023-06-01",
        "Step 1: read. Step 2: write.",
        "Write into /tmp or to docs/tmp/x.",
        "Take 3 tokens at most, in turns of 5.",
        "port 8080, sha 1234567890abcdef",
        "ratio 16:9, lines 10:20",
        "the RFC 1122 of 1989",
    ],
)
def test_what_stays_is_not_found(text: str) -> None:
    assert kinds(text) == []


def test_each_kind_is_told_once_for_a_part_with_its_shape() -> None:
    found = find_volatile(["none", "é at 12:34:56, then 23:59:59, turn #12 /tmp/Secret-x9"])

    assert [(one.part, one.kind, one.count, one.first, one.sample) for one in found] == [
        (1, "timestamp", 2, 5, "00:00:00"),
        (1, "temporary_directory", 1, 39, "/aaa/aaaaaa-a0"),
        (1, "counter", 1, 30, "aaaa #00"),
    ]


def test_a_sample_has_no_letter_or_digit_of_what_was_found() -> None:
    assert redacted("Fri, 20 Növ 2026") == "aaa, 00 aaa 0000"
    assert redacted("x" * 99) == "a" * 40 + "…"


def test_long_texts_are_read_in_linear_time() -> None:
    """Each of these took many seconds if a pattern went back over them."""
    for piece in ("1", "/var/folders/", "c:\\a ", "2026-11-20T", "turn ", "Nov ", "a-", "1,"):
        find_volatile([piece * 2_000])
