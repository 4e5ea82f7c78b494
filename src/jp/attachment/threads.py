"""Slow sources: read in threads that can be left, and only so many at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from anyio import Semaphore
from anyio.lowlevel import RunVar

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


class Slots:
    """At most `count` at once of what is called `name`, in one event loop; each loop has its own."""

    def __init__(self, name: str, count: int) -> None:
        self._count = count
        self._semaphore: RunVar[Semaphore] = RunVar(f"jp_{name}_slots")

    def one(self) -> Semaphore:
        """What to enter for as long as a slot is needed."""
        try:
            return self._semaphore.get()
        except LookupError:
            semaphore = Semaphore(self._count)
            self._semaphore.set(semaphore)
            return semaphore
