from __future__ import annotations

import pytest

from jp.render.tables import count_text, duration_text, elapsed_text, money_text, short_count, size_text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (5 * 1024**2, "5.0 MiB"),
        (3 * 1024**3, "3.0 GiB"),
        (5000 * 1024**4, "5,000.0 TiB"),
    ],
)
def test_sizes(size: int, text: str) -> None:
    assert size_text(size) == text


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(0, "0 ms"), (999, "999 ms"), (1500, "1.5 s"), (59_900, "59.9 s"), (200_000, "3 min 20 s")],
)
def test_durations(milliseconds: int, text: str) -> None:
    assert duration_text(milliseconds) == text


def test_elapsed_time_is_whole_seconds() -> None:
    assert [elapsed_text(seconds) for seconds in (3, 60, 125)] == ["3 s", "1 min 0 s", "2 min 5 s"]


def test_counts() -> None:
    assert [count_text(count, "line") for count in (0, 1, 1200)] == ["0 lines", "1 line", "1,200 lines"]


@pytest.mark.parametrize(
    ("usd", "text"),
    [
        (0, "$0"),
        (0.00000001, "<$0.0001"),
        (0.00006, "$0.0001"),
        (0.01234, "$0.0123"),
        (99.5, "$99.5000"),
        (1234.5, "$1,234.50"),
    ],
)
def test_money(usd: float, text: str) -> None:
    assert money_text(usd) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (9999, "9,999"),
        (10_000, "10.0k"),
        (999_949, "999.9k"),
        (999_950, "1.0M"),
        (12_345_678, "12.3M"),
        (5 * 10**9, "5.0G"),
        (5 * 10**15, "5,000.0T"),
    ],
)
def test_short_counts(count: int, text: str) -> None:
    assert short_count(count) == text
