"""Conversations of the original JP: read from its files, which never change, and continued beside them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ConfigDelta,
    Header,
    ToolCallResponse,
    TurnStart,
)
from jp.conversation.ids import ConversationId
from jp.conversation.thread import carriers_in, map_carriers
from jp.errors import StorageError
from jp.workspace.files import SYSTEM
from jp.workspace.layout import storage_at
from jp.workspace.lifecycle import place_conversation
from jp.workspace.listing import ConversationInfo, Metadata
from jp.workspace.lock import LockedError
from jp.workspace.retention import EphemeralWorkspace, unarchive_conversation
from jp.workspace.store import LogMissingError
from jp.workspace.workspace import Workspace
from originals import BASE, DECLARED, ID, LARGE, call, current, event, write_original
from workspaces import new_workspace, open_log_of


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return new_workspace(tmp_path)


def placed(workspace: Workspace, events: list[Any], **metadata: Any) -> ConversationInfo:
    """A conversation of the original in the workspace."""
    assert workspace.root is not None
    name = f"{ID.digits}-a-title"
    write_original(workspace.root / ".jp" / "conversations" / name, events, base=BASE, **metadata)
    return workspace.get(ID)


def files_of(info: ConversationInfo) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in info.directory.iterdir() if path.name != "events.jsonl"}


def inlined(workspace: Workspace, info: ConversationInfo) -> list[AnyEntry]:
    """The entries without the header, content inline."""
    stream = workspace.read(info)
    return [map_carriers(entry, stream.load) for entry in stream.entries[1:]]


def test_reading_writes_nothing_and_needs_no_blob(workspace: Workspace) -> None:
    info = placed(workspace, current())

    stream = workspace.read(info)

    assert stream.entries == workspace.read(info).entries
    assert sorted(files_of(info)) == ["base_config.json", "events.json", "metadata.json"]
    assert not (info.directory / "events.jsonl").exists()
    assert not (info.directory.parent.parent / "blobs").exists()
    assert all(getattr(carrier, "sha256", None) is None for entry in stream.entries for carrier in carriers_in(entry))
    requests = [entry for entry in stream.entries if isinstance(entry, ChatRequest)]
    assert [request.attachments for request in requests] == [DECLARED, DECLARED]
    assert workspace.base_config(info)["conversation"]["attachments"] == list(DECLARED)


def test_opening_to_write_says_what_counts_as_delivered_and_writes_nothing(workspace: Workspace) -> None:
    info = placed(workspace, [*current(), call("toolu_2")])
    before = files_of(info)

    with open_log_of(workspace, info) as log:
        answered = log.entries[-1]
        notices = log.notices

    assert isinstance(answered, ToolCallResponse)
    assert answered.is_error
    assert "stopped during tool calls" in notices[0]
    assert "attached before this conversation came to jp" in notices[1]
    assert files_of(info) == before
    assert not (info.directory / "events.jsonl").exists()


def test_the_first_entry_brings_all_others_along(workspace: Workspace) -> None:
    info = placed(workspace, [*current(), call("toolu_2")])
    before, entries = files_of(info), inlined(workspace, info)

    with open_log_of(workspace, info) as log:
        log.append(TurnStart())
        log.append(ChatRequest(content="more"))
        seen = list(log.entries)

    after = inlined(workspace, info)
    assert files_of(info) == before
    assert after[: len(entries)] == entries
    assert [type(entry) for entry in after[len(entries) :]] == [ToolCallResponse, TurnStart, ChatRequest]
    assert [entry.id for entry in seen] == [entry.id for entry in workspace.read(info).entries]
    log_text = (info.directory / "events.jsonl").read_text(encoding="utf-8")
    assert LARGE not in json.dumps(log_text)
    assert '"$blob"' in log_text
    assert sorted(path.name for path in info.directory.iterdir() if path.name.startswith(".")) == []
    with open_log_of(workspace, info) as log:
        assert "attached before" not in "".join(log.notices)
        log.append(TurnStart())
    assert workspace.read(info).entries[-1].id > seen[-1].id


def test_there_is_no_nonce_before_a_log_has_one_that_nobody_could_foresee(workspace: Workspace) -> None:
    info = placed(workspace, current())
    read = workspace.read(info).entries[0]

    with open_log_of(workspace, info) as log:
        log.append(TurnStart())

    written = workspace.read(info).entries[0]
    assert isinstance(read, Header)
    assert isinstance(written, Header)
    assert (read.id, read.original) == (written.id, written.original)
    assert (read.nonce, len(written.nonce)) == ("", 16)
    assert written == workspace.read(info).entries[0]


def test_what_lives_in_memory_only_has_a_nonce_too(workspace: Workspace) -> None:
    info = placed(workspace, current())
    passing = EphemeralWorkspace(workspace)

    with passing.open(info, passing.lock(info)) as log:
        header = log.entries[0]

    assert isinstance(header, Header)
    assert len(header.nonce) == 16


def test_nothing_is_left_of_an_attempt_that_failed_and_the_next_one_succeeds(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = placed(workspace, current())
    (info.directory / ".events.jsonl.0.tmp").write_text("half", encoding="utf-8")

    def full(descriptor: int, data: bytes) -> None:
        os.write(descriptor, data[: len(data) // 2])
        raise OSError(28, "No space left on device")

    with open_log_of(workspace, info) as log:
        with monkeypatch.context() as patch:
            patch.setattr("jp.workspace.log.write_all", full)
            with pytest.raises(StorageError, match="No space left"):
                log.append(TurnStart())
        left = sorted(path.name for path in info.directory.iterdir())
        log.append(TurnStart())

    assert left == ["base_config.json", "events.json", "metadata.json"]
    assert len(inlined(workspace, info)) == len(current()) + 1


def test_of_two_that_convert_at_once_one_is_refused(workspace: Workspace) -> None:
    info = placed(workspace, current())
    with open_log_of(workspace, info) as log:
        (info.directory / "events.jsonl").write_text("other", encoding="utf-8")
        with pytest.raises(LockedError, match="just now") as caught:
            log.append(TurnStart())

    assert "again" in caught.value.hint
    assert (info.directory / "events.jsonl").read_text(encoding="utf-8") == "other"


@pytest.mark.parametrize("taken", [False, True])
def test_a_file_system_without_links_is_used_with_renames(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, taken: Any
) -> None:
    info = placed(workspace, current())

    def link(*_: object, **named: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    with open_log_of(workspace, info) as log:
        monkeypatch.setattr(os, "link", link)
        if taken:
            (info.directory / "events.jsonl").write_text("other", encoding="utf-8")
            with pytest.raises(LockedError):
                log.append(TurnStart())
        else:
            log.append(TurnStart())
            assert len(inlined(workspace, info)) == len(current()) + 1


def changed(info: ConversationInfo, *, size: int = 0, date: int = 0) -> None:
    path = info.directory / "events.json"
    log = (info.directory / "events.jsonl").stat().st_mtime_ns
    text = path.read_bytes()
    path.write_bytes(text.replace(b"a.txt", b"b.txt") + b"\n" * size)
    os.utime(path, ns=(log + date, log + date))


@pytest.mark.parametrize(("size", "date"), [(1, -1), (0, 1)])
def test_a_file_that_went_on_elsewhere_is_told_of(workspace: Workspace, size: int, date: int) -> None:
    info = placed(workspace, current())
    with open_log_of(workspace, info) as log:
        log.append(TurnStart())
    before = workspace.read(info)

    changed(info, size=size, date=date)

    after = workspace.read(info)
    assert (before.notices, after.entries) == ((), before.entries)
    assert "has changed since" in after.notices[0]
    with open_log_of(workspace, info) as log:
        assert log.notices == after.notices


def test_a_file_with_a_new_date_or_none_at_all_is_not_told_of(workspace: Workspace) -> None:
    info = placed(workspace, current())
    with open_log_of(workspace, info) as log:
        log.append(TurnStart())
    later = (info.directory / "events.jsonl").stat().st_mtime_ns + 10**9
    os.utime(info.directory / "events.json", ns=(later, later))

    touched = workspace.read(info).notices
    (info.directory / "events.json").unlink()

    assert (touched, workspace.read(info).notices) == ((), ())
    assert workspace.base_config(info)["conversation"]["attachments"] == list(DECLARED)


@pytest.mark.parametrize(
    ("text", "words"),
    [("[{]", "malformed JSON in line 1, column 3"), ("{}", "not an array"), ('[{"type":1}]', "no valid 'type'")],
)
def test_a_malformed_file_is_named_and_hides_no_other(workspace: Workspace, text: str, words: str) -> None:
    info = placed(workspace, current())
    (info.directory / "events.json").write_text(text, encoding="utf-8")
    workspace.create({}, Metadata(title="another"))

    with pytest.raises(StorageError, match=words) as caught:
        workspace.read(info)

    assert repr(str(info.directory / "events.json")) in caught.value.message
    assert "by hand" in caught.value.hint
    with pytest.raises(StorageError, match=words), open_log_of(workspace, info):
        pass
    assert {found.metadata.title for found in workspace.conversations()} == {"A title", "another"}


def test_a_file_that_cannot_be_read_is_an_error(workspace: Workspace) -> None:
    info = placed(workspace, current())
    (info.directory / "events.json").unlink()
    with pytest.raises(LogMissingError):
        workspace.read(info)
    (info.directory / "events.json").mkdir()

    with pytest.raises(StorageError, match="cannot read"):
        workspace.read(info)


def test_a_change_of_settings_is_a_first_entry_too(workspace: Workspace) -> None:
    info = placed(workspace, [])
    with open_log_of(workspace, info) as log:
        (said,) = log.notices
        log.append(ConfigDelta(delta={"assistant": {"model": {"id": "script/test"}}}))

    header, delta = workspace.read(info).entries
    assert all(text in said for text in DECLARED)
    assert isinstance(header, Header)
    assert header.original is not None
    assert header.original.attachments == DECLARED
    assert isinstance(delta, ConfigDelta)


def test_metadata_is_read_in_the_originals_form_and_keeps_what_it_had(workspace: Workspace) -> None:
    labels = {"a": "1", "b": None}
    info = placed(workspace, [event("turn_start")], labels=labels, pinned_at="2025-12-20 11:33:49.5", odd={"x": 1})

    with workspace.lock(info) as lock:
        lock.acquire(patience=0, waiting=lambda _: None)
        renamed = workspace.update_metadata(info, lock, lambda before: Metadata(title="B", labels=before.labels))

    assert (info.metadata.labels, info.metadata.pinned_at) == ({"a": "1", "b": ""}, "2025-12-20T11:33:49.500000Z")
    assert renamed.metadata.title == "B"
    stored = json.loads((info.directory / "metadata.json").read_bytes())
    assert stored == {"title": "B", "labels": {"a": "1", "b": ""}, "odd": {"x": 1}}


def test_a_conversation_of_the_original_can_be_removed(workspace: Workspace) -> None:
    info = placed(workspace, current())

    with workspace.lock(info) as lock:
        lock.acquire(patience=0, waiting=lambda _: None)
        workspace.remove(info, lock)

    assert workspace.conversations() == []


def archived(workspace: Workspace, **metadata: Any) -> ConversationInfo:
    """A conversation in the archive of the original."""
    assert workspace.root is not None
    archive = workspace.root / ".jp" / "conversations" / ".archive"
    write_original(archive / f"{ID.digits}-a-title", current(), **metadata)
    return workspace.get(ID)


def test_an_archived_one_keeps_its_id_from_others_and_its_blobs_where_all_are(workspace: Workspace) -> None:
    info = archived(workspace, archived_at="2025-12-21 00:00:00.0")

    with open_log_of(workspace, info) as log:
        log.append(TurnStart())

    assert info.metadata.archived_at == "2025-12-21T00:00:00.000000Z"
    assert workspace.root is not None
    assert (workspace.root / ".jp" / "blobs").is_dir()
    storage = storage_at(workspace.root, workspace.user_data, local=False)
    placed_id, _ = place_conversation(storage, [], {}, words="", stamps=SYSTEM, since=ID.deciseconds)
    assert placed_id == ConversationId.at(ID.deciseconds + 1)


def test_bringing_back_moves_it_out_of_the_archive_with_its_files_as_they_were(workspace: Workspace) -> None:
    info = archived(workspace, archived_at="2025-12-21 00:00:00.0", odd=1)
    before = (info.directory / "events.json").read_bytes()

    with workspace.lock(info) as lock:
        lock.acquire(patience=0, waiting=lambda _: None)
        back = unarchive_conversation(workspace, info, lock)
        held = lock.held

    assert (back, held) == (workspace.get(ID), False)
    assert (back.directory.parent.name, back.metadata.archived_at) == ("conversations", None)
    assert (back.directory / "events.json").read_bytes() == before
    assert json.loads((back.directory / "metadata.json").read_bytes())["odd"] == 1
    with workspace.lock(info) as lock:
        lock.acquire(patience=0, waiting=lambda _: None)
        with pytest.raises(StorageError, match="moved to another place"):
            unarchive_conversation(workspace, info, lock)


def test_what_is_in_the_way_stays_and_so_does_the_archived_one(workspace: Workspace) -> None:
    info = archived(workspace)
    (info.directory.parent.parent / info.directory.name).write_text("mine", encoding="utf-8")

    with workspace.lock(info) as lock:
        lock.acquire(patience=0, waiting=lambda _: None)
        with pytest.raises(StorageError, match="in the way"):
            unarchive_conversation(workspace, info, lock)

    assert workspace.get(ID).directory == info.directory
