from __future__ import annotations

import pytest

from jp.app.values import ago


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (3599, "59 min"),
        (7200, "2 h"),
        (86_400, "1 d"),
        (86_400 * 45, "1 mo"),
        (86_400 * 800, "2 y"),
    ],
)
def test_a_span_is_given_in_its_largest_whole_unit(seconds: float, text: str) -> None:
    assert ago(seconds) == text
