"""Attempts: which answers of a model count, and which were left unfinished."""

from __future__ import annotations

from typing import assert_never

import msgspec

from jp.conversation.entries import ChatResponse, Finish, ToolCallRequest
from jp.conversation.turns import Answer, Attempt, is_blank


def counted_answers(attempt: Attempt) -> tuple[Answer, ...]:
    """The answers that a view shows, before any compaction.

    A refused attempt has none. Of a failed one only the messages count: they were shown, so the next attempt
    continued them; its calls never ran. Messages of nothing but white space are no messages. Reasoning counts where
    it led to something; where the attempt broke off, only what the provider closed with its metadata.
    """
    finish = None if attempt.end is None else attempt.end.finish
    if finish == "refused":
        return ()
    answers = [answer for answer in attempt.answers if _counts(answer, finish)]
    while answers and reasoning_of(answers[-1]) is not None:
        answers.pop()
    return tuple(answers)


def reasoning_of(answer: Answer) -> str | None:
    """The reasoning that `answer` is, if it is one."""
    return answer.reasoning if isinstance(answer, ChatResponse) else None


def is_cut(attempt: Attempt, counted: tuple[Answer, ...]) -> bool:
    """Whether the model would have gone on with its message, so that asking again means asking it to continue."""
    finish = None if attempt.end is None else attempt.end.finish
    if finish not in {"length", "error", "cancelled"} or not counted:
        return False
    return not any(isinstance(answer, ToolCallRequest) for answer in counted)


def _counts(answer: Answer, finish: Finish | None) -> bool:
    match answer:
        case ToolCallRequest():
            return finish != "error"
        case ChatResponse(reasoning=str(reasoning)):
            closed = bool(answer.metadata)
            return closed if finish in {None, "error", "cancelled"} else closed or not is_blank(reasoning)
        case ChatResponse(message=str(message)):
            return not is_blank(message)
        case ChatResponse():
            return answer.data is not msgspec.UNSET and finish != "error"
        case _:
            assert_never(answer)
