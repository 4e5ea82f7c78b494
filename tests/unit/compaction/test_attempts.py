from __future__ import annotations

import pytest

from jp.compaction.turn_view import counted_answers, is_cut, loses_reasoning
from jp.conversation.entries import ChatResponse, Finish
from jp.conversation.turns import Answer, Attempt
from logs import call, end, say, think

CALL = call("c")
TEXT = say("text")
SIGNED = think("signed")
UNSIGNED = think("unsigned", signature=None)
REDACTED = think("")
EMPTY = think(" ", signature=None)
DATA = ChatResponse(data={"a": 1})
NULL = ChatResponse(data=None)
NOTHING = ChatResponse()


def counted(finish: Finish | None, *answers: Answer) -> list[Answer]:
    return list(counted_answers(Attempt(answers=answers, end=None if finish is None else end(finish))))


@pytest.mark.parametrize("finish", ["stop", "tools"])
def test_everything_of_a_whole_answer_counts(finish: Finish) -> None:
    answers = [SIGNED, UNSIGNED, REDACTED, TEXT, DATA, NULL, CALL, UNSIGNED]

    assert counted(finish, *answers) == answers


@pytest.mark.parametrize("finish", ["stop", "tools", "length", "error", "cancelled", None])
def test_what_says_nothing_never_counts(finish: Finish | None) -> None:
    assert counted(finish, EMPTY, say(""), say(" \n"), NOTHING) == []


def test_nothing_of_a_refused_answer_counts() -> None:
    assert counted("refused", SIGNED, TEXT, DATA, CALL) == []


def test_of_a_failed_answer_the_messages_count_and_what_led_to_them() -> None:
    assert counted("error", SIGNED, TEXT, DATA, REDACTED, CALL) == [SIGNED, TEXT]
    assert counted("error", SIGNED, CALL) == []


def test_where_an_answer_was_cancelled_reasoning_counts_if_it_is_signed() -> None:
    assert counted("cancelled", UNSIGNED, SIGNED, TEXT, DATA, CALL) == [SIGNED, TEXT, DATA, CALL]


def test_where_nothing_says_how_an_answer_ended_unsigned_reasoning_counts_if_something_follows() -> None:
    assert counted(None, UNSIGNED, SIGNED, TEXT, DATA, CALL, UNSIGNED) == [UNSIGNED, SIGNED, TEXT, DATA, CALL]


def test_where_the_length_was_reached_unsigned_reasoning_counts() -> None:
    assert counted("length", UNSIGNED, TEXT, UNSIGNED) == [UNSIGNED, TEXT]


@pytest.mark.parametrize("finish", ["length", "error", "cancelled", None])
def test_where_an_answer_broke_off_reasoning_that_led_to_nothing_does_not_count(finish: Finish | None) -> None:
    assert counted(finish, SIGNED, TEXT, SIGNED, REDACTED) == [SIGNED, TEXT]
    assert counted(finish, SIGNED) == []


@pytest.mark.parametrize("finish", ["length", "error", "cancelled"])
def test_a_message_at_the_end_of_an_answer_that_broke_off_is_cut(finish: Finish) -> None:
    assert is_cut(Attempt(answers=(TEXT,), end=end(finish)), (TEXT,))
    assert not is_cut(Attempt(answers=(), end=end(finish)), ())
    assert not is_cut(Attempt(answers=(TEXT, CALL), end=end(finish)), (TEXT, CALL))


@pytest.mark.parametrize("finish", ["stop", "tools", "refused"])
def test_a_whole_answer_is_not_cut(finish: Finish) -> None:
    assert not is_cut(Attempt(answers=(TEXT,), end=end(finish)), (TEXT,))
    assert not is_cut(Attempt(answers=(TEXT,), end=None), (TEXT,))


def test_reasoning_is_lost_where_less_of_it_counts() -> None:
    attempt = Attempt(answers=(SIGNED, UNSIGNED, TEXT, EMPTY), end=None)

    assert loses_reasoning(attempt, (SIGNED, TEXT))
    assert not loses_reasoning(Attempt(answers=(SIGNED, say(" ")), end=None), (SIGNED,))
    assert not loses_reasoning(attempt, attempt.answers)
