"""Real time and chance."""

from __future__ import annotations

import random
import time


class SystemClock:
    """The machine's clock."""

    def monotonic(self) -> float:
        """Seconds from any start."""
        return time.monotonic()

    def jitter(self) -> float:
        """A number from 0 to 1."""
        return random.random()  # noqa: S311  spreads retries, protects nothing

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        from anyio import sleep

        await sleep(seconds)
