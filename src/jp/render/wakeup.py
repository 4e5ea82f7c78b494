"""Waiting that a signal always ends.

Python runs a signal's handler between two instructions of the main thread. Where the signal comes just before a call
that waits, or to another thread, the call goes on waiting, and the handler with it.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress

_MOST_SIGNALS = 4096


@contextmanager
def woken_by_signals() -> Generator[int | None]:
    """A descriptor that can be read once a signal has come: wait for it, too. None outside of the main thread."""
    import signal
    from threading import current_thread, main_thread

    if current_thread() is not main_thread():
        yield None
        return
    readable, writable = os.pipe()
    os.set_blocking(readable, False)
    os.set_blocking(writable, False)
    before = signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    try:
        yield readable
    finally:
        signal.set_wakeup_fd(before)
        os.close(readable)
        os.close(writable)


def forget_signals(readable: int) -> None:
    """Take out of the descriptor that signals have come: their handlers know."""
    with suppress(BlockingIOError):
        os.read(readable, _MOST_SIGNALS)
