"""Where a program lies, and how one ended, in words."""

from __future__ import annotations

import os
from collections.abc import Mapping

_OF_A_SIGNAL = 128


def find_program(name: str, directory: str, environment: Mapping[str, str]) -> str | None:
    """The path of a program that is to run in `directory`; None where there is none.

    A name with a slash is a path from there. For others, only absolute directories of PATH are looked into: what
    others hold is whatever a stranger put there.
    """
    if "/" in name:
        return os.path.join(directory, name)  # noqa: PTH118 - text
    for place in environment.get("PATH", os.defpath).split(os.pathsep):
        path = f"{place}/{name}"
        if place.startswith("/") and os.access(path, os.X_OK) and not os.path.isdir(path):  # noqa: PTH112 - text
            return path
    return None


def exit_code_text(code: int) -> str:
    """An exit code as a shell gives it, with the signal that ended the program where one did (a negative `code`)."""
    if code >= 0:
        return str(code)
    import signal

    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"{_OF_A_SIGNAL - code} ({name})"
