from __future__ import annotations

from collections.abc import Sequence

from jp.conversation.resource import Resource, TextBlock
from jp.conversation.thread import AssistantText, ToolCall, ToolResult, UserResource, UserText, ViewEvent
from jp.provider.transcript import WireCall, WireResult, arguments_of, newest_request, plain_id
from threads import in_wire_order


def ask(text: str, turn: int = 0, *, synthetic: bool = False) -> UserText:
    return UserText(text=text, turn=turn, origin=f"r{turn}", synthetic=synthetic)


def call(origin: str, call_id: str = "c") -> ToolCall:
    return ToolCall(call_id=call_id, name="t", arguments={}, turn=0, origin=origin)


def answer(to: str, text: str) -> ToolResult:
    return ToolResult(call=to, call_id="c", name="t", content=(TextBlock(text=text),), turn=0)


def told(events: Sequence[ViewEvent]) -> list[str]:
    words: list[str] = []
    for event in in_wire_order(events):
        match event:
            case WireCall(wire_id=wire_id):
                words.append(f"call {wire_id}")
            case WireResult(wire_id=wire_id, is_error=is_error):
                words.append(f"{'no ' if is_error else ''}answer {wire_id}")
            case UserResource(resource=resource):
                words.append(resource.uri)
            case _:
                words.append(event.text)
    return words


def test_what_is_asked_comes_after_what_it_is_about() -> None:
    resource = UserResource(resource=Resource(uri="u:a", text="x"), turn=0, origin="r0")

    assert told([ask("why?"), resource, ask("later", 1)]) == ["u:a", "why?", "later"]


def test_calls_are_answered_at_once_and_in_their_order() -> None:
    events = [
        ask("go"),
        call("a", "1"),
        call("b", "2"),
        answer("b", "B"),
        answer("a", "A"),
        AssistantText(text="done", turn=0),
    ]

    assert told(events) == ["go", "call 1", "call 2", "answer 1", "answer 2", "done"]


def test_a_call_without_a_result_was_interrupted_and_a_result_without_a_call_is_not_there() -> None:
    assert told([call("a"), ask("again"), answer("x", "lost")]) == ["call c", "no answer c", "again"]
    assert told([call("a")]) == ["call c", "no answer c"]


def test_ids_that_repeat_are_numbered_and_none_is_given_twice() -> None:
    calls = [call("1", "a"), call("2", "a"), call("3", "a_2"), call("4", "a"), call("5", "é/x")]

    assert [word for word in told(calls) if word.startswith("call")] == [
        *("call a", "call a_2", "call a_2_2", "call a_3", "call __x"),
    ]
    assert plain_id("") == "call"


def test_a_tool_of_an_old_log_has_a_name_that_every_provider_takes() -> None:
    names = ["look", "my tool", "a.b/c", "9lives", "-x", "é", "", "n" * 200]
    calls = [ToolCall(call_id="c", name=name, arguments={}, turn=0, origin=str(i)) for i, name in enumerate(names)]
    plain = [event.call.name for event in in_wire_order(calls) if isinstance(event, WireCall)]

    assert plain == ["look", "my_tool", "a_b_c", "_9lives", "_-x", "_", "tool", "n" * 128]
    assert [event.call.name for event in in_wire_order(calls) if isinstance(event, WireResult)] == plain


def test_what_a_model_sent_in_place_of_arguments_is_told_as_an_object() -> None:
    broken = ToolCall(call_id="c", name="t", arguments="{oops", turn=0, origin="a")

    assert arguments_of(broken) == {"invalid_json": "{oops"}
    assert arguments_of(call("a")) == {}


def test_the_newest_request_is_the_users_own() -> None:
    assert newest_request([ask("a"), ask("b", 1), ask("go on", 2, synthetic=True)]) == ("r1", 1)
    assert newest_request([]) == ("", -1)
