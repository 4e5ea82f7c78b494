from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from chat_oracle import assert_accepted
from jp.conversation.entries import JsonObject
from jp.conversation.resource import Block, ImageBlock, Resource, TextBlock
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
from jp.provider.chat.messages import Builder, Quirks, Server, incremental_messages, joined, wire_message
from jp.provider.errors import ProviderError
from jp.provider.models import find_model

MODEL = "m"
PNG = b"\x89PNG"


def built(*events: ViewEvent, system: Sequence[str] = (), **quirks: Any) -> list[JsonObject]:
    server = Server(provider="mine", kind="openai-compatible", quirks=Quirks(**quirks))
    thread = Thread(model=MODEL, system=tuple(system), tools=(), events=events)
    builder = incremental_messages(server).build(
        thread, lambda: Builder(thread, server, find_model(server.kind, MODEL))
    )
    found = builder.finish()
    messages = [wire_message(message, server) for message in found.messages]
    if messages:
        assert_accepted({"model": MODEL, "stream": True, "messages": messages})
    return messages


def user(text: str, turn: int = 0) -> UserText:
    return UserText(text=text, turn=turn, origin=f"u{turn}")


def said(text: str) -> AssistantText:
    return AssistantText(text=text, turn=0)


def thought(text: str, *, provider: str = "mine", **more: object) -> AssistantReasoning:
    return AssistantReasoning(text=text, turn=0, metadata={"provider": provider, "model": MODEL, **more})


def called(origin: str, arguments: JsonObject | str | None = None) -> ToolCall:
    given = {} if arguments is None else arguments
    return ToolCall(call_id=origin, name="run", arguments=given, turn=0, origin=origin)


def result(call: str, *content: Block, is_error: bool = False) -> ToolResult:
    return ToolResult(call=call, call_id=call, name="run", content=content, turn=0, is_error=is_error)


def image(name: str = "u:cat", turn: int = 0, **more: Any) -> UserResource:
    resource = Resource(uri=name, mime_type="image/png", blob=PNG, **more)
    return UserResource(resource=resource, turn=turn, origin=f"u{turn}")


def call(origin: str, arguments: str = "{}", **more: object) -> JsonObject:
    return {"id": origin, "type": "function", "function": {"name": "run", "arguments": arguments}, **more}


PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}}


def words(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def test_an_answer_is_one_message_with_all_that_it_said_and_called() -> None:
    assert built(
        user("a"),
        said("Let me look."),
        said("And there."),
        called("c1", {"x": 1}),
        called("c2"),
        result("c2", TextBlock(text="two")),
        result("c1", TextBlock(text="one")),
        said("Done."),
    ) == [
        {"role": "user", "content": "a"},
        {
            "role": "assistant",
            "content": "Let me look.\n\nAnd there.",
            "tool_calls": [call("c1", '{"x":1}'), call("c2")],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "one"},
        {"role": "tool", "tool_call_id": "c2", "content": "two"},
        {"role": "assistant", "content": "Done."},
    ]


def test_calls_are_numbered_where_that_is_wanted() -> None:
    numbered = built(user("a"), called("c1"), called("c2"), numbers_calls=True)[1]

    assert numbered["tool_calls"] == [call("c1", index=0), call("c2", index=1)]
    assert "content" not in numbered


@pytest.mark.parametrize(
    ("texts", "whole"),
    [
        (["a", "b"], "a\n\nb"),
        (["a\n", "b"], "a\nb"),
        (["a", " b"], "a b"),
        (["<think>\nx\n</think>\n\n", "b"], "<think>\nx\n</think>\n\nb"),
    ],
)
def test_texts_do_not_run_into_one_another(texts: list[str], whole: str) -> None:
    assert joined(texts) == whole


def test_the_user_speaks_once_at_a_time_and_a_request_is_one_text() -> None:
    attached = UserResource(resource=Resource(uri="u:f", text="content"), turn=0, origin="u0")

    assert built(attached, user("a")) == [
        {"role": "user", "content": '<attachment uri="u:f">\ncontent\n</attachment>\n\na'}
    ]
    assert built(user("a"), user("b", 1), said(" "), user("c", 2)) == [
        {"role": "user", "content": [words("a"), words("b"), words("c")]}
    ]
    assert built(attached, user("a"), text_parts=True)[0]["content"][1] == words("a")


def test_a_conversation_that_begins_with_an_answer_says_so() -> None:
    assert built(said("hi"), user(" ")) == [
        {"role": "user", "content": "[Earlier messages are not shown.]"},
        {"role": "assistant", "content": "hi"},
    ]


def test_the_system_prompt_may_stand_in_front_of_the_first_request() -> None:
    assert built(user("a"), system=["Be brief.", " "], system_role="user") == [
        {"role": "user", "content": [words("Be brief."), words("a")]}
    ]
    assert built(user("a"), system=[], system_role="user") == [{"role": "user", "content": "a"}]
    assert built(user("a"), system=["Be brief."]) == [{"role": "user", "content": "a"}]


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ("none", {"role": "assistant", "content": "a"}),
        ("reasoning", {"role": "assistant", "content": "a", "reasoning": "one\n\ntwo"}),
        ("reasoning_content", {"role": "assistant", "content": "a", "reasoning_content": "one\n\ntwo"}),
        (
            "text",
            {
                "role": "assistant",
                "content": "<think>\none\n</think>\n\n<think>\ntwo\n</think>\n\na",
            },
        ),
    ],
)
def test_earlier_reasoning_goes_back_as_the_server_wants_it(returned: str, message: JsonObject) -> None:
    assert built(user("q"), thought("one"), thought(" "), thought("two"), said("a"), return_reasoning=returned)[1] == (
        message
    )


