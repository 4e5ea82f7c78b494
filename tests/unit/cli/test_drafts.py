from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from disk_faults import error, failing_disk
from jp.app.drafts import Draft, discard_drafts, drafts_directory, open_draft
from jp.app.stdin import MOST_BYTES
from jp.errors import StorageError, UsageError
from jp.workspace.retention import EphemeralWorkspace
from jp.workspace.workspace import find_workspace
from workspaces import new_workspace


@pytest.fixture
def drafts(tmp_path: Path) -> Path:
    return tmp_path / "drafts" / "new"


def kept(drafts: Path, text: str) -> Draft:
    """A draft that somebody left behind."""
    draft = open_draft(drafts, [text]).draft
    draft.write(text, "below")
    draft.close()
    return draft


def test_drafts_of_conversations_and_workspaces_lie_apart(tmp_path: Path) -> None:
    workspace = new_workspace(tmp_path)
    outside = find_workspace(tmp_path, user_data=tmp_path / "user")

    found = drafts_directory(workspace, "17", persistent=True)

    assert found.parts[-2:] == ("drafts", "17")
    assert found.is_relative_to(tmp_path / "user" / "workspaces")
    assert drafts_directory(outside, "", persistent=True) == tmp_path / "user" / "drafts" / "new"


def test_without_persistence_nothing_is_written_to_the_users_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    workspace = EphemeralWorkspace(new_workspace(tmp_path))

    one, other = (drafts_directory(workspace, "17", persistent=False) for _ in range(2))

    assert one.parent == tmp_path / "tmp"
    assert one != other


