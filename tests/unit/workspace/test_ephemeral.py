from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from msgspec.structs import replace

from disk_faults import failing_disk
from jp.conversation.entries import ChatRequest, Header
from jp.workspace.listing import ConversationInfo, Metadata
from jp.workspace.log import Log
from jp.workspace.retention import EphemeralWorkspace
from jp.workspace.session import SessionKey
from jp.workspace.workspace import ConversationNotFoundError, Workspace
from workspaces import LARGE_TEXT, new_workspace, no_waiting, open_log_of, raw_content, turn_entries

KEY = SessionKey(source="JP_SESSION", value="test")


@pytest.fixture
def recorded(tmp_path: Path) -> Workspace:
    workspace = new_workspace(tmp_path)
    info = workspace.create({"a": 1}, Metadata(title="on disk"))
    with open_log_of(workspace, info) as log:
        log.append(turn_entries()[1])
    workspace.session(KEY).activate(info.id)
    return workspace


@pytest.fixture
def workspace(recorded: Workspace) -> Generator[EphemeralWorkspace]:
    with failing_disk(recorded.user_data.parent) as disk:
        yield EphemeralWorkspace(recorded)

    assert disk.calls == []


def opened(workspace: EphemeralWorkspace, info: ConversationInfo) -> Log:
    lock = workspace.lock(info)
    lock.acquire(patience=0, waiting=no_waiting)
    return workspace.open(info, lock)


def test_it_is_the_same_workspace(recorded: Workspace, workspace: EphemeralWorkspace) -> None:
    assert workspace.root == recorded.root
    assert workspace.user_data == recorded.user_data
    assert workspace.conversations() == recorded.conversations()
    assert workspace.ids() == recorded.ids()


def test_what_is_on_disk_is_read(workspace: EphemeralWorkspace) -> None:
    (info,) = workspace.conversations()

    assert workspace.get(info.id) == info
    assert workspace.base_config(info) == {"a": 1}
    stream = workspace.read(info)
    request = stream.entries[1]
    assert isinstance(request, ChatRequest)
    assert raw_content(stream.load(request.resources[0])) == LARGE_TEXT


def test_what_is_appended_to_it_stays_in_memory(recorded: Workspace, workspace: EphemeralWorkspace) -> None:
    (info,) = workspace.conversations()
    log = opened(workspace, info)
    log.append(ChatRequest(content="more"))
    kept = log.append(turn_entries()[1])
    log.close()

    assert len(workspace.read(info).entries) == 4
    assert len(recorded.read(info).entries) == 2
    assert isinstance(kept, ChatRequest)
    stored = workspace.read(info).entries[3]
    assert isinstance(stored, ChatRequest)
    assert raw_content(workspace.read(info).load(stored.resources[0])) == LARGE_TEXT
    assert len(opened(workspace, info).entries) == 4


def test_a_new_conversation_lives_in_memory(recorded: Workspace, workspace: EphemeralWorkspace) -> None:
    info = workspace.create({"b": 2}, Metadata(title="in memory"), local=True)
    log = opened(workspace, info)
    log.append(ChatRequest(content="hello"))

    assert info.id not in recorded.ids()
    assert not info.directory.exists()
    assert info.local
    assert workspace.get(info.id) == info
    assert [found.metadata.title for found in workspace.conversations()] == ["on disk", "in memory"]
    assert info.id in workspace.ids()
    assert workspace.base_config(info) == {"b": 2}
    header, request = workspace.read(info).entries
    assert isinstance(header, Header)
    assert isinstance(request, ChatRequest)


def test_a_lock_disturbs_nobody(recorded: Workspace, workspace: EphemeralWorkspace) -> None:
    (info,) = workspace.conversations()
    one, other = workspace.lock(info), workspace.lock(info)
    one.acquire(patience=0, waiting=no_waiting)
    other.acquire(patience=0, waiting=no_waiting)

    assert one.held
    assert other.held


def test_metadata_changes_in_memory(recorded: Workspace, workspace: EphemeralWorkspace) -> None:
    (info,) = workspace.conversations()

    changed = workspace.update_metadata(info, workspace.lock(info), lambda before: replace(before, title="new"))

    assert changed.metadata.title == "new"
    assert workspace.get(info.id).metadata.title == "new"
    assert [found.metadata.title for found in workspace.conversations()] == ["new"]
    assert recorded.get(info.id).metadata.title == "on disk"


def test_a_removed_conversation_is_gone_in_memory(recorded: Workspace, workspace: EphemeralWorkspace) -> None:
    (info,) = workspace.conversations()
    workspace.remove(info, workspace.lock(info))

    assert workspace.conversations() == []
    assert workspace.ids() == set()
    with pytest.raises(ConversationNotFoundError, match="removed"):
        workspace.get(info.id)
    assert recorded.ids() == {info.id}


def test_a_conversation_in_memory_can_be_removed(workspace: EphemeralWorkspace) -> None:
    info = workspace.create({}, Metadata())
    workspace.remove(info, workspace.lock(info))

    assert info.id not in workspace.ids()


def test_what_is_activated_is_active_until_the_process_ends(recorded: Workspace, workspace: EphemeralWorkspace) -> None:
    (before,) = workspace.conversations()
    info = workspace.create({}, Metadata())
    session = workspace.session(KEY)
    assert session.active() == before.id

    session.activate(info.id)

    assert session.active() == info.id
    assert session.previous() == before.id
    assert recorded.session(KEY).active() == before.id


def test_a_conversation_that_is_not_there_is_not_found(workspace: EphemeralWorkspace) -> None:
    info = workspace.create({}, Metadata())
    workspace.remove(info, workspace.lock(info))
    with pytest.raises(ConversationNotFoundError):
        workspace.get(info.id)


def test_names_are_taken_from_the_title(workspace: EphemeralWorkspace) -> None:
    assert workspace.create({}, Metadata(title="A title")).directory.name.endswith("-a-title")
    assert workspace.create({}, Metadata(), topic="A topic").directory.name.endswith("-a-topic")
