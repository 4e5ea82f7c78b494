from __future__ import annotations

import pytest

from jp.app.values import parse_duration
from jp.errors import UsageError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("5m", 300),
        ("1h30m", 5400),
        ("2d", 172800),
        ("250ms", 0.25),
        ("1.5h", 5400),
        ("10", 10),
        (" 3S ", 3),
    ],
)
def test_durations_are_read_as_people_write_them(text: str, seconds: float) -> None:
    assert parse_duration(text, option="--wait") == seconds


@pytest.mark.parametrize("text", ["", "soon", "5x", "m5", "-5s", "5 m"])
def test_anything_else_is_an_error_that_names_the_option(text: str) -> None:
    with pytest.raises(UsageError, match="--wait cannot be"):
        parse_duration(text, option="--wait")