def test_a_new_draft_is_blank_and_for_the_user_alone(drafts: Path) -> None:
    opened = open_draft(drafts, [])
    assert (opened.text, opened.is_kept, opened.others) == ("", False, 0)
    assert opened.draft.is_blank

    opened.draft.write("text", "below")
    assert opened.draft.text() == "text"
    assert not opened.draft.is_blank
    assert stat.S_IMODE(opened.draft.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(opened.draft.path.parent.stat().st_mode) == 0o700

    opened.draft.path.chmod(0o644)
    opened.draft.protect()
    assert stat.S_IMODE(opened.draft.path.stat().st_mode) == 0o600

    opened.draft.remove()
    opened.draft.close()
    opened.draft.close()
    assert not drafts.exists()


def test_a_draft_that_was_left_behind_is_taken_up_but_not_by_another_text(drafts: Path) -> None:
    path = kept(drafts, "text").path

    opened = open_draft(drafts, ["more"])

    assert (opened.text, opened.is_kept, opened.left) == ("more", False, path)
    assert opened.draft.path != path
    opened.draft.close()

    for parts in ([], ["ex", " "]):
        again = open_draft(drafts, parts)
        assert (again.text, again.is_kept, again.others, again.left) == ("text", True, 0, None)
        assert again.draft.path == path
        again.draft.close()


def test_drafts_that_others_write_are_left_alone(drafts: Path) -> None:
    one = open_draft(drafts, ["one"])
    one.draft.write("one", "")
    two = open_draft(drafts, ["two"])
    two.draft.write("two", "")
    assert not two.is_kept
    assert one.draft.path != two.draft.path

    os.utime(one.draft.path, (1, 1))
    one.draft.close()
    two.draft.close()

    third = open_draft(drafts, [])
    assert (third.text, third.is_kept, third.others) == ("two", True, 1)
    assert third.draft.path == two.draft.path


def test_what_an_editor_left_to_restore_from_is_kept(drafts: Path) -> None:
    draft = open_draft(drafts, []).draft
    draft.write("", "")
    (draft.path.parent / ".query.md.swp").write_bytes(b"unsaved")
    draft.close()

    opened = open_draft(drafts, [])

    assert opened.is_kept
    assert opened.draft.path == draft.path


def test_blank_drafts_are_cleared_away(drafts: Path) -> None:
    draft = open_draft(drafts, []).draft
    draft.write(" \n", "")
    (draft.path.parent / ".query.md.1234.tmp").write_bytes(b"half")
    draft.close()
    (drafts / "not a draft").mkdir()

    opened = open_draft(drafts, ["x"])

    assert not opened.is_kept
    assert not draft.path.parent.exists()
    assert (drafts / "not a draft").exists()


def test_a_text_with_the_mark_of_its_page_gets_another_page(drafts: Path) -> None:
    old = kept(drafts, "text")
    mark = old.path.parent.name
    old.write(f"text\n\nabout {mark}", "")

    opened = open_draft(drafts, [])

    assert opened.draft.path.parent.name != mark
    assert opened.is_kept
    assert opened.text == f"text\n\nabout {mark}"
    assert opened.draft.text() == opened.text
    assert not old.path.exists()


def test_drafts_are_discarded_but_what_somebody_writes(drafts: Path) -> None:
    first, blank, written = (open_draft(drafts, [text]).draft for text in ("one", "", "two"))
    for draft, text in ((first, "one"), (blank, ""), (written, "two")):
        draft.write(text, "below")
    first.close()
    blank.close()
    (drafts / "notes").mkdir()

    assert discard_drafts(drafts) == (1, [written.path])
    assert sorted(path.name for path in drafts.iterdir()) == sorted([written.path.parent.name, "notes"])

    (drafts / "notes").rmdir()
    written.close()
    assert discard_drafts(drafts) == (1, [])
    assert not drafts.exists()
    assert discard_drafts(drafts) == (0, [])


def test_a_draft_moves_and_stays_locked(drafts: Path) -> None:
    opened = open_draft(drafts, [])
    opened.draft.write("text", "")
    target = drafts.parent / "17"

    opened.draft.move_to(target)

    assert opened.draft.path.parent.parent == target
    assert not drafts.exists()
    assert opened.draft.text() == "text"
    assert not open_draft(target, []).is_kept
    opened.draft.close()
    assert open_draft(target, []).text == "text"


def test_a_draft_that_cannot_be_moved_stays(drafts: Path) -> None:
    opened = open_draft(drafts, [])
    opened.draft.write("text", "")
    (drafts.parent / "17").write_text("in the way", encoding="utf-8")

    opened.draft.move_to(drafts.parent / "17")

    assert opened.draft.text() == "text"


def test_a_page_without_a_file_is_empty_and_a_huge_one_is_refused_but_not_blank(drafts: Path) -> None:
    draft = open_draft(drafts, []).draft
    assert draft.text() == ""
    draft.path.write_bytes(b"x" * (MOST_BYTES + 1))

    with pytest.raises(UsageError, match="has more than"):
        draft.text()
    assert not draft.is_blank


def test_a_page_that_is_a_link_is_not_followed(drafts: Path, tmp_path: Path) -> None:
    draft = open_draft(drafts, []).draft
    (tmp_path / "secret").write_text("secret", encoding="utf-8")
    draft.path.symlink_to(tmp_path / "secret")

    with pytest.raises(StorageError, match="cannot read"):
        draft.text()


def test_a_full_disk_leaves_the_page_that_was_there(drafts: Path) -> None:
    draft = open_draft(drafts, []).draft
    draft.write("old", "")
    with failing_disk(drafts) as disk:
        draft.write("old", "")
        calls = list(disk.calls)
        for at in range(1, len(calls) + 1):
            disk.break_calls({at: error(errno.ENOSPC)})
            with pytest.raises(StorageError):
                draft.write("new", "")
        disk.break_calls({})

    assert draft.text() == "old"
    assert sorted(path.name for path in draft.path.parent.iterdir()) == ["lock", "query.md"]


def test_a_place_where_nothing_can_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")

    with pytest.raises(StorageError, match="cannot create"):
        open_draft(tmp_path / "file" / "new", [])
