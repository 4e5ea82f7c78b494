"""Conversations that two branches of git continued."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forked import run_jp
from jp.conversation.entries import AnyEntry, ChatRequest, Compaction, Header, Revert, TurnStart, encode
from jp.conversation.turns import turns_of, undone
from jp.workspace.importing import merge_sides
from jp.workspace.store import parse_log
from stage import entries_of, logs, make_workspace

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def git(root: Path, *arguments: str, code: int = 0) -> str:
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=root, capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert done.returncode == code, done
    return done.stdout


def ask(root: Path, *words: str) -> None:
    result = run_jp("query", *words, cwd=root)
    assert result.code == 0, result


def asked(log: Path) -> list[str]:
    return [entry.content for entry in entries_of(log) if isinstance(entry, ChatRequest)]


def branches(root: Path) -> None:
    """Make two branches that continue one conversation, `main` being checked out."""
    git(root, "init", "-q", "-b", "main")
    ask(root, "--new", "first")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    git(root, "checkout", "-qb", "other")
    ask(root, "--id", "last", "of the other")
    git(root, "commit", "-qam", "other")
    git(root, "checkout", "-q", "main")
    ask(root, "--id", "last", "of main")
    ask(root, "--id", "last", "of main again")
    git(root, "commit", "-qam", "main")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make_workspace(tmp_path / "work")
    assert run_jp("init", "--commit-conversations", cwd=root).code == 0
    return root


def without_union(root: Path) -> None:
    (root / ".jp/.gitattributes").write_text("/conversations/** -text\n", encoding="utf-8")


def test_git_merges_the_turns_of_both_branches(root: Path) -> None:
    branches(root)
    git(root, "merge", "-q", "other", "-m", "merged")
    assert asked(logs(root)[0]) == ["first", "of main", "of main again", "of the other"]
    ask(root, "--id", "last", "and now?")
    assert asked(logs(root)[0])[-1] == "and now?"
    refused = run_jp("conversation", "merge", "last", cwd=root).stderr
    assert "has no conflict" in refused
    (command,) = re.findall(r"`(jp conversation fork jp-c\d+) --turn A..B`", refused)
    fork = run_jp(*command.split()[1:], "--turn", "3", cwd=root)
    assert fork.code == 0, fork
    assert asked(logs(root)[-1]) == ["of the other"]


def conflicted(root: Path) -> Path:
    without_union(root)
    branches(root)
    git(root, "merge", "-q", "other", code=1)
    (log,) = logs(root)
    result = run_jp("conversation", "print", "last", cwd=root)
    assert (result.code, "jp conversation merge jp-c" in result.stderr) == (1, True), result
    assert "with `--fork` it makes the other side a conversation of its own" in result.stderr
    return log


def test_a_conflict_becomes_the_turns_of_both(root: Path) -> None:
    log = conflicted(root)
    result = run_jp("conversation", "merge", "last", "--format", "json", cwd=root)
    assert result.code == 0, result
    assert json.loads(result.stdout)["turns"] == 4
    assert asked(log) == ["first", "of main", "of main again", "of the other"]
    ask(root, "--id", "last", "and now?")


def test_the_other_side_can_become_a_conversation(root: Path) -> None:
    log = conflicted(root)
    result = run_jp("conversation", "merge", "last", "--fork", "--format", "json", cwd=root)
    assert result.code == 0, result
    fork = json.loads(result.stdout)["fork"]
    assert asked(log) == ["first", "of main", "of main again"]
    (other,) = (found for found in logs(root) if found != log)
    assert f"jp-c{other.parent.name.partition('-')[0]}" == fork
    assert asked(other) == ["first", "of the other"]
    ask(root, "--id", fork, "and now?")


LINES = st.lists(st.integers(0, 99), max_size=6, unique=True)


@given(base=LINES, ours=LINES, theirs=LINES, shows_base=st.booleans())
def test_no_line_of_either_side_is_lost_doubled_or_out_of_order(
    base: list[int], ours: list[int], theirs: list[int], *, shows_base: bool
) -> None:
    def text(side: str, lines: list[int]) -> bytes:
        return b"".join(b'{"id":"%s%d"}\n' % (side.encode(), line) for line in lines)

    # A line that both sides have, such as one that was cherry-picked, is there once.
    both = [line for line in ours if line in theirs]
    ours_text = text("o", [line for line in ours if line not in both]) + text("b", both)
    theirs_text = text("b", both) + text("t", [line for line in theirs if line not in both])
    middle = b"||||||| base\n" if shows_base else b""
    data = text("x", base) + b"<<<<<<< HEAD\n" + ours_text + middle + b"=======\n" + theirs_text + b">>>>>>> other\n"
    sides = merge_sides(data)
    assert sides is not None
    assert (sides.ours, sides.theirs) == (text("x", base) + ours_text, text("x", base) + theirs_text)
    lines = sides.both.splitlines()
    assert len(lines) == len(set(lines))
    assert set(lines) == {*sides.ours.splitlines(), *sides.theirs.splitlines()}
    assert sides.both.startswith(sides.ours)
    rest = lines[len(sides.ours.splitlines()) :]
    assert rest == [line for line in sides.theirs.splitlines() if line in rest]
    assert merge_sides(sides.both) is None


def entries(draw: st.DrawFn, side: str, known: list[AnyEntry]) -> list[AnyEntry]:
    """Turns, compactions and reverts that follow `known`, as one branch writes them."""
    found: list[AnyEntry] = []
    for number in range(draw(st.integers(0, 5))):
        identity = f"{side}{number}"
        names = [entry.id for entry in (*known, *found) if not isinstance(entry, Header | ChatRequest)]
        kind = draw(st.sampled_from(["turn", "turn", "compaction", "revert"]))
        if kind == "turn" or not names:
            found += [TurnStart(id=identity), ChatRequest(id=f"{identity}q", content=identity)]
        elif kind == "revert":
            found.append(Revert(id=identity, entries=(draw(st.sampled_from(names)),)))
        else:
            turn = draw(st.sampled_from(names))
            found.append(Compaction(id=identity, from_turn=0, to_turn=0, from_id=turn, to_id=turn, reasoning="strip"))
    return found


@given(data=st.data(), has_copies=st.booleans())
def test_a_merged_log_opens_with_all_turns_and_undoes_none_that_counts_on_both_sides(
    data: st.DataObject, *, has_copies: bool
) -> None:
    header = Header(id="h", format=1, created_at="2026-01-01T00:00:00Z", nonce="n")
    base = [header, *data.draw(st.composite(entries)("b", [header]))]
    ours = data.draw(st.composite(entries)("o", base))
    theirs = data.draw(st.composite(entries)("t", base))
    shared = ours[:1] if has_copies else []

    def lines(some: list[AnyEntry]) -> bytes:
        return b"".join(encode(entry) + b"\n" for entry in some)

    written = lines(base) + b"<<<<<<<\n" + lines(ours) + b"=======\n" + lines([*shared, *theirs]) + b">>>>>>>\n"
    sides = merge_sides(written)
    assert sides is not None
    merged = parse_log(sides.both, Path("log")).entries
    assert merged == [*base, *ours, *theirs]
    starts = [entry.id for entry in merged if isinstance(entry, TurnStart)]
    assert [turn.id for turn in turns_of(merged)] == starts
    assert {name for name in undone(merged) if name in starts} <= undone([*base, *ours]) | undone([*base, *theirs])
