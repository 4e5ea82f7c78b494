"""The line that is there only while nothing else is written, and leaves no trace.

It shows the line of the answer that is coming, and says what is waited for, and for how long.
"""

from __future__ import annotations

import re

from jp.render.amounts import elapsed_text
from jp.render.cells import cell_width, truncate
from jp.render.channel import Channel
from jp.render.controlling_terminal import is_asking
from jp.render.terminal_line import ERASE
from jp.render.theme import Look, Measure
from jp.render.wrap import paint
from jp.turn.ports import Clock

DELAY = 1.0
"""Seconds of silence before the line appears."""

INTERVAL = 0.25
"""Seconds between two ticks."""

_DIM = "2"
_MARGIN = 12
_GAP = "  "
_SGR = re.compile(r"\x1b\[[0-9;]*m")


class Waiting:
    """Shows on `channel`, which is a terminal, what is coming and for how long nothing came."""

    def __init__(self, channel: Channel, *, look: Look, clock: Clock, measure: Measure | None = None) -> None:
        self._channel = channel
        self._measure = measure or (lambda: look.width)
        self._look = look
        self._clock = clock
        self._label = ""
        self._shown = ""
        self._coming = ""
        self._since = clock.monotonic()

    def restart(self, label: str | None = None) -> None:
        """Something is about to be written: the line disappears. `label` is what is waited for from now on."""
        if self._shown:
            self._channel.write_unseen(self._erasing())
            self._shown = ""
        if label is not None:
            self._label = label
        self._since = self._clock.monotonic()

    def relabel(self, label: str) -> None:
        """Something else is waited for; for how long nothing came stays the same."""
        self._label = label

    def tick(self, coming: str = "") -> None:
        """Show the line, or the time on it, where it is due. A line that is `coming` stands for what is waited for."""
        now = self._clock.monotonic()
        if is_asking():
            self._shown, self._since = "", now
            return
        if not self._channel.is_at_line_start:
            return
        if coming != self._coming:
            self._coming, self._since = coming, now
        text = self._text(coming, now - self._since)
        if text and text != self._shown:
            self._channel.write_unseen(f"{self._erasing()}{text}")
            self._shown = text

    def _erasing(self) -> str:
        """What takes away the line; where the terminal has become narrower, it stands in several rows."""
        rows = (cell_width(_SGR.sub("", self._shown)) - 1) // max(self._measure(), 1)
        return ERASE if rows < 1 else f"\x1b[{rows}A\r\x1b[J"

    def _text(self, coming: str, elapsed: float) -> str:
        """The line, empty where none is due."""
        label = coming or self._label
        if not label or (elapsed < DELAY and not coming):
            return ""
        shown = truncate(label, self._measure() - _MARGIN)
        time = elapsed_text(int(elapsed)) if elapsed >= DELAY else ""
        dim = _DIM if self._look.colour else ""
        if coming:
            return shown + (paint([(f"{_GAP}{time}", dim)]) if time else "")
        return paint([(f"{shown} {time}", dim)])
