from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from chat_oracle import assert_accepted
from jp.conversation.entries import JsonObject
from jp.conversation.resource import Resource
from jp.conversation.thread import (
    AssistantText,
    Parameters,
    Thread,
    ToolCall,
    ToolDefinition,
    ToolResult,
    UserResource,
    UserText,
)
from jp.errors import ConfigurationError
from jp.provider.base import WireRequest
from jp.provider.chat.messages import Quirks, Server
from jp.provider.chat.request import ServerOptions, render
from jp.provider.errors import ProviderError

SERVER = Server(provider="mine", kind="openai-compatible")
HI = Thread(model="m", system=("Be brief.", "Be kind."), tools=(), events=(UserText(text="Hi", turn=0),))
RUN = ToolDefinition(name="run", description="", parameters={"type": "object"})


def server(**quirks: Any) -> Server:
    return replace(SERVER, quirks=Quirks(**quirks))


def body(thread: Thread = HI, by: Server = SERVER, asked: ServerOptions | None = None, **parameters: Any) -> JsonObject:
    given = replace(thread, parameters=Parameters(**parameters))
    rendered = render(given, by, asked or ServerOptions()).body
    assert_accepted(rendered)
    return rendered


def test_a_request_says_what_is_set_and_nothing_else() -> None:
    request = render(HI, SERVER)

    assert (request.path, request.model, request.framing, request.headers) == ("/chat/completions", "m", "sse", ())
    assert request.body == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "system", "content": "Be brief.\n\nBe kind."}, {"role": "user", "content": "Hi"}],
    }


def test_parameters_have_their_names() -> None:
    rendered = body(max_tokens=9, temperature=0.5, top_p=0.9, top_k=3, stop_words=("END", " "), other={"seed": 7})

    assert {name: rendered[name] for name in ("max_tokens", "temperature", "top_p", "top_k", "stop", "seed")} == {
        "max_tokens": 9,
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 3,
        "stop": ["END"],
        "seed": 7,
    }
    assert "temperature" not in body(asked=ServerOptions(sampling=False), temperature=0.5)


@pytest.mark.parametrize(
    ("quirks", "name", "value"),
    [
        ({"max_tokens_name": "max_completion_tokens"}, "max_completion_tokens", 9),
        ({"max_tokens_name": "max_completion_tokens"}, "max_tokens", None),
        ({"stream_usage": False}, "stream_options", None),
        ({}, "max_tokens", 9),
    ],
)
def test_quirks_of_names_and_counts_are_heeded(quirks: JsonObject, name: str, value: object) -> None:
    assert body(by=server(**quirks), max_tokens=9).get(name) == value


