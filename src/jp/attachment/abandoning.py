"""Work that blocks, in a thread of its own: a file system that hangs must not hang what cancels the work."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class _AbandonedError(Exception):
    """Nobody waits for the result any more."""


async def in_thread(work: Callable[[Callable[[], None]], T]) -> T:
    """What `work` returns. It is given a function to call now and then, which raises once nobody waits any more."""
    from anyio.to_thread import run_sync

    is_abandoned = False

    def check() -> None:
        if is_abandoned:
            raise _AbandonedError

    try:
        return await run_sync(work, check, abandon_on_cancel=True)
    finally:
        is_abandoned = True
