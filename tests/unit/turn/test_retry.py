from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jp.provider.errors import ProviderError
from jp.turn.machine import RetryPolicy, waiting_time

POLICY = RetryPolicy(max_retries=3, base_seconds=1.0, max_seconds=60.0)


def overloaded(retry_after: float | None = None, *, least_wait: float = 0.0) -> ProviderError:
    return ProviderError("overloaded", kind="transient", retry_after=retry_after, least_wait=least_wait)


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
    assert waiting_time(POLICY, overloaded(retry_after), retry=retry, jitter=jitter) == expected


@pytest.mark.parametrize(("longest", "expected"), [(60.0, 3.0), (2.0, 2.0)])
def test_what_an_error_is_known_to_take_is_waited_for_as_far_as_a_wait_may_be(longest: float, expected: float) -> None:
    policy = RetryPolicy(base_seconds=0.001, max_seconds=longest)

    assert waiting_time(policy, overloaded(least_wait=3.0), retry=1, jitter=1.0) == expected


@given(st.integers(1, 40), st.floats(0, 1))
def test_no_wait_is_longer_than_the_longest(retry: int, jitter: float) -> None:
    policy = RetryPolicy(max_retries=40, base_seconds=1.0, max_seconds=60.0)

    waited = waiting_time(policy, overloaded(), retry=retry, jitter=jitter)

    assert waited is not None
    assert 0.5 <= waited <= 60.0
