from __future__ import annotations

import os
from pathlib import Path

import pytest

from jp.workspace.files import seconds_of, timestamp
from jp.workspace.layout import storage_at
from jp.workspace.listing import ConversationInfo, Metadata
from jp.workspace.retention import LOOKED_FOR_SECONDS, REMOVED_AT_ONCE, is_expired, remove_expired
from jp.workspace.session import SessionKey
from jp.workspace.workspace import Workspace
from workspaces import START, new_workspace, no_waiting

NOW = START / 1000
PAST, FUTURE = timestamp(START - 1), timestamp(START + 1)
KEY = SessionKey(source="JP_SESSION", value="x")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return new_workspace(tmp_path)


def temporary(workspace: Workspace, *, expires_at: str = PAST, pinned_at: str | None = None) -> ConversationInfo:
    return workspace.create({}, Metadata(expires_at=expires_at, pinned_at=pinned_at))


def left(workspace: Workspace) -> list[str]:
    return [info.id for info in workspace.conversations()]


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (Metadata(), False),
        (Metadata(expires_at=PAST), True),
        (Metadata(expires_at=timestamp(START)), True),
        (Metadata(expires_at=FUTURE), False),
        (Metadata(expires_at="2020-01-01 00:00:00.0"), True),
        (Metadata(expires_at="tomorrow"), False),
        (Metadata(expires_at=PAST, pinned_at=PAST), False),
    ],
)
def test_a_conversation_expires_at_its_moment_unless_it_is_pinned(metadata: Metadata, *, expected: bool) -> None:
    assert is_expired(metadata, now=NOW) is expected


def test_moments_are_read_with_and_without_a_zone() -> None:
    assert seconds_of(timestamp(START)) == NOW
    assert seconds_of("1970-01-01 00:00:01.5") == 1.5
    assert seconds_of("1970-01-01T01:00:00+01:00") == 0
    assert seconds_of("soon") is None


def test_what_has_expired_is_removed_and_nothing_else(workspace: Workspace) -> None:
    expired, later, pinned = (
        temporary(workspace),
        temporary(workspace, expires_at=FUTURE),
        temporary(workspace, pinned_at=PAST),
    )
    active, written, original = (temporary(workspace) for _ in range(3))
    workspace.session(KEY).activate(active.id)
    (original.directory / "events.json").write_text("[]", encoding="utf-8")
    lock = workspace.lock(written)
    lock.acquire(patience=0, waiting=no_waiting)

    with lock:
        removed = remove_expired(workspace)

    assert removed == [expired]
    assert left(workspace) == [info.id for info in (later, pinned, active, written, original)]


def test_they_are_looked_for_once_in_a_while(workspace: Workspace) -> None:
    assert remove_expired(workspace) == []
    info = temporary(workspace)
    workspace.session(KEY).activate(info.id)
    workspace.session(KEY).activate(temporary(workspace, expires_at=FUTURE).id)
    assert [found.id for found in remove_expired(workspace)] == [info.id]

    again = temporary(workspace)
    assert remove_expired(workspace) == []

    mark = storage_at(workspace.root, workspace.user_data, local=True).directory / "swept"
    earlier = mark.stat().st_mtime - LOOKED_FOR_SECONDS
    os.utime(mark, (earlier, earlier))
    assert [found.id for found in remove_expired(workspace)] == [again.id]


def test_one_command_removes_a_bounded_number_and_the_next_goes_on(workspace: Workspace) -> None:
    workspace.session(KEY).activate(temporary(workspace, expires_at=FUTURE).id)
    for _ in range(REMOVED_AT_ONCE + 2):
        temporary(workspace)

    counts = [len(remove_expired(workspace)) for _ in range(3)]

    assert counts == [REMOVED_AT_ONCE, 2, 0]


def test_what_was_given_more_time_meanwhile_stays(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    info = temporary(workspace)
    listed = workspace.conversations()
    lock = workspace.lock(info)
    lock.acquire(patience=0, waiting=no_waiting)
    with lock:
        workspace.update_metadata(info, lock, lambda _: Metadata(expires_at=FUTURE))
    monkeypatch.setattr(workspace, "conversations", lambda: listed)

    assert remove_expired(workspace) == []
    assert left(workspace) == [info.id]
