"""Undo and redo: what the newest thing is that can be undone, and what was undone last. Pure.

Turns, compactions and config deltas can be undone. Compactions that stand side by side under one time were made
together, and are undone together. Only an undo with nothing new behind it can be redone.
"""

from __future__ import annotations

from collections.abc import Sequence

from jp.conversation.entries import AnyEntry, Compaction, ConfigDelta, Revert, TurnStart
from jp.conversation.reverts import undone

Undoable = TurnStart | Compaction | ConfigDelta


def newest_undoable(entries: Sequence[AnyEntry]) -> tuple[Undoable, ...]:
    """What an undo concerns, in the log's order; empty where there is nothing left to undo."""
    gone = undone(entries)
    standing = [entry for entry in entries if isinstance(entry, Undoable) and entry.id and entry.id not in gone]
    if not standing:
        return ()
    newest = standing[-1]
    if not isinstance(newest, Compaction) or not newest.at:
        return (newest,)
    first = len(standing) - 1
    while first and _is_made_with(standing[first - 1], newest):
        first -= 1
    return tuple(standing[first:])


def newest_undo(entries: Sequence[AnyEntry]) -> Revert | None:
    """The undo that a redo takes back; None where there is none, or something new was done since."""
    gone = undone(entries)
    reverts = {entry.id for entry in entries if isinstance(entry, Revert)}
    for entry in reversed(entries):
        if isinstance(entry, Undoable) and entry.id not in gone:
            return None
        if isinstance(entry, Revert) and entry.id and entry.id not in gone and not reverts.issuperset(entry.entries):
            return entry
    return None


def named_by(revert: Revert, entries: Sequence[AnyEntry]) -> tuple[Undoable, ...]:
    """What `revert` undid, in the log's order."""
    wanted = set(revert.entries)
    return tuple(entry for entry in entries if isinstance(entry, Undoable) and entry.id in wanted)


def _is_made_with(entry: Undoable, newest: Compaction) -> bool:
    return isinstance(entry, Compaction) and entry.at == newest.at
