"""Conversations that are kept for a limited time, and the sessions in which they are active."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from jp.errors import StorageError
from jp.workspace.layout import ORIGINAL_EVENTS, storage_at
from jp.workspace.listing import ConversationInfo
from jp.workspace.lock import LockedError
from jp.workspace.metadata import Metadata, read_metadata
from jp.workspace.session import SESSIONS, TERMINAL, SessionFile, Visit, leader_mark, read_session, write_session
from jp.workspace.stamp import seconds_of, timestamp
from jp.workspace.workspace import Workspace

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


LOOKED_FOR_SECONDS = 60 * 60
"""How often they are looked for: whoever asks a question does not wait for every conversation's metadata."""

REMOVED_AT_ONCE = 20
"""How many are removed by one command at most."""

_MARK = "swept"


def is_expired(metadata: Metadata, *, now: float) -> bool:
    """Whether a conversation may be removed at `now`, in seconds since the Unix epoch. Pinned ones stay."""
    if metadata.expires_at is None or metadata.pinned_at is not None:
        return False
    end = seconds_of(metadata.expires_at)
    return end is not None and end <= now


def expired(
    conversations: Sequence[ConversationInfo], active: Collection[str], *, now: float
) -> list[ConversationInfo]:
    """Those that may be removed now: expired and active in no terminal.

    What the original JP stored stays: it is not jp's to delete.
    """
    return [
        info
        for info in conversations
        if is_expired(info.metadata, now=now)
        and info.id not in active
        and not (info.directory / ORIGINAL_EVENTS).exists()
    ]


def remove_expired(workspace: Workspace) -> list[ConversationInfo]:
    """Remove some of the conversations that have expired; those that were. Mostly it only sees that it is early.

    Nothing that somebody writes or has active in a terminal is removed.

    Raises:
        StorageError: the conversations cannot be listed.
    """
    own = storage_at(workspace.root, workspace.user_data, local=True).directory
    if not _is_due(own):
        return []
    now = workspace.stamps.now() / 1000
    active = active_in_sessions(own / SESSIONS, now=now)
    found = expired(workspace.conversations(), active, now=now)
    if len(found) <= REMOVED_AT_ONCE:
        with contextlib.suppress(OSError):
            (own / _MARK).touch()
    return [info for info in found[:REMOVED_AT_ONCE] if _removed(workspace, info)]


def _is_due(directory: Path) -> bool:
    try:
        age = time.time() - (directory / _MARK).stat().st_mtime
    except OSError:
        return True
    return not 0 <= age < LOOKED_FOR_SECONDS


def _removed(workspace: Workspace, info: ConversationInfo) -> bool:
    lock = workspace.lock(info)
    try:
        lock.acquire(patience=0, waiting=lambda _: None)
        with lock:
            # Somebody may have decided to keep it since it was listed.
            if not is_expired(read_metadata(info.directory), now=workspace.stamps.now() / 1000):
                return False
            workspace.remove(info, lock)
    except (LockedError, StorageError):
        return False
    return True
