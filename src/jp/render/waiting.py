"""The line that says what is being waited for. It is there only while nothing else is written, and leaves no trace."""

from __future__ import annotations

from jp.render.amounts import elapsed_text
from jp.render.cells import truncate
from jp.render.channel import Channel
from jp.render.prompt import is_asking
from jp.render.theme import Look
from jp.render.wrap import paint
from jp.turn.ports import Clock

DELAY = 1.0
"""Seconds of silence before the line appears."""

INTERVAL = 0.25
"""Seconds between two ticks."""

_ERASE = "\r\x1b[K"
_DIM = "2"
_MARGIN = 12


class Waiting:
    """Shows on `channel`, which is a terminal, for how long nothing came."""

    def __init__(self, channel: Channel, *, look: Look, clock: Clock) -> None:
        self._channel = channel
        self._look = look
        self._clock = clock
        self._label = ""
        self._shown = ""
        self._since = clock.monotonic()

    def restart(self, label: str | None = None) -> None:
        """Something is about to be written: the line disappears. `label` is what is waited for from now on."""
        if self._shown:
            self._channel.write_unseen(_ERASE)
            self._shown = ""
        if label is not None:
            self._label = label
        self._since = self._clock.monotonic()

    def tick(self) -> None:
        """Show the line, or the time on it, where it is due."""
        now = self._clock.monotonic()
        if is_asking():
            self._shown, self._since = "", now
            return
        elapsed = now - self._since
        if elapsed < DELAY or not self._channel.is_at_line_start or not self._label:
            return
        text = f"{truncate(self._label, self._look.width - _MARGIN)} {elapsed_text(int(elapsed))}"
        if text != self._shown:
            self._shown = text
            self._channel.write_unseen(f"{_ERASE}{paint([(text, _DIM if self._look.colour else '')])}")
