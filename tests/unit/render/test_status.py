from __future__ import annotations

import io
import re
from collections.abc import Callable

import anyio
import pytest

from doubles import FakeClock
from jp.conversation.entries import ToolCallRequest, ToolCallResponse
from jp.conversation.resource import TextBlock
from jp.render.channel import Channel
from jp.render.status import StatusOptions, StatusRenderer
from jp.render.theme import Look
from jp.tool.base import CallProgress
from jp.turn.ports import CallAnswered, CallMade

CALL = ToolCallRequest(id="c", call_id="x", name="read", arguments={"path": "a" * 50})
GOOD = ToolCallResponse(request="c", content=(TextBlock(text="a"),))
BAD = ToolCallResponse(request="c", content=(TextBlock(text="no"),), is_error=True)
EVERYTHING = StatusOptions()
CALLED = f'read(path="{"a" * 50}")'


def said(tell: Callable[[StatusRenderer], None], *, shown: StatusOptions = EVERYTHING, look: Look | None = None) -> str:
    stream = io.StringIO()
    tell(StatusRenderer(Channel(stream, name="stderr"), look=look or Look(width=40), shown=shown, clock=FakeClock()))
    return stream.getvalue()


def everything(aside: StatusRenderer) -> None:
    aside.reasoning("one\x1b[2J\ntw")
    aside.reasoning("o")
    aside.end_reasoning()
    aside.tool(CallMade(call=CALL))
    aside.tool(CallAnswered(call=CALL, response=GOOD))
    aside.tool(CallAnswered(call=CALL, response=BAD))
    aside.notice("retry\n")
    aside.reasoning("three")
    aside.close()


def test_sections_are_kept_apart_and_lines_are_whole() -> None:
    assert said(everything) == (
        "one\ntwo\n"
        "\n"
        f"→ {CALLED}\n"
        "← read: 1 line, 1 B\n"
        "← read failed: no\n"
        "note: retry\n"
        "\n"
        "three\n"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("shown", "missing"),
    [
        (StatusOptions(reasoning=False), ["one", "three"]),
        (StatusOptions(tools=False), ["→", "←"]),
        (StatusOptions(notices=False), ["note"]),
    ],
)
def test_what_is_hidden_is_not_there(shown: StatusOptions, missing: list[str]) -> None:
    text = said(everything, shown=shown)

    assert not any(word in text for word in missing)
    assert not text.startswith("\n")
    assert text.endswith("\n")


def test_when_everything_is_hidden_there_is_nothing() -> None:
    assert said(everything, shown=StatusOptions(reasoning=False, tools=False, notices=False)) == ""


def test_styles_end_with_every_line() -> None:
    text = said(everything, look=Look(width=40, color=True))

    assert text.startswith("\x1b[2mone\x1b[0m\n\x1b[2mtw\x1b[0m\x1b[2mo\x1b[0m\n")
    assert "\x1b[31m← read failed: no\x1b[0m\n" in text


def test_without_unicode_arrows_are_ascii() -> None:
    assert said(everything, look=Look(unicode=False)).isascii()


def test_on_a_terminal_a_tool_has_one_line() -> None:
    text = said(lambda aside: aside.tool(CallMade(call=CALL)), shown=StatusOptions(is_live=True))

    assert text == f'→ read(path="{"a" * 26}…\n'


def test_a_notice_between_reasoning_does_not_end_it() -> None:
    def tell(aside: StatusRenderer) -> None:
        aside.reasoning("one\x1b[3")
        aside.notice("retry")
        aside.reasoning("1mtwo")
        aside.close()

    assert said(tell) == "one\nnote: retry\ntwo\n"


def test_reasoning_is_wrapped_on_a_terminal_and_marked_where_no_color_does_it() -> None:
    def think(aside: StatusRenderer) -> None:
        aside.reasoning("a thought that is longer th")
        aside.reasoning("an the terminal\n\nand its end")
        aside.end_reasoning()

    live = StatusOptions(is_live=True)
    assert said(think, shown=live, look=Look(width=20)) == (
        "│ a thought that is\n│ longer than the\n│ terminal\n│\n│ and its end\n"
    )
    assert said(think, shown=live, look=Look(width=20, unicode=False)).startswith("| a thought that is\n| longer")
    colored = said(think, shown=live, look=Look(width=20, color=True))
    assert re.sub(r"\x1b\[[0-9]*m", "", colored) == ("a thought that is\nlonger than the\nterminal\n\nand its end\n")
    assert said(think, look=Look(width=20)) == "a thought that is longer than the terminal\n\nand its end\n"


def test_reasoning_is_wrapped_to_the_width_that_the_terminal_has_now() -> None:
    stream = io.StringIO()
    width = 20
    aside = StatusRenderer(
        Channel(stream, name="stderr"),
        look=Look(width=20),
        shown=StatusOptions(is_live=True),
        clock=FakeClock(),
        measure=lambda: width,
    )

    aside.reasoning("a thought that is long ")
    width = 10
    aside.reasoning("and longer still ")
    aside.end_reasoning()

    assert stream.getvalue() == "│ a thought that is\n│ long and\n│ longer\n│ still\n"


class ImpatientClock(FakeClock):
    """Half a second passes with every look at it."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 0.5
        return self.now


def test_what_is_waited_for_is_said_until_something_comes() -> None:
    stream = io.StringIO()
    prepared: list[str] = []

    async def play() -> None:
        aside = StatusRenderer(
            Channel(stream, name="stderr"), look=Look(), shown=StatusOptions(is_live=True), clock=ImpatientClock()
        )
        async with anyio.create_task_group() as group:
            group.start_soon(aside.animate, lambda: prepared.append("now"))
            await wait_for("waiting for the model 1 s")
            aside.tool(CallMade(call=CALL))
            await wait_for("running read 1 s")
            aside.tool(CallProgress(call=CALL, text="half\nway"))
            await wait_for("read: half way")
            group.cancel_scope.cancel()
        aside.close()

    async def wait_for(text: str) -> None:
        with anyio.fail_after(5):
            while text not in stream.getvalue():
                await anyio.lowlevel.checkpoint()

    anyio.run(play)

    assert stream.getvalue().startswith("\r\x1b[Kwaiting for the model 1 s")
    assert f"\r\x1b[K→ {CALLED}\n" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")
    assert prepared == ["now"]


def test_what_somebody_else_wrote_is_not_covered_by_what_is_waited_for() -> None:
    stream = io.StringIO()
    asked: list[None] = []

    async def play() -> None:
        aside = StatusRenderer(
            Channel(stream, name="stderr"), look=Look(), shown=StatusOptions(is_live=True), clock=ImpatientClock()
        )
        async with anyio.create_task_group() as group:
            group.start_soon(aside.animate, None, lambda: asked.append(None))
            with anyio.fail_after(5):
                while len(asked) < 20:
                    await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()

    anyio.run(play)

    assert stream.getvalue() == ""


def test_where_no_line_can_be_erased_nothing_is_animated() -> None:
    stream = io.StringIO()
    aside = StatusRenderer(Channel(stream, name="stderr"), look=Look(), shown=StatusOptions(), clock=ImpatientClock())

    anyio.run(aside.animate)

    assert stream.getvalue() == ""
