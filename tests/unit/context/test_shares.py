from __future__ import annotations

import pytest

from jp.context.breakdown import apportion


@pytest.mark.parametrize(
    ("weights", "total", "shares"),
    [
        ([], 5, ()),
        ([0, 0], 5, (0, 0)),
        ([1, 1], 0, (0, 0)),
        ([1, 1, 1], 10, (4, 3, 3)),
        ([3, 1, 2], 6, (3, 1, 2)),
        ([50, 30, 20], 7, (4, 2, 1)),
        ([1000, 1, 0], 500, (499, 1, 0)),
        ([1000, 1, 1], 2, (2, 0, 0)),
        ([10**20, 10**20], 3, (2, 1)),
    ],
)
def test_shares_add_up_and_go_to_the_largest_remainders(
    weights: list[int], total: int, shares: tuple[int, ...]
) -> None:
    assert apportion(weights, total) == shares
