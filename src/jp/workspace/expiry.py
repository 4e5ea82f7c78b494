"""Conversations that were meant to be kept for a while only."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Sequence
from pathlib import Path

from jp.errors import StorageError
from jp.workspace.layout import ORIGINAL_EVENTS, storage_at
from jp.workspace.listing import ConversationInfo
from jp.workspace.lock import LockedError
from jp.workspace.metadata import Metadata, read_metadata
from jp.workspace.session import SESSIONS
from jp.workspace.stamp import seconds_of
from jp.workspace.terminals import active_in_sessions
from jp.workspace.workspace import Workspace

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
