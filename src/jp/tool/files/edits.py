"""Edits of a text, and where an expression matches: found by a process that is stopped where it takes too long."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import assert_never

import msgspec

from jp.tool.files.search_dialect import Expression
from jp.tool.files.territory import FileAccessError

_PLACES_SHOWN = 5
_REFERENCE = re.compile(r"\$(?:(?P<dollar>\$)|\{(?P<braced>\w+)\}|(?P<bare>\w+))")


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """What is replaced by what. `number` counts the edits of a call from 1."""

    number: int
    old: str
    new: str
    replace_all: bool = False

    def fail(self, why: str) -> FileAccessError:
        """What is wrong with it, in words for the model; nothing has been changed."""
        return FileAccessError(f"pattern {self.number}: {why}. Nothing was changed.")


class Match(msgspec.Struct, frozen=True):
    """Where an expression matches: from `start` to before `end`, with the text of each group by number and name."""

    start: int
    end: int
    groups: Mapping[str, str | None]


def replaced_exactly(text: str, edit: Edit) -> tuple[str, int]:
    """`text` with the edit, and how often it applied.

    Raises:
        FileAccessError: `old` is not there, or more than once where only one is meant.
    """
    if not edit.old:
        raise edit.fail("'old' is empty")
    if edit.old == edit.new:
        raise edit.fail("'old' and 'new' are the same")
    count = text.count(edit.old)
    if count == 0:
        raise edit.fail(f"'old' is not in the file{_near(text, edit.old)}")
    if count > 1 and not edit.replace_all:
        places = _places(text, _found(text, edit.old))
        raise edit.fail(
            f"'old' is in the file {count} times, at {places}; make it longer, or say replace_all where all are meant"
        )
    return text.replace(edit.old, edit.new), count


def replaced_matches(text: str, edit: Edit, matches: Sequence[Match]) -> tuple[str, int]:
    """`text` with what matches the expression of the edit replaced, and how often.

    Raises:
        FileAccessError: nothing matches, more than one where only one is meant, or `new` refers to no group.
    """
    if not matches:
        raise edit.fail("the expression 'old' matches nothing in the file")
    if len(matches) > 1 and not edit.replace_all:
        places = _places(text, [match.start for match in matches])
        raise edit.fail(
            f"the expression 'old' matches {len(matches)} times, at {places}; "
            "make it narrower, or say replace_all where all are meant"
        )
    pieces: list[str] = []
    done = 0
    for match in matches:
        pieces += (text[done : match.start], _filled(edit, match.groups))
        done = match.end
    return "".join([*pieces, text[done:]]), len(matches)


def _filled(edit: Edit, groups: Mapping[str, str | None]) -> str:
    def fill(found: re.Match[str]) -> str:
        if found["dollar"]:
            return "$"
        name = found["braced"] or found["bare"]
        if name not in groups:
            raise edit.fail(f"'new' refers to ${{{name}}}, but 'old' has no such group; a dollar sign is written '$$'")
        return groups[name] or ""

    return _REFERENCE.sub(fill, edit.new)


def _found(text: str, old: str) -> list[int]:
    starts: list[int] = []
    start = text.find(old)
    while start >= 0:
        starts.append(start)
        start = text.find(old, start + len(old))
    return starts


def _places(text: str, starts: Sequence[int]) -> str:
    shown = dict.fromkeys(str(text.count("\n", 0, start) + 1) for start in starts[:_PLACES_SHOWN])
    more = " and more" if len(starts) > _PLACES_SHOWN else ""
    return f"line {', '.join(shown)}{more}" if len(shown) == 1 and not more else f"lines {', '.join(shown)}{more}"


def _near(text: str, old: str) -> str:
    """Where the file has `old` but for white space at the ends of its lines."""
    wanted = [line.strip() for line in old.strip("\n").split("\n")]
    if not any(wanted):
        return ""
    lines = [line.strip() for line in text.split("\n")]
    for index, line in enumerate(lines):
        if line == wanted[0] and lines[index : index + len(wanted)] == wanted:
            return f"; line {index + 1} begins what differs from it in white space only"
    return ""


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
