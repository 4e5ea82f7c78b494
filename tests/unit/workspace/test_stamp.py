from __future__ import annotations

import re

from jp.workspace.files import SYSTEM, timestamp


def test_a_timestamp_is_rfc_3339_in_utc_to_the_millisecond() -> None:
    assert timestamp(0) == "1970-01-01T00:00:00.000Z"
    assert timestamp(1_766_000_000_042) == "2025-12-17T19:33:20.042Z"


def test_the_system_gives_milliseconds_and_random_bytes() -> None:
    assert re.fullmatch(r"20\d\d-.*Z", timestamp(SYSTEM.now()))
    assert len(SYSTEM.entropy(10)) == 10
    assert SYSTEM.entropy(10) != SYSTEM.entropy(10)
