from __future__ import annotations

import io
import os

import anyio
import pytest

from doubles import FakeClock
from jp.conversation.entries import ChatRequest, ToolCallRequest, ToolCallResponse
from jp.conversation.resource import Resource, ResourceBlock
from jp.render.stream import Display, Format, Streams, open_renderer
from jp.render.theme import Preferences
from jp.turn.ports import CallAnswered, CallMade, Renderer

CALL = ToolCallRequest(id="c", call_id="x", name="read", arguments={})
RESPONSE = ToolCallResponse(
    request="c", content=(ResourceBlock(resource=Resource(uri="file:///a", text="a", duplicate_of="e")),)
)


def play(renderer: Renderer) -> None:
    renderer.entry(ChatRequest(id="r", content="c"))
    renderer.reasoning("hm")
    renderer.block_end()
    renderer.tool(CallMade(call=CALL))
    renderer.tool(CallAnswered(call=CALL, response=RESPONSE))
    renderer.text("**a**")
    renderer.block_end()
    renderer.notice("n")
    renderer.close()


def shown(form: Format, display: Display, environment: dict[str, str] | None = None) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    streams = Streams(out=out, err=err, environment=environment or {})
    play(open_renderer(form, display, streams, clock=FakeClock(), turn_of={"e": 7}.get))
    return out.getvalue(), err.getvalue()


@pytest.mark.parametrize(
    ("form", "out"),
    [
        ("text", "**a**\n"),
        ("pretty", "**a**\n"),
        ("json", '{"schema":1,"type":"chat_request","id":"r","content":"c"}\n'),
    ],
)
def test_every_format_has_its_renderer(form: Format, out: str) -> None:
    assert shown(form, Display())[0] == out


def test_stderr_has_what_is_wanted() -> None:
    tools = "→ read()\n← read: 1 line, 1 B, unchanged since turn 7\n"

    assert shown("text", Display())[1] == f"hm\n\n{tools}note: n\n"
    assert shown("text", Display(reasoning=False))[1] == f"{tools}note: n\n"
    assert shown("text", Display(tools=False))[1] == "hm\nnote: n\n"
    assert shown("text", Display(quiet=True))[1] == ""
    assert shown("json", Display())[1] == '{"schema":1,"note":"n"}\n'


def test_colours_are_decided_for_each_stream() -> None:
    always = Display(preferences=Preferences(color="always"))

    assert shown("pretty", always)[0] == "\x1b[1ma\x1b[0m\n"
    assert shown("text", always)[1].startswith("\x1b[2mhm\x1b[0m\n")
    assert shown("text", always)[0] == "**a**\n"
    assert shown("pretty", Display(), {"FORCE_COLOR": "1"})[0] == "\x1b[1ma\x1b[0m\n"


def test_streams_that_were_closed_take_nothing() -> None:
    streams = Streams(out=None, err=None, environment={})

    play(open_renderer("pretty", Display(), streams, clock=FakeClock()))


def test_a_stderr_that_nobody_reads_costs_nothing() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    out = io.StringIO()
    with os.fdopen(writer, "w", encoding="utf-8") as err:
        play(open_renderer("text", Display(), Streams(out=out, err=err, environment={}), clock=FakeClock()))

    assert out.getvalue() == "**a**\n"


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


class ShortClock(FakeClock):
    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds)
        assert len(self.waits) < 5, "it goes on"


@pytest.mark.parametrize(("form", "quiet"), [("json", False), ("pretty", True), ("text", True)])
def test_nothing_says_that_the_model_is_awaited_as_json_or_where_it_is_to_be_quiet(
    form: Format, *, quiet: bool
) -> None:
    err = Screen()
    streams = Streams(out=io.StringIO(), err=err, environment={"TERM": "xterm"})
    renderer = open_renderer(form, Display(quiet=quiet), streams, clock=ShortClock())

    anyio.run(renderer.animate)  # which ends, for there is nothing to show

    assert err.getvalue() == ""
