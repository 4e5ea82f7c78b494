"""How many sources of one kind are resolved at the same time."""

from __future__ import annotations

from anyio import Semaphore
from anyio.lowlevel import RunVar


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
