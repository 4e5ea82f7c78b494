"""Renderer of an answer as text: the message goes to stdout through a filter, everything else to stderr."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from jp.conversation.entries import AnyEntry, CycleEnd, Finish
from jp.render.aside import Aside
from jp.render.channel import Channel
from jp.tool.base import Progressed
from jp.turn.ports import ToolNews

_COMPLETE: frozenset[Finish] = frozenset({"stop", "tools", "refused"})
"""Ends after which nothing is added to a message: who is asked again then, answers anew."""


class Filter(Protocol):
    """Makes what is shown of the text that comes."""

    def feed(self, text: str) -> str:
        """Add to the text, and take what can be shown."""
        ...

    def preview(self) -> str:
        """What may be shown for as long as nothing else is: the line that is coming."""
        ...

    def settle(self) -> str:
        """Take what is held back and need not be, although the text may go on."""
        ...

    def finish(self) -> str:
        """Take the rest. What is fed next is another text."""
        ...


class AnswerRenderer:
    """Shows a turn.

    Messages of different cycles, or with reasoning or tools between them, are kept apart by a blank line, and each gets
    its last line feed if it lacks one; a message that is continued after a cut goes on as if it had not been cut.
    `new_filter` is called when there is time, or with the first text. Without `is_streaming`, a message is written when
    it is complete.
    """

    def __init__(
        self, out: Channel, aside: Aside, new_filter: Callable[[], Filter], *, is_streaming: bool = True
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
        """Nothing: which conversation it is, and what was written to it before, is for programs."""

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
        """What was shown last is complete, or cut."""
        self._aside.end_reasoning()
        if self._is_open:
            self._release()
            self._write(self._ready_filter().settle())

    def tool(self, event: ToolNews) -> None:
        """Show what happens to a call."""
        if not isinstance(event, Progressed):  # which is shown as long as nothing else is
            self._end_message()
        self._aside.tool(event)

    def notice(self, text: str) -> None:
        """Show a notice, where the message stands now."""
        self._aside.notice(text)

    def entry(self, entry: AnyEntry) -> None:
        """Nothing of it, for it was shown as it came; but a model that came to its end does not go on."""
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
        """Say for how long nothing came, until cancelled; what rendering needs is made ready meanwhile."""
        await self._aside.animate(self._ready_filter, self._preview)

    def _ready_filter(self) -> Filter:
        if self._filter is None:
            self._filter = self._new_filter()
        return self._filter

    def _preview(self) -> str | None:
        """The line that is coming, where it is shown on the terminal that waiting is shown on.

        None where a pipe may have brought the beginning of a line there, which must not be erased.
        """
        if self._separator is not self._aside.channel:
            return None if self._out.is_pipe and not self._out.is_at_line_start else ""
        is_shown = self._is_streaming and self._is_open
        return self._filter.preview() if self._filter is not None and is_shown else ""

    def _end_message(self) -> None:
        """Something else comes, so the message does not go on.

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
