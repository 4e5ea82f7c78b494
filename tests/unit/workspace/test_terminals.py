from __future__ import annotations

import os
from pathlib import Path

import pytest

from jp.conversation.ids import ConversationId
from jp.workspace.files import timestamp
from jp.workspace.layout import storage_at
from jp.workspace.retention import UNKNOWN_AGE_SECONDS, active_in_sessions, deactivate
from jp.workspace.session import SESSIONS, TERMINAL, SessionFile, SessionKey, Visit, leader_mark, write_session
from workspaces import START, new_conversation, new_workspace

NOW = START / 1000


def session(
    directory: Path, name: str, *ids: str, source: str = "JP_SESSION", value: str = "x", leader: str = ""
) -> None:
    """A session whose conversations became active at the fixed clock's start."""
    history = tuple(Visit(id=identity, activated_at=timestamp(START)) for identity in ids)
    file = SessionFile(source=source, value=value, leader=leader, history=history)
    write_session(directory / f"{name}.json", file)


def test_the_first_of_each_session_is_active(tmp_path: Path) -> None:
    session(tmp_path, "a", "jp-c1", "jp-c2")
    session(tmp_path, "b", "jp-c3")
    session(tmp_path, "c")
    (tmp_path / "d.json").write_text("{", encoding="utf-8")
    (tmp_path / ".e.json.1.tmp").write_text("{", encoding="utf-8")

    assert active_in_sessions(tmp_path, now=NOW) == {"jp-c1", "jp-c3"}
    assert active_in_sessions(tmp_path / "missing", now=NOW) == frozenset()


def test_a_session_of_which_nothing_is_known_counts_for_a_week(tmp_path: Path) -> None:
    session(tmp_path, "a", "jp-c1")

    assert active_in_sessions(tmp_path, now=NOW + UNKNOWN_AGE_SECONDS - 1) == {"jp-c1"}
    assert active_in_sessions(tmp_path, now=NOW + UNKNOWN_AGE_SECONDS) == frozenset()


@pytest.mark.parametrize(
    ("value", "leader", "counts"),
    [
        (str(os.getpid()), leader_mark(os.getpid()), True),
        (str(os.getpid()), "", True),
        (str(os.getpid()), "0:1", not leader_mark(os.getpid())),
        (str(2**31 - 1), "", False),
        ("9" * 30, "", False),
        ("x", "", False),
    ],
    ids=("runs", "unmarked", "another", "gone", "no number", "no process"),
)
def test_a_terminal_counts_while_its_leader_runs(tmp_path: Path, value: str, leader: str, *, counts: bool) -> None:
    session(tmp_path, "a", "jp-c1", source=TERMINAL, value=value, leader=leader)

    assert bool(active_in_sessions(tmp_path, now=NOW + 2 * UNKNOWN_AGE_SECONDS)) is counts


def test_what_is_put_away_is_active_nowhere_and_what_was_before_it_is_not_active_instead(tmp_path: Path) -> None:
    workspace = new_workspace(tmp_path)
    first, second = (new_conversation(workspace).id for _ in range(2))
    keys = [SessionKey(source="JP_SESSION", value=name) for name in ("one", "two")]
    for key in keys:
        for identity in (first, second):
            workspace.session(key).activate(identity)
    workspace.session(keys[1]).activate(first)
    directory = storage_at(workspace.root, workspace.user_data, local=True).directory / SESSIONS

    deactivate(directory, {second}, now=START)

    assert workspace.session(keys[0]).active() is None
    assert workspace.session(keys[0]).previous() == second
    assert workspace.session(keys[1]).active() == first
    assert active_in_sessions(directory, now=NOW) == {"", first}
    workspace.session(keys[0]).activate(ConversationId(second))
    assert workspace.session(keys[0]).active() == second
