"""Attempts: which answers of a model count, and which were left unfinished."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from jp.conversation.entries import AnyEntry, ChatResponse, CycleEnd, Finish, ToolCallRequest
from jp.conversation.turns import Answer, Attempt, is_blank


def counted_answers(attempt: Attempt) -> tuple[Answer, ...]:
    """The answers that a view shows, before any compaction.

    A refused attempt has none. Of a failed one only the messages count, and the reasoning that led to them: they were
    shown, so the next attempt continued them; its calls never ran. Messages of nothing but white space are no
    messages. Where the attempt broke off, reasoning counts only if it led to something, and unless the provider's
    limit was what broke it off, only if it was closed by its metadata.
    """
    finish = _finish(attempt)
    if finish == "refused":
        return ()
    answers = [answer for answer in attempt.answers if _counts(answer, finish)]
    if finish in {None, "length", "error", "cancelled"}:
        while answers and is_reasoning(answers[-1]):
            answers.pop()
    return tuple(answers)


def is_reasoning(answer: Answer) -> bool:
    """Whether `answer` is reasoning."""
    return isinstance(answer, ChatResponse) and answer.reasoning is not None


def is_cut(attempt: Attempt, counted: tuple[Answer, ...]) -> bool:
    """Whether the model would have gone on with its message, so that asking again means asking it to continue."""
    if _finish(attempt) not in {"length", "error", "cancelled"} or not counted:
        return False
    return not any(isinstance(answer, ToolCallRequest) for answer in counted)


def lacks_call(attempt: Attempt) -> bool:
    """Whether the model came to an end without calling a tool: asking it again means that a call was demanded."""
    if _finish(attempt) not in {"stop", "tools"}:
        return False
    return not any(isinstance(answer, ToolCallRequest) for answer in attempt.answers)


def rejected_in(entries: Iterable[AnyEntry]) -> frozenset[str]:
    """The ids of the answers whose metadata a provider did not accept, wherever the log says so.

    An undone turn counts too: what a provider has refused once it refuses again.
    """
    ends = (entry for entry in entries if isinstance(entry, CycleEnd))
    return frozenset(identity for end in ends for identity in end.rejected)


def loses_reasoning(attempt: Attempt, counted: tuple[Answer, ...]) -> bool:
    """Whether a part of the model's reasoning does not count."""
    if len(counted) == len(attempt.answers):
        return False
    return sum(map(is_reasoning, counted)) < sum(map(is_reasoning, attempt.answers))


def _finish(attempt: Attempt) -> Finish | None:
    return None if attempt.end is None else attempt.end.finish


def _counts(answer: Answer, finish: Finish | None) -> bool:
    if isinstance(answer, ChatResponse):
        if answer.reasoning is not None:
            broke_off = finish in {None, "error", "cancelled"}
            return bool(answer.metadata) or not (broke_off or is_blank(answer.reasoning))
        if answer.message is not None:
            return not is_blank(answer.message)
        return answer.data is not msgspec.UNSET and finish != "error"
    return finish != "error"
