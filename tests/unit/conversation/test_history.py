"""What can be undone, and what can be redone."""

from __future__ import annotations

import pytest

from jp.conversation.entries import AnyEntry, Compaction, ConfigDelta, Header, Revert
from jp.conversation.turns import named_by, newest_undo, newest_undoable
from logs import ask, say, start

TURN: list[AnyEntry] = [start(0), ask("hello"), say("hi")]
DELTA = ConfigDelta(id="d", delta={"assistant": {"tool_choice": "none"}})


def compaction(identity: str, at: str) -> Compaction:
    return Compaction(id=identity, at=at, from_turn=0, to_turn=0, reasoning="strip")


def revert(identity: str, *entries: str) -> Revert:
    return Revert(id=identity, entries=entries)


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([], []),
        ([Header(id="h", format=1, created_at="")], []),
        (TURN, ["t0"]),
        ([*TURN, DELTA], ["d"]),
        ([*TURN, compaction("a", "1")], ["a"]),
        ([*TURN, compaction("a", "1"), compaction("b", "2"), compaction("c", "2")], ["b", "c"]),
        ([*TURN, compaction("a", ""), compaction("b", "")], ["b"]),
        ([compaction("a", "1"), *TURN, compaction("b", "1")], ["b"]),
        ([compaction("a", "1"), compaction("b", "1")], ["a", "b"]),
        ([compaction("a", "1"), DELTA, compaction("b", "1")], ["b"]),
        ([compaction("a", "1"), compaction("b", "1"), revert("r", "a")], ["b"]),
        ([*TURN, DELTA, revert("r", "d")], ["t0"]),
        ([*TURN, DELTA, revert("r", "d"), revert("s", "r")], ["d"]),
        ([*TURN, revert("r", "t0")], []),
        ([ConfigDelta(delta={})], []),
    ],
)
def test_the_newest_thing_in_force_is_undone(entries: list[AnyEntry], expected: list[str]) -> None:
    assert [entry.id for entry in newest_undoable(entries)] == expected


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([], None),
        (TURN, None),
        ([*TURN, revert("r", "t0")], "r"),
        ([*TURN, DELTA, revert("r", "d"), revert("s", "t0")], "s"),
        ([*TURN, DELTA, revert("r", "d"), revert("s", "t0"), revert("x", "s")], "r"),
        ([*TURN, revert("r", "t0"), revert("x", "r")], None),
        ([*TURN, revert("r", "t0"), start(1), ask("new")], None),
        ([*TURN, revert("", "t0")], None),
    ],
)
def test_the_newest_undo_is_redone_unless_something_new_was_done(entries: list[AnyEntry], expected: str | None) -> None:
    found = newest_undo(entries)

    assert (None if found is None else found.id) == expected


def test_an_undo_knows_what_it_undid() -> None:
    entries = [*TURN, compaction("a", "1"), compaction("b", "1")]

    assert [entry.id for entry in named_by(revert("r", "b", "a"), entries)] == ["a", "b"]
