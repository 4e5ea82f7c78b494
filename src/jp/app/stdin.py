"""Text that is piped in: whether standard input is read, and reading it without hanging silently.

It is read where it is a pipe (a socket is the pipe of ssh and of some runtimes), a regular file, or asked for with
`-`; never where it is a terminal, /dev/null or closed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from jp.errors import UsageError

Source = Literal["none", "pipe", "file", "terminal"]

IDLE_SECS = 2.0
MOST_BYTES = 10 * 1024 * 1024
_CHUNK_BYTES = 64 * 1024
_STDIN = 0


class PipedText(msgspec.Struct, frozen=True, kw_only=True):
    """Text that was piped in, without its last line break. `size` is in bytes, as they came.

    `is_damaged` says that bytes which are not UTF-8 were replaced.
    """

    text: str
    size: int
    is_damaged: bool


def choose_source(mode: int | None, *, is_terminal: bool, asked: bool, refused: bool) -> Source:
    """Choose how standard input is to be read, from its `st_mode`, None where it is closed.

    `asked` is `-` among the arguments, `refused` is `--no-stdin`.

    Raises:
        UsageError: both are given.
    """
    if asked and refused:
        raise UsageError(
            "'-' and --no-stdin exclude each other", hint="'-' reads standard input, --no-stdin leaves it alone"
        )
    if mode is None or refused:
        return "none"
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        return "pipe"
    if stat.S_ISREG(mode):
        return "file"
    if not asked:
        return "none"
    return "terminal" if is_terminal else "file"


def stdin_source(*, asked: bool, refused: bool) -> Source:
    """Return the way to read this process's standard input; see `choose_source`."""
    try:
        mode = os.fstat(_STDIN).st_mode
    except OSError:
        mode = None
    return choose_source(mode, is_terminal=os.isatty(_STDIN), asked=asked, refused=refused)


async def read_piped(
    source: Source,
    *,
    on_idle: Callable[[], object],
    idle_secs: float = IDLE_SECS,
    most_bytes: int = MOST_BYTES,
) -> PipedText | None:
    """Read standard input to its end; None where there is nothing. Cancellation stops it.

    `on_idle` is called once, where a pipe has brought nothing for `idle_secs`.

    Raises:
        UsageError: it holds more than `most_bytes`.
        OSError: it cannot be read.
    """
    if source == "none":
        return None
    if source == "pipe":
        await _notice_silence(on_idle, idle_secs)
    content = bytearray()
    while chunk := await _read_chunk(source):
        content += chunk
        if len(content) > most_bytes:
            raise UsageError(f"more than {most_bytes:,} bytes are piped in", hint="attach a file, or pipe in less")
    return decode(bytes(content)) if content else None


def decode(content: bytes) -> PipedText:
    """Return the bytes that were piped in, as text."""
    try:
        text = content.decode("utf-8-sig")
        is_damaged = False
    except UnicodeDecodeError:
        text = content.decode("utf-8-sig", errors="replace")
        is_damaged = True
    return PipedText(text=text.removesuffix("\n").removesuffix("\r"), size=len(content), is_damaged=is_damaged)


def compose_query(typed: Sequence[str], piped: str | None) -> str:
    """The text of a query: the typed words, a blank line, what was piped in; `-` among the words only asks for it."""
    words = " ".join(word for word in typed if word != "-")
    return "\n\n".join(part for part in (words, piped or "") if part.strip())


async def _notice_silence(on_idle: Callable[[], object], idle_secs: float) -> None:
    from anyio import move_on_after, wait_readable

    with move_on_after(idle_secs) as wait:
        await wait_readable(_STDIN)
    if wait.cancelled_caught:
        on_idle()


async def _read_chunk(source: Source) -> bytes:
    """The next bytes, empty at the end. The descriptor stays blocking, because others share it."""
    from anyio import wait_readable
    from anyio.lowlevel import checkpoint

    if source == "file":  # always readable, and epoll does not take it
        await checkpoint()
        return os.read(_STDIN, _CHUNK_BYTES)
    while True:
        await wait_readable(_STDIN)
        try:
            return os.read(_STDIN, _CHUNK_BYTES)
        except BlockingIOError:  # somebody else who reads it was faster
            continue
