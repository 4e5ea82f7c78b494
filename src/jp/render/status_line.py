"""The transient line that says what is awaited or done, and word-wrapping of streamed reasoning."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from threading import Event, RLock, Thread
from typing import TextIO

from jp.render.channel import ERASE, Channel
from jp.render.tables import cell_width, clusters, elapsed_text, truncate
from jp.render.theme import Look, Measure, Preferences, columns_of, display_width, look_at, styled
from jp.render.tty import is_asking, set_transient_line
from jp.turn.ports import Clock, SystemClock

_PIECE = re.compile(r"\n|[ \t]+|[^ \t\n]+")
_TAB = "    "
_LONGEST_WORD = 4096
_WIDE = 2


class Flow:
    """Breaks lines at spaces so that they take at most `width` cells; every line begins with `prefix`.

    A word is given out as soon as it is whole, so that a reader sees the text grow. Indents, runs of spaces and blank
    lines stay, but for the spaces at which a line was broken. A word that is wider stands on its own line, whole.
    """

    def __init__(self, width: int, *, prefix: str = "") -> None:
        self._prefix = prefix
        self.fit(width)
        self._column = 0
        self._gap = ""
        self._word = ""  # may go on
        self._is_begun = False  # the line has its prefix

    def fit(self, width: int) -> None:
        """Break lines at another width from here on."""
        self._width = max(width - cell_width(self._prefix), 1)

    def feed(self, text: str) -> str:
        """Add to the text, and return what is final of it."""
        pieces = _PIECE.findall(self._word + text)
        self._word = ""
        if pieces and not pieces[-1].isspace() and len(pieces[-1]) < _LONGEST_WORD:
            self._word = pieces.pop()
        return "".join(map(self._piece, pieces))

    def finish(self) -> str:
        """Return the rest. What is fed next is another text."""
        rest = self._piece(self._word) if self._word else ""
        self._word = self._gap = ""
        self._column, self._is_begun = 0, False
        return rest

    def _piece(self, piece: str) -> str:
        if piece == "\n":
            return self._end_line()
        if piece.isspace():
            self._gap += piece.replace("\t", _TAB)
            return ""
        return "".join(self._place(word, cells) for word, cells in _words(piece))

    def _place(self, word: str, cells: int) -> str:
        broken = ""
        if self._column and self._column + len(self._gap) + cells > self._width:
            broken = self._end_line()
        lead = "" if self._is_begun else self._prefix
        shown = f"{broken}{lead}{self._gap}{word}"
        self._column += len(self._gap) + cells
        self._gap = ""
        self._is_begun = True
        return shown

    def _end_line(self) -> str:
        lead = "" if self._is_begun else self._prefix.rstrip()
        self._column, self._gap, self._is_begun = 0, "", False
        return f"{lead}\n"


def _words(text: str) -> list[tuple[str, int]]:
    """Return the parts of `text` between which a line may break, with their widths; a wide character is a part."""
    if text.isascii():
        return [(text, len(text))]
    words: list[tuple[str, int]] = []
    for cluster, cells in clusters(text):
        if words and cells < _WIDE and words[-1][1] != _WIDE:
            word, width = words[-1]
            words[-1] = (word + cluster, width + cells)
        else:
            words.append((cluster, cells))
    return words


DELAY = 1.0
"""Seconds of silence before the line appears."""

INTERVAL = 0.25
"""Seconds between two ticks."""

_DIM = "2"
_MARGIN = 12
_GAP = "  "
_SGR = re.compile(r"\x1b\[[0-9;]*m")


class Waiting:
    """Shows on `channel`, which is a terminal, what is coming and for how long nothing came.

    What `work` gives is shown instead of the label, unless it is empty.
    """

    def __init__(
        self,
        channel: Channel,
        *,
        look: Look,
        clock: Clock,
        measure: Measure | None = None,
        work: Callable[[], str] = str,
    ) -> None:
        self._channel = channel
        self._measure = measure or (lambda: look.width)
        self._look = look
        self._clock = clock
        self._work = work
        self._label = ""
        self._shown = ""
        self._coming = ""
        self._since = clock.monotonic()

    def restart(self, label: str | None = None) -> None:
        """Erase the line, because something is about to be written. `label` says what is awaited from now on."""
        self.erase()
        if label is not None:
            self._label = label
        self._since = self._clock.monotonic()

    def erase(self) -> None:
        """Erase the line, which the next tick shows again."""
        if self._shown:
            self._channel.write_unseen(self._erasing())
            self._forget()

    def relabel(self, label: str) -> None:
        """Change what is awaited, but not since when."""
        self._label = label

    def tick(self, coming: str = "") -> None:
        """Show the line, or the time on it, if it is due. A `coming` line describes the pending work."""
        now = self._clock.monotonic()
        if is_asking():
            self._forget()
            self._since = now
            return
        if not self._channel.is_at_line_start:
            return
        if coming != self._coming:
            self._coming, self._since = coming, now
        text = self._text(coming, now - self._since)
        if text and text != self._shown:
            self._channel.write_unseen(f"{self._erasing()}{text}")
            self._shown = text
            set_transient_line(self.erase)

    def _forget(self) -> None:
        if self._shown:
            self._shown = ""
            set_transient_line(None)

    def _erasing(self) -> str:
        """Return what erases the line, which takes several rows where the terminal has become narrower."""
        rows = (cell_width(_SGR.sub("", self._shown)) - 1) // max(self._measure(), 1)
        return ERASE if rows < 1 else f"\x1b[{rows}A\r\x1b[J"

    def _text(self, coming: str, elapsed: float) -> str:
        """Return the line, empty where none is due."""
        label = coming or self._work() or self._label
        if not label or (elapsed < DELAY and not coming):
            return ""
        shown = truncate(label, self._measure() - _MARGIN)
        time = elapsed_text(int(elapsed)) if elapsed >= DELAY else ""
        dim = _DIM if self._look.color else ""
        if coming:
            return shown + (styled(f"{_GAP}{time}", dim) if time else "")
        return styled(f"{shown} {time}", dim)


class _Label:
    """A text about work that goes on."""

    def __init__(self, text: str) -> None:
        self.text = text


class ProgressLine:
    """The line that says what is done, which goes when that ends; of several it says what began last.

    `turn` is the waiting line of the turn that runs, which shows it then. At other times this is a line of its own,
    made by `new_line`, which a thread draws.
    """

    def __init__(self, new_line: Callable[[Callable[[], str]], Waiting]) -> None:
        self.turn: Waiting | None = None
        self._new_line = new_line
        self._labels: list[_Label] = []
        self._lock = RLock()
        self._own: Waiting | None = None
        self._is_over = Event()

    @contextmanager
    def shown(self, text: str) -> Generator[Callable[[str], None]]:
        """Say what is done as long as the block runs; the result changes the text."""
        label = _Label(text)

        def tell(text: str) -> None:
            label.text = text

        with self._lock:
            self._labels.append(label)
            if self._own is None and self.turn is None:
                self._begin()
        try:
            yield tell
        finally:
            with self._lock:
                self._labels.remove(label)
                if not self._labels:
                    self._end()

    @contextmanager
    def hidden(self) -> Generator[None]:
        """Erase the line until the block is left, which writes to the terminal."""
        with self._lock:
            for line in (self.turn, self._own):
                if line is not None:
                    line.erase()
            yield

    def work(self) -> str:
        """Return what is done, in one line without secrets; empty for nothing."""
        with self._lock:
            if not self._labels:
                return ""
            text = self._labels[-1].text
        from jp.render.sanitize import mask, one_line

        return one_line(mask(text, os.environ))

    def _begin(self) -> None:
        self._own = self._new_line(self.work)
        self._is_over = is_over = Event()

        def draw() -> None:
            while not is_over.wait(INTERVAL):
                self._tick()

        Thread(target=draw, daemon=True).start()

    def _tick(self) -> None:
        with self._lock:
            if self._own is not None:
                self._own.tick()

    def _end(self) -> None:
        self._is_over.set()
        if self._own is not None:
            self._own.erase()
        self._own = None


def open_progress_line(
    err: TextIO, out: TextIO, preferences: Preferences, environment: Mapping[str, str]
) -> ProgressLine:
    """Return the line that says on the terminal `err` what is done; `out` knows the width where that does not."""

    def measure() -> int:
        return display_width(preferences.width, environment, columns=columns_of(err, out))

    def new_line(work: Callable[[], str]) -> Waiting:
        look = look_at(err, preferences, environment, siblings=[out])
        channel = Channel(err, name="stderr", is_lossy=True)
        return Waiting(channel, look=look, clock=SystemClock(), measure=measure, work=work)

    return ProgressLine(new_line)
