"""Logs that git merged line by line: every turn of every side, whatever was compacted, undone and forked."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jp.compaction.fact_lines import StatusLineFormatter
from jp.compaction.overlays import forked_stream
from jp.compaction.projection import project
from jp.conversation.branches import open_branches
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    Compaction,
    ConfigDelta,
    Header,
    RequestContext,
    Revert,
    TurnStart,
    encode,
)
from jp.conversation.forking import TurnRange
from jp.conversation.turns import newest_undo, newest_undoable, next_after, open_ends, turns_of, undone
from jp.workspace.importing import merge_sides
from jp.workspace.store import parse_log

HEADER = Header(id="h", format=1, created_at="2026-01-01T00:00:00Z", nonce="n")
LINES = StatusLineFormatter()


def turn(identity: str, known: Sequence[AnyEntry]) -> list[AnyEntry]:
    """Return a turn as its writer appends it to `known`."""
    return [
        TurnStart(id=identity, after=next_after(known)),
        ChatRequest(id=f"{identity}q", content=identity),
        ChatResponse(id=f"{identity}a", message=f"You said: {identity}"),
    ]


@st.composite
def sides(draw: st.DrawFn, side: str, known: Sequence[AnyEntry], *, most: int = 5) -> list[AnyEntry]:
    """Draw turns, compactions and reverts that follow `known`, as one branch writes them."""
    found: list[AnyEntry] = []
    for number in range(draw(st.integers(0, most))):
        identity = f"{side}{number}"
        so_far = [*known, *found]
        starts = [entry.id for entry in so_far if isinstance(entry, TurnStart)]
        others = [entry.id for entry in so_far if isinstance(entry, Revert | Compaction)]
        kind = draw(st.sampled_from(["turn", "turn", "compaction", "revert", "undo", "redo", "setting"]))
        changed, undo = newest_undoable(so_far), newest_undo(so_far)
        if kind == "turn" or not starts:
            found += turn(identity, so_far)
        elif kind == "setting":
            found.append(ConfigDelta(id=identity, delta={}))
        elif kind == "undo" and changed:
            found.append(Revert(id=identity, entries=tuple(entry.id for entry in changed)))
        elif kind == "redo" and undo is not None:
            found.append(Revert(id=identity, entries=(undo.id,)))
        elif kind in {"revert", "undo", "redo"}:
            found.append(Revert(id=identity, entries=(draw(st.sampled_from([*starts, *others])),)))
        else:
            start = draw(st.sampled_from(starts))
            at = starts.index(start)
            overlay = Compaction(id=identity, from_turn=at, to_turn=at, from_id=start, to_id=start, reasoning="strip")
            found.append(overlay)
    return found


def starts_of(entries: Sequence[AnyEntry]) -> list[str]:
    gone = undone(entries)
    return [name for name in starts_in(entries) if name not in gone]


def starts_in(entries: Sequence[AnyEntry]) -> list[str]:
    return [entry.id for entry in entries if isinstance(entry, TurnStart)]


def log_of(entries: Sequence[AnyEntry]) -> bytes:
    return b"".join(encode(entry) + b"\n" for entry in entries)


@settings(max_examples=200)
@given(data=st.data())
def test_a_merged_log_has_every_turn_once_and_knows_its_branches(data: st.DataObject) -> None:
    base = [HEADER, *data.draw(sides("b", [HEADER]))]
    ours, theirs = data.draw(sides("o", base)), data.draw(sides("t", base))
    copies = [entry for entry in ours if data.draw(st.booleans())] if data.draw(st.booleans()) else []

    merged = parse_log(log_of([*base, *ours, *copies, *theirs]), Path("log")).entries

    assert merged == [*base, *ours, *theirs]
    assert [turn.id for turn in turns_of(merged)] == starts_in(merged)
    lost = undone([*base, *ours]) | undone([*base, *theirs])
    assert undone(merged) <= lost
    live = set(starts_of(merged))
    own = [tuple(name for name in starts_in(side) if name in live) for side in (ours, theirs)]
    branches = open_branches(merged)
    if not all(own):
        assert branches == []
    else:
        assert [branch.starts for branch in branches] == own
        assert [merged[position] for position in branches[0].positions] == [*base, *ours]
        last = [merged[position] for position in branches[1].positions]
        assert [entry for entry in last if entry in theirs] == theirs
        assert set(starts_of(last)) <= {*starts_of(base), *starts_of([*base, *theirs])}

    assert open_branches([*merged, *turn("next", merged)]) == []


@given(data=st.data())
def test_forks_of_a_merged_conversation_show_their_turns_as_before_the_merge(data: st.DataObject) -> None:
    base = [HEADER, *turn("first", [HEADER]), *data.draw(sides("b", [HEADER, *turn("first", [HEADER])]))]
    ours, theirs = data.draw(sides("o", base)), data.draw(sides("t", base))
    before, merged = [*base, *ours], [*base, *ours, *theirs]
    last = data.draw(st.integers(0, len(turns_of(before)) - 1))
    turns = TurnRange(first=data.draw(st.integers(0, last)), last=last)
    if any(isinstance(entry, Revert | Compaction) for entry in theirs):
        return  # which concern turns that both have

    early, late = (forked_stream(entries, turns).entries for entries in (before, merged))

    assert project([HEADER, *late], LINES) == project([HEADER, *early], LINES)
    assert open_branches([HEADER, *late]) == []


@given(data=st.data())
def test_a_fork_of_a_whole_merged_conversation_has_its_branches(data: st.DataObject) -> None:
    base = [HEADER, *turn("first", [HEADER])]
    ours, theirs = data.draw(sides("o", base)), data.draw(sides("t", base))
    merged = [*base, *ours, *theirs]
    everything = TurnRange(first=0, last=len(turns_of(merged)) - 1)

    fork = [HEADER, *forked_stream(merged, everything).entries]

    assert [branch.starts for branch in open_branches(fork)] == [branch.starts for branch in open_branches(merged)]


@given(data=st.data())
def test_a_log_that_one_side_continued_has_no_branches(data: st.DataObject) -> None:
    base = [HEADER, *data.draw(sides("b", [HEADER], most=8))]

    assert open_branches(base) == []
    assert open_ends(base) == (base[-1].id,)


def test_a_branch_whose_turns_are_all_undone_is_none() -> None:
    base = [HEADER, *turn("first", [HEADER])]
    merged = [*base, *turn("o", base), *turn("t", base)]

    assert len(open_branches(merged)) == 2
    assert open_branches([*merged, Revert(id="r", entries=("t",))]) == []
    assert len(open_branches([*merged, Revert(id="r", entries=("t",)), Revert(id="s", entries=("r",))])) == 2


def test_a_turn_that_was_never_asked_makes_no_branch_where_a_fork_puts_its_context_behind_it() -> None:
    bare = TurnStart(id="bare", after=("elsewhere",))
    context = RequestContext(id="c", provider="p", model="m", renderer=1)
    entries = [HEADER, bare, context, TurnStart(id="t", after=("bare",)), ChatRequest(id="q", content="x")]

    assert open_ends(entries) == ("q",)
    assert open_branches(entries) == []


@given(data=st.data())
def test_each_merge_of_several_adds_a_branch_and_a_turn_joins_them_all(data: st.DataObject) -> None:
    base = [HEADER, *turn("first", [HEADER])]
    names = data.draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=4, unique=True))
    each = [turn(name, base) for name in names]
    merged = [*base, *(entry for side in each for entry in side)]

    branches = open_branches(merged)

    assert [branch.starts for branch in branches] == [(name,) for name in names] * (len(names) > 1)
    joined = [*merged, *turn("next", merged)]
    assert joined[-3].after == tuple(f"{name}a" for name in names)  # type: ignore[union-attr]  # it is a turn's start
    assert open_branches(joined) == []
    again = [*joined, *turn("x", joined), *turn("y", joined)]
    assert [branch.starts for branch in open_branches(again)] == [("x",), ("y",)]


@given(data=st.data())
def test_both_sides_of_a_conflict_are_what_a_merge_without_one_writes(data: st.DataObject) -> None:
    base = [HEADER, *data.draw(sides("b", [HEADER]))]
    ours, theirs = data.draw(sides("o", base)), data.draw(sides("t", base))
    conflict = b"".join([log_of(base), b"<<<<<<<\n", log_of(ours), b"=======\n", log_of(theirs), b">>>>>>>\n"])

    found = merge_sides(conflict)

    assert found is not None
    assert found.both == log_of([*base, *ours, *theirs])


def test_a_turn_names_all_open_ends_and_what_changed_since_the_last_event() -> None:
    base = [HEADER, *turn("first", [HEADER])]
    setting = ConfigDelta(id="d", delta={})
    merged = [*base, *turn("o", base), setting, *turn("t", base)]

    assert next_after([]) == ()
    assert next_after(merged) == ("d", "ta")
    assert next_after([*merged, Compaction(id="c", from_turn=0, to_turn=0)]) == ("d", "ta", "c")


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_git_writes_the_lines_of_both_sides_one_side_after_the_other(data: st.DataObject) -> None:
    base = [HEADER, *data.draw(sides("b", [HEADER]))]
    each = [base, *([*base, *data.draw(sides(name, base))] for name in "ot")]
    with TemporaryDirectory() as place:
        files = [Path(place) / name for name in ("base", "ours", "theirs")]
        for file, entries in zip(files, each, strict=True):
            file.write_bytes(log_of(entries))
        command = ["git", "merge-file", "-p", "--union", files[1], files[0], files[2]]
        written = subprocess.run(command, capture_output=True, check=True).stdout

    assert written == log_of([*each[1], *each[2][len(base) :]])
