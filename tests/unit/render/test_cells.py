from __future__ import annotations

import pytest

from jp.render.tables import cell_width, clusters, pad, truncate


@pytest.mark.parametrize(
    ("text", "width"),
    [("", 0), ("abc", 3), ("é", 1), ("日本", 4), ("🎉", 2), ("e\u0301", 1), ("👩\u200d🔬", 2), ("❤\ufe0f", 2)],
)
def test_width_is_counted_in_cells(text: str, width: int) -> None:
    assert cell_width(text) == width
    assert sum(size for _, size in clusters(text)) == width


def test_what_is_seen_as_one_character_stays_together() -> None:
    assert [cluster for cluster, _ in clusters("ae\u0301👩\u200d🔬b")] == ["a", "e\u0301", "👩\u200d🔬", "b"]


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("日本語", 5, "日本…"),
        ("日本語", 6, "日本語"),
        ("日本語", 4, "日…"),
        ("ab", 0, ""),
    ],
)
def test_what_does_not_fit_ends_in_an_ellipsis(text: str, width: int, expected: str) -> None:
    assert truncate(text, width) == expected


def test_padding_counts_cells() -> None:
    assert pad("日", 4) == "日  "
    assert pad("日", 4, right=True) == "  日"
    assert pad("long", 2) == "long"
