"""Reverts: what is undone, and what of that was restored."""

from __future__ import annotations

from collections.abc import Sequence

from jp.conversation.entries import AnyEntry, Revert


def undone(entries: Sequence[AnyEntry]) -> frozenset[str]:
    """The ids of entries that do not count: turns (by their `turn_start`), compactions, config deltas, reverts.

    A revert concerns what stands before it in the log, and counts only where no later revert that counts names it.
    So the newest one always counts, and whoever undoes a revert restores what it named. An entry without an id
    cannot be named.
    """
    named: set[str] = set()
    found: set[str] = set()
    for entry in reversed(entries):
        if entry.id in named:
            found.add(entry.id)
        elif isinstance(entry, Revert):
            named.update(entry.entries)
            named.discard("")
    return frozenset(found)
