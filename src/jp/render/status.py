"""Write reasoning, tool calls, notices and the waiting time to stderr while an answer streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from jp.render.channel import ERASE, Channel
from jp.render.tables import truncate
from jp.render.theme import Look, Measure, StyleOf, styled, usual_style
from jp.turn.ports import Clock, ToolNews

if TYPE_CHECKING:
    from jp.render.sanitize import Sanitizer
    from jp.render.status_line import Flow, ProgressLine, Waiting
    from jp.render.tool_calls import ToolLine, ToolLines, TurnOf


_WAITING_LABEL = "waiting for the model"
_DIM = "2"
_STYLES = {"event": _DIM, "failure": "31", "result": ""}


class StatusOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options for what is shown of a turn besides its answer.

    `is_live` says that stderr is a terminal whose lines can be erased: there tools have one line each, and it is said
    for how long nothing came, or what is done of the work in `progress`.
    """

    reasoning: bool = True
    tools: bool = True
    notices: bool = True
    tool_style: StyleOf = usual_style
    is_live: bool = False
    progress: ProgressLine | None = None


class StatusRenderer:
    """Writes to `channel`, which is stderr. Nothing here fails because stderr takes no more.

    What only some turns show is imported when the first of it is shown: the request goes out before.
    """

    def __init__(
        self,
        channel: Channel,
        *,
        look: Look,
        shown: StatusOptions,
        clock: Clock,
        measure: Measure | None = None,
        turn_of: TurnOf | None = None,
    ) -> None:
        self._channel = channel
        self._look = look
        self._shown = shown
        self._clock = clock
        self._measure = measure or (lambda: look.width)
        self._turn_of = turn_of
        self._waiting = self._new_waiting() if shown.is_live else None
        self._reasoning: Sanitizer | None = None  # there while some is under way
        self._flow: Flow | None = None
        self._tools: ToolLines | None = None
        self._after_tool = False
        self._is_paused = False
        self.restart(_WAITING_LABEL)

    @property
    def channel(self) -> Channel:
        """Return the channel that everything here is written to."""
        return self._channel

    def restart(self, label: str | None = None) -> None:
        """Erase the waiting line: something is about to be written, here or to stdout."""
        self._after_tool = False
        if self._waiting is not None:
            self._waiting.restart(label)

    def reasoning(self, text: str) -> None:
        """Show more of the reasoning, as it comes."""
        if not self._shown.reasoning:
            return
        if self._reasoning is None:
            from jp.render.sanitize import Sanitizer

            self.restart()
            self._channel.leave_line()
            self._reasoning = Sanitizer()
            self._flow = self._new_flow()
        self._think(self._reasoning.feed(text))

    def set_paused(self, *, is_paused: bool) -> None:
        """Leave the terminal to a question, or take it back.

        A question finds the cursor at the beginning of an empty line, whatever key was echoed before it.
        """
        if self._waiting is not None:
            self._waiting.restart()
        self._is_paused = is_paused
        if is_paused:
            is_erasable = self._shown.is_live and self._channel.is_at_line_start
            self._channel.write_unseen(ERASE if is_erasable else "\n")
        elif self._shown.is_live:
            self._channel.write_unseen(ERASE)  # a question that nobody answered stands there

    def end_reasoning(self) -> None:
        """End the line of reasoning that is complete."""
        if self._reasoning is not None:
            self._think(self._reasoning.finish())
            self._write(self._flow.finish() if self._flow is not None else "", _DIM)
            self._reasoning = None
            self._channel.end_line()

    def tool(self, event: ToolNews) -> None:
        """Show what happens to a call."""
        if self._tools is None:
            self._tools = self._new_tools()
        for line in self._tools.lines(event):
            self._tool_line(line)
        if self._waiting is not None:
            self._waiting.relabel(self._tools.awaited or _WAITING_LABEL)

    def notice(self, text: str) -> None:
        """Show a notice."""
        from jp.render.sanitize import link_message, sanitize

        safe = sanitize(text).rstrip()
        self.say(f"note: {link_message(safe) if self._look.links else safe}")

    def say(self, line: str) -> None:
        """Write a line that is fit to be shown, unless notices are not."""
        if self._shown.notices:
            self.restart()
            self._channel.end_line()
            self._channel.write(f"{line}\n")

    async def animate(
        self, prepare: Callable[[], object] | None = None, preview: Callable[[], str | None] | None = None
    ) -> None:
        """Show for how long nothing came, until cancelled; `prepare` is called once when there is time.

        While nothing is written, the line that `preview` gives is shown: the answer's, which is coming. Where it gives
        None, nothing is.
        """
        from jp.render.status_line import INTERVAL

        await self._clock.sleep(INTERVAL)
        if prepare is not None:
            prepare()
        while self._waiting is not None:
            coming = "" if preview is None else preview()
            if not self._is_paused and coming is not None:
                self._waiting.tick(coming)
            await self._clock.sleep(INTERVAL)

    def close(self) -> None:
        """End the reasoning and erase the waiting line."""
        self.end_reasoning()
        self.restart("")
        progress = self._shown.progress
        if progress is not None and progress.turn is self._waiting:
            progress.turn = None

    def _new_waiting(self) -> Waiting:
        from jp.render.status_line import Waiting

        progress = self._shown.progress
        work = str if progress is None else progress.work
        line = Waiting(self._channel, look=self._look, clock=self._clock, measure=self._measure, work=work)
        if progress is not None:
            progress.turn = line
        return line

    def _think(self, text: str) -> None:
        if self._flow is not None:
            self._flow.fit(self._text_width())
            text = self._flow.feed(text)
        self._write(text, _DIM)

    def _new_flow(self) -> Flow | None:
        """Return the word-wrapping for a terminal; without color a bar tells reasoning from the answer."""
        if not self._shown.is_live:
            return None
        from jp.render.status_line import Flow

        bar = "│ " if self._look.unicode else "| "
        return Flow(self._text_width(), prefix="" if self._look.color else bar)

    def _text_width(self) -> int:
        return replace(self._look, width=self._measure()).text_width

    def _tool_line(self, line: ToolLine) -> None:
        self.end_reasoning()
        if not self._shown.tools:
            return
        is_next = self._after_tool
        self.restart()
        if is_next:
            self._channel.end_line()
        else:
            self._channel.leave_line()
        self._after_tool = True
        is_cut = self._shown.is_live and line.kind != "result"
        text = truncate(line.text, self._measure()) if is_cut else line.text
        # At once: somebody else may write to the same terminal.
        self._write(f"{text}\n", _STYLES[line.kind])

    def _new_tools(self) -> ToolLines:
        from jp.render.tool_calls import ToolLines

        shown = self._shown
        return ToolLines(
            unicode=self._look.unicode, color=self._look.color, style_of=shown.tool_style, turn_of=self._turn_of
        )

    def _write(self, text: str, style: str) -> None:
        if text:
            self._channel.write(_styled(text, style) if self._look.color else text)


def _styled(text: str, style: str) -> str:
    """Return `text` in a style that ends before each line feed."""
    return "\n".join(styled(line, style) if line else "" for line in text.split("\n"))
