"""Questions to the person at the terminal, whatever the standard streams are.

A question goes to the controlling terminal and its answer comes from there, never from stdin. What was typed before the
question was there is discarded: it answers something else.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Generator
from contextlib import contextmanager

from jp.render.sanitise import sanitise
from jp.render.wakeup import forget_signals, woken_by_signals

TERMINAL = "/dev/tty"
_LONGEST_ANSWER = 4096
_ATTEMPTS = 3
_YES, _NO = frozenset({"y", "yes"}), frozenset({"n", "no"})


class _Dialogue:
    """Whether a question stands on the terminal, which has room for nothing else then."""

    def __init__(self) -> None:
        self.is_open = False


_dialogue = _Dialogue()


def is_asking() -> bool:
    """Whether a question waits for its answer."""
    return _dialogue.is_open


def can_ask() -> bool:
    """Whether there is a terminal to ask at."""
    with _open_terminal() as terminal:
        return terminal is not None


def ask_yes_no(question: str, *, default: bool) -> bool | None:
    """Ask, and wait for yes or no; an empty line means `default`. None where there is no terminal to ask at.

    The end of input (Ctrl-D) means no, and so does an answer that is neither, three times. Ctrl-C raises
    KeyboardInterrupt where nobody else handles the signal.
    """
    with _open_terminal() as terminal:
        if terminal is None:
            return None
        choices = "[Y/n]" if default else "[y/N]"
        for _ in range(_ATTEMPTS):
            answer = _ask(terminal, f"{question} {choices} ")
            if answer is None:
                return False
            word = answer.strip().lower()
            if not word:
                return default
            if word in _YES | _NO:
                return word in _YES
            question = "Please answer yes or no."
        return False


def ask_key(question: str, keys: Collection[str], *, default: str) -> str | None:
    """Ask, and wait for one of `keys`, each a letter, and Enter; an empty line means `default`.

    A capital that is none of them stands for the small letter.

    None where there is no terminal to ask at, where the input ends, or where nothing else came three times.
    """
    with _open_terminal() as terminal:
        if terminal is None:
            return None
        asked = f"{question} [{default}] "
        for _ in range(_ATTEMPTS):
            answer = _ask(terminal, asked)
            if answer is None:
                return None
            key = answer.strip() or default
            found = next((known for known in (key, key.lower()) if known in keys), None)
            if found is not None:
                return found
            asked = f"One of {', '.join(keys)} [{default}] "
        return None


def tell(text: str) -> None:
    """Show `text`, which is fit to be shown, where the next question is going to stand."""
    if not text:
        return
    with _open_terminal() as terminal:
        if terminal is not None:
            _write(terminal, text)


def ask_line(question: str, default: str = "") -> str | None:
    """Ask, and wait for a line; an empty one means `default`. None where there is no terminal, or the input ends."""
    with _open_terminal() as terminal:
        if terminal is None:
            return None
        answer = _ask(terminal, f"{question} [{default}] " if default else f"{question} ")
        return None if answer is None else answer.strip() or default


def ask_secret(question: str) -> str | None:
    """Ask, and wait for a line that is not shown. None where there is no terminal, or the input ends.

    The terminal shows what is typed again afterwards, whatever happens in between.
    """
    import termios

    with _open_terminal() as terminal:
        if terminal is None:
            return None
        before = termios.tcgetattr(terminal)
        silent = [*before[:3], before[3] & ~termios.ECHO | termios.ECHONL, *before[4:]]
        try:
            termios.tcsetattr(terminal, termios.TCSAFLUSH, silent)
            answer = _ask(terminal, f"{question} ")
        finally:
            termios.tcsetattr(terminal, termios.TCSAFLUSH, before)
        return None if answer is None else answer.strip()


@contextmanager
def _open_terminal() -> Generator[int | None]:
    """The controlling terminal; None where there is none, or where asking would stop a job in the background."""
    try:
        terminal = os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    _dialogue.is_open = True
    try:
        yield terminal if _is_in_foreground(terminal) else None
    finally:
        _dialogue.is_open = False
        os.close(terminal)


def _is_in_foreground(terminal: int) -> bool:
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False


def _ask(terminal: int, question: str) -> str | None:
    """Write `question` and read a line; None where the input ends."""
    import termios

    termios.tcflush(terminal, termios.TCIFLUSH)
    answer = b""
    try:
        _write(terminal, sanitise(question))
        while not answer.endswith(b"\n") and len(answer) < _LONGEST_ANSWER:
            more = _read(terminal)
            if not more:
                break
            answer += more
    except KeyboardInterrupt:
        _write(terminal, "\n")
        raise
    if not answer.endswith(b"\n"):
        _write(terminal, "\n")
    return answer.decode("utf-8", "replace") if answer else None


def _read(terminal: int) -> bytes:
    import select

    with woken_by_signals() as woken:
        waited_for = [terminal] if woken is None else [terminal, woken]
        while True:
            ready, _, _ = select.select(waited_for, [], [])
            if terminal in ready:
                return os.read(terminal, _LONGEST_ANSWER)
            forget_signals(waited_for[-1])


def _write(terminal: int, text: str) -> None:
    data = text.encode("utf-8", "replace")
    while data:
        data = data[os.write(terminal, data) :]
