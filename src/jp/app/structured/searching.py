"""The process in which a value is held against a schema with patterns: it may be ended at any time.

Its stdin is a `Task`. On stdout it says, a JSON value a line, for which pattern it begins to search, and in the end
which misfits there are.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from typing import Any

import msgspec

from jp.app.structured.check import Checker
from jp.conversation.entries import JsonObject

_LONGEST = 500
"""So that a line is written at once or not at all, where the process is ended meanwhile."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A value and the schema to hold it against, and the seconds of computing that it may take."""

    schema: JsonObject
    value: Any
    limit_secs: float


def main() -> None:
    """Do the task. The kernel ends the process when its time is over, even if nobody waits for it any more."""
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=Task)
    checker = Checker(task.schema)
    _announce_searches()
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, task.limit_secs)
    misfits = checker.misfits(task.value)
    signal.setitimer(signal.ITIMER_PROF, 0)
    sys.stdout.buffer.write(msgspec.json.encode(misfits))
    sys.stdout.buffer.flush()


def _announce_searches() -> None:
    """The library searches in several places, also for several patterns as one; all call `re.search`."""
    search = re.search
    last = ""

    def announced(pattern: str, text: str, flags: int = 0) -> re.Match[str] | None:
        nonlocal last
        if pattern != last:
            last = pattern
            os.write(1, msgspec.json.encode(pattern[:_LONGEST]) + b"\n")
        return search(pattern, text, flags)

    re.__dict__["search"] = announced
