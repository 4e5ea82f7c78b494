"""Repair of a log after a crash, by appending: a provider accepts no call without a response."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from jp.conversation.entries import AnyEntry, RequestContext, ToolCallRequest, ToolCallResponse, Unknown
from jp.conversation.resource import INTERRUPTED_CONTENT, NOT_STARTED_CONTENT
from jp.conversation.turns import Attempt, Cycle, Turn, cycles_of, turns_of, undone


class Repair(msgspec.Struct, frozen=True, kw_only=True):
    """Entries to append, in order, and notices for the user."""

    entries: tuple[ToolCallResponse, ...] = ()
    notices: tuple[str, ...] = ()


class _Answer(msgspec.Struct, frozen=True):
    request: str = ""


_answer_decoder = msgspec.json.Decoder(_Answer)


def repair(entries: Sequence[AnyEntry]) -> Repair:
    """Return the responses that are missing because the last writer of a stream died.

    A call without a response gets one that reports an error: that its effects are unknown, or where its attempt has no
    end in the log, or was stopped, that it did not run. Calls of attempts that failed or were refused were never run
    and are not projected, so they need none. A last turn that stopped before its end gets a notice only.
    """
    answered = set(_answered(entries))
    turns = turns_of(entries)
    cycles = [(turn, cycle) for turn in turns for cycle in cycles_of(turn)]
    recorded = _turns_with_ends(turns)
    unknown: list[ToolCallRequest] = []
    responses: list[ToolCallResponse] = []
    waiting: list[ToolCallRequest] = []
    for turn, attempt in ((turn, attempt) for turn, cycle in cycles for attempt in cycle.attempts):
        may_have_run = attempt.end.finish != "cancelled" if attempt.end else turn.number not in recorded
        for call in (call for call in _calls(attempt) if call.id not in answered):
            (unknown if may_have_run else waiting).append(call)
            content = INTERRUPTED_CONTENT if may_have_run else NOT_STARTED_CONTENT
            responses.append(ToolCallResponse(request=call.id, content=content, is_error=True))
    notices: list[str] = []
    if unknown:
        notices.append(
            f"the last run stopped during tool calls ({_names(unknown)}): "
            "the model is told that their effects are unknown"
        )
    if waiting:
        notices.append(
            f"the last run stopped before tool calls ({_names(waiting)}) were run: the model is told that they were not"
        )
    if not responses and cycles and turns[-1].id not in undone(entries):
        notices += _unfinished(cycles[-1][1], entries)
    return Repair(entries=tuple(responses), notices=tuple(notices))


def _unfinished(last: Cycle, entries: Iterable[AnyEntry]) -> Iterator[str]:
    """Yield notices about a stream whose last cycle does not end a turn, and in which every call has its response."""
    if last.requests and not last.attempts:
        yield "the last turn ended before an answer came: its request stays (`jp conversation undo` takes it back)"
    elif _is_unfinished(last) and any(isinstance(entry, RequestContext) for entry in entries):
        # Without a record of any request it is no log of jp's own, and ends are recorded in none of those.
        yield "the last turn was not finished: its answer is kept as far as it came"


def _is_unfinished(last: Cycle) -> bool:
    """Return whether an attempt has no end, or no request followed what tools responded.

    Responses with the content of an interruption were written when the turn was stopped or repaired.
    """
    if last.responses:
        stopped = (INTERRUPTED_CONTENT, NOT_STARTED_CONTENT)
        return all(response.content not in stopped for response in last.responses)
    return any(attempt.end is None for attempt in last.attempts[-1:])


def _answered(entries: Iterable[AnyEntry]) -> Iterator[str]:
    for entry in entries:
        match entry:
            case ToolCallResponse(request=request):
                yield request
            case Unknown(type="tool_call_response", raw=raw):
                # A newer version's response, with a block that this one does not know, is a response too.
                yield _request_in(raw)
            case _:
                pass


def _request_in(raw: bytes) -> str:
    try:
        return _answer_decoder.decode(raw).request
    except msgspec.DecodeError:
        return ""


def _calls(attempt: Attempt) -> Iterator[ToolCallRequest]:
    if attempt.end is None or attempt.end.finish not in {"error", "refused"}:
        yield from (answer for answer in attempt.answers if isinstance(answer, ToolCallRequest))


def _turns_with_ends(turns: Iterable[Turn]) -> frozenset[int]:
    """Return the numbers of the turns in which jp records the end of each attempt before a tool runs.

    Turns before the first record of a request are an original's, which knows no such ends.
    """
    is_own = False
    found: set[int] = set()
    for turn in turns:
        is_own = is_own or any(isinstance(entry, RequestContext) for entry in turn.entries)
        if is_own:
            found.add(turn.number)
    return frozenset(found)


def _names(calls: Iterable[ToolCallRequest]) -> str:
    return ", ".join(sorted({repr(call.name) for call in calls}))
