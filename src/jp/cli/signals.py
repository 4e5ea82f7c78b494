"""What Ctrl-C, SIGTERM and SIGHUP do."""

from __future__ import annotations

import signal
from types import FrameType

from jp.cli.exit import Terminated


def end_on_signals() -> None:
    """Let SIGTERM and SIGHUP unwind the program, as SIGINT does, so that locks and files are closed.

    A signal that the caller has us ignore (`nohup`) stays ignored.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _terminate)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated
