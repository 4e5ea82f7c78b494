"""Renderer of a turn: the answer's text goes to stdout through a filter, everything else to stderr.

The filter is chosen by the format; what it needs is imported while the model is awaited.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal, Protocol, TextIO, assert_never

import msgspec

from jp.conversation.entries import AnyEntry, CycleEnd, Finish
from jp.render.channel import Channel
from jp.render.status import StatusOptions, StatusRenderer
from jp.render.theme import (
    Look,
    Measure,
    Preferences,
    StyleOf,
    columns_of,
    display_width,
    is_live,
    look_at,
    usual_style,
)
from jp.tool.base import CallProgress
from jp.turn.ports import Clock, Renderer, ToolNews

if TYPE_CHECKING:
    from jp.render.json_lines import JsonRenderer
    from jp.render.markdown import MarkdownStream
    from jp.render.sanitize import PlainText
    from jp.render.status_line import ProgressLine
    from jp.render.tool_calls import TurnOf


_COMPLETE: frozenset[Finish] = frozenset({"stop", "tools", "refused"})
"""Finishes after which nothing is added to a message: another attempt answers from the beginning."""


class Filter(Protocol):
    """Turns the streamed text into what is shown."""

    def feed(self, text: str) -> str:
        """Add to the text, and return what can be shown."""
        ...

    def preview(self) -> str:
        """Return the line that is coming, which is shown only while nothing else is."""
        ...

    def settle(self) -> str:
        """Return what is held back and need not be, although the text may continue."""
        ...

    def finish(self) -> str:
        """Return the rest. What is fed next is another text."""
        ...


class AnswerRenderer:
    """Shows a turn.

    Messages of different cycles, or with reasoning or tools between them, are kept apart by a blank line, and each gets
    its last line feed if it lacks one; a message that is continued after a cut goes on as if it had not been cut.
    `new_filter` is called when there is time, or with the first text. Without `is_streaming`, a message is written when
    it is complete.
    """

    def __init__(
        self, out: Channel, aside: StatusRenderer, new_filter: Callable[[], Filter], *, is_streaming: bool = True
    ) -> None:
        self._out = out
        self._aside = aside
        self._new_filter = new_filter
        self._is_streaming = is_streaming
        # What keeps the two apart on one terminal is no part of the answer.
        self._separator = aside.channel if out.shares_sink(aside.channel) else out
        self._filter: Filter | None = None
        self._held: list[str] = []
        self._is_open = False  # a message is under way
        self._is_new = False  # nothing of it was written yet
        self._has_answer = False

    def begin(self, conversation: str, entries: Sequence[AnyEntry]) -> None:
        """Ignore the conversation and its earlier entries, which are for programs."""

    def text(self, text: str) -> None:
        """Show more of the message."""
        if not self._is_open:
            self._aside.end_reasoning()
            self._is_open = self._is_new = True
        if self._is_streaming:
            self._write(self._ready_filter().feed(text))
        else:
            self._held.append(text)

    def reasoning(self, text: str) -> None:
        """Show more of the reasoning."""
        self._end_message()
        self._aside.reasoning(text)

    def block_end(self) -> None:
        """Show what is held back of a block that is complete, or cut."""
        self._aside.end_reasoning()
        if self._is_open:
            self._release()
            self._write(self._ready_filter().settle())

    def tool(self, event: ToolNews) -> None:
        """Show what happens to a call."""
        if not isinstance(event, CallProgress):  # which is shown as long as nothing else is
            self._end_message()
        self._aside.tool(event)

    def notice(self, text: str) -> None:
        """Show a notice, where the message stands now."""
        self._aside.notice(text)

    def entry(self, entry: AnyEntry) -> None:
        """End the message at the end of a cycle; the entry itself was shown while it streamed."""
        if isinstance(entry, CycleEnd) and entry.finish in _COMPLETE:
            self._end_message()

    def set_paused(self, *, is_paused: bool) -> None:
        """Leave the terminal to a question, or take it back."""
        self._aside.set_paused(is_paused=is_paused)

    def close(self) -> None:
        """Write what is held back, and the last line feed."""
        self._end_message()
        self._aside.close()

    async def animate(self) -> None:
        """Show the waiting time until canceled; prepare the filter meanwhile."""
        await self._aside.animate(self._ready_filter, self._preview)

    def _ready_filter(self) -> Filter:
        if self._filter is None:
            self._filter = self._new_filter()
        return self._filter

    def _preview(self) -> str | None:
        """Return the line that is coming, where it is shown on the terminal that shows the waiting time.

        None where a pipe may have brought the beginning of a line there, which must not be erased.
        """
        if self._separator is not self._aside.channel:
            return None if self._out.is_pipe and not self._out.is_at_line_start else ""
        is_shown = self._is_streaming and self._is_open
        return self._filter.preview() if self._filter is not None and is_shown else ""

    def _end_message(self) -> None:
        """End the message: something else comes.

        Its line feed is written now: a pipe may lead to the terminal that stderr is, where what comes begins a line.
        """
        if self._is_open:
            self._release()
            self._write(self._ready_filter().finish())
            self._is_open = False
            if self._has_answer:
                self._out.end_line()

    def _release(self) -> None:
        held = "".join(self._held)
        self._held.clear()
        self._write(self._ready_filter().feed(held) if held else "")

    def _write(self, shown: str) -> None:
        if not shown:
            return
        self._aside.restart()
        if self._is_new:
            self._separator.leave_line()
        self._is_new = False
        self._has_answer = True
        self._out.write(shown)


def plain_renderer(out: Channel, aside: StatusRenderer, *, is_streaming: bool = True) -> AnswerRenderer:
    """Return a renderer that streams the message to `out`. Its imports happen with the first text."""

    def new_text() -> PlainText:
        from jp.render.sanitize import PlainText

        return PlainText()

    return AnswerRenderer(out, aside, new_text, is_streaming=is_streaming)


def terminal_renderer(
    out: Channel, aside: StatusRenderer, *, look: Look, measure: Measure | None = None, is_streaming: bool = True
) -> AnswerRenderer:
    """Return a renderer that shows the message on `out`, in `look`. Its imports happen while jp waits for the model."""

    def new_stream() -> MarkdownStream:
        from jp.render.markdown import MarkdownStream

        return MarkdownStream(look, measure)

    return AnswerRenderer(out, aside, new_stream, is_streaming=is_streaming)


class _Silence:
    def feed(self, text: str) -> str:
        """Return no text."""
        return ""

    def preview(self) -> str:
        """Return no text."""
        return ""

    def settle(self) -> str:
        """Return no text."""
        return ""

    def finish(self) -> str:
        """Return no text."""
        return ""


def silent_renderer(out: Channel, aside: StatusRenderer) -> AnswerRenderer:
    """Return a renderer that does not write to stdout: the caller prints the whole answer."""
    return AnswerRenderer(out, aside, _Silence)


Format = Literal["text", "pretty", "json"]


class Streams(msgspec.Struct, frozen=True, kw_only=True):
    """The streams on which a turn is shown. A closed stream is None."""

    out: TextIO | None
    err: TextIO | None
    environment: Mapping[str, str]


class Display(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a turn that are shown, and how. `quiet` leaves nothing on stderr.

    Without `answer`, the message is written by somebody else, who waits until it is whole. `progress` is what is done
    besides.
    """

    preferences: Preferences = Preferences()
    answer: bool = True
    reasoning: bool = True
    tools: bool = True
    tool_style: StyleOf = usual_style
    is_streaming: bool = True
    quiet: bool = False
    progress: ProgressLine | None = None


