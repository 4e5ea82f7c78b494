"""A check that the answer of a turn is a value that fits, read from the log."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import Any

import msgspec

from jp.app.structured.check import Checker
from jp.app.structured.misfit import Misfit
from jp.conversation.entries import AnyEntry, ChatResponse
from jp.conversation.json_text import NoValue, find_json
from jp.conversation.turns import Attempt, cycles_of, turns_of

LIMIT_SECS = 2.0
"""Of computing. What can be searched at all takes a small part of it."""

_KEPT_BYTES = 32 * 1024 * 1024
"""More than any line has: what counts is the last two of them."""

_MOST_BYTES = 1024 * 1024 * 1024
_HINT = "a pattern has to match a text in one way only: `^a+$`, not `^(a+)+$`"


class Unchecked(msgspec.Struct, frozen=True, kw_only=True):
    """Nobody knows whether the value fits, and why not. `hint` is what mends it, if that is known."""

    reason: str
    hint: str = ""


async def misfits_apart(checker: Checker, value: Any, *, limit_secs: float = LIMIT_SECS) -> list[Misfit] | Unchecked:
    """Return the parts of `value` that do not fit. Where the wait is cancelled, the process is ended."""
    from jp.app.structured.searching import Task
    from jp.process.guardian import OutputLimits
    from jp.process.worker import run_worker

    task = msgspec.json.encode(Task(schema=checker.schema, value=value, limit_secs=limit_secs))
    output = OutputLimits(kept=_KEPT_BYTES, most=_MOST_BYTES)
    try:
        # It bounds its own time, from when it has read the schema.
        done = await run_worker("jp.app.structured.searching", task, output=output)
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


class Fit(msgspec.Struct, frozen=True):
    """The answer is this value."""

    value: Any


class Unfit(msgspec.Struct, frozen=True):
    """The answer does not fit: `problems` are there in the order in which they are said, at least one."""

    problems: tuple[str, ...]


class Cut(msgspec.Struct, frozen=True):
    """The answer reached the longest that the model may write, so that it may go on."""


class NoAnswer(msgspec.Struct, frozen=True):
    """There is nothing."""


Verdict = Fit | Unfit | Unchecked | Cut | NoAnswer

_REASONS: dict[NoValue, str] = {
    "none": "it holds no JSON value",
    "several": "it holds several JSON values",
    "broken": "its JSON is not well formed",
    "repeated": "an object in its JSON has two members of the same name",
}


async def judge(entries: Sequence[AnyEntry], checker: Checker) -> Verdict:
    """Return a verdict on the newest turn of a stream."""
    attempt = _last_attempt(entries)
    if attempt is None:
        return NoAnswer()
    if attempt.end is not None and attempt.end.finish == "length":
        return Cut()
    answers = [answer for answer in attempt.answers if isinstance(answer, ChatResponse)]
    data = [answer for answer in answers if answer.data is not msgspec.UNSET]
    if not data:
        return NoAnswer()
    values = {msgspec.json.encode(answer.data, order="deterministic"): answer.data for answer in data if _holds(answer)}
    if len(values) == 1:
        return await _judged(next(iter(values.values())), checker)
    return Unfit((_REASONS["several" if values else _reason_of(data)],))


def _last_attempt(entries: Sequence[AnyEntry]) -> Attempt | None:
    turns = turns_of(entries)
    cycles = cycles_of(turns[-1]) if turns else []
    attempts = cycles[-1].attempts if cycles else ()
    return attempts[-1] if attempts else None


def _holds(answer: ChatResponse) -> bool:
    """Return whether `data` is a value that is found in what came, and not just what came."""
    return answer.text is None or answer.data != answer.text


def _reason_of(data: Sequence[ChatResponse]) -> NoValue:
    for answer in data:
        match find_json(answer.text or ""):
            case "several" | "broken" | "repeated" as reason:
                return reason
            case _:
                pass
    return "none"


async def _judged(value: Any, checker: Checker) -> Verdict:
    misfits = await misfits_apart(checker, value) if checker.searches else checker.misfits(value)
    if isinstance(misfits, Unchecked):
        return misfits
    return Unfit(tuple(map(str, misfits))) if misfits else Fit(value)
