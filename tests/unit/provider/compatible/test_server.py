from __future__ import annotations

from typing import Any

import pytest

from jp.config.entries import ServerConfig
from jp.conversation.entries import JsonObject
from jp.conversation.resource import Resource
from jp.conversation.thread import (
    AssistantReasoning,
    AssistantText,
    Parameters,
    Thread,
    ToolDefinition,
    UserResource,
    UserText,
)
from jp.provider.base import WireRequest
from jp.provider.chat.request import create


def asked(settings: JsonObject, **parameters: Any) -> WireRequest:
    thread = Thread(
        model="m",
        system=("Be brief.",),
        tools=(),
        events=(UserText(text="Hi", turn=0),),
        parameters=Parameters(**parameters),
    )
    return create(ServerConfig(**settings), "groq").render(thread)


@pytest.mark.parametrize("way", ["none", "effort", "enable_thinking"])
@pytest.mark.parametrize("wanted", [None, "auto"])
def test_reasoning_is_left_to_the_server_unless_it_is_set(way: str, wanted: object) -> None:
    request = asked({"reasoning": way}, reasoning=wanted)

    assert not {"reasoning_effort", "chat_template_kwargs"}.intersection(request.body)
    assert request.omitted == ()


def test_a_server_is_not_told_what_to_keep() -> None:
    assert asked({}, cache="off").omitted == ("cache 'off' not sent: the server keeps what it wants",)


@pytest.mark.parametrize(
    ("wanted", "level", "omitted"),
    [
        ("off", "none", ()),
        ("none", "none", ()),
        ("xlow", "low", ()),
        ("medium", "medium", ()),
        ("xhigh", "high", ("reasoning 'xhigh' sent as 'high', the most that servers commonly know",)),
        ("max", "high", ("reasoning 'max' sent as 'high', the most that servers commonly know",)),
        (500, "low", ("reasoning 500 sent as 'low': the server takes no number of tokens",)),
        (20_000, "high", ("reasoning 20000 sent as 'high': the server takes no number of tokens",)),
    ],
)
def test_an_effort_is_asked_for_by_its_level(wanted: Any, level: str, omitted: tuple[str, ...]) -> None:
    request = asked({"reasoning": "effort"}, reasoning=wanted)

    assert request.body["reasoning_effort"] == level
    assert request.omitted == omitted


def test_a_number_is_a_share_of_the_longest_output() -> None:
    assert asked({"reasoning": "effort"}, reasoning=500, max_tokens=600).body["reasoning_effort"] == "high"


@pytest.mark.parametrize(
    ("wanted", "thinks", "omitted"),
    [
        ("off", False, ()),
        ("high", True, ("reasoning 'high' sent as on: the server knows on and off only",)),
        (500, True, ("reasoning 500 sent as on: the server knows on and off only",)),
    ],
)
def test_a_template_is_told_on_or_off(wanted: Any, *, thinks: bool, omitted: tuple[str, ...]) -> None:
    request = asked({"reasoning": "enable_thinking"}, reasoning=wanted)

    assert request.body["chat_template_kwargs"] == {"enable_thinking": thinks}
    assert request.omitted == omitted


@pytest.mark.parametrize("wanted", ["off", "high", 500])
def test_a_server_of_which_nothing_is_known_is_told_nothing_and_the_user_why(wanted: Any) -> None:
    request = asked({}, reasoning=wanted)

    assert set(request.body) == {"model", "messages", "stream", "stream_options"}
    assert request.omitted == (
        f"reasoning {wanted!r} not sent: `providers.llm.groq.reasoning` says how the server is asked for it",
    )


def test_every_setting_is_heeded() -> None:
    plain = asked({}, max_tokens=9).body
    settings: JsonObject = {
        "max_tokens_name": "max_completion_tokens",
        "system_role": "developer",
        "stream_usage": False,
    }

    assert plain["max_tokens"] == 9
    assert asked(settings, max_tokens=9).body == {
        "model": "m",
        "stream": True,
        "max_completion_tokens": 9,
        "messages": [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
    }


SCHEMA: JsonObject = {"type": "object", "properties": {}, "additionalProperties": False}
TALK = Thread(
    model="m",
    system=(),
    tools=(ToolDefinition(name="run", description="", parameters={}),),
    events=(
        UserResource(resource=Resource(uri="u:1", mime_type="image/png", blob=b"x"), turn=0, origin="a"),
        UserText(text="one", turn=0, origin="a"),
        AssistantReasoning(text="hm", turn=0, metadata={"provider": "groq", "model": "m"}),
        AssistantText(text="1", turn=0),
        UserText(text="two", turn=1, origin="b", schema=SCHEMA),
    ),
    parameters=Parameters(tool_choice="run"),
    schema=SCHEMA,
)


@pytest.mark.parametrize(
    ("settings", "in_body", "in_messages"),
    [
        ({}, {"tool_choice", "response_format"}, {"image_url"}),
        ({"images": False}, {"tool_choice", "response_format"}, {"cannot be shown"}),
        ({"return_reasoning": "reasoning"}, {"tool_choice", "response_format"}, {"image_url", "'reasoning': 'hm'"}),
        ({"return_reasoning": "reasoning_content"}, {"tool_choice", "response_format"}, {"image_url", "g_content"}),
        ({"return_reasoning": "text"}, {"tool_choice", "response_format"}, {"image_url", "<think>"}),
        ({"tool_choice": False}, {"response_format"}, {"image_url", "Call the tool"}),
        ({"structured": "json_object"}, {"tool_choice", "response_format"}, {"image_url", "JSON Schema"}),
        ({"structured": "none"}, {"tool_choice"}, {"image_url", "JSON Schema"}),
    ],
)
def test_every_setting_changes_what_it_is_about_and_nothing_else(
    settings: JsonObject, in_body: set[str], in_messages: set[str]
) -> None:
    body = create(ServerConfig(**settings), "groq").render(TALK).body
    said = str(body["messages"])
    marks = {
        "image_url",
        "cannot be shown",
        "'reasoning': 'hm'",
        "g_content",
        "<think>",
        "Call the tool",
        "JSON Schema",
    }

    assert body.keys() - {"model", "messages", "stream", "stream_options", "tools"} == in_body
    assert {mark for mark in marks if mark in said} == in_messages
