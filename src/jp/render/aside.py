"""What is said on stderr while an answer comes: reasoning, tools, notices, and for how long nothing came."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, assert_never

import msgspec
from msgspec.structs import replace

from jp.conversation.entries import ToolCallRequest, ToolCallResponse
from jp.render.cells import truncate
from jp.render.channel import Channel
from jp.render.terminal_line import ERASE
from jp.render.theme import Look, Measure
from jp.render.wrap import paint
from jp.tool.base import Inquired, Progressed
from jp.turn.ports import CallAnswered, CallMade, Clock, ToolNews

if TYPE_CHECKING:
    from jp.render.flow import Flow
    from jp.render.sanitise import Sanitiser
    from jp.render.tool_call import TurnOf
    from jp.render.waiting import Waiting

_WAITING_LABEL = "waiting for the model"
_DIM, _FAILED = "2", "31"


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """What of a turn is shown besides its answer.

    `is_live` says that stderr is a terminal whose lines can be erased: there tools have one line each, and it is said
    for how long nothing came.
    """

    reasoning: bool = True
    tools: bool = True
    notices: bool = True
    is_live: bool = False


class Aside:
    """Writes to `channel`, which is stderr. Nothing here fails because stderr takes no more.

    What only some turns show is imported when the first of it is shown: the request goes out before.
    """

    def __init__(
        self,
        channel: Channel,
        *,
        look: Look,
        shown: Shown,
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
        self._reasoning: Sanitiser | None = None  # there while some is under way
        self._flow: Flow | None = None
        self._after_tool = False
        self._is_paused = False
        self.restart(_WAITING_LABEL)

    @property
    def channel(self) -> Channel:
        """Where all this is written."""
        return self._channel

    def restart(self, label: str | None = None) -> None:
        """Something is about to be written, here or to stdout."""
        self._after_tool = False
        if self._waiting is not None:
            self._waiting.restart(label)

    def reasoning(self, text: str) -> None:
        """Show more of the reasoning, as it comes."""
        if not self._shown.reasoning:
            return
        if self._reasoning is None:
            from jp.render.sanitise import Sanitiser

            self.restart()
            self._channel.leave_line()
            self._reasoning = Sanitiser()
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
        """The reasoning that was shown last is complete."""
        if self._reasoning is not None:
            self._think(self._reasoning.finish())
            self._write(self._flow.finish() if self._flow is not None else "", _DIM)
            self._reasoning = None
            self._channel.end_line()

    def tool(self, event: ToolNews) -> None:
        """Show what happens to a call."""
        match event:
            case CallMade(call=call):
                self._call(call)
            case Progressed(call=call, text=text):
                self._await(f"{call.name}: {text}")
            case Inquired():
                self._inquiry(event)
            case CallAnswered(call=call, response=response):
                self._result(call, response)
            case _:
                assert_never(event)

    def _call(self, call: ToolCallRequest) -> None:
        from jp.render.tool_call import call_text

        arrow = "→" if self._look.unicode else "->"
        self._tool_line(f"{arrow} {call_text(call)}", _DIM)
        self._await(f"running {call.name}")

    def _inquiry(self, event: Inquired) -> None:
        from jp.render.tool_call import inquiry_text

        self._tool_line(f"? {inquiry_text(event)}", _DIM)

    def _result(self, call: ToolCallRequest, response: ToolCallResponse) -> None:
        from jp.render.tool_call import result_text

        arrow = "←" if self._look.unicode else "<-"
        text = result_text(call, response, turn_of=self._turn_of)
        self._tool_line(f"{arrow} {text}", _FAILED if response.is_error else _DIM)
        self._await(_WAITING_LABEL)

    def _await(self, label: str) -> None:
        """Say what is waited for from now on."""
        if self._waiting is not None:
            from jp.render.sanitise import one_line

            self._waiting.restart(one_line(label))

    def notice(self, text: str) -> None:
        """Show a notice."""
        from jp.render.sanitise import sanitise

        self.say(f"note: {sanitise(text).rstrip()}")

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
        from jp.render.waiting import INTERVAL

        await self._clock.sleep(INTERVAL)
        if prepare is not None:
            prepare()
        while self._waiting is not None:
            coming = "" if preview is None else preview()
            if not self._is_paused and coming is not None:
                self._waiting.tick(coming)
            await self._clock.sleep(INTERVAL)

    def close(self) -> None:
        """Nothing more comes."""
        self.end_reasoning()
        self.restart("")

    def _new_waiting(self) -> Waiting:
        from jp.render.waiting import Waiting

        return Waiting(self._channel, look=self._look, clock=self._clock, measure=self._measure)

    def _think(self, text: str) -> None:
        if self._flow is not None:
            self._flow.fit(self._text_width())
            text = self._flow.feed(text)
        self._write(text, _DIM)

    def _new_flow(self) -> Flow | None:
        """On a terminal words are not torn apart, and where no style says that this is no answer, a bar does."""
        if not self._shown.is_live:
            return None
        from jp.render.flow import Flow

        bar = "│ " if self._look.unicode else "| "
        return Flow(self._text_width(), prefix="" if self._look.colour else bar)

    def _text_width(self) -> int:
        return replace(self._look, width=self._measure()).text_width

    def _tool_line(self, text: str, style: str) -> None:
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
        line = truncate(text, self._measure()) if self._shown.is_live else text
        self._write(f"{line}\n", style)  # at once: somebody else may write to the same terminal

    def _write(self, text: str, style: str) -> None:
        if text:
            self._channel.write(_styled(text, style) if self._look.colour else text)


def _styled(text: str, style: str) -> str:
    """`text` in a style that no line feed is part of."""
    return "\n".join(paint([(line, style)]) if line else "" for line in text.split("\n"))
