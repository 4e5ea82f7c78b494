from __future__ import annotations

import errno
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from disk_faults import Call, error, failing_disk
from jp.conversation.entries import AnyEntry, ChatRequest
from jp.conversation.resource import Resource
from jp.errors import StorageError
from jp.workspace.blobs import BlobMissingError
from jp.workspace.layout import MOVED, storage_at
from jp.workspace.listing import ConversationInfo
from jp.workspace.retention import move_conversation
from jp.workspace.workspace import Workspace, find_workspace
from workspaces import LARGE_TEXT, fixed_stamps, new_conversation, new_workspace, no_waiting, open_log_of


def conversation_with_content(workspace: Workspace) -> ConversationInfo:
    info = new_conversation(workspace, "Big")
    with open_log_of(workspace, info) as log:
        log.append(ChatRequest(content="?", resources=(Resource(uri="file:///a.txt", text=LARGE_TEXT),)))
    return info


def move(workspace: Workspace, info: ConversationInfo, *, local: bool) -> ConversationInfo:
    lock = workspace.lock(info)
    lock.acquire(patience=0, waiting=no_waiting)
    with lock:
        return move_conversation(workspace, info, lock, local=local)


def entries_of(workspace: Workspace, info: ConversationInfo) -> list[AnyEntry]:
    return workspace.read(workspace.get(info.id)).entries


def test_a_conversation_moves_with_its_content_its_times_and_links_as_links(tmp_path: Path) -> None:
    workspace = new_workspace(tmp_path)
    info = conversation_with_content(workspace)
    (info.directory / "link").symlink_to("/etc/passwd")
    before, used = entries_of(workspace, info), workspace.get(info.id).last_activity

    moved = move(workspace, info, local=True)
    silo = storage_at(workspace.root, workspace.user_data, local=True)

    assert moved == workspace.get(info.id)
    assert moved.directory.parent == silo.conversations
    assert (moved.local, moved.last_activity) == (True, used)
    assert entries_of(workspace, info) == before
    assert (moved.directory / "link").readlink() == Path("/etc/passwd")
    assert LARGE_TEXT.encode() in [path.read_bytes() for path in silo.blobs.rglob("*/*/*")]
    assert not info.directory.exists()
    assert move(workspace, moved, local=True) == moved


def test_wherever_a_move_is_killed_there_is_one_conversation_that_can_be_moved(tmp_path: Path) -> None:
    workspace = new_workspace(tmp_path / "killed")
    info = conversation_with_content(workspace)
    before = entries_of(workspace, info)
    left: list[Path] = []

    def copied_before(name: str, call: Call, arguments: tuple[Any, ...]) -> Any:
        left.append(shutil.copytree(tmp_path / "killed", tmp_path / str(len(left)), symlinks=True))
        return call(*arguments)

    with failing_disk(tmp_path / "killed") as disk:
        disk.break_calls(dict.fromkeys(range(1, 1_000), copied_before))
        move(workspace, info, local=True)

    assert len(left) == len(disk.calls) > 10
    for directory in left:
        copy = find_workspace(directory / "work", user_data=directory / "user", stamps=fixed_stamps())
        found = copy.get(info.id)
        assert entries_of(copy, found) == before
        moved = move(copy, found, local=True)
        assert entries_of(copy, moved) == before
        assert [one.directory for one in copy.conversations()] == [moved.directory]


def calls_of_a_move(directory: Path) -> int:
    """How often a move of the conversation of these tests changes the disk."""
    workspace = new_workspace(directory)
    info = conversation_with_content(workspace)
    with failing_disk(directory) as disk:
        move(workspace, info, local=True)
    return len(disk.calls)


def test_wherever_the_disk_fails_there_is_one_conversation_and_the_failure_is_told(tmp_path: Path) -> None:
    told = 0
    for at in range(1, calls_of_a_move(tmp_path / "count") + 1):
        workspace = new_workspace(tmp_path / str(at))
        info = conversation_with_content(workspace)
        before = entries_of(workspace, info)

        with failing_disk(tmp_path / str(at), at=at, fault=error(errno.ENOSPC)), suppress(StorageError):
            told += 1
            move(workspace, info, local=True)
            told -= 1

        assert [one.id for one in workspace.conversations()] == [info.id]
        assert entries_of(workspace, info) == before
    assert told > 10


def test_content_that_is_missing_stops_a_move(tmp_path: Path) -> None:
    workspace = new_workspace(tmp_path)
    info = conversation_with_content(workspace)
    for path in (tmp_path / "work/.jp/blobs").rglob("*/*/*"):
        path.unlink()

    with pytest.raises(BlobMissingError):
        move(workspace, info, local=True)

    assert workspace.get(info.id).directory == info.directory


def test_what_is_in_the_way_stays(tmp_path: Path) -> None:
    workspace = new_workspace(tmp_path)
    info = new_conversation(workspace, "x")
    silo = storage_at(workspace.root, workspace.user_data, local=True, create=True)
    (silo.conversations).mkdir(parents=True)
    (silo.conversations / info.directory.name).write_text("mine", encoding="utf-8")

    with pytest.raises(StorageError, match="is in the way"):
        move(workspace, info, local=True)


def test_of_two_directories_the_one_that_was_not_moved_away_counts(tmp_path: Path) -> None:
    workspace = new_workspace(tmp_path)
    info = new_conversation(workspace, "x")
    other = new_conversation(workspace, "y")
    moved = move(workspace, info, local=True)
    info.directory.mkdir()
    for name in ("events.jsonl", "metadata.json"):
        (info.directory / name).write_bytes((moved.directory / name).read_bytes())

    with pytest.raises(StorageError, match="several conversations"):
        workspace.get(info.id)
    (info.directory / MOVED).touch()

    assert workspace.get(info.id).directory == moved.directory
    assert [found.id for found in workspace.conversations()] == [info.id, other.id]
    lock = workspace.lock(info)
    lock.acquire(patience=0, waiting=no_waiting)
    with lock, pytest.raises(StorageError, match="was moved to another place"):
        workspace.open(info, lock)
    assert move(workspace, moved, local=False).directory == info.directory
    assert not (info.directory / MOVED).exists()


def test_a_mark_without_a_second_directory_means_nothing_and_is_taken_back(tmp_path: Path) -> None:
    workspace = new_workspace(tmp_path)
    info = new_conversation(workspace, "x")
    (info.directory / MOVED).touch()

    assert workspace.get(info.id).directory == info.directory
    with open_log_of(workspace, info):
        assert not (info.directory / MOVED).exists()
