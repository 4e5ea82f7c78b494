"""jp that says when it waits for a title, and waits for long."""

from __future__ import annotations

from collections.abc import Callable

from jp.__main__ import main
from jp.app.query import turns
from jp.cli.terminal.signals import Interruption

GRACE_SECS = 60
_offer = Interruption.offer


def announced(self: Interruption, respond: Callable[[], object]) -> None:
    """Say so once a Ctrl-C ends the wait: a moment earlier it would end the query.

    A turn at a terminal offers its menu too, before its request is sent: the last of these lines is the wait.
    """
    _offer(self, respond)
    print("waiting", flush=True)  # noqa: T201 - the test waits for it


if __name__ == "__main__":
    Interruption.offer = announced
    turns.GRACE_SECS = GRACE_SECS
    main()
