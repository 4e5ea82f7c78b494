from __future__ import annotations

import msgspec
import pytest

from jp.conversation.resource import (
    AudioBlock,
    ImageBlock,
    Resource,
    ResourceBlock,
    ResourceLink,
    TextBlock,
)
from jp.conversation.thread import (
    AssistantData,
    AssistantReasoning,
    AssistantText,
    Parameters,
    Thread,
    ToolCall,
    ToolDefinition,
    ToolResult,
    UserResource,
    UserText,
    ViewEvent,
)
from jp.provider.errors import ProviderError
from jp.provider.script.scenario import Body, body_of, sections_of

TOOL = ToolDefinition(name="read", description="Reads.", parameters={"type": "object"})

EVENTS: tuple[ViewEvent, ...] = (
    UserResource(resource=Resource(uri="file:///a.py", mime_type="text/x-python", name="a.py", text="pass"), turn=0),
    UserResource(resource=Resource(uri="file:///a.png", mime_type="image/png", blob=b"\x89PNG"), turn=0),
    UserResource(resource=Resource(uri="file:///b.py", text="long", formatted="short"), turn=0),
    UserText(text="Why?", turn=0),
    AssistantReasoning(text="Hm.", turn=0),
    AssistantText(text="Look.", turn=0),
    ToolCall(call_id="1", name="read", arguments={"path": "a"}, turn=0, origin="e1"),
    ToolCall(call_id="2", name="read", arguments="{", turn=0, origin="e2"),
    ToolResult(
        call="e1",
        call_id="1",
        name="read",
        content=(
            TextBlock(text="words"),
            ResourceBlock(resource=Resource(uri="file:///c", text="content")),
            ResourceLink(uri="file:///d", name="d"),
            ImageBlock(mime_type="image/png", blob=b"\x89PNG"),
            AudioBlock(mime_type="audio/wav", blob=b"RIFF"),
            TextBlock(sha256="ab" * 32, size=9, formatted="head and tail"),
            ImageBlock(mime_type="image/png", blob=b"x", formatted="too large"),
        ),
        turn=0,
    ),
    ToolResult(call="e2", call_id="2", name="read", content=(TextBlock(text="no"),), turn=0, is_error=True),
    AssistantText(text="Because.", turn=0),
    UserText(text="[summary]", turn=1, synthetic=True),
    UserText(text="As data?", turn=1),
    AssistantData(text='{"a":1}', turn=1),
)


def thread(events: tuple[ViewEvent, ...] = EVENTS) -> Thread:
    return Thread(
        model="script/demo",
        system=("Be kind.",),
        tools=(TOOL,),
        events=events,
        parameters=Parameters(temperature=0.5),
        schema={"type": "object"},
    )


def test_a_thread_becomes_neutral_json() -> None:
    assert msgspec.json.decode(msgspec.json.encode(body_of(thread()))) == {
        "model": "script/demo",
        "system": ["Be kind."],
        "tools": [{"name": "read", "description": "Reads.", "parameters": {"type": "object"}}],
        "messages": [
            {
                "role": "user",
                "turn": 0,
                "content": [
                    {
                        "type": "resource",
                        "uri": "file:///a.py",
                        "name": "a.py",
                        "mimeType": "text/x-python",
                        "text": "pass",
                    },
                    {"type": "resource", "uri": "file:///a.png", "mimeType": "image/png", "data": "iVBORw=="},
                    {"type": "resource", "uri": "file:///b.py", "text": "short"},
                    {"type": "text", "text": "Why?"},
                ],
            },
            {
                "role": "assistant",
                "turn": 0,
                "content": [
                    {"type": "reasoning", "text": "Hm."},
                    {"type": "text", "text": "Look."},
                    {"type": "tool_call", "call_id": "1", "name": "read", "arguments": {"path": "a"}},
                    {"type": "tool_call", "call_id": "2", "name": "read", "arguments": "{"},
                ],
            },
            {
                "role": "user",
                "turn": 0,
                "content": [
                    {
                        "type": "tool_result",
                        "call_id": "1",
                        "name": "read",
                        "content": [
                            {"type": "text", "text": "words"},
                            {"type": "resource", "uri": "file:///c", "text": "content"},
                            {"type": "resource", "uri": "file:///d", "name": "d"},
                            {"type": "media", "mimeType": "image/png", "data": "iVBORw=="},
                            {"type": "media", "mimeType": "audio/wav", "data": "UklGRg=="},
                            {"type": "text", "text": "head and tail"},
                            {"type": "text", "text": "too large"},
                        ],
                    },
                    {
                        "type": "tool_result",
                        "call_id": "2",
                        "name": "read",
                        "content": [{"type": "text", "text": "no"}],
                        "is_error": True,
                    },
                ],
            },
            {"role": "assistant", "turn": 0, "content": [{"type": "text", "text": "Because."}]},
            {
                "role": "user",
                "turn": 1,
                "content": [
                    {"type": "text", "text": "[summary]", "synthetic": True},
                    {"type": "text", "text": "As data?"},
                ],
            },
            {"role": "assistant", "turn": 1, "content": [{"type": "data", "text": '{"a":1}'}]},
        ],
        "parameters": {"temperature": 0.5},
        "schema": {"type": "object"},
    }


def test_a_request_is_read_back_as_it_was() -> None:
    body = body_of(thread())

    assert msgspec.convert(msgspec.to_builtins(body), Body) == body


def test_one_turn_s_messages_stay_apart_from_another_s() -> None:
    body = body_of(thread((UserText(text="a", turn=0), UserText(text="b", turn=1))))

    assert [(message.turn, len(message.content)) for message in body.messages] == [(0, 1), (1, 1)]


@pytest.mark.parametrize("count", range(len(EVENTS)))
def test_what_comes_later_changes_nothing_of_what_was_sent(count: int) -> None:
    whole, start = sections_of(body_of(thread())), sections_of(body_of(thread(EVENTS[:count])))

    assert start.tools == whole.tools
    assert start.system == whole.system
    sent = [block for message in start.messages for block in message]
    assert [block for message in whole.messages for block in message][: len(sent)] == sent


def test_sections_are_canonical_json() -> None:
    sections = sections_of(body_of(thread()))

    assert sections.tools == (b'{"description":"Reads.","name":"read","parameters":{"type":"object"}}',)
    assert sections.system == (b'"Be kind."',)
    assert sections.messages[-1] == (b'["assistant",1]', b'{"text":"{\\"a\\":1}","type":"data"}')


def test_content_that_was_not_loaded_cannot_be_sent() -> None:
    stored = UserResource(resource=Resource(uri="file:///a", sha256="ab" * 32, size=5), turn=0)

    with pytest.raises(ProviderError) as caught:
        body_of(thread((stored,)))

    assert caught.value.kind == "other"


def test_equal_parameters_are_the_same_request_wherever_they_were_read() -> None:
    read = msgspec.json.decode(b'{"tool_choice":"auto","stop_words":[],"other":{}}', type=Parameters)

    for parameters in (read, Parameters()):
        assert body_of(msgspec.structs.replace(thread(), parameters=parameters)).parameters == {}
