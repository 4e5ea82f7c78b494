from __future__ import annotations

import math

import pytest

from jp.app.schema_checker import is_multiple


@pytest.mark.parametrize(
    ("value", "step", "expected"),
    [
        (19.99, 0.01, True),
        (0.3, 0.1, True),
        (-0.3, 0.1, True),
        (0.35, 0.1, False),
        (7, 3.5, True),
        (6, 4, False),
        (10**400, 5e-324, True),
        (1e308, 1e-300, True),
        (1e-300, 1e300, False),
        (10**400 + 1, 2, False),
        (0, math.inf, True),
        (1, math.nan, False),
        (math.inf, 1, False),
    ],
)
def test_a_multiple_is_one_of_the_numbers_as_they_are_written(value: float, step: float, *, expected: bool) -> None:
    assert is_multiple(value, step) is expected
