"""Programs of other people that are used where they are installed."""

from __future__ import annotations

import os


def installed_ripgrep() -> str | None:
    """The path of ripgrep, if it is installed; a directory of PATH that is relative does not count."""
    for directory in os.get_exec_path():
        program = os.path.join(directory, "rg")  # noqa: PTH118  a plain name
        if directory.startswith("/") and os.access(program, os.X_OK):
            return program
    return None
