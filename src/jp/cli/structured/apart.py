"""Holding a value against a schema with patterns, in a process of its own.

Python searches for a pattern such as `^(a+)+$` for longer than anybody waits, and nothing else runs meanwhile: no
deadline and no signal. What is searched is what a model wrote.
"""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from jp.cli.structured.misfit import Misfit

if TYPE_CHECKING:
    from subprocess import CompletedProcess

    from jp.cli.structured.check import Checker

LIMIT_SECS = 2.0
"""Of computing. What can be searched at all takes a small part of it."""

_HINT = "a pattern has to match a text in one way only: `^a+$`, not `^(a+)+$`"
_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from jp.cli.structured.searching import main; main()"


class Unchecked(msgspec.Struct, frozen=True, kw_only=True):
    """Nobody knows whether the value fits, and why not. `hint` is what mends it, if that is known."""

    reason: str
    hint: str = ""


async def misfits_apart(checker: Checker, value: Any, *, limit_secs: float = LIMIT_SECS) -> list[Misfit] | Unchecked:
    """What of `value` does not fit. Where the wait is cancelled, the process is ended."""
    from anyio import BrokenResourceError

    from jp.cli.structured.searching import Task

    task = msgspec.json.encode(Task(schema=checker.schema, value=value, limit_secs=limit_secs))
    try:
        done = await _run(task)
    except (OSError, BrokenResourceError) as error:
        return Unchecked(reason=f"the process that searches for its patterns cannot be run: {error}")
    *announced, last = done.stdout.split(b"\n")
    if done.returncode == 0:
        return msgspec.json.decode(last, type=list[Misfit])
    pattern = f"the pattern {msgspec.json.decode(announced[-1], type=str)!r}" if announced else "its patterns"
    if done.returncode == -signal.SIGPROF:
        return Unchecked(reason=f"to search for {pattern} takes more than {limit_secs:g} s", hint=_HINT)
    return Unchecked(reason=f"the search for {pattern} failed")


async def _run(task: bytes) -> CompletedProcess[bytes]:
    """Run Python isolated, with the places of this one: nothing of the current directory may be imported.

    A session of its own keeps the signals of a terminal away from it.
    """
    from subprocess import DEVNULL

    from anyio import run_process

    command = [sys.executable, "-I", "-c", _PROGRAM, *sys.path]
    return await run_process(command, input=task, stderr=DEVNULL, check=False, start_new_session=True)
