from __future__ import annotations

from jp.context.groups import Group, index_groups, pending_group
from jp.context.types import Call, Message, Meta

USER = Message(role="user", content="go")
ANSWER = Message(role="assistant", content="done")


def calling(*ids: str, pending: bool = False) -> Message:
    calls = tuple(Call(id=call_id, name="run", arguments="{}") for call_id in ids)
    return Message(role="assistant", calls=calls, meta=Meta(pending=pending))


def result(call_id: str) -> Message:
    return Message(role="tool", call_id=call_id, content="ok")


def test_a_round_is_the_calls_and_the_results_that_follow_and_any_other_message_is_a_group_of_its_own() -> None:
    index = index_groups((USER, calling("a", "b"), result("b"), result("a"), calling("a"), result("a"), ANSWER))

    assert index.groups == (Group(0, 1, "message"), Group(1, 4, "round"), Group(4, 6, "round"), Group(6, 7, "message"))
    assert index.group_of == (0, 1, 1, 1, 2, 2, 3)


def test_results_without_a_call_before_them_make_a_group() -> None:
    index = index_groups((result("a"), result("b"), USER, result("c")))

    assert [group.kind for group in index.groups] == ["stray", "message", "stray"]
    assert index.group_of == (0, 0, 1, 2)


def test_only_the_last_round_can_be_pending() -> None:
    one = index_groups((calling("a", pending=True), USER, calling("b", pending=True), result("b"), USER))
    none = index_groups((calling("a", pending=True), USER, calling("b"), result("b")))

    assert [group.pending for group in one.groups] == [False, False, True, False]
    assert pending_group(one) == 2
    assert pending_group(none) is None


def test_nothing_has_no_groups() -> None:
    assert index_groups(()).groups == ()
