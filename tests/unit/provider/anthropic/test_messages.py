from __future__ import annotations

from collections.abc import Sequence

import pytest

from anthropic_oracle import assert_accepted
from jp.conversation.entries import JsonObject
from jp.conversation.resource import INTERRUPTED, Resource, TextBlock
from jp.conversation.thread import (
    AssistantData,
    AssistantReasoning,
    AssistantText,
    Thread,
    ToolCall,
    ToolResult,
    UserResource,
    UserText,
    ViewEvent,
)
from jp.provider.anthropic.messages import build_messages, settle_trailing_answer
from jp.provider.errors import ProviderError

MODEL = "claude-haiku-4-5"


def thread(events: Sequence[ViewEvent]) -> Thread:
    return Thread(model=MODEL, system=(), tools=(), events=tuple(events))


def built(*events: ViewEvent) -> list[tuple[str, list[JsonObject]]]:
    messages = build_messages(thread(events)).messages
    settle_trailing_answer(messages)
    plain: list[JsonObject] = [{"role": message.role, "content": message.content} for message in messages]
    if plain:
        assert_accepted({"model": MODEL, "max_tokens": 1, "stream": True, "messages": plain})
    return [(message.role, message.content) for message in messages]


def shape(*events: ViewEvent) -> list[tuple[str, list[str]]]:
    """Roles, and what each block says or is."""
    return [(role, [str(block.get("text", block["type"])) for block in content]) for role, content in built(*events)]


def user(text: str, turn: int = 0, origin: str = "") -> UserText:
    return UserText(text=text, turn=turn, origin=origin)


def said(text: str) -> AssistantText:
    return AssistantText(text=text, turn=0)


def attached(name: str, turn: int = 0, origin: str = "") -> UserResource:
    return UserResource(resource=Resource(uri=f"u:{name}", text=name), turn=turn, origin=origin)


def thought(text: str, **metadata: object) -> AssistantReasoning:
    made = {"provider": "anthropic", "model": MODEL, **metadata} if metadata else None
    return AssistantReasoning(text=text, turn=0, metadata=made)


def called(origin: str, *, call_id: str | None = None, arguments: JsonObject | str | None = None) -> ToolCall:
    return ToolCall(
        call_id=origin if call_id is None else call_id,
        name="run",
        arguments={} if arguments is None else arguments,
        turn=0,
        origin=origin,
    )


def result(call: str, text: str = "ok", *, is_error: bool = False) -> ToolResult:
    return ToolResult(
        call=call, call_id=call, name="run", content=(TextBlock(text=text),) if text else (), turn=0, is_error=is_error
    )


def test_roles_alternate_whoever_speaks_twice() -> None:
    assert shape(user("a"), user("b", 1), said("c"), said("d"), user("e", 2)) == [
        ("user", ["a", "b"]),
        ("assistant", ["c", "d"]),
        ("user", ["e"]),
    ]


def test_blank_text_is_not_sent() -> None:
    assert shape(user(" \n"), user("a"), said(""), user("b")) == [("user", ["a", "b"])]


def test_no_events_are_no_messages() -> None:
    assert built() == []
    assert built(user("")) == []


def test_a_conversation_that_begins_with_an_answer_is_opened_for_the_user() -> None:
    assert shape(said("a"), user("b")) == [
        ("user", ["[Earlier messages are not shown.]"]),
        ("assistant", ["a"]),
        ("user", ["b"]),
    ]


def test_structured_output_is_text() -> None:
    assert shape(user("a"), AssistantData(text='{"b":1}', turn=0), user("c")) == [
        ("user", ["a"]),
        ("assistant", ['{"b":1}']),
        ("user", ["c"]),
    ]


def test_resources_come_before_the_text_of_their_request() -> None:
    assert shape(user("read", 0, "r1"), attached("x", 0, "r1"), attached("y", 0, "r1"), user("more", 0, "r2")) == [
        ("user", ["document", "document", "read", "more"])
    ]


def test_resources_of_a_later_request_stay_behind_an_earlier_text() -> None:
    assert shape(user("a", 0, "r1"), attached("x", 1, "r2"), user("b", 1, "r2")) == [("user", ["a", "document", "b"])]


def test_only_a_new_attachment_that_cannot_be_sent_is_refused() -> None:
    resource = Resource(uri="u:zip", mime_type="application/zip", blob=b"PK")
    archive = UserResource(resource=resource, turn=0, origin="r1")
    note = "[u:zip: application/zip, 2 bytes, cannot be shown to this model]"

    assert shape(archive, user("a", 0, "r1"), user("b", 1, "r2")) == [("user", [note, "a", "b"])]
    with pytest.raises(ProviderError, match="'u:zip'"):
        built(archive, user("a", 0, "r1"), said("b"), UserText(text="go on", turn=0, origin="e", synthetic=True))
    with pytest.raises(ProviderError, match="'u:zip'"):
        built(archive)


