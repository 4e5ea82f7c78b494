from __future__ import annotations

import pytest

from jp.render.amounts import count_text, duration_text, elapsed_text, size_text


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
