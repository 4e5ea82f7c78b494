"""Durations, times, money, turns, titles and standard input as people give and read them."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from typing import Literal

import msgspec

from jp.conversation.forking import TurnRange
from jp.conversation.turns import prompt_tokens
from jp.errors import UsageError
from jp.remedies import ChangeConversation, Option, phrase
from jp.render.tables import money_text
from jp.turn.usage import Spending

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_PIECE = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhdw])")
_PIECES = re.compile(rf"(?:{_PIECE.pattern})+")
_NUMBER = re.compile(r"\d+(\.\d+)?")


def is_duration(text: str) -> bool:
    """Return whether `parse_duration` takes `text`."""
    plain = text.strip().lower()
    return _NUMBER.fullmatch(plain) is not None or _PIECES.fullmatch(plain) is not None


def parse_duration(text: str, *, option: str | Option) -> float:
    """Seconds. A bare number is seconds, too.

    Raises:
        UsageError: `text` is no duration; it names `option`.
    """
    plain = text.strip().lower()
    if _NUMBER.fullmatch(plain):
        return float(plain)
    if not is_duration(plain):
        raise UsageError(phrase(option, f" cannot be {text!r}"), hint="use a duration such as 30s, 5m, 1h30m or 2d")
    return sum(float(number) * _UNITS[unit] for number, unit in _PIECE.findall(plain))


DEFAULT_LIFETIME = "1d"
"""The lifetime that `--tmp` means without a duration: enough to change one's mind on the next morning."""

_LONGEST_SECONDS = 100 * 365 * 86_400


def end_of_life(duration: str, *, option: str | Option) -> str:
    """Return the moment that lies `duration` from now, as metadata have it.

    Raises:
        UsageError: it is no duration, or longer than a hundred years; it names `option`.
    """
    from jp.workspace.files import SYSTEM, timestamp

    seconds = parse_duration(duration, option=option)
    if seconds > _LONGEST_SECONDS:
        raise UsageError(
            phrase(option, f" {duration} is longer than a hundred years"), hint="such a conversation needs no end"
        )
    return timestamp(SYSTEM.now() + int(seconds * 1000))


def parse_turns(text: str, count: int, *, option: str | Option) -> TurnRange:
    """Return the turns that `text` names of `count` turns. A range may reach beyond the last.

    Raises:
        UsageError: `text` is no range, or there are no such turns; it names `option`.
    """
    first, dots, end = text.partition("..")
    try:
        start = int(first) if first or not dots else 0
        stop = (int(end) if end else -1) if dots else start
    except ValueError:
        message = phrase(option, f" cannot be {text!r}")
        raise UsageError(message, hint=phrase("write N, A..B, A.. or ..B, such as ", option, " 2..5")) from None
    start, stop = (number + count if number < 0 else number for number in (start, stop))
    if 0 <= stop < start < count:
        raise UsageError(
            phrase(option, f" {text}: the range is reversed, it ends before it begins"),
            hint=phrase("write ", option, f" {stop}..{start}: from the first turn to the last one"),
        )
    if not 0 <= start < count or stop < start:
        raise _missing(phrase(option, f" {text}"), count)
    return TurnRange(first=start, last=min(stop, count - 1))


def parse_turn(text: str, count: int, *, option: str | Option) -> int:
    """Return the number of the turn that `text` names of `count` turns.

    Raises:
        UsageError: `text` is no number, or there is no such turn; it names `option`.
    """
    try:
        number = int(text)
    except ValueError:
        message = phrase(option, f" cannot be {text!r}")
        raise UsageError(
            message, hint=phrase("write the number of a turn, such as ", option, "=3 or ", option, "=-2")
        ) from None
    found = number + count if number < 0 else number
    if not 0 <= found < count:
        raise _missing(phrase(option, f"={text}"), count)
    return found


def _missing(written: str, count: int) -> UsageError:
    numbers = f"they are 0 to {count - 1}" if count else "there are none"
    return UsageError(phrase(written, ": there is no such turn"), hint=f"of this conversation's turns {numbers}")


_AGE_UNITS = ((60, "s"), (3600, "min"), (86_400, "h"), (86_400 * 30, "d"), (86_400 * 365, "mo"))


