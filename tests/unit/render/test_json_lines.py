from __future__ import annotations

import io

import msgspec
import pytest

from doubles import FakeClock
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    CycleEnd,
    ToolCallRequest,
    ToolCallResponse,
    Unknown,
)
from jp.conversation.resource import Resource, TextBlock
from jp.render.channel import Channel
from jp.render.json_lines import JsonRenderer, entry_line
from jp.render.status import StatusOptions, StatusRenderer
from jp.render.theme import Look
from jp.turn.ports import CallAnswered, CallMade, Renderer


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        (ChatResponse(id="a", message="hé"), '{"schema":1,"type":"chat_response","id":"a","message":"hé"}\n'),
        (
            ChatRequest(id="a", content="c", schema={"type": "object", "schema": 1}),
            '{"schema":1,"type":"chat_request","id":"a","content":"c","output_schema":{"type":"object","schema":1}}\n',
        ),
        (
            ChatRequest(id="a", content="c", resources=(Resource(uri="file:///b", blob=b"\x00\xff"),)),
            '{"schema":1,"type":"chat_request","id":"a","content":"c","resources":[{"uri":"file:///b","blob":"AP8="}]}\n',
        ),
        (
            ToolCallRequest(call_id="x", name="f", arguments={"schema": 1}),
            '{"schema":1,"type":"tool_call_request","call_id":"x","name":"f","arguments":{"schema":1}}\n',
        ),
        (Unknown(raw=b'{ "type":"new", "n": 1.50 }', type="new"), '{"schema":1,"type":"new", "n": 1.50 }\n'),
        (Unknown(raw=b'{"schema":{},"type":"new"}', type="new"), '{"schema":1,"type":"new","output_schema":{}}\n'),
        (Unknown(raw=b"{ }"), '{"schema":1}\n'),
        (
            ChatResponse(message="\x1b[2J\x9b\x7f\u202e\x00\n"),
            '{"schema":1,"type":"chat_response","message":"\\u001b[2J\\u009b\\u007f\\u202e\\u0000\\n"}\n',
        ),
    ],
    ids=["text", "output schema", "bytes", "schema within", "unknown", "unknown with schema", "empty", "controls"],
)
def test_a_line_is_the_version_and_the_entrys_fields(entry: AnyEntry, line: str) -> None:
    assert entry_line(entry) == line


def test_escaping_changes_nothing_that_is_said() -> None:
    text = "\x1b[2J\x9b\x7f\u202e"

    assert msgspec.json.decode(entry_line(ChatResponse(message=text)))["message"] == text


def play(renderer: Renderer) -> None:
    renderer.entry(ChatRequest(id="r", content="c"))
    renderer.reasoning("hm")
    renderer.text("text")
    renderer.block_end()
    renderer.entry(CycleEnd(id="e", attempt=1, finish="stop"))
    call = ToolCallRequest(id="t", call_id="x", name="f", arguments={})
    renderer.tool(CallMade(call=call))
    renderer.tool(CallAnswered(call=call, response=ToolCallResponse(request="t", content=(TextBlock(text="a"),))))
    renderer.notice("retry \udc9b\x1b[2J")
    renderer.close()


@pytest.mark.parametrize(
    ("shown", "said"), [(StatusOptions(), '{"schema":1,"note":"retry \ufffd"}\n'), (StatusOptions(notices=False), "")]
)
def test_stdout_has_entries_only_and_notices_are_json_too(shown: StatusOptions, said: str) -> None:
    raw = io.BytesIO()
    out, err = io.TextIOWrapper(raw, encoding="ascii"), io.StringIO()
    aside = StatusRenderer(Channel(err, name="stderr"), look=Look(), shown=shown, clock=FakeClock())

    play(JsonRenderer(Channel(out, name="stdout"), aside))

    assert raw.getvalue().decode() == (
        '{"schema":1,"type":"chat_request","id":"r","content":"c"}\n'
        '{"schema":1,"type":"cycle_end","id":"e","attempt":1,"finish":"stop"}\n'
    )
    assert err.getvalue() == said
