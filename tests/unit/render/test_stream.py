from __future__ import annotations

import io
import os
from collections.abc import Callable
from typing import TextIO

import anyio
import pytest

from doubles import FakeClock
from jp.conversation.entries import CycleEnd, Finish, ToolCallRequest, ToolCallResponse
from jp.conversation.resource import TextBlock
from jp.render.channel import Channel
from jp.render.status import StatusOptions, StatusRenderer
from jp.render.stream import AnswerRenderer, plain_renderer, terminal_renderer
from jp.render.theme import Look
from jp.turn.ports import CallAnswered, CallMade, Renderer

CALL = ToolCallRequest(id="c", call_id="x", name="read", arguments={})
RESPONSE = ToolCallResponse(request="c", content=(TextBlock(text="a"),))
END = b"<end>"
Play = Callable[[AnswerRenderer], None]


def plain(out: TextIO, err: TextIO, *, is_streaming: bool = True) -> AnswerRenderer:
    aside = StatusRenderer(Channel(err, name="stderr"), look=Look(), shown=StatusOptions(), clock=FakeClock())
    return plain_renderer(Channel(out, name="stdout"), aside, is_streaming=is_streaming)


def pretty(out: TextIO, err: TextIO, *, is_streaming: bool = True) -> AnswerRenderer:
    aside = StatusRenderer(Channel(err, name="stderr"), look=Look(), shown=StatusOptions(), clock=FakeClock())
    return terminal_renderer(Channel(out, name="stdout"), aside, look=Look(width=40), is_streaming=is_streaming)


def shown_apart(play: Play, renderer: Callable[..., AnswerRenderer], *, is_streaming: bool = True) -> tuple[str, str]:
    """What stands on stdout and on stderr where the two go to different places."""
    out, err = io.StringIO(), io.StringIO()
    playing = renderer(out, err, is_streaming=is_streaming)
    play(playing)
    playing.close()
    return out.getvalue(), err.getvalue()


def shown_together(play: Play, renderer: Callable[..., AnswerRenderer]) -> str:
    """What stands on a terminal that is both."""
    master, slave = os.openpty()
    with os.fdopen(slave, "w", encoding="utf-8") as out, os.fdopen(os.dup(slave), "w", encoding="utf-8") as err:
        playing = renderer(out, err)
        play(playing)
        playing.close()
        os.write(slave, END)
        shown = b""
        while not shown.endswith(END):
            shown += os.read(master, 65536)
    os.close(master)
    return shown.removesuffix(END).decode().replace("\r\n", "\n")


def a_turn(renderer: AnswerRenderer) -> None:
    """Reasoning, a message, a tool, a message."""
    renderer.reasoning("hm")
    renderer.reasoning("m")
    renderer.block_end()
    renderer.text("I lo")
    renderer.text("ok at *it*.")
    renderer.block_end()
    renderer.entry(CycleEnd(attempt=1, finish="tools"))
    renderer.tool(CallMade(call=CALL))
    renderer.tool(CallAnswered(call=CALL, response=RESPONSE))
    renderer.text("It is ")
    renderer.text("`a`.")
    renderer.block_end()


def test_a_renderer_is_what_a_turn_needs() -> None:
    renderer: Renderer = plain(io.StringIO(), io.StringIO())

    renderer.close()


def test_stdout_has_the_messages_and_stderr_the_rest() -> None:
    tools = "→ read()\n← read: 1 line, 1 B\n"

    assert shown_apart(a_turn, plain) == ("I look at *it*.\n\nIt is `a`.\n", f"hmm\n\n{tools}")
    assert shown_apart(a_turn, pretty) == ("I look at *it*.\n\nIt is `a`.\n", f"hmm\n\n{tools}")


@pytest.mark.parametrize("renderer", [plain, pretty])
def test_on_one_terminal_nothing_is_glued_together(renderer: Callable[..., AnswerRenderer]) -> None:
    assert shown_together(a_turn, renderer) == (
        "hmm\n\nI look at *it*.\n\n→ read()\n← read: 1 line, 1 B\n\nIt is `a`.\n"
    )


@pytest.mark.parametrize("renderer", [plain, pretty])
def test_without_streaming_the_same_is_shown(renderer: Callable[..., AnswerRenderer]) -> None:
    assert shown_apart(a_turn, renderer, is_streaming=False) == shown_apart(a_turn, renderer)


def test_without_streaming_a_message_is_shown_when_it_is_complete() -> None:
    out = io.StringIO()
    renderer = plain(out, io.StringIO(), is_streaming=False)

    renderer.text("one ")
    renderer.text("two")
    assert out.getvalue() == ""
    renderer.block_end()
    assert out.getvalue() == "one two"
    renderer.close()
    assert out.getvalue() == "one two\n"


def test_a_message_is_written_as_it_comes() -> None:
    out = io.StringIO()
    renderer = plain(out, io.StringIO())

    for text in ("a", "b\x1b[3", "1mc"):
        renderer.text(text)

    assert out.getvalue() == "abc"


@pytest.mark.parametrize(
    ("texts", "written"), [(["a"], "a\n"), (["a\n"], "a\n"), (["a\n\n"], "a\n\n"), ([], ""), ([""], ""), (["\n"], "\n")]
)
def test_the_last_line_gets_its_line_feed_and_nothing_else_is_added(texts: list[str], written: str) -> None:
    def play(renderer: AnswerRenderer) -> None:
        for text in texts:
            renderer.text(text)
        renderer.block_end()

    assert shown_apart(play, plain) == (written, "")