def test_reasoning_of_another_is_sent_only_where_the_server_takes_it_as_text() -> None:
    foreign = thought("hm", provider="anthropic", signature="s")
    nobodys = AssistantReasoning(text="cut", turn=0)

    assert built(user("q"), foreign, nobodys, said("a"), return_reasoning="reasoning")[1] == {
        "role": "assistant",
        "content": "a",
    }
    assert built(user("q"), foreign, nobodys, said("a"), return_reasoning="text")[1] == {
        "role": "assistant",
        "content": "<think>\nhm\n</think>\n\n<think>\ncut\n</think>\n\na",
    }


def test_details_of_reasoning_go_back_as_they_came() -> None:
    details = [{"type": "reasoning.encrypted", "data": "x", "id": None}]

    assert built(user("q"), thought("hm", reasoning_details=details), said("a"), return_reasoning="reasoning")[1] == {
        "role": "assistant",
        "content": "a",
        "reasoning_details": details,
    }


def test_reasoning_alone_is_no_answer() -> None:
    assert built(user("q"), thought("hm"), user("go on", 1), return_reasoning="reasoning") == [
        {"role": "user", "content": [words("q"), words("go on")]}
    ]
    assert built(user("q"), thought("hm"), return_reasoning="reasoning") == [{"role": "user", "content": "q"}]


def test_structured_output_is_said_and_arguments_are_always_an_object() -> None:
    assert built(user("q"), AssistantData(text='{"a":1}', turn=0), called("c", '{"broken'))[1] == {
        "role": "assistant",
        "content": '{"a":1}',
        "tool_calls": [call("c", '{"invalid_json":"{\\"broken"}')],
    }


def test_pictures_stand_at_their_turn() -> None:
    assert built(image(title="Cat"), user("what?"), said("a cat"), user("sure?", 1)) == [
        {"role": "user", "content": [words("Cat (u:cat):"), PICTURE, words("what?")]},
        {"role": "assistant", "content": "a cat"},
        {"role": "user", "content": "sure?"},
    ]


def test_what_is_not_taken_is_an_error_when_it_is_new_and_a_note_when_it_is_old() -> None:
    with pytest.raises(ProviderError, match=r"'u:cat' is 'image/png', which mine does not accept") as caught:
        built(image(), user("what?"), images=False)
    assert (caught.value.kind, caught.value.hint) == ("unsupported", "text can be attached: ask again without it")

    assert built(image(), user("what?"), said("a"), user("b", 1), images=False)[0]["content"] == (
        "[u:cat: image/png, 4 bytes, cannot be shown to this model]\n\nwhat?"
    )


def test_pictures_of_tools_follow_all_results() -> None:
    picture = ImageBlock(mime_type="image/png", blob=PNG)
    messages = built(
        user("q"), called("c1"), called("c2"), result("c1", TextBlock(text="see"), picture), result("c2"), said("a")
    )

    assert messages[2:] == [
        {"role": "tool", "tool_call_id": "c1", "content": "see\n[content: image/png, shown after the results]"},
        {"role": "tool", "tool_call_id": "c2", "content": "The tool returned nothing."},
        {"role": "user", "content": [words("content, which 'run' returned:"), PICTURE]},
        {"role": "assistant", "content": "a"},
    ]
    assert built(user("q"), called("c"), result("c", picture))[-1]["role"] == "user"
    assert built(user("q"), called("c"), result("c", picture), images=False)[-1] == {
        "role": "tool",
        "tool_call_id": "c",
        "content": "[content: image/png, 4 bytes, cannot be shown to this model]",
    }


def test_a_failure_of_a_tool_says_that_it_is_one() -> None:
    assert built(user("q"), called("c"), result("c", TextBlock(text="no such file"), is_error=True))[-1]["content"] == (
        "Error: no such file"
    )


def test_a_call_without_a_result_was_interrupted() -> None:
    assert built(user("q"), called("c"), user("b", 1))[2]["content"].startswith("Error: ")


def test_ids_of_calls_may_have_to_be_short() -> None:
    calls = [called("toolu_0123456789"), called("aB3456789")]
    messages = built(user("go"), *calls, result("toolu_0123456789"), result("aB3456789"), call_ids="short")
    ids = [call["id"] for call in messages[1]["tool_calls"]]

    assert [message.get("tool_call_id") for message in messages[2:]] == ids
    assert [len(call_id) for call_id in ids] == [9, 9]
    assert ids[1] == "aB3456789"


def test_an_answer_may_have_to_stand_between_a_tool_and_the_user() -> None:
    events = (user("go"), called("a"), result("a", TextBlock(text="R")), user("stop", 1))
    roles = [message["role"] for message in built(*events, user_after_tool=False)]

    assert [message["role"] for message in built(*events)] == ["user", "assistant", "tool", "user"]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]
    assert roles[:3] == [message["role"] for message in built(*events[:3], user_after_tool=False)]


def test_a_schema_that_the_server_is_not_held_to_is_told_where_it_is_asked() -> None:
    asked = UserText(text="list", turn=0, origin="u0", schema={"type": "object"})

    assert '{"type":"object"}' in built(asked, structured="none")[0]["content"]