@pytest.mark.parametrize(
    ("quirks", "first"),
    [
        ({"system_role": "developer"}, {"role": "developer", "content": "Be brief.\n\nBe kind."}),
        (
            {"system_role": "user"},
            {
                "role": "user",
                "content": [{"type": "text", "text": "Be brief.\n\nBe kind."}, {"type": "text", "text": "Hi"}],
            },
        ),
        (
            {"text_parts": True},
            {
                "role": "system",
                "content": [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind."}],
            },
        ),
    ],
)
def test_the_system_prompt_has_the_role_that_the_server_wants(quirks: JsonObject, first: JsonObject) -> None:
    assert body(by=server(**quirks))["messages"][0] == first


def test_without_a_system_prompt_there_is_no_such_message() -> None:
    assert body(replace(HI, system=(" ",)))["messages"] == [{"role": "user", "content": "Hi"}]


def test_tools_are_offered_and_chosen() -> None:
    offered = replace(HI, tools=(RUN,))

    assert "tool_choice" not in body(offered)
    assert body(offered, tool_choice="required")["tool_choice"] == "required"
    asked = body(offered, server(tool_choice=False), tool_choice="run")
    assert "tool_choice" not in asked
    assert asked["messages"][-1]["content"] == "Hi\n\nCall the tool 'run' now."


def test_a_plea_without_a_request_is_not_said() -> None:
    answered = replace(HI, tools=(RUN,), events=(AssistantText(text="a", turn=0),))

    assert "Call" not in str(body(answered, server(tool_choice=False), tool_choice="run")["messages"])


def test_an_answer_is_held_to_a_schema() -> None:
    schema: JsonObject = {"type": "object", "properties": {}, "additionalProperties": False}
    wanted = replace(HI, schema=schema, events=(UserText(text="Hi", turn=0, schema=schema),))

    assert body(wanted)["response_format"]["type"] == "json_schema"
    assert body(wanted, server(structured="json_object"))["response_format"] == {"type": "json_object"}
    assert "response_format" not in body(wanted, server(structured="none"))


def test_what_only_the_adapter_knows_is_added() -> None:
    asked = ServerOptions(fields={"reasoning_effort": "low"}, headers=(("x-title", "t"),), omitted=("no top_k",))
    request = render(HI, SERVER, asked)

    assert request.body["reasoning_effort"] == "low"
    assert (request.headers, request.omitted) == (asked.headers, asked.omitted)


@pytest.mark.parametrize("name", ["model", "messages", "tools", "stream", "n", "response_format", "cache_control"])
def test_what_the_log_says_was_sent_cannot_be_changed(name: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        body(other={name: 1})


def test_nothing_to_say_is_not_sent() -> None:
    with pytest.raises(ProviderError) as caught:
        render(replace(HI, events=()), SERVER)

    assert caught.value.kind == "invalid_request"


MARK: JsonObject = {"type": "ephemeral"}
LONG = replace(
    HI,
    tools=(RUN,),
    events=(
        UserResource(resource=Resource(uri="u:1", text="old"), turn=0, origin="a"),
        UserText(text="one", turn=0, origin="a"),
        AssistantText(text="1", turn=0),
        UserResource(resource=Resource(uri="u:2", text="new"), turn=1, origin="b"),
        UserText(text="two", turn=1, origin="b"),
        ToolCall(call_id="c", name="run", arguments={}, turn=1, origin="c"),
        ToolResult(call="c", call_id="c", name="run", content=(), turn=1),
    ),
)


def marked(thread: Thread) -> list[str]:
    by = server(text_parts=True)
    request = render(thread, by, ServerOptions(marker=MARK))
    assert_accepted(request.body)
    messages: list[JsonObject] = request.body["messages"]
    parts = [part for message in messages if isinstance(message.get("content"), list) for part in message["content"]]
    assert request.sections == render(thread, by).sections
    return [part["text"] for part in parts if part.get("cache_control") == MARK]


def test_four_places_are_marked_at_most() -> None:
    assert marked(replace(LONG, events=LONG.events[:2])) == [
        "Be kind.",
        '<attachment uri="u:1">\nold\n</attachment>',
        "one",
    ]
    assert marked(replace(LONG, events=LONG.events[:5])) == [
        "Be kind.",
        "one",
        '<attachment uri="u:2">\nnew\n</attachment>',
        "two",
    ]
    unattached = tuple(event for event in LONG.events if not isinstance(event, UserResource))
    assert marked(replace(LONG, events=unattached, system=())) == ["two", "The tool returned nothing."]


def test_a_plea_is_not_marked_since_the_next_request_has_none() -> None:
    pleading = replace(LONG, tools=(RUN,), events=LONG.events[:2], parameters=Parameters(tool_choice="run"))
    request = render(pleading, server(text_parts=True, tool_choice=False), ServerOptions(marker=MARK))

    parts = request.body["messages"][-1]["content"]
    assert [(part["text"][:8], "cache_control" in part) for part in parts] == [
        ("<attachm", True),
        ("one", True),
        ("Call the", False),
    ]


def test_a_cache_sees_tools_then_the_system_prompt_then_messages() -> None:
    request: WireRequest = render(LONG, SERVER)
    found = request.sections

    assert found.tools == (b'{"function":{"name":"run","parameters":{"type":"object"}},"type":"function"}',)
    assert found.system == (b'{"text":"Be brief.\\n\\nBe kind.","type":"text"}',)
    assert [message[0] for message in found.messages] == [
        b'"user"',
        b'"assistant"',
        b'"user"',
        b'"assistant"',
        b'"tool"',
    ]
    assert found.messages[1] == (b'"assistant"', b'{"text":"1","type":"text"}')
    assert found.messages[3][1] == (b'{"function":{"arguments":"{}","name":"run"},"id":"c","type":"function"}')
    assert found.messages[4][1:] == (
        b'{"tool_call_id":"c"}',
        b'{"text":"The tool returned nothing.","type":"text"}',
    )


def test_only_a_server_that_is_probed_has_a_probe() -> None:
    request = render(replace(HI, parameters=Parameters(max_tokens=9)), server(probes=True))
    streamed = {name: value for name, value in request.body.items() if name != "stream_options"}

    assert "stream_options" in request.body
    assert request.probe == {**streamed, "stream": False, "max_tokens": 1}
    assert render(HI, server()).probe is None
