"""Pager: a long result on a terminal is shown by the program that PAGER names, or by less."""

from __future__ import annotations

import os

from jp.cli.terminal.streams import write_stdout
from jp.render.sanitize import without_links

_QUIT_IF_SHORT = "FRX"
"""Options of less, as git sets them: leave if all fits, keep colors, do not clear the screen."""


def write_paged(text: str) -> None:
    """Write a result to stdout; where it is longer than the terminal, through the pager.

    Nothing is paged where nobody can turn a page: without a terminal at both ends, and in what git runs.

    Raises:
        BrokenPipeError: the reader of stdout has left.
        JpError: stdout takes no more for another reason.
    """
    plain = without_links(text)  # which an older pager shows as text
    command = _pager() if _is_long(plain) else []
    if not command or not _was_shown(plain, command):
        write_stdout(text)


def _is_long(text: str) -> bool:
    try:
        if not (os.isatty(0) and os.isatty(1)):
            return False
        size = os.get_terminal_size(1)
    except OSError:
        return False
    return 0 < size.lines <= text.count("\n") + 1 or 0 < size.lines * size.columns < len(text)


def _pager() -> list[str]:
    """Return the command of the pager, empty if there is none."""
    import shlex
    from shutil import which

    from jp.app.options import is_run_by_git

    if is_run_by_git() or os.environ.get("TERM", "dumb") == "dumb":
        return []
    chosen = os.environ.get("JP_PAGER", os.environ.get("PAGER"))
    if chosen is None:
        return ["less"] if which("less") else []
    try:
        command = shlex.split(chosen)
    except ValueError:
        return []
    return [] if command == ["cat"] else command


def _was_shown(text: str, command: list[str]) -> bool:
    """Return whether the pager could be started; it has ended then. Ctrl-C is the pager's meanwhile."""
    import signal
    import subprocess

    environment = {"LESS": _QUIT_IF_SHORT, "LV": "-c", **os.environ}
    try:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)  # noqa: S603 - the user's own
    except OSError:
        return False
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process.communicate(text.encode("utf-8", "surrogateescape"))
    finally:
        signal.signal(signal.SIGINT, before)
    return True
