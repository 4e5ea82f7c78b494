from __future__ import annotations

import errno
from pathlib import Path

import pytest
from msgspec.structs import replace

from disk_faults import error, failing_disk
from jp.cli.terminal.wording import worded
from jp.conversation.entries import ChatRequest, TurnStart
from jp.conversation.ids import ConversationId
from jp.errors import ExitCode, StorageError
from jp.workspace.layout import WorkspaceNotFoundError
from jp.workspace.listing import Metadata
from jp.workspace.lock import LockedError
from jp.workspace.session import SessionKey
from jp.workspace.workspace import (
    ConversationNotFoundError,
    Workspace,
    create_workspace,
    find_workspace,
    keeps_out_of_git,
)
from workspaces import START, fixed_stamps, new_conversation, new_workspace, no_waiting, open_log_of, turn_entries

KEY = SessionKey(source="JP_SESSION", value="test")
NUMBER = START // 100


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return new_workspace(tmp_path)


@pytest.fixture
def outside(tmp_path: Path) -> Workspace:
    (tmp_path / "nowhere").mkdir()
    return find_workspace(tmp_path / "nowhere", user_data=tmp_path / "user", stamps=fixed_stamps())


def test_a_new_workspace_keeps_conversations_out_of_git(tmp_path: Path) -> None:
    create_workspace(tmp_path / "a" / "b", commit_conversations=False)

    marker = tmp_path / "a" / "b" / ".jp"
    ignored = (marker / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert {"/conversations/", "/blobs/", "/.id"} <= set(ignored)
    assert {path.name for path in marker.iterdir()} == {".id", ".gitignore"}


def test_committed_conversations_keep_their_bytes(tmp_path: Path) -> None:
    create_workspace(tmp_path, commit_conversations=True)

    ignored = (tmp_path / ".jp/.gitignore").read_text(encoding="utf-8").splitlines()
    attributes = (tmp_path / ".jp/.gitattributes").read_text(encoding="utf-8").splitlines()
    assert "/.id" in ignored
    assert "*.torn-*" in ignored
    assert not {"/conversations/", "/blobs/"} & set(ignored)
    assert "/blobs/** -text -diff" in attributes
    assert "/conversations/** -text" in attributes


def test_whether_conversations_are_kept_out_of_git_is_known(tmp_path: Path) -> None:
    create_workspace(tmp_path / "private", commit_conversations=False)
    create_workspace(tmp_path / "shared", commit_conversations=True)

    assert keeps_out_of_git(tmp_path / "private")
    assert not keeps_out_of_git(tmp_path / "shared")
    assert not keeps_out_of_git(tmp_path)


def test_creating_a_workspace_again_leaves_what_is_there(tmp_path: Path) -> None:
    create_workspace(tmp_path, commit_conversations=False)
    identity = (tmp_path / ".jp/.id").read_bytes()
    (tmp_path / ".jp/.gitignore").write_text("mine", encoding="utf-8")

    create_workspace(tmp_path, commit_conversations=False)

    assert (tmp_path / ".jp/.id").read_bytes() == identity
    assert (tmp_path / ".jp/.gitignore").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("at", [1, 2, 3], ids=["directory", "file", "content"])
def test_a_workspace_that_cannot_be_created_is_an_error(tmp_path: Path, at: int) -> None:
    with failing_disk(tmp_path, at=at, fault=error(errno.EROFS)), pytest.raises(StorageError) as caught:
        create_workspace(tmp_path, commit_conversations=False)

    assert caught.value.hint


def test_a_file_system_without_hard_links_holds_workspaces_too(tmp_path: Path) -> None:
    with failing_disk(tmp_path, at=7, fault=error(errno.EPERM)) as disk:
        create_workspace(tmp_path / "work", commit_conversations=False)

    assert disk.calls[6] == "link"
    workspace = find_workspace(tmp_path / "work", user_data=tmp_path / "user")
    info = new_conversation(workspace, local=True)
    workspace.session(KEY).activate(info.id)
    assert workspace.session(KEY).active() == info.id


def test_a_workspace_is_found_from_below_or_named(tmp_path: Path, workspace: Workspace) -> None:
    (tmp_path / "work/deep").mkdir()

    assert find_workspace(tmp_path / "work/deep", user_data=tmp_path / "user").root == tmp_path / "work"
    named = find_workspace(tmp_path, explicit=tmp_path / "work", user_data=tmp_path / "user")
    assert named.root == workspace.root
    with pytest.raises(WorkspaceNotFoundError) as caught:
        find_workspace(tmp_path / "work", explicit=tmp_path, user_data=tmp_path / "user")
    assert caught.value.exit_code is ExitCode.USAGE


def test_the_users_directory_is_looked_up_where_none_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JP_USER_DATA_DIR", str(tmp_path / "mine"))

    assert find_workspace(tmp_path).user_data == tmp_path / "mine"


def test_a_new_conversation_is_listed_read_and_written(workspace: Workspace) -> None:
    info = workspace.create({"a": 1}, Metadata(title="Fix the lexer", labels={"a": "b"}))

    assert info == workspace.get(info.id)
    assert workspace.conversations() == [info]
    assert workspace.ids() == {info.id}
    assert info.directory.name == f"{NUMBER}-fix-the-lexer"
    assert not info.local
    assert workspace.base_config(info) == {"a": 1}
    with open_log_of(workspace, info) as log:
        log.append(ChatRequest(content="x"))
    assert len(workspace.read(info).entries) == 2


def test_without_a_title_the_topic_names_the_directory_and_nothing_else(workspace: Workspace) -> None:
    info = workspace.create({}, Metadata(), topic="Explain the lexer")
    titled = workspace.create({}, Metadata(title="A title"), topic="Explain the lexer")

    assert info.directory.name == f"{NUMBER}-explain-the-lexer"
    assert info.metadata.title is None
    assert titled.directory.name == f"{NUMBER + 1}-a-title"


def test_a_local_conversation_lies_in_the_users_directory_and_has_its_own_blobs(
    tmp_path: Path, workspace: Workspace
) -> None:
    info = new_conversation(workspace, "a", local=True)
    shared = new_conversation(workspace, "b")

    assert info.local
    assert info.directory.is_relative_to(tmp_path / "user/workspaces")
    assert {found.id: found.local for found in workspace.conversations()} == {info.id: True, shared.id: False}
    with open_log_of(workspace, info) as log:
        log.append(turn_entries()[1])
    assert not (tmp_path / "work/.jp/blobs").exists()
    assert (info.directory.parent.parent / "blobs").stat().st_mode & 0o777 == 0o700


def test_local_conversations_of_other_workspaces_are_not_seen(tmp_path: Path, workspace: Workspace) -> None:
    new_conversation(workspace, local=True)
    create_workspace(tmp_path / "other", commit_conversations=False)

    assert find_workspace(tmp_path / "other", user_data=tmp_path / "user").conversations() == []


def test_outside_any_workspace_conversations_are_the_users_own(tmp_path: Path, outside: Workspace) -> None:
    info = new_conversation(outside, "a")
    local = new_conversation(outside, "b", local=True)

    assert outside.root is None
    assert [found.local for found in (info, local)] == [False, False]
    assert outside.conversations() == [info, local]
    assert info.directory.parent == local.directory.parent == tmp_path / "user/conversations"
    with open_log_of(outside, info) as log:
        log.append(turn_entries()[1])
    assert (tmp_path / "user/blobs").is_dir()
    assert list((tmp_path / "nowhere").iterdir()) == []


def test_conversations_are_listed_oldest_first(workspace: Workspace) -> None:
    created = [new_conversation(workspace, title, local=title == "b").id for title in ("c", "b", "a")]

    assert [info.id for info in workspace.conversations()] == created


def test_a_conversation_that_is_not_there_is_a_usage_error(workspace: Workspace) -> None:
    with pytest.raises(ConversationNotFoundError, match="'jp-c17'") as caught:
        workspace.get(ConversationId.at(17))

    assert caught.value.exit_code is ExitCode.USAGE
    assert "jp conversation ls" in worded(caught.value.hint)


def test_two_directories_with_one_id_are_not_chosen_from(workspace: Workspace) -> None:
    info = new_conversation(workspace, "a")
    (info.directory.parent / f"{NUMBER}-b").mkdir()

    with pytest.raises(StorageError, match="several conversations") as caught:
        workspace.get(info.id)
    assert f"{NUMBER}-b" in caught.value.message
    assert caught.value.hint


def test_one_conversation_has_one_writer_and_others_are_free(workspace: Workspace) -> None:
    info, other = new_conversation(workspace, "a"), new_conversation(workspace, "b")
    with open_log_of(workspace, info):
        with pytest.raises(LockedError, match=str(info.id)):
            workspace.lock(info).acquire(patience=0, waiting=no_waiting)
        with open_log_of(workspace, other) as log:
            log.append(TurnStart())
        assert len(workspace.read(info).entries) == 1


def test_locks_lie_outside_of_the_workspace(tmp_path: Path, workspace: Workspace) -> None:
    info = new_conversation(workspace)
    before = sorted(tmp_path.joinpath("work").rglob("*"))
    with workspace.lock(info) as lock:
        lock.acquire(patience=0, waiting=no_waiting)

        assert sorted(tmp_path.joinpath("work").rglob("*")) == before
        assert [path.suffix for path in (tmp_path / "user/locks").iterdir()] == [".lock"]


def test_a_workspace_that_is_reached_in_two_ways_has_one_lock(tmp_path: Path, workspace: Workspace) -> None:
    info = new_conversation(workspace)
    (tmp_path / "link").symlink_to(tmp_path / "work")
    linked = find_workspace(tmp_path / "link", user_data=tmp_path / "user")

    with open_log_of(workspace, info), pytest.raises(LockedError):
        linked.lock(linked.get(info.id)).acquire(patience=0, waiting=no_waiting)


def test_nothing_is_changed_without_the_lock(workspace: Workspace) -> None:
    info = new_conversation(workspace)
    lock = workspace.lock(info)

    with pytest.raises(RuntimeError):
        workspace.open(info, lock)
    with pytest.raises(RuntimeError):
        workspace.update_metadata(info, lock, lambda before: before)
    with pytest.raises(RuntimeError):
        workspace.remove(info, lock)


def test_metadata_changes_from_what_is_on_disk_and_the_directory_stays(workspace: Workspace) -> None:
    info = workspace.create({}, Metadata(title="a"))
    with workspace.lock(info) as lock:
        lock.acquire(patience=0, waiting=no_waiting)
        workspace.update_metadata(info, lock, lambda before: replace(before, title="b"))
        changed = workspace.update_metadata(info, lock, lambda before: replace(before, labels={"x": "y"}))

    assert changed.metadata == Metadata(title="b", labels={"x": "y"})
    assert changed.directory == info.directory
    assert workspace.get(info.id) == changed


def test_a_removed_conversation_is_gone_with_its_lock(tmp_path: Path, workspace: Workspace) -> None:
    info, other = new_conversation(workspace, "a"), new_conversation(workspace, "b")
    lock = workspace.lock(info)
    lock.acquire(patience=0, waiting=no_waiting)

    workspace.remove(info, lock)

    assert workspace.ids() == {other.id}
    assert not lock.held
    assert list((tmp_path / "user/locks").iterdir()) == []


def test_who_waited_for_a_conversation_that_was_removed_is_told(workspace: Workspace) -> None:
    info = new_conversation(workspace)
    first = workspace.lock(info)
    first.acquire(patience=0, waiting=no_waiting)
    with workspace.lock(info) as second:
        second.acquire(patience=None, waiting=lambda _: workspace.remove(info, first))
        with pytest.raises(StorageError, match="no conversation at"):
            workspace.open(info, second)


def test_a_local_conversation_can_be_removed(workspace: Workspace) -> None:
    info = new_conversation(workspace, local=True)
    lock = workspace.lock(info)
    lock.acquire(patience=0, waiting=no_waiting)

    workspace.remove(info, lock)

    assert workspace.ids() == set()


def test_a_terminal_remembers_by_workspace(tmp_path: Path, workspace: Workspace, outside: Workspace) -> None:
    info = new_conversation(workspace)
    workspace.session(KEY).activate(info.id)

    assert workspace.session(KEY).active() == info.id
    assert outside.session(KEY).active() is None
    assert not (tmp_path / "user/sessions").exists()

    own = new_conversation(outside)
    outside.session(KEY).activate(own.id)

    assert outside.session(KEY).active() == own.id
    assert workspace.session(KEY).active() == info.id


def test_looking_around_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "work/.jp").mkdir(parents=True)
    with failing_disk(tmp_path) as disk:
        workspace = find_workspace(tmp_path / "work", user_data=tmp_path / "user")
        assert workspace.conversations() == []
        assert workspace.session(KEY).active() is None
        assert workspace.session(KEY).previous() is None

    assert disk.calls == []


def test_a_workspace_without_an_id_gets_one_when_something_is_kept_for_it(tmp_path: Path) -> None:
    (tmp_path / "work/.jp").mkdir(parents=True)
    workspace = find_workspace(tmp_path / "work", user_data=tmp_path / "user")
    info = new_conversation(workspace)
    assert not (tmp_path / "work/.jp/.id").exists()

    workspace.session(KEY).activate(info.id)

    assert (tmp_path / "work/.jp/.id").exists()
    assert workspace.session(KEY).active() == info.id