def test_the_last_resource_is_known() -> None:
    found = build_messages(thread([attached("x"), user("a"), said("b"), attached("y", 1), user("c", 1)]))

    assert found.last_resource == (2, 0)


def test_own_thinking_goes_back_as_it_came() -> None:
    content = built(user("a"), thought("hm", signature="s"), thought("", redacted="r"), said("b"), user("c"))[1][1]

    assert content[:2] == [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "redacted_thinking", "data": "r"},
    ]


def test_thinking_of_a_snapshot_is_its_models() -> None:
    event = thought("hm", signature="s", model=f"{MODEL}-20251001")

    assert built(user("a"), event, said("b"), user("c"))[1][1][0]["type"] == "thinking"


@pytest.mark.parametrize(
    "event",
    [
        thought("hm"),
        thought("hm", signature=7),
        thought("hm", signature="s", model="claude-opus-5"),
        thought("hm", signature="s", model=None),
        thought("hm", signature="s", provider="openai"),
    ],
)
def test_thinking_that_the_model_does_not_read_is_not_sent(event: AssistantReasoning) -> None:
    assert shape(user("a"), event, said("b"), user("c"))[1] == ("assistant", ["b"])


def test_empty_thinking_of_others_is_omitted() -> None:
    assert shape(user("a"), thought(""), said("b"), user("c"))[1] == ("assistant", ["b"])


def test_an_answer_does_not_end_with_thinking() -> None:
    events = (user("a"), said("b"), thought("hm", signature="s"), thought("", redacted="r"), user("c"))

    assert shape(*events)[1] == ("assistant", ["b"])


def test_an_answer_of_which_nothing_can_be_sent_disappears() -> None:
    assert shape(user("a"), thought("", redacted="r"), user("b", 1)) == [("user", ["a", "b"])]
    assert shape(user("a"), thought("", redacted="r")) == [("user", ["a"])]


def test_a_trailing_answer_becomes_plain() -> None:
    assert shape(user("a"), thought("hm", signature="s"), thought("", redacted="r"), said("b \n")) == [
        ("user", ["a"]),
        ("assistant", ["b"]),
    ]


def test_parallel_calls_are_answered_in_one_message_in_their_order() -> None:
    messages = built(user("a"), called("c1"), called("c2"), result("c2", "two"), result("c1", "one"), said("b"))

    assert [role for role, _ in messages] == ["user", "assistant", "user", "assistant"]
    assert messages[2][1] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "one"}]},
        {"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": "two"}]},
    ]


def test_calls_of_following_cycles_stay_apart() -> None:
    assert shape(user("a"), called("c1"), result("c1"), called("c2"), result("c2")) == [
        ("user", ["a"]),
        ("assistant", ["tool_use"]),
        ("user", ["tool_result"]),
        ("assistant", ["tool_use"]),
        ("user", ["tool_result"]),
    ]


def test_a_result_comes_before_what_the_user_said_meanwhile() -> None:
    assert shape(user("a"), called("c1"), user("stop"), result("c1")) == [
        ("user", ["a"]),
        ("assistant", ["tool_use"]),
        ("user", ["tool_result", "stop"]),
    ]


def test_a_call_without_a_result_is_answered_as_interrupted() -> None:
    answer = built(user("a"), called("c1"))[2][1][0]

    assert answer["is_error"] is True
    assert answer["content"] == [{"type": "text", "text": INTERRUPTED}]


def test_a_result_without_a_call_is_not_sent() -> None:
    assert shape(user("a"), result("c9"), user("b")) == [("user", ["a", "b"])]


def test_errors_are_marked_and_empty_results_are_bare() -> None:
    messages = built(user("a"), called("c1"), called("c2"), result("c1", "no", is_error=True), result("c2", ""))

    assert messages[2][1] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "no"}], "is_error": True},
        {"type": "tool_result", "tool_use_id": "c2"},
    ]


def test_repeated_and_odd_ids_become_valid_and_unique() -> None:
    messages = built(
        user("a"),
        called("o1", call_id="x"),
        called("o2", call_id="x"),
        called("o3", call_id="x_2"),
        called("o4", call_id=""),
        called("o5", call_id="a.b é"),
        result("o2", "two"),
    )
    ids = [block["id"] for block in messages[1][1]]

    assert ids == ["x", "x_2", "x_2_2", "call", "a_b__"]
    assert [block["tool_use_id"] for block in messages[2][1]] == ids
    assert messages[2][1][1]["content"] == [{"type": "text", "text": "two"}]


def test_calls_of_one_origin_take_their_results_in_order() -> None:
    messages = built(user("a"), called(""), called(""), result("", "one"), result("", "two"))

    assert [block["content"][0]["text"] for block in messages[2][1]] == ["one", "two"]


def test_arguments_that_are_no_object_are_wrapped() -> None:
    messages = built(user("a"), called("c1", arguments='{"a'), result("c1"))

    assert messages[1][1][0]["input"] == {"invalid_json": '{"a'}
