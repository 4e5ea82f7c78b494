from __future__ import annotations

import io

from doubles import FakeClock
from jp.conversation.entries import ToolCallRequest, ToolCallResponse, TurnStart
from jp.conversation.resource import TextBlock
from jp.render.channel import Channel
from jp.render.status import StatusOptions, StatusRenderer
from jp.render.stream import PausableRenderer, plain_renderer
from jp.render.theme import Look
from jp.tool.base import CallProgress
from jp.turn.ports import CallAnswered


def renderer(out: io.StringIO, err: io.StringIO, *, is_live: bool = True) -> PausableRenderer:
    shown = StatusOptions(is_live=is_live)
    aside = StatusRenderer(Channel(err, name="stderr"), look=Look(), shown=shown, clock=FakeClock())
    return PausableRenderer(plain_renderer(Channel(out, name="stdout"), aside))


def test_what_comes_during_a_question_is_shown_after_it_in_order() -> None:
    out, err = io.StringIO(), io.StringIO()
    pausable = renderer(out, err)

    pausable.text("one ")
    pausable.pause()
    pausable.text("two ")
    pausable.notice("a cut")
    pausable.text("three")
    pausable.entry(TurnStart())
    pausable.block_end()
    pausable.close()
    assert (out.getvalue(), err.getvalue()) == ("one ", "\r\x1b[K")

    pausable.resume()
    assert (out.getvalue(), err.getvalue()) == ("one two three\n", "\r\x1b[K\r\x1b[Knote: a cut\n")


def test_room_is_made_below_a_line_that_is_under_way_and_where_none_can_be_erased() -> None:
    under_way, plain = io.StringIO(), io.StringIO()
    pausable = renderer(io.StringIO(), under_way)
    pausable.reasoning("hm and ")
    pausable.pause()
    renderer(io.StringIO(), plain, is_live=False).pause()

    assert (under_way.getvalue(), plain.getvalue()) == ("│ hm and\n", "\n")


def test_to_resume_what_was_never_paused_changes_nothing() -> None:
    out = io.StringIO()
    pausable = renderer(out, io.StringIO())

    pausable.resume()
    pausable.text("one")

    assert out.getvalue() == "one"


def test_a_call_that_ends_during_a_question_is_shown_after_it_and_how_far_it_was_is_not_kept() -> None:
    err = io.StringIO()
    pausable = renderer(io.StringIO(), err)
    call = ToolCallRequest(id="e1", call_id="x", name="read", arguments={})
    response = ToolCallResponse(request="e1", content=(TextBlock(text="a"),))

    pausable.pause()
    pausable.tool(CallProgress(call=call, text="half"))
    pausable.tool(CallAnswered(call=call, response=response))
    assert "read" not in err.getvalue()

    pausable.resume()
    assert err.getvalue().endswith("← read: 1 line, 1 B\n")
