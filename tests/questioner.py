"""Asks at the terminal that it controls: evaluates an expression, says its value, and stays until its stdin ends."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from jp.cli.terminal.approval import run_question
from jp.render.approval import Sheet
from jp.render.prompts import About, ask_key, ask_line, ask_secret, ask_yes_no
from jp.render.sanitize import escape
from jp.render.tty import is_asking


def alone(ask: Callable[..., Awaitable[object]]) -> Callable[..., object]:
    """Ask, and wait."""
    return lambda *arguments, **named: run_question(partial(ask, *arguments, **named))


def interruptible(ask: Callable[[], object]) -> object:
    """What is answered, or that it was interrupted."""
    try:
        return ask()
    except KeyboardInterrupt:
        return "interrupted"


def await_keys() -> None:
    """Wait until something was typed, and leave it there."""
    with open("/dev/tty", encoding="utf-8") as terminal:  # noqa: PTH123  a device
        select.select([terminal], [], [])


def about(text: str, **settings: Any) -> About:
    """What a question is about."""
    return About(sheets=(Sheet(text=escape(text)),), **settings)


KNOWN = {
    "about": about,
    "ask_key": alone(ask_key),
    "ask_line": alone(ask_line),
    "ask_secret": alone(ask_secret),
    "ask_yes_no": alone(ask_yes_no),
    "await_keys": await_keys,
    "interruptible": interruptible,
}

if __name__ == "__main__":
    value = eval(sys.argv[1], dict(KNOWN))  # noqa: S307 - from our own tests
    sys.stdout.write(f"{value!r}|{is_asking()}\n")
    sys.stdout.flush()
    sys.stdin.read()
    os._exit(0)
