"""The renderer for a format, on the streams that there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TextIO, assert_never

import msgspec

from jp.render.aside import Aside, Shown
from jp.render.channel import Channel
from jp.render.theme import Measure, Preferences, columns_of, display_width, is_live, look_at
from jp.render.tool_style import StyleOf, usual_style
from jp.turn.ports import Clock

if TYPE_CHECKING:
    from jp.render.answer import AnswerRenderer
    from jp.render.jsonl import JsonRenderer
    from jp.render.tool_call import TurnOf

Format = Literal["text", "pretty", "json"]


class Streams(msgspec.Struct, frozen=True, kw_only=True):
    """Where a turn is shown. A stream that was closed is None."""

    out: TextIO | None
    err: TextIO | None
    environment: Mapping[str, str]


class Display(msgspec.Struct, frozen=True, kw_only=True):
    """What of a turn is shown, and how. `quiet` leaves nothing on stderr.

    Without `answer`, the message is written by somebody else, who waits until it is whole.
    """

    preferences: Preferences = Preferences()
    answer: bool = True
    reasoning: bool = True
    tools: bool = True
    tool_style: StyleOf = usual_style
    is_streaming: bool = True
    quiet: bool = False


def open_renderer(
    form: Format, display: Display, streams: Streams, *, clock: Clock, turn_of: TurnOf | None = None
) -> AnswerRenderer | JsonRenderer:
    """The renderer for `form`. `turn_of` names the turn of an entry, for tools that bring what was there before."""
    out = Channel(streams.out, name="stdout")
    aside = _open_aside(display, streams, clock=clock, turn_of=turn_of)
    match form:
        case "json":
            from jp.render.jsonl import JsonRenderer

            return JsonRenderer(out, aside)
        case "text" | "pretty" if not display.answer:
            from jp.render.silent import silent_renderer

            return silent_renderer(out, aside)
        case "text":
            from jp.render.plain import plain_renderer

            return plain_renderer(out, aside, is_streaming=display.is_streaming)
        case "pretty":
            from jp.render.terminal import terminal_renderer

            look = look_at(streams.out, display.preferences, streams.environment, siblings=[streams.err])
            measure = _measure(display, streams, streams.out, streams.err)
            return terminal_renderer(out, aside, look=look, measure=measure, is_streaming=display.is_streaming)
        case _:
            assert_never(form)


def _open_aside(display: Display, streams: Streams, *, clock: Clock, turn_of: TurnOf | None) -> Aside:
    shown = Shown(
        reasoning=display.reasoning and not display.quiet,
        tools=display.tools and not display.quiet,
        tool_style=display.tool_style,
        notices=not display.quiet,
        is_live=is_live(streams.err, streams.environment) and not display.quiet,
    )
    look = look_at(streams.err, display.preferences, streams.environment, siblings=[streams.out])
    channel = Channel(streams.err, name="stderr", is_lossy=True)
    measure = _measure(display, streams, streams.err, streams.out)
    return Aside(channel, look=look, shown=shown, clock=clock, measure=measure, turn_of=turn_of)


def _measure(display: Display, streams: Streams, *terminals: TextIO | None) -> Measure:
    """The width for a stream, measured whenever it is asked for: the first of `terminals` that is one says it."""
    return lambda: display_width(display.preferences.width, streams.environment, columns=columns_of(*terminals))
