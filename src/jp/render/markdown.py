"""Markdown while it streams: each line is shown once, and is final when it is shown.

The text is read once. Code and tables are shown line by line, running text as soon as a line of it is full, so there is
progress within a long paragraph, and nothing is ever drawn again: the cost is linear in the length of the text. What
is shown depends on the text alone, never on the pieces in which it came.
"""

from __future__ import annotations

from jp.render.block_parser import BlockParser
from jp.render.blocks import BlockEvent
from jp.render.cuts import SEGMENT
from jp.render.inline import Inline
from jp.render.layout import Layout
from jp.render.lines import LOOK_AHEAD
from jp.render.sanitize import Sanitizer
from jp.render.theme import Look, Measure


class MarkdownStream:
    """Renders texts one after the other, each in any number of pieces.

    With `measure`, lines are as wide as the terminal is when they are laid out.
    """

    def __init__(self, look: Look, measure: Measure | None = None) -> None:
        self._look = look
        self._measure = measure
        self._inline = Inline(look)
        self._start()

    def _start(self) -> None:
        self._parser = BlockParser()
        self._layout = Layout(self._look, self._inline)
        self._sanitiser = Sanitizer()
        self._held: list[str] = []
        self._size = 0
        self._wanted = SEGMENT
        self._line = ""  # the beginning of a line of which it is not known yet what it is
        self._is_begun = False  # a line is coming that the parser has begun to read

    def feed(self, text: str) -> str:
        """Add to the text, and take the lines that can be shown: whole ones, or nothing."""
        self._held.append(text)
        self._size += len(text)
        if self._size < self._wanted and "\n" not in text:
            return ""
        return self._layout.show(self._read())

    def preview(self) -> str:
        """The line that is coming and cannot be shown for good yet; empty where there is none."""
        separator = "" if self._is_begun else "\n"
        return self._layout.preview(f"{self._parser.held}{separator}{self._line}{''.join(self._held)}")

    def settle(self) -> str:
        """Show what is held back of running text, which may go on all the same."""
        events = self._read()
        begun = self._parser.begin(self._line, is_certain=False) if self._line else None
        if begun is not None:
            events += begun
            self._line, self._is_begun = "", True
        return self._layout.show(events + self._parser.settle()) + self._layout.settle()

    def finish(self) -> str:
        """Show the rest. What is fed next is another text."""
        events = self._read() + self._read_text(self._sanitiser.finish())
        if self._line:
            events += self._parser.line(self._line)
        shown = self._layout.show(events + self._parser.finish())
        self._start()
        return shown

    def _read(self) -> list[BlockEvent]:
        """Read what is held, as far as it is known what it is."""
        if self._measure is not None:
            self._layout.fit(self._measure())
        text = self._sanitiser.feed("".join(self._held))
        self._held.clear()
        self._size = 0
        return self._read_text(text)

    def _read_text(self, text: str) -> list[BlockEvent]:
        *lines, last = text.split("\n")
        events: list[BlockEvent] = []
        for line in lines:
            if self._is_begun:
                events += self._parser.more(line)
                self._is_begun = False
            else:
                events += self._parser.line(self._line + line)
                self._line = ""
        events += self._read_beginning(last)
        # What is not known yet is looked at again only when there is twice as much of it.
        self._wanted = max(SEGMENT, len(self._line))
        return events

    def _read_beginning(self, text: str) -> list[BlockEvent]:
        if self._is_begun:
            return self._parser.more(text)
        self._line += text
        begun = self._parser.begin(self._line) if len(self._line) >= LOOK_AHEAD else None
        if begun is None:
            return []
        self._line, self._is_begun = "", True
        return begun


def render_markdown(text: str, look: Look) -> str:
    """The lines of a whole text."""
    stream = MarkdownStream(look)
    return stream.feed(text) + stream.finish()
