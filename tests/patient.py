"""jp that says when it waits for a title, and waits for long."""

from __future__ import annotations

from jp.__main__ import main
from jp.app.query import turns

settle = turns.TitleWriter.settle


async def announced(self: turns.TitleWriter, *, answered: bool) -> turns.TitleCost | None:
    """Say so first."""
    print("waiting", flush=True)  # noqa: T201 - the test waits for it
    return await settle(self, answered=answered)


if __name__ == "__main__":
    turns.TitleWriter.settle = announced
    turns.GRACE_SECS = 60
    main()
