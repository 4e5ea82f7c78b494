from __future__ import annotations

import pytest

from jp.provider.classification import retry_after

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "9"}, 9.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after": "Fri, 15 Jan 2027 08:00:30 GMT"}, 30.0),
        ({"retry-after": "Fri, 15 Jan 2027 07:59:00 GMT"}, 0.0),
        ({"retry-after": "Someday, 99 Foo"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"ratelimit": '"default";r=0;t=12'}, 12.0),
        ({"ratelimit": "limit=100, remaining=0, t=3"}, 3.0),
        ({"x-ratelimit-reset-requests": "1m30s", "x-ratelimit-reset-tokens": "250ms"}, 90.0),
        ({"x-ratelimit-reset-tokens": "6"}, 6.0),
        ({"x-ratelimit-reset-tokens": "later"}, None),
        ({"x-ratelimit-reset": str(NOW + 42)}, 42.0),
        ({"x-ratelimit-reset": str(NOW - 42)}, 0.0),
    ],
)
def test_headers_of_every_fashion_are_read(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, "", now=NOW) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Please retry after 20 seconds.", 20.0),
        ("Rate limit reached. Please try again in 2.398s.", 2.398),
        ("try again in 20ms", 0.02),
        ("Please wait 5 seconds before the next request", 5.0),
        ("wait for 2m", 120.0),
        ('{"@type": "RetryInfo", "retryDelay": "30s"}', 30.0),
        ("model claude-3-5 does not exist", None),
        ("awaiting review 2024", None),
    ],
)
def test_prose_is_read_where_headers_are_silent(text: str, seconds: float | None) -> None:
    assert retry_after({}, text, now=NOW) == seconds


def test_headers_win_over_prose() -> None:
    assert retry_after({"retry-after": "1"}, "retry after 20", now=NOW) == 1.0


def test_seconds_are_rounded_up() -> None:
    assert retry_after({"retry-after": "0.0001"}, "", now=NOW) == 0.001


@pytest.mark.parametrize(
    ("headers", "text"),
    [({}, f"try again in {'9' * 400}s"), ({"retry-after": "1e300"}, ""), ({"x-ratelimit-reset-tokens": "9" * 400}, "")],
)
def test_nobody_waits_for_longer_than_a_year(headers: dict[str, str], text: str) -> None:
    assert retry_after(headers, text, now=0.0) in {365 * 86_400.0, None}
