from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jp.turn.retry import RetryPolicy, waiting_time

POLICY = RetryPolicy(max_retries=3, base_seconds=1.0, max_seconds=60.0)


@pytest.mark.parametrize(
    ("retry", "jitter", "retry_after", "expected"),
    [
        (1, 1.0, None, 1.0),
        (1, 0.0, None, 0.5),
        (2, 1.0, None, 2.0),
        (3, 1.0, None, 4.0),
        (4, 1.0, None, None),
        (1, 1.0, 7.0, 7.0),
        (3, 1.0, 1.0, 4.0),
        (1, 1.0, 60.0, 60.0),
        (1, 1.0, 60.5, None),
    ],
    ids=[
        "the first, latest",
        "the first, earliest",
        "doubles",
        "doubles again",
        "no retry is left",
        "the provider's wish is the least",
        "the backoff may be longer than the wish",
        "as long as a wait may be",
        "longer than a wait may be",
    ],
)
def test_the_wait_before_a_retry(retry: int, jitter: float, retry_after: float | None, expected: float | None) -> None:
    assert waiting_time(POLICY, retry=retry, jitter=jitter, retry_after=retry_after) == expected


@given(st.integers(1, 40), st.floats(0, 1))
def test_no_wait_is_longer_than_the_longest(retry: int, jitter: float) -> None:
    policy = RetryPolicy(max_retries=40, base_seconds=1.0, max_seconds=60.0)

    waited = waiting_time(policy, retry=retry, jitter=jitter, retry_after=None)

    assert waited is not None
    assert 0.5 <= waited <= 60.0
