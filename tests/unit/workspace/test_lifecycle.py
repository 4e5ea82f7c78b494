from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from disk_faults import error, failing_disk
from jp.conversation.entries import Header
from jp.conversation.ids import ConversationId
from jp.errors import StorageError
from jp.workspace.blobs import MemoryBlobs
from jp.workspace.layout import Storage
from jp.workspace.lifecycle import create_conversation, first_free_id, remove_conversation
from jp.workspace.listing import Metadata, read_metadata
from jp.workspace.store import read_base_config, read_stream
from workspaces import START, fixed_stamps

NUMBER = START // 100
AN_HOUR_AGO = START / 1000 - 3600
A_DAY_AGO = START / 1000 - 25 * 3600


def create(storage: Storage, title: str | None = None, *, others: list[Storage] | None = None) -> tuple[str, Path]:
    return create_conversation(storage, others or [], files=({"a": 1}, Metadata(title=title)), stamps=fixed_stamps())


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(tmp_path / "shared", private=False)


@pytest.fixture
def silo(tmp_path: Path) -> Storage:
    return Storage(tmp_path / "silo", private=True)


def names_in(storage: Storage) -> set[str]:
    return {path.name for path in storage.conversations.iterdir()}


def test_a_new_conversation_has_a_header_and_what_it_was_created_with(storage: Storage) -> None:
    conversation_id, directory = create(storage, "Fix the lexer")

    assert conversation_id == f"jp-c{NUMBER}"
    assert directory == storage.conversations / f"{NUMBER}-fix-the-lexer"
    assert read_metadata(directory) == Metadata(title="Fix the lexer")
    assert read_base_config(directory) == {"a": 1}
    (header,) = read_stream(directory, MemoryBlobs()).entries
    assert isinstance(header, Header)
    assert header.format == 1
    assert header.created_at == header.at == "2025-12-17T19:33:20.000Z"
    assert len(header.id) == 26
    assert len(bytes.fromhex(header.nonce)) == 8
    assert names_in(storage) == {directory.name}


def test_the_first_line_is_the_header_in_one_line(storage: Storage) -> None:
    _, directory = create(storage)

    data = (directory / "events.jsonl").read_bytes()
    assert data.endswith(b"\n")
    assert data.count(b"\n") == 1
    assert next(iter(json.loads(data))) == "type"


def test_an_id_is_used_once_whatever_the_title(storage: Storage) -> None:
    names = [create(storage, title)[1].name for title in ("a", "b", None, "a")]

    assert names == [f"{NUMBER}-a", f"{NUMBER + 1}-b", f"{NUMBER + 2}", f"{NUMBER + 3}-a"]


def test_an_id_is_used_in_one_storage_only(storage: Storage, silo: Storage) -> None:
    create(storage, "a", others=[silo])
    _, local = create(silo, "b", others=[storage])
    _, shared = create(storage, "c", others=[silo])

    assert local.name == f"{NUMBER + 1}-b"
    assert shared.name == f"{NUMBER + 2}-c"


def test_an_id_that_another_process_has_reserved_is_left_to_it(storage: Storage, silo: Storage) -> None:
    (storage.conversations / f".{NUMBER}.new").mkdir(parents=True)
    (silo.conversations / f".{NUMBER + 1}.new").mkdir(parents=True)
    for reservation in (storage.conversations / f".{NUMBER}.new", silo.conversations / f".{NUMBER + 1}.new"):
        os.utime(reservation, (START / 1000, START / 1000))

    _, directory = create(storage, others=[silo])

    assert directory.name == str(NUMBER + 2)
    assert f".{NUMBER + 1}.new" not in names_in(storage)


def test_a_private_storage_is_the_users_alone(silo: Storage) -> None:
    _, directory = create(silo)

    for path in (silo.directory, silo.conversations, directory):
        assert path.stat().st_mode & 0o777 == 0o700


def test_a_creation_that_fails_leaves_nothing(storage: Storage) -> None:
    with failing_disk(storage.directory.parent) as disk:
        create(storage)
    calls = list(disk.calls)
    assert calls == ["mkdir", "mkdir", "mkdir", *["open", "write"] * 3, "rename"]

    for at in range(1, len(calls) + 1):
        other = Storage(storage.directory.parent / str(at), private=False)
        with failing_disk(other.directory, at=at, fault=error(errno.ENOSPC)), pytest.raises(StorageError) as caught:
            create(other)
        assert caught.value.hint
        assert not other.conversations.exists() or names_in(other) == set()


def test_a_configuration_that_cannot_be_encoded_leaves_nothing(storage: Storage) -> None:
    with pytest.raises(TypeError):
        create_conversation(storage, [], files=({"a": object()}, Metadata()), stamps=fixed_stamps())

    assert not storage.conversations.exists()


def test_a_storage_that_cannot_be_listed_is_an_error(storage: Storage, silo: Storage) -> None:
    silo.directory.mkdir()
    silo.conversations.write_text("", encoding="utf-8")

    with pytest.raises(StorageError, match="cannot list"):
        create(storage, others=[silo])


def test_what_killed_processes_left_is_swept_a_day_later(storage: Storage) -> None:
    names = [".1.new", ".removed-2-a-ff", ".3.new", ".kept", "4-a"]
    for name in names:
        (storage.conversations / name).mkdir(parents=True)
        (storage.conversations / name / "file").write_text("", encoding="utf-8")
        moment = AN_HOUR_AGO if name == ".3.new" else A_DAY_AGO
        os.utime(storage.conversations / name, (moment, moment))

    _, directory = create(storage)

    assert names_in(storage) == {".3.new", ".kept", "4-a", directory.name}


def test_removing_takes_the_directory_away(storage: Storage) -> None:
    _, directory = create(storage, "a")
    _, other = create(storage, "b")
    (directory / "events.jsonl.torn-1").write_text("x", encoding="utf-8")

    remove_conversation(storage, directory, stamps=fixed_stamps())

    assert names_in(storage) == {other.name}


def test_what_is_no_conversation_is_not_removed(storage: Storage) -> None:
    photos = storage.conversations / "2019-holiday"
    photos.mkdir(parents=True)
    (photos / "beach.png").touch()

    with pytest.raises(StorageError, match="nothing of a conversation") as caught:
        remove_conversation(storage, photos, stamps=fixed_stamps())

    assert caught.value.hint
    assert (photos / "beach.png").exists()


def test_a_removal_that_fails_leaves_everything(storage: Storage) -> None:
    _, directory = create(storage)

    with failing_disk(storage.directory, at=1, fault=error(errno.EROFS)), pytest.raises(StorageError, match="remove"):
        remove_conversation(storage, directory, stamps=fixed_stamps())

    assert len(read_stream(directory, MemoryBlobs()).entries) == 1


def test_a_conversation_whose_deletion_stops_half_way_is_gone(storage: Storage) -> None:
    _, directory = create(storage)

    with failing_disk(storage.directory, at=2, fault=error(errno.EIO)):
        remove_conversation(storage, directory, stamps=fixed_stamps())

    assert not directory.exists()
    assert all(name.startswith(".removed-") for name in names_in(storage))


def test_the_first_free_id_is_now_or_the_next() -> None:
    taken = {ConversationId.at(NUMBER), ConversationId.at(NUMBER + 1), ConversationId.at(NUMBER + 3)}

    assert first_free_id(fixed_stamps(), set()) == f"jp-c{NUMBER}"
    assert first_free_id(fixed_stamps(), taken) == f"jp-c{NUMBER + 2}"
