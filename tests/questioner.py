"""Asks at the terminal that it controls: evaluates an expression, says its value, and stays until its stdin ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from jp.render.prompt import ask_key, ask_line, ask_yes_no, is_asking


def interruptible(ask: Callable[[], object]) -> object:
    """What is answered, or that it was interrupted."""
    try:
        return ask()
    except KeyboardInterrupt:
        return "interrupted"


KNOWN = {"ask_key": ask_key, "ask_line": ask_line, "ask_yes_no": ask_yes_no, "interruptible": interruptible}

if __name__ == "__main__":
    value = eval(sys.argv[1], dict(KNOWN))  # noqa: S307 - from our own tests
    sys.stdout.write(f"{value!r}|{is_asking()}\n")
    sys.stdout.flush()
    sys.stdin.read()
    os._exit(0)
