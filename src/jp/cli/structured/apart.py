"""Holding a value against a schema with patterns, in a process of its own.

Python searches for a pattern such as `^(a+)+$` for longer than anybody waits, and nothing else runs meanwhile: no
deadline and no signal. What is searched is what a model wrote.
"""

from __future__ import annotations

import math
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from jp.cli.structured.misfit import Misfit

if TYPE_CHECKING:
    from jp.cli.structured.check import Checker
    from jp.process.running import Ended

LIMIT_SECS = 2.0
"""Of computing. What can be searched at all takes a small part of it."""

_KEPT_BYTES = 32 * 1024 * 1024
"""More than any line has: what counts is the last two of them."""

_MOST_BYTES = 1024 * 1024 * 1024
_HINT = "a pattern has to match a text in one way only: `^a+$`, not `^(a+)+$`"
_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from jp.cli.structured.searching import main; main()"


class Unchecked(msgspec.Struct, frozen=True, kw_only=True):
    """Nobody knows whether the value fits, and why not. `hint` is what mends it, if that is known."""

    reason: str
    hint: str = ""


async def misfits_apart(checker: Checker, value: Any, *, limit_secs: float = LIMIT_SECS) -> list[Misfit] | Unchecked:
    """What of `value` does not fit. Where the wait is cancelled, the process is ended."""
    from jp.cli.structured.searching import Task

    task = msgspec.json.encode(Task(schema=checker.schema, value=value, limit_secs=limit_secs))
    try:
        done = await _run(task)
    except OSError as error:
        return Unchecked(reason=f"the process that searches for its patterns cannot be run: {error}")
    if done.stopped:
        return Unchecked(reason="the search for its patterns goes to and fro between too many of them")
    *announced, last = (done.stdout.head + done.stdout.tail).split(b"\n")
    if done.exit_code == 0:
        return msgspec.json.decode(last, type=list[Misfit])
    pattern = f"the pattern {msgspec.json.decode(announced[-1], type=str)!r}" if announced else "its patterns"
    if done.exit_code == -signal.SIGPROF:
        return Unchecked(reason=f"to search for {pattern} takes more than {limit_secs:g} s", hint=_HINT)
    return Unchecked(reason=f"the search for {pattern} failed")


async def _run(task: bytes) -> Ended:
    """Run Python isolated, with the places of this one: nothing of the current directory may be imported.

    A session of its own keeps the signals of a terminal away from it. It bounds its own time.

    Raises:
        OSError: it cannot be started.
    """
    from jp.process.environment import scrubbed
    from jp.process.running import OutputLimits, ProcessLimits, Program, run

    words = (sys.executable, "-I", "-c", _PROGRAM, *sys.path)
    program = Program(words=words, directory=".", environment=scrubbed(os.environ), stdin=task)
    output = OutputLimits(kept=_KEPT_BYTES, most=_MOST_BYTES)
    return await run(program, output=output, limits=ProcessLimits(timeout_secs=math.inf))
