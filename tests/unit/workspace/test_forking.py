from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

import pytest

from disk_faults import error, failing_disk
from jp.conversation.entries import AnyEntry, ChatRequest, Header, ToolCallResponse, TurnStart, Unknown
from jp.conversation.resource import Resource
from jp.errors import StorageError
from jp.workspace.blobs import BlobMissingError, DiskBlobs, MemoryBlobs
from jp.workspace.lifecycle import Seed, named_in
from jp.workspace.listing import ConversationInfo, Metadata
from jp.workspace.retention import EphemeralWorkspace
from jp.workspace.workspace import Workspace
from workspaces import LARGE_TEXT, new_conversation, new_workspace, open_log_of, turn_entries

SNAPSHOT = Resource(uri="file:///a", text=LARGE_TEXT)


def source_in(workspace: Workspace) -> ConversationInfo:
    info = new_conversation(workspace, "Source")
    with open_log_of(workspace, info) as log:
        for entry in turn_entries():
            log.append(entry)
    return info


def planted(workspace: Workspace | EphemeralWorkspace, seed: Seed, *, local: bool = False) -> ConversationInfo:
    return workspace.create({"a": 1}, Metadata(title="Fork"), local=local, seed=seed)


def seed_of(workspace: Workspace, info: ConversationInfo) -> Seed:
    stream = workspace.read(info)
    return Seed(entries=stream.entries[1:], blobs=stream.blobs)


@pytest.mark.parametrize("local", [False, True], ids=["same place", "other place"])
def test_a_conversation_starts_with_the_entries_of_another(tmp_path: Path, *, local: bool) -> None:
    workspace = new_workspace(tmp_path)
    source = source_in(workspace)

    info = planted(workspace, seed_of(workspace, source), local=local)

    stream = workspace.read(info)
    header, *entries = stream.entries
    assert isinstance(header, Header)
    assert header != workspace.read(source).entries[0]
    assert entries == workspace.read(source).entries[1:]
    assert (info.metadata.title, workspace.base_config(info)) == ("Fork", {"a": 1})
    (request,) = [entry for entry in entries if isinstance(entry, ChatRequest)]
    assert stream.load(request.resources[0]).text == LARGE_TEXT


@pytest.mark.parametrize("persists", [True, False])
def test_a_conversation_takes_the_nonce_of_the_other_over(tmp_path: Path, *, persists: bool) -> None:
    workspace = new_workspace(tmp_path)
    place = workspace if persists else EphemeralWorkspace(workspace)
    seeds = [Seed(entries=(), blobs=MemoryBlobs(), nonce=nonce) for nonce in ("cafe" * 4, "")]

    headers = [place.read(planted(place, seed)).entries[0] for seed in seeds]

    first, second = [header.nonce for header in headers if isinstance(header, Header)]
    assert first == "cafe" * 4
    assert second not in {"", first}


def test_content_in_the_same_place_is_not_read_and_counts_as_used(tmp_path: Path) -> None:
    workspace = new_workspace(tmp_path)
    source = source_in(workspace)
    blobs = [path for path in (tmp_path / "work/.jp/blobs").rglob("*/*/*") if path.is_file()]
    for path in blobs:
        path.write_bytes(b"damaged")
        os.utime(path, (0, 0))

    planted(workspace, seed_of(workspace, source))

    assert all(path.stat().st_mtime > 0 for path in blobs)
    with pytest.raises(StorageError, match="damaged"):
        planted(workspace, seed_of(workspace, source), local=True)
    assert len(workspace.conversations()) == 2


def test_large_content_that_stands_in_an_entry_goes_to_the_blob_store(tmp_path: Path) -> None:
    workspace = new_workspace(tmp_path)
    request = ChatRequest(id="q", at="now", content="?", resources=(SNAPSHOT,))

    info = planted(workspace, Seed(entries=[TurnStart(id="t", at="now"), request], blobs=MemoryBlobs()))

    stored = workspace.read(info).entries[2]
    assert isinstance(stored, ChatRequest)
    assert stored.resources[0].text is None
    assert len(named_in([stored])) == 1


def test_entries_without_an_id_get_one_after_those_before(tmp_path: Path) -> None:
    workspace = new_workspace(tmp_path)
    entries: list[AnyEntry] = [
        TurnStart(id="7" * 26, at="then"),
        Unknown(raw=b'{"type":\n"odd"}', type="odd"),
        ToolCallResponse(request="c", content=()),
    ]

    info = planted(workspace, Seed(entries=entries, blobs=MemoryBlobs()))

    _, first, odd, last = workspace.read(info).entries
    assert (first.id, first.at) == ("7" * 26, "then")
    assert isinstance(odd, Unknown)
    assert odd.raw == b'{"type": "odd"}'
    assert last.id > first.id
    assert last.at.startswith("2025-12-17")


def test_nothing_is_left_of_a_conversation_that_could_not_be_written(tmp_path: Path) -> None:
    workspace = new_workspace(tmp_path)
    seed = Seed(entries=[ChatRequest(content="?", resources=(SNAPSHOT,))], blobs=MemoryBlobs())

    with failing_disk(tmp_path / "count") as disk:
        planted(new_workspace(tmp_path / "count"), seed)

    for at in range(1, len(disk.calls) + 1):
        with failing_disk(tmp_path / "work", at=at, fault=error(errno.EIO)), suppress(StorageError):
            planted(workspace, seed)
            break
        assert workspace.conversations() == []


def test_a_blob_that_another_place_lacks_is_missing(tmp_path: Path) -> None:
    blobs = DiskBlobs(tmp_path / "blobs")

    with pytest.raises(BlobMissingError):
        blobs.adopt("ab" * 32, MemoryBlobs())
    blobs.adopt("ab" * 32, blobs)

    assert not (tmp_path / "blobs").exists()


def test_without_persistence_it_lives_in_memory_over_the_content_of_its_source(tmp_path: Path) -> None:
    workspace = new_workspace(tmp_path)
    source = source_in(workspace)
    ephemeral = EphemeralWorkspace(workspace)

    info = planted(ephemeral, seed_of(workspace, source))

    stream = ephemeral.read(info)
    assert stream.entries[1:] == workspace.read(source).entries[1:]
    assert all(stream.blobs.get(sha256) for sha256 in named_in(stream.entries))
    assert len(workspace.conversations()) == 1
