from __future__ import annotations

import pytest
from msgspec.structs import replace

from artifacts import MemoryArtifacts
from jp.context.sanitize import Action, Sanitized, sanitize_pairs
from jp.context.types import Call, Message, Meta, ReasoningBlock, StoredBlock, TextBlock, Transcript
from transcript_validator import complaints

USER = Message(role="user", content="go")
SYSTEM = Message(role="system", content="You help.")


def calling(*ids: str, text: str = "", pending: bool = False) -> Message:
    calls = tuple(Call(id=call_id, name="run", arguments=f'{{"n": {number}}}') for number, call_id in enumerate(ids))
    return Message(role="assistant", content=text, calls=calls, meta=Meta(pending=pending))


def result(call_id: str, text: str = "ok") -> Message:
    return Message(role="tool", call_id=call_id, content=text)


def sanitized(messages: Transcript) -> Sanitized:
    """The result, after what holds for every one: providers take it, and there is nothing left to do."""
    found = sanitize_pairs(messages, MemoryArtifacts())
    assert complaints(found.messages) == []
    assert sanitize_pairs(found.messages, MemoryArtifacts()).messages is found.messages
    return found


@pytest.mark.parametrize(
    "messages",
    [
        (),
        (SYSTEM, USER, calling("a", "b"), result("b"), result("a"), calling("a"), result("a")),
        (USER, calling("a", "b", pending=True), result("b")),
        (calling("a", pending=True), USER),
        (SYSTEM, Message(role="user"), Message(role="assistant")),
    ],
    ids=["nothing", "ids that repeat", "half pending", "a request behind what is pending", "blank messages"],
)
def test_what_is_well_formed_is_the_very_same_object(messages: Transcript) -> None:
    assert sanitized(messages) == Sanitized(messages=messages)
    assert sanitized(messages).messages is messages


@pytest.mark.parametrize(
    ("messages", "mended", "actions"),
    [
        (
            (calling("a", "b"), result("a"), USER, result("b")),
            (calling("a", "b"), result("a"), result("b"), USER),
            [("moved", 3)],
        ),
        (
            (USER, result("a"), calling("a")),
            (USER, calling("a"), result("a")),
            [("moved", 1)],
        ),
        (
            (calling("a"), result("a"), result("b"), calling("b")),
            (calling("a"), result("a"), calling("b"), result("b")),
            [("moved", 2)],
        ),
        (
            (calling("a"), result("a", "old"), result("a", "new")),
            (calling("a"), result("a", "new")),
            [("duplicate_dropped", 1)],
        ),
        (
            (result("a", "of a call that is gone"), calling("a"), result("a", "1")),
            (calling("a"), result("a", "1")),
            [("orphan_dropped", 0)],
        ),
        (
            (calling("a"), result("a", "1"), USER, result("a", "of a call that is gone")),
            (calling("a"), result("a", "1"), USER),
            [("duplicate_dropped", 3)],
        ),
        (
            (calling("a"), result("a", "1"), USER, calling("a"), USER, result("a", "2")),
            (calling("a"), result("a", "1"), USER, calling("a"), result("a", "2"), USER),
            [("moved", 5)],
        ),
        (
            (result("x"), USER, result("a"), USER, calling("a", text="I look.")),
            (USER, USER, Message(role="assistant", content="I look.")),
            [("orphan_dropped", 0), ("orphan_dropped", 2), ("call_removed", 4)],
        ),
        (
            (calling("a", "b"), result("b")),
            (replace(calling("a", "b"), calls=calling("a", "b").calls[1:]), result("b")),
            [("call_removed", 0)],
        ),
        (
            (USER, calling("a"), USER),
            (USER, USER),
            [("call_removed", 1), ("message_dropped", 1)],
        ),
        (
            (calling("a", pending=True), USER, calling("b", pending=True)),
            (USER, calling("b", pending=True)),
            [("call_removed", 0), ("message_dropped", 0)],
        ),
        (
            (calling("a", "b", pending=True), USER, result("b")),
            (calling("a", "b", pending=True), result("b"), USER),
            [("moved", 2)],
        ),
    ],
    ids=[
        "a request between a call and its result",
        "a result before its call",
        "a result in the round before",
        "a result twice",
        "a result twice, once before its call",
        "a result twice, once apart",
        "a result apart in the second of two rounds with one id",
        "results without a call",
        "one of two calls without a result",
        "nothing left",
        "pending that is not last",
        "pending with a request among its results",
    ],
)
def test_orphaned_tool_results_and_calls_are_mended_by_place(
    messages: Transcript, mended: Transcript, actions: list[tuple[str, int]]
) -> None:
    found = sanitized(messages)

    assert found.messages == mended
    assert [(action.kind, action.position) for action in found.actions] == actions


