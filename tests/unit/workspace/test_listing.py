from __future__ import annotations

import os
from pathlib import Path

import pytest

from disk_faults import failing_disk
from jp.conversation.ids import ConversationId
from jp.errors import StorageError
from jp.workspace.layout import Storage
from jp.workspace.listing import Metadata, directories_in, info_of
from workspaces import new_conversation, new_workspace

ID = ConversationId.at(17)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    directory = tmp_path / "conversations" / "17-a"
    directory.mkdir(parents=True)
    return directory


def names_in(directory: Path) -> set[str]:
    return {found.name for _, found in directories_in(Storage(directory, private=False))}


def test_a_storage_without_conversations_has_none(tmp_path: Path) -> None:
    assert names_in(tmp_path) == set()


def test_only_directories_that_bear_an_id_count(directory: Path) -> None:
    storage = directory.parent
    for name in ("18", ".19.new", ".removed-20-x", "notes", ".archive"):
        (storage / name).mkdir()
    (storage / "21-file").write_text("", encoding="utf-8")
    (storage / "22-link").symlink_to(directory)

    assert names_in(storage.parent) == {"17-a", "18"}


def test_the_archive_of_the_original_is_listed_too_but_for_what_lies_outside_it_as_well(directory: Path) -> None:
    archive = directory.parent / ".archive"
    for name in ("17-old", "18-b", ".19.new", "notes"):
        (archive / name).mkdir(parents=True)

    assert names_in(directory.parent.parent) == {"17-a", "18-b"}
    assert info_of(ConversationId.at(18), archive / "18-b", local=False).metadata.archived_at is not None
    assert info_of(ID, directory, local=False).metadata.archived_at is None


def test_a_storage_that_cannot_be_listed_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "conversations").write_text("", encoding="utf-8")

    with pytest.raises(StorageError, match="cannot list"):
        names_in(tmp_path)


def test_what_is_known_comes_from_the_metadata_and_the_logs_time(directory: Path) -> None:
    (directory / "metadata.json").write_text('{"title":"A","labels":{"a":"b"}}', encoding="utf-8")
    (directory / "events.jsonl").write_text("not opened", encoding="utf-8")
    os.utime(directory / "events.jsonl", (1000.0, 2000.5))

    info = info_of(ID, directory, local=True)

    assert info.id == ID
    assert info.local
    assert info.metadata == Metadata(title="A", labels={"a": "b"})
    assert info.last_activity == 2000.5
    assert info.problem == ""


@pytest.mark.parametrize(("said", "last"), [("2025-12-20 11:33:49.091877", 1766230429.091), ("once", 2000.0)])
def test_a_conversation_of_the_original_is_as_old_as_it_says_or_its_log(
    directory: Path, said: str, last: float
) -> None:
    (directory / "metadata.json").write_text(f'{{"title":"A","last_activated_at":"{said}"}}', encoding="utf-8")
    (directory / "events.json").write_text("[]", encoding="utf-8")
    os.utime(directory / "events.json", (1000.0, 2000.0))

    info = info_of(ID, directory, local=False)

    assert info.metadata.title == "A"
    assert info.last_activity == last


def test_a_conversation_without_a_log_is_as_old_as_its_directory(directory: Path) -> None:
    os.utime(directory, (1000.0, 2000.0))

    assert info_of(ID, directory, local=False).last_activity == 2000.0
    assert info_of(ID, directory / "gone", local=False).last_activity == 0.0


@pytest.mark.parametrize("content", [b"{", b'{"title":3}', None], ids=["torn", "mistyped", "directory"])
def test_damaged_metadata_is_a_problem_of_one_conversation(directory: Path, content: bytes | None) -> None:
    if content is None:
        (directory / "metadata.json").mkdir()
    else:
        (directory / "metadata.json").write_bytes(content)

    info = info_of(ID, directory, local=False)

    assert info.metadata == Metadata()
    assert "metadata.json" in info.problem


def test_listing_opens_no_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = new_workspace(tmp_path)
    for number in range(5):
        new_conversation(workspace, f"number {number}")
    opened: list[str] = []
    real = os.open

    def remembered(path: str | Path, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        opened.append(Path(path).name)
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", remembered)
    with failing_disk(tmp_path) as disk:
        found = workspace.conversations()

    assert [info.metadata.title for info in found] == [f"number {number}" for number in range(5)]
    assert {"metadata.json", ".id"} <= set(opened)
    assert "events.jsonl" not in opened
    assert disk.calls == []
