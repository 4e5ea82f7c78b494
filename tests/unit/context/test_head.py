from __future__ import annotations

import pytest

from jp.context.budget import group_costs
from jp.context.groups import index_groups
from jp.context.tail import Head, protect_head
from jp.context.types import Call, Message, Meta, Transcript

SYSTEM = Message(role="system", content="You help.")
USER = Message(role="user", content="a" * 384)
ANSWER = Message(role="assistant", content="a" * 384)
CALLS = Message(role="assistant", content="a" * 316, calls=(Call(id="a", name="call", arguments="{}{}"),))
RESULT = Message(role="tool", call_id="aaaa", content="a" * 348)
SUMMARY = Message(role="user", content="before", meta=Meta(kind="summary"))


def head(messages: Transcript, *, cap: int = 10_000, groups: int = 3) -> Head:
    index = index_groups(messages)
    return protect_head(messages, index, group_costs(messages, index), cap=cap, groups=groups)


def test_it_is_the_system_messages_and_the_first_groups_and_never_part_of_a_group() -> None:
    assert head((SYSTEM, SYSTEM, USER, CALLS, RESULT, ANSWER, USER)) == Head(end=6, tokens=397)
    assert head((SYSTEM, USER, CALLS, RESULT, ANSWER), groups=2).end == 4
    assert head((USER, ANSWER)).end == 2
    assert head(()) == Head(end=0, tokens=0)


@pytest.mark.parametrize("groups", [0, -1])
def test_it_can_be_the_system_messages_alone(groups: int) -> None:
    assert head((SYSTEM, USER), groups=groups).end == 1


def test_it_decays_to_the_system_messages_once_there_is_a_summary_wherever_that_stands() -> None:
    assert head((SYSTEM, SUMMARY, USER, ANSWER)).end == 1
    assert head((SYSTEM, USER, ANSWER, SUMMARY)).end == 1


def test_it_costs_at_most_its_cap_system_messages_aside() -> None:
    assert head((SYSTEM, USER, ANSWER, USER), cap=200) == Head(end=3, tokens=200, oversized=3)
    assert head((SYSTEM, USER, ANSWER, ANSWER), cap=200) == Head(end=3, tokens=200)


def test_the_first_compaction_does_not_keep_an_oversized_first_request_in_the_head_but_names_it() -> None:
    assert head((SYSTEM, Message(role="user", content="a" * 90_000), ANSWER)) == Head(end=1, tokens=0, oversized=1)


def test_what_is_pending_is_never_in_it() -> None:
    pending = Message(role="assistant", calls=CALLS.calls, meta=Meta(pending=True))

    assert head((SYSTEM, USER, pending)).end == 2