def test_retained_tool_results_have_retained_parent_tool_calls() -> None:
    found = sanitized((
        result("a"),
        USER,
        calling("b", "c"),
        USER,
        result("c"),
        result("d"),
        calling("d", pending=True),
    ))

    assert [row.call_id for row in found.messages if row.role == "tool"] == ["c", "d"]
    assert [[call.id for call in row.calls] for row in found.messages if row.calls] == [["c"], ["d"]]


@pytest.mark.parametrize(
    ("ids", "answers", "mended"),
    [
        (["", ""], ["", ""], ["r0c0", "r0c1"]),
        (["a", "a"], ["a", "a"], ["a", "r0c1"]),
        (["a", "a", "a"], ["a", "a"], ["a", "r0c1"]),
        (["a", "a"], ["a", "a", "a"], ["a", "r0c1"]),
        (["r0c1", ""], ["", "r0c1"], ["r0c1_", "r0c1"]),
        (["", "r0c0"], ["", "r0c0"], ["r0c0_", "r0c0"]),
    ],
    ids=["empty", "twice", "more calls", "more results", "taken before", "taken after"],
)
def test_ids_that_are_empty_or_stand_twice_are_replaced_in_calls_and_results(
    ids: list[str], answers: list[str], mended: list[str]
) -> None:
    found = sanitized((calling(*ids), *(result(call_id, str(at)) for at, call_id in enumerate(answers))))

    assert [row.call_id for row in found.messages[1:]] == mended
    assert "id_assigned" in {action.kind for action in found.actions}


def test_a_pending_call_with_an_empty_id_gets_one_too() -> None:
    found = sanitized((USER, calling("", pending=True)))

    assert found.messages[1].calls[0].id == "r0c0"
    assert found.actions == (Action(kind="id_assigned", position=1, call_id="r0c0"),)


def test_calls_of_anybody_but_the_model_are_removed_and_what_they_said_stays() -> None:
    calls = calling("a").calls
    messages = (replace(SYSTEM, calls=calls), replace(USER, calls=calls), Message(role="user", calls=calls))

    found = sanitized((*messages, calling(""), replace(result(""), calls=calls)))

    assert found.messages[:2] == (SYSTEM, USER)
    assert [action.kind for action in found.actions].count("call_removed") == 4
    assert found.messages[3].calls == ()


def test_a_result_that_says_nothing_is_still_a_result_without_calls_of_its_own() -> None:
    blank = result("a", "")

    assert sanitized((calling("a"), replace(blank, calls=calling("b").calls))).messages == (calling("a"), blank)


def test_what_is_dropped_can_be_recalled() -> None:
    store = MemoryArtifacts()
    picture = StoredBlock(sha256="ab" * 32, size=9, mime_type="image/png")
    content = (TextBlock(text="one"), picture, TextBlock(text="two"))
    reasoning = (ReasoningBlock(text="hm"),)
    messages = (
        Message(role="tool", call_id="x", content=content),
        result("y", ""),
        USER,
        replace(calling("a"), content=reasoning),
    )

    actions = sanitize_pairs(messages, store).actions

    assert [[store.recall(handle) for handle in action.handles] for action in actions] == [
        ["one", None, "two"],
        [],
        ['{"n": 0}'],
        ["hm"],
    ]
    assert actions[0].handles[1] == "abababab"


def test_calls_that_a_dropped_result_was_given_can_be_recalled_too() -> None:
    store = MemoryArtifacts()

    actions = sanitize_pairs((replace(result("x"), calls=calling("a").calls), USER), store).actions

    assert [action.kind for action in actions] == ["call_removed", "orphan_dropped"]
    assert [store.recall(handle) for action in actions for handle in action.handles] == ['{"n": 0}', "ok"]
