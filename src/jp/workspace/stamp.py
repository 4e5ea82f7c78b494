"""Time and chance for what is written, passed in so that tests have neither."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import msgspec


class Stamps(msgspec.Struct, frozen=True, kw_only=True):
    """`now` gives milliseconds since the Unix epoch, `entropy` that many random bytes."""

    now: Callable[[], int]
    entropy: Callable[[int], bytes]


def _milliseconds() -> int:
    return time.time_ns() // 1_000_000


SYSTEM = Stamps(now=_milliseconds, entropy=os.urandom)
"""The wall clock and the operating system's random numbers."""


def timestamp(milliseconds: int) -> str:
    """A moment since the Unix epoch as RFC 3339, UTC, such as `2026-11-20T18:00:00.000Z`."""
    seconds, rest = divmod(milliseconds, 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest:03d}Z"


def seconds_of(moment: str) -> float | None:
    """A moment of a conversation's metadata in seconds since the Unix epoch; None where it is no moment.

    Without a zone it is UTC, as the original JP writes it.
    """
    from datetime import UTC, datetime

    try:
        found = datetime.fromisoformat(moment)
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
