"""Where an expression matches: found by a process that is stopped where it takes too long.

A line is searched by ripgrep where it is installed, otherwise by Python; both get the same text and find the same
lines (`jp.tool.files.search_dialect`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import assert_never

import msgspec

from jp.tool.files.edits import Edit, Match
from jp.tool.files.errors import FileAccessError
from jp.tool.files.search_dialect import Expression

SECONDS = 20.0
"""How long one look at a text may take."""

MOST_MATCHES = 20_000
"""How often the expression of an edit may match."""

_MOST_BYTES = 128 * 1024 * 1024
_GRACE_SECS = 0.1
_SECS_ALONE = 5.0
"""So much longer a process lives where nobody stops it."""

_PROGRAM = Path(__file__).with_name("matching_process.py")
_RIPGREP = ("--json", "--no-config", "--encoding=none", "--text", "--threads=1", "--color=never")


class _Request(msgspec.Struct, frozen=True, kw_only=True):
    mode: str
    pattern: str
    seconds: float
    most: int = 0


class _Found(msgspec.Struct, frozen=True, kw_only=True):
    lines: list[int] = []
    spans: list[tuple[int, int, dict[str, str | None]]] = []
    problem: str = ""


class _Data(msgspec.Struct, frozen=True):
    line_number: int = 0


class _Message(msgspec.Struct, frozen=True):
    type: str
    data: _Data


class LineMatcher:
    """Finds the lines of texts in which an expression is found.

    `ripgrep` is the program, None where there is none; `seconds` bounds one text.
    """

    def __init__(self, expression: Expression, *, ripgrep: str | None, seconds: float = SECONDS) -> None:
        self._expression = expression
        self._ripgrep = ripgrep
        self._seconds = seconds

    async def lines(self, text: str) -> Sequence[int]:
        """The numbers of the lines, counted from 1. Each line of `text` ends with a line feed.

        Raises:
            FileAccessError: it takes too long.
        """
        found = None if self._ripgrep is None else await self._by_ripgrep(self._ripgrep, text)
        return await self._by_python(text) if found is None else found

    async def _by_ripgrep(self, program: str, text: str) -> Sequence[int] | None:
        """None where it does not work: too old, or not what its name says."""
        argv = [program, *_RIPGREP, f"--regexp={self._expression.for_ripgrep()}", "-"]
        try:
            _, output = await _output(argv, text.encode(), self._seconds)
            messages = [msgspec.json.decode(line, type=_Message) for line in output.splitlines()]
        except (OSError, msgspec.DecodeError):
            return None
        # At its end it says in numbers what it has done, or it did not get there.
        if not messages or messages[-1].type != "summary":
            return None
        return [message.data.line_number for message in messages if message.type == "match"]

    async def _by_python(self, text: str) -> Sequence[int]:
        pattern = self._expression.for_python()
        request = _Request(mode="lines", pattern=pattern, seconds=self._seconds + _SECS_ALONE)
        return (await _asked(request, text, self._seconds)).lines


async def matches_of(edit: Edit, text: str, *, seconds: float = SECONDS) -> Sequence[Match]:
    """Where `old`, an expression of Python in which `^` and `$` stand for the ends of lines, matches `text`.

    Raises:
        FileAccessError: it is malformed, matches too often, or takes too long.
    """
    request = _Request(mode="spans", pattern=edit.old, seconds=seconds + _SECS_ALONE, most=MOST_MATCHES)
    found = await _asked(request, text, seconds)
    if found.problem:
        raise edit.fail(f"the expression 'old' is malformed: {found.problem}")
    if len(found.spans) > MOST_MATCHES:
        raise edit.fail(f"the expression 'old' matches more than {MOST_MATCHES:,} times")
    return [Match(start, end, groups) for start, end, groups in found.spans]


async def _asked(request: _Request, text: str, seconds: float) -> _Found:
    # Isolated: neither the environment nor the working directory has a say in what is imported.
    argv = [sys.executable, "-I", "-S", str(_PROGRAM)]
    code, output = await _output(argv, msgspec.json.encode(request) + b"\n" + text.encode(), seconds)
    if code != 0:
        raise FileAccessError("the search failed: its process ended with an error")
    return msgspec.json.decode(output, type=_Found)


async def _output(argv: Sequence[str], text: bytes, seconds: float) -> tuple[int, bytes]:
    """The exit code and the standard output of a process that is given `text`.

    Raises:
        FileAccessError: it takes too long, or says too much.
        OSError: it cannot be started.
    """
    from jp.process.environment import scrubbed
    from jp.process.running import OutputLimits, ProcessLimits, Program, run

    limits = ProcessLimits(timeout_secs=seconds, grace_secs=_GRACE_SECS)
    program = Program(words=argv, directory="/", environment=scrubbed(os.environ), stdin=text)
    ended = await run(program, output=OutputLimits(kept=_MOST_BYTES, most=_MOST_BYTES), limits=limits)
    match ended.stopped:
        case "time":
            message = f"the expression took longer than {seconds:g} seconds, so it was stopped; make it simpler"
            raise FileAccessError(message)
        case "output":
            raise FileAccessError("the expression matches too much; make it narrower")
        case None:
            return ended.exit_code, ended.stdout.head + ended.stdout.tail
        case _:
            assert_never(ended.stopped)