def ago(seconds: float) -> str:
    """Return the time that has passed, in one unit: `12 s`, `3 h`, `2 y`."""
    size = 1.0
    for limit, unit in _AGE_UNITS:
        if seconds < limit:
            return f"{max(0, int(seconds // size))} {unit}"
        size = limit
    return f"{int(seconds // size)} y"


def cost_text(spending: Spending) -> str:
    """Return the cost: `$0.0123`, `free`, `unknown`, or `at least $0.0123`."""
    if not spending.unpriced:
        used = prompt_tokens(spending.usage) + spending.usage.output + spending.untold
        return "free" if used and not spending.usd else money_text(spending.usd)
    least = money_text(spending.usd)
    return f"at least {least}" if spending.usd and not least.startswith("<") else "unknown"


def cost_sentence(spending: Spending) -> str:
    """Return the same, and how much of it is not known."""
    text = cost_text(spending)
    if not spending.unpriced or spending.unpriced == spending.cycles:
        return f"cost {text}" if text == "unknown" else text
    return f"{text}; what {spending.unpriced:,} of {spending.cycles:,} cycles cost is unknown"


def given_title(text: str, *, option: str | Option = Option.TITLE) -> str:
    """Return the title that `text` is: in one line, without anything that steers a terminal.

    Raises:
        UsageError: it has no words; the message names `option`.
    """
    from jp.render.sanitize import one_line

    title = one_line(text)
    if not title:
        hint = phrase("`", ChangeConversation("untitle"), "` takes one away")
        raise UsageError(phrase(option, ": a title has words in it"), hint=hint)
    return title


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
            phrase("'-' and ", Option.NO_STDIN, " exclude each other"),
            hint=phrase("'-' reads standard input, ", Option.NO_STDIN, " leaves it alone"),
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
    """Read standard input to its end, as text; None where there is nothing. See `read_piped_bytes`."""
    content = await read_piped_bytes(source, on_idle=on_idle, idle_secs=idle_secs, most_bytes=most_bytes)
    return decode(content) if content else None


async def read_piped_bytes(
    source: Source,
    *,
    on_idle: Callable[[], object],
    idle_secs: float = IDLE_SECS,
    most_bytes: int = MOST_BYTES,
) -> bytes:
    """Read standard input to its end; empty where there is nothing. Cancellation stops it.

    `on_idle` is called once, where a pipe has brought nothing for `idle_secs`.

    Raises:
        UsageError: it holds more than `most_bytes`.
        OSError: it cannot be read.
    """
    if source == "none":
        return b""
    if source == "pipe":
        await _notice_silence(on_idle, idle_secs)
    content = bytearray()
    while chunk := await _read_chunk(source):
        content += chunk
        if len(content) > most_bytes:
            raise UsageError(f"more than {most_bytes:,} bytes are piped in", hint="attach a file, or pipe in less")
    return bytes(content)


def decode(content: bytes) -> PipedText:
    """Return the bytes that were piped in, as text."""
    try:
        text = content.decode("utf-8-sig")
        is_damaged = False
    except UnicodeDecodeError:
        text = content.decode("utf-8-sig", errors="replace")
        is_damaged = True
    return PipedText(text=text.removesuffix("\n").removesuffix("\r"), size=len(content), is_damaged=is_damaged)


async def _notice_silence(on_idle: Callable[[], object], idle_secs: float) -> None:
    from anyio import move_on_after, wait_readable

    with move_on_after(idle_secs) as wait:
        await wait_readable(_STDIN)
    if wait.cancelled_caught:
        on_idle()


async def _read_chunk(source: Source) -> bytes:
    """Return the next bytes, empty at the end. The descriptor stays blocking, because others share it."""
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


_TURN_OF = re.compile(r"(?P<target>\.|prev|last|(?:jp-c)?[0-9]+):(?P<turn>-?[0-9]+)", re.IGNORECASE)


def split_turn(target: str) -> tuple[str, str | None]:
    """Return the conversation and the turn of `ID:TURN`, as `jp conversation grep` prints it; no turn in another."""
    found = _TURN_OF.fullmatch(target.strip())
    return (target, None) if found is None else (found["target"], found["turn"])