def a_cut(renderer: AnswerRenderer) -> None:
    """A message that breaks off within code and is continued."""
    renderer.text("Some text:\n\n```\none\ntw")
    renderer.block_end()
    renderer.notice("the stream was cut; retry 1 of 5 in 1.0 s")
    renderer.text("o\n```\nend")
    renderer.block_end()


def test_a_message_that_was_cut_goes_on_where_it_stopped() -> None:
    note = "note: the stream was cut; retry 1 of 5 in 1.0 s\n"

    assert shown_apart(a_cut, plain) == ("Some text:\n\n```\none\ntwo\n```\nend\n", note)
    assert shown_apart(a_cut, pretty) == ("Some text:\n\n```\none\ntwo\n```\n\nend\n", note)


def test_what_is_complete_is_shown_before_anything_else_comes() -> None:
    out = io.StringIO()
    renderer = pretty(out, io.StringIO())

    renderer.text("Let me write the file.")
    assert out.getvalue() == ""
    renderer.block_end()
    assert out.getvalue() == "Let me write the file.\n"


def test_messages_without_anything_between_them_are_one() -> None:
    def play(renderer: AnswerRenderer) -> None:
        for text in ("The grass is ", "green", "."):
            renderer.text(text)
            renderer.block_end()

    assert shown_apart(play, plain) == ("The grass is green.\n", "")


@pytest.mark.parametrize("finish", ["stop", "tools", "refused"])
@pytest.mark.parametrize("renderer", [plain, pretty])
def test_a_model_that_came_to_its_end_begins_a_new_message(
    renderer: Callable[..., AnswerRenderer], finish: Finish
) -> None:
    def play(playing: AnswerRenderer) -> None:
        for _ in range(2):
            playing.text("Hello there.")
            playing.block_end()
            playing.entry(CycleEnd(attempt=1, finish=finish))

    assert shown_apart(play, renderer) == ("Hello there.\n\nHello there.\n", "")
    assert shown_together(play, renderer) == "Hello there.\n\nHello there.\n"


@pytest.mark.parametrize("finish", ["length", "error", "cancelled"])
def test_a_model_that_was_cut_goes_on_with_its_message(finish: Finish) -> None:
    def play(renderer: AnswerRenderer) -> None:
        renderer.text("Hello ")
        renderer.block_end()
        renderer.entry(CycleEnd(attempt=1, finish=finish))
        renderer.text("there.")

    assert shown_apart(play, plain) == ("Hello there.\n", "")


def test_a_message_has_its_line_feed_before_anything_else_is_shown() -> None:
    out = io.StringIO()
    seen: list[str] = []

    class Err(io.StringIO):
        def write(self, text: str, /) -> int:
            seen.append(out.getvalue())
            return super().write(text)

    renderer = plain(out, Err())
    renderer.text("Let me look.")
    renderer.block_end()
    renderer.tool(CallMade(call=CALL))

    assert seen == ["Let me look.\n"]


def test_nothing_is_said_to_be_waited_for_where_a_pipe_has_begun_a_line() -> None:
    reader, writer = os.pipe()
    shown: list[str | None] = []

    class Watched(StatusRenderer):
        async def animate(
            self, prepare: Callable[[], object] | None = None, preview: Callable[[], str | None] | None = None
        ) -> None:
            assert preview is not None
            shown.append(preview())

    aside = Watched(Channel(io.StringIO(), name="stderr"), look=Look(), shown=StatusOptions(), clock=FakeClock())
    with os.fdopen(reader, "rb"), os.fdopen(writer, "w", encoding="utf-8") as out:
        renderer = plain_renderer(Channel(out, name="stdout"), aside)
        for text in ("a", "b\n"):
            anyio.run(renderer.animate)
            renderer.text(text)
        anyio.run(renderer.animate)

    assert shown == ["", None, ""]


def test_a_blank_line_is_enough() -> None:
    def play(renderer: AnswerRenderer) -> None:
        renderer.text("one\n\n")
        renderer.block_end()
        renderer.tool(CallMade(call=CALL))
        renderer.text("two")

    assert shown_apart(play, plain)[0] == "one\n\ntwo\n"


def test_reasoning_that_is_not_ended_ends_with_the_message() -> None:
    def play(renderer: AnswerRenderer) -> None:
        renderer.reasoning("hm")
        renderer.text("a")

    assert shown_together(play, plain) == "hm\n\na\n"


def test_markdown_is_made_ready_while_the_model_is_awaited() -> None:
    out = io.StringIO()
    made: list[str] = []

    class Filter:
        def feed(self, text: str) -> str:
            return text

        def preview(self) -> str:
            return ""

        def settle(self) -> str:
            return ""

        def finish(self) -> str:
            return ""

    def new_filter() -> Filter:
        made.append("one")
        return Filter()

    aside = StatusRenderer(Channel(io.StringIO(), name="stderr"), look=Look(), shown=StatusOptions(), clock=FakeClock())
    renderer = AnswerRenderer(Channel(out, name="stdout"), aside, new_filter)

    anyio.run(renderer.animate)
    assert made == ["one"]
    renderer.text("a")
    renderer.close()

    assert made == ["one"]
    assert out.getvalue() == "a\n"


def test_that_the_reader_has_left_is_for_the_turn_to_know() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", encoding="utf-8") as out:
        renderer = plain(out, io.StringIO())

        with pytest.raises(BrokenPipeError):
            renderer.text("a")
