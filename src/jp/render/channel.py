"""Unbuffered writing to the standard streams that keeps the lines of one apart from those of the other."""

from __future__ import annotations

import os
import select
import stat
from typing import TextIO

from jp.errors import JpError
from jp.remedies import Show, phrase

ERASE = "\r\x1b[K"
"""Empties the line in which the cursor is, and puts the cursor at its beginning."""


_FALLBACK_ERRORS = "backslashreplace"
_NOTHING_WRITTEN = 2
"""Counts as a blank line: nothing has to be kept apart from nothing."""


class _Sink:
    """A file, terminal or pipe that one or two streams write to.

    `line_feeds` is how many stand at its end, 2 at most.
    """

    def __init__(self) -> None:
        self.line_feeds = _NOTHING_WRITTEN


class Channel:
    """A stream that everything is written to at once. `stream` is None where it was closed: then nothing is written.

    `is_lossy`: that it takes no more is no error, what is written is lost from then on.
    """

    def __init__(self, stream: TextIO | None, *, name: str, is_lossy: bool = False) -> None:
        self._stream = stream
        self._name = name
        self._is_lossy = is_lossy
        self._descriptor = _descriptor_of(stream)
        self._encoding = getattr(stream, "encoding", None) or "utf-8"
        self._errors = getattr(stream, "errors", None) or "strict"
        if self._errors == "strict":
            self._errors = _FALLBACK_ERRORS
        self._sink = _Sink()

    @property
    def is_at_line_start(self) -> bool:
        """True if the next character begins a line, whichever stream wrote last."""
        return self._sink.line_feeds > 0

    @property
    def is_pipe(self) -> bool:
        """True if it leads to another program, which could show the output on a terminal."""
        try:
            mode = 0 if self._descriptor is None else os.fstat(self._descriptor).st_mode
        except OSError:
            return False
        return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)

    def shares_sink(self, other: Channel) -> bool:
        """Return whether both write to the same terminal, pipe or file; from then on they know each other's lines."""
        if self._sink is other._sink:
            return True
        if self._descriptor is None or other._descriptor is None:
            return False
        try:
            mine, theirs = os.fstat(self._descriptor), os.fstat(other._descriptor)
        except OSError:
            return False
        if (mine.st_dev, mine.st_ino) != (theirs.st_dev, theirs.st_ino):
            return False
        other._sink = self._sink
        return True

    def write(self, text: str) -> None:
        """Write and flush `text`.

        Raises:
            BrokenPipeError: the reader has left.
            JpError: the stream takes no more for another reason, such as a full disk.
        """
        if text:
            self._note(text)
            self._put(text.encode(self._encoding, self._errors))

    def write_bytes(self, data: bytes) -> None:
        """Write and flush `data`, which is UTF-8; raises what `write` raises."""
        if data:
            self._note(data[-2:].decode("utf-8", "replace"))
            self._put(data)

    def write_unseen(self, text: str) -> None:
        """Write what leaves no trace, such as a line that is erased again; raises what `write` raises."""
        self._put(text.encode(self._encoding, self._errors))

    def end_line(self) -> None:
        """Begin a new line where one is under way."""
        if not self.is_at_line_start:
            self.write("\n")

    def leave_line(self) -> None:
        """Leave a blank line between what was written and what comes; nothing where nothing was."""
        missing = _NOTHING_WRITTEN - self._sink.line_feeds
        if missing > 0:
            self.write("\n" * missing)

    def _note(self, text: str) -> None:
        trailing = len(text) - len(text.rstrip("\n"))
        if trailing == len(text):
            trailing += self._sink.line_feeds
        self._sink.line_feeds = min(trailing, _NOTHING_WRITTEN)

    def _put(self, data: bytes) -> None:
        if self._stream is None:
            return
        try:
            if self._descriptor is None:
                self._stream.write(data.decode(self._encoding, "replace"))
                self._stream.flush()
            else:
                _write_all(self._descriptor, data)
        except OSError as error:
            if self._is_lossy:
                self._stream = None
                return
            if isinstance(error, BrokenPipeError):
                raise
            message = f"cannot write to {self._name}: {error.strerror or error}"
            hint = phrase("look where the output goes; the output so far is kept, and `", Show("answer"), "` shows it")
            raise JpError(message, hint=hint) from error


def _descriptor_of(stream: TextIO | None) -> int | None:
    """Return the descriptor under `stream`, after flushing it; None if it has none."""
    try:
        if stream is None:
            return None
        stream.flush()
        return stream.fileno()
    except (OSError, ValueError):
        return None


def _write_all(descriptor: int, data: bytes) -> None:
    """Write all of `data`, waiting where a descriptor that does not block takes only a part."""
    view = memoryview(data)
    while view:
        try:
            written = os.write(descriptor, view)
        except BlockingIOError:
            select.select([], [descriptor], [])
            continue
        view = view[written:]
