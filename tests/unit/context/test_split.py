from __future__ import annotations

import pytest

from jp.context.anchors import SeamError, rejoin, split, split_at
from jp.context.types import Call, Message, Meta, Transcript

SYSTEM = Message(role="system", content="You help.")
NUDGE = Message(role="user", content="go on", meta=Meta(kind="synthetic"))
SUMMARY = Message(role="user", content="before", meta=Meta(kind="summary"))
CALLS = Message(role="assistant", calls=(Call(id="a", name="run", arguments="{}"),))
PENDING = Message(role="assistant", calls=CALLS.calls, meta=Meta(pending=True))
RESULT = Message(role="tool", call_id="a", content="ok")
ANSWER = Message(role="assistant", content="done")


def user(text: str) -> Message:
    return Message(role="user", content=text)


EXCHANGES: Transcript = (
    *(SYSTEM, SYSTEM),
    *(user("1"), CALLS, RESULT, ANSWER),
    *(user("2"), NUDGE, ANSWER),
    *(user("3"), ANSWER),
)


@pytest.mark.parametrize(
    ("keep", "lengths", "status"),
    [
        (0, (2, 9, 0), "split"),
        (-1, (2, 9, 0), "split"),
        (1, (2, 7, 2), "split"),
        (2, (2, 4, 5), "split"),
        (3, (2, 0, 9), "nothing_to_compact"),
        (4, (2, 0, 9), "nothing_to_compact"),
    ],
)
def test_partial_compaction_keeps_the_requested_last_n_user_exchanges(
    keep: int, lengths: tuple[int, int, int], status: str
) -> None:
    parts = split(EXCHANGES, keep_last_exchanges=keep)

    assert (len(parts.head), len(parts.middle), len(parts.tail)) == lengths
    assert parts.status == status
    assert parts.head + parts.middle + parts.tail == EXCHANGES


def test_the_tail_always_has_what_is_pending() -> None:
    messages = (SYSTEM, user("1"), ANSWER, PENDING, user("2"))

    assert split(messages, keep_last_exchanges=0).tail == (PENDING, user("2"))
    assert split(messages, keep_last_exchanges=1).tail == (PENDING, user("2"))


def test_the_head_is_never_part_of_another() -> None:
    assert split(EXCHANGES, keep_last_exchanges=1, head_end=4).head == EXCHANGES[:5]
    assert split(EXCHANGES, keep_last_exchanges=3, head_end=6).tail == EXCHANGES[6:]


def test_a_person_can_say_up_to_where() -> None:
    assert split_at(EXCHANGES, 6).middle == EXCHANGES[2:6]
    assert split_at(EXCHANGES, 4).middle == EXCHANGES[2:3]
    assert split_at(EXCHANGES, 0).status == "nothing_to_compact"
    assert split_at(EXCHANGES, 99).tail == ()


def test_a_transcript_without_anybody_has_nothing_to_compact() -> None:
    assert split((), keep_last_exchanges=0).status == "nothing_to_compact"
    assert split((SYSTEM,), keep_last_exchanges=2).head == (SYSTEM,)


def test_a_summary_takes_the_place_of_the_middle() -> None:
    parts = split(EXCHANGES, keep_last_exchanges=1)

    assert rejoin(parts, (SUMMARY,)) == (SYSTEM, SYSTEM, SUMMARY, user("3"), ANSWER)
    assert rejoin(parts, ()) == (SYSTEM, SYSTEM, user("3"), ANSWER)


def test_the_rejoined_tail_is_exact_even_where_it_is_damaged() -> None:
    damaged = (user("1"), ANSWER, user("2"), RESULT, CALLS)
    parts = split(damaged, keep_last_exchanges=1)

    assert rejoin(parts, (SUMMARY,)) == (SUMMARY, user("2"), RESULT, CALLS)
    assert rejoin(parts, parts.middle) == damaged


@pytest.mark.parametrize(
    ("replacement", "said"),
    [
        ((SUMMARY, SUMMARY), "there can be one summary between the head and the tail, not 2"),
        ((RESULT, SUMMARY), "the result of 'a' is apart from its call"),
        ((SUMMARY, CALLS), "the call 'a' has no result before the tail"),
    ],
)
def test_a_replacement_that_does_not_fit_at_its_ends_is_refused(replacement: Transcript, said: str) -> None:
    with pytest.raises(SeamError, match=said):
        rejoin(split(EXCHANGES, keep_last_exchanges=1), replacement)


def test_a_replacement_may_have_rounds_of_its_own() -> None:
    parts = split(EXCHANGES, keep_last_exchanges=1)

    assert rejoin(parts, (SUMMARY, CALLS, RESULT))[2:5] == (SUMMARY, CALLS, RESULT)
