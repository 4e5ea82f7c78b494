"""What all terminals remember of a workspace: every session's file."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from msgspec.structs import replace

from jp.workspace.session import TERMINAL, SessionFile, Visit, leader_mark, read_session, write_session
from jp.workspace.stamp import seconds_of, timestamp

UNKNOWN_AGE_SECONDS = 7 * 24 * 60 * 60
"""For how long a session counts of which nothing tells whether it still exists, after something became active."""


def active_in_sessions(directory: Path, *, now: float) -> frozenset[str]:
    """The ids of the conversations that are active in a terminal; `now` in seconds since the Unix epoch.

    A terminal whose leader is gone does not count.
    """
    files = (file for _, file in _files(directory))
    return frozenset(file.history[0].id for file in files if file.history and _counts(file, now))


def deactivate(directory: Path, gone: Collection[str], *, now: int) -> None:
    """Have no terminal continue one of these conversations without being asked; `now` in milliseconds.

    Raises:
        StorageError: it could not be written.
    """
    for path, file in _files(directory):
        if file.history and file.history[0].id in gone:
            nothing = Visit(id="", activated_at=timestamp(now))
            write_session(path, replace(file, history=(nothing, *file.history)))


def _files(directory: Path) -> Iterator[tuple[Path, SessionFile]]:
    try:
        paths = sorted(directory.glob("*.json"))
    except OSError:
        return
    for path in paths:
        file = None if path.name.startswith(".") else read_session(path)
        if file is not None:
            yield path, file


def _counts(file: SessionFile, now: float) -> bool:
    if file.source == TERMINAL:
        return _is_alive(file)
    activated = seconds_of(file.history[0].activated_at)
    return activated is not None and now - activated < UNKNOWN_AGE_SECONDS


def _is_alive(file: SessionFile) -> bool:
    """Whether the session's leader still runs, and is no later process with the same id."""
    if not file.value.isdecimal() or len(file.value) > len(str(2**31)):
        return False
    try:
        os.kill(int(file.value), 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass
    mark = leader_mark(int(file.value))
    return not mark or not file.leader or mark == file.leader