def open_renderer(
    form: Format, display: Display, streams: Streams, *, clock: Clock, turn_of: TurnOf | None = None
) -> AnswerRenderer | JsonRenderer:
    """Return the renderer for `form`. `turn_of` returns the turn of an entry, for tools that recall earlier content."""
    out = Channel(streams.out, name="stdout")
    aside = _open_aside(display, streams, clock=clock, turn_of=turn_of, is_json=form == "json")
    match form:
        case "json":
            from jp.render.json_lines import JsonRenderer

            return JsonRenderer(out, aside)
        case "text" | "pretty" if not display.answer:
            return silent_renderer(out, aside)
        case "text":
            return plain_renderer(out, aside, is_streaming=display.is_streaming)
        case "pretty":
            look = look_at(streams.out, display.preferences, streams.environment, siblings=[streams.err])
            measure = _measure(display, streams, streams.out, streams.err)
            return terminal_renderer(out, aside, look=look, measure=measure, is_streaming=display.is_streaming)
        case _:
            assert_never(form)


def _open_aside(
    display: Display, streams: Streams, *, clock: Clock, turn_of: TurnOf | None, is_json: bool
) -> StatusRenderer:
    shown = StatusOptions(
        reasoning=display.reasoning and not display.quiet,
        tools=display.tools and not display.quiet,
        tool_style=display.tool_style,
        notices=not display.quiet,
        is_live=is_live(streams.err, streams.environment) and not (display.quiet or is_json),
        progress=display.progress,
    )
    look = look_at(streams.err, display.preferences, streams.environment, siblings=[streams.out])
    channel = Channel(streams.err, name="stderr", is_lossy=True)
    measure = _measure(display, streams, streams.err, streams.out)
    return StatusRenderer(channel, look=look, shown=shown, clock=clock, measure=measure, turn_of=turn_of)


def _measure(display: Display, streams: Streams, *terminals: TextIO | None) -> Measure:
    """Return a function that measures the width for a stream: the first of `terminals` that is one decides."""
    return lambda: display_width(display.preferences.width, streams.environment, columns=columns_of(*terminals))


class Screen(Renderer, Protocol):
    """A renderer that can leave the terminal to a question."""

    def set_paused(self, *, is_paused: bool) -> None:
        """Leave the terminal to a question, the cursor at the beginning of an empty line; or take it back."""
        ...


class PausableRenderer:
    """Shows a turn on `screen`, but for what comes between `pause` and `resume`: that is shown at `resume`."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._held: list[Callable[[], None]] | None = None

    def pause(self) -> None:
        """Show nothing more, and make room for a question."""
        self._held = []
        self._screen.set_paused(is_paused=True)

    def resume(self) -> None:
        """Show what came meanwhile, and go on showing."""
        held, self._held = self._held or [], None
        self._screen.set_paused(is_paused=False)
        for show in held:
            show()

    def text(self, text: str) -> None:
        """Show more of the message."""
        self._show(partial(self._screen.text, text))

    def reasoning(self, text: str) -> None:
        """Show more of the reasoning."""
        self._show(partial(self._screen.reasoning, text))

    def block_end(self) -> None:
        """End the part that was shown last."""
        self._show(self._screen.block_end)

    def tool(self, event: ToolNews) -> None:
        """Show what happens to a call; how far it was while nothing was shown is of no interest afterwards."""
        if self._held is None or not isinstance(event, CallProgress):
            self._show(partial(self._screen.tool, event))

    def notice(self, text: str) -> None:
        """Show a notice."""
        self._show(partial(self._screen.notice, text))

    def entry(self, entry: AnyEntry) -> None:
        """Show an entry."""
        self._show(partial(self._screen.entry, entry))

    def close(self) -> None:
        """Show what is held back by the screen itself."""
        self._show(self._screen.close)

    def _show(self, show: Callable[[], None]) -> None:
        if self._held is None:
            show()
        else:
            self._held.append(show)
