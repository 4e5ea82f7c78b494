from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from disk_faults import error, failing_disk
from jp.errors import StorageError
from jp.workspace.trust import TrustStore, foreign_owners


def store(root: Path, conversation: str = "", *, persistent: bool = True) -> TrustStore:
    return TrustStore(root, user_data=root.parent / "user", conversation=conversation, persistent=persistent)


def test_nothing_is_accepted_at_first(tmp_path: Path) -> None:
    assert store(tmp_path / "work").accepted() == frozenset()


def test_what_was_accepted_stays_when_more_is(tmp_path: Path) -> None:
    first = store(tmp_path / "work")
    first.accept({"abc"})

    second = store(tmp_path / "work")
    second.accept({"abd"})

    assert first.accepted() == second.accepted() == store(tmp_path / "work").accepted() == {"abc", "abd"}


def test_what_is_accepted_already_is_not_written_again(tmp_path: Path) -> None:
    store(tmp_path / "work").accept({"abc", "abd"})

    with failing_disk(tmp_path, at=1, fault=error(errno.ENOSPC)) as disk:
        store(tmp_path / "work").accept({"abd"})

    assert disk.calls == []


def test_a_conversation_is_accepted_apart_from_its_workspace(tmp_path: Path) -> None:
    store(tmp_path / "work", "17800836875").accept({"abc"})

    assert store(tmp_path / "work", "17800836875").accepted() == {"abc"}
    assert store(tmp_path / "work").accepted() == frozenset()
    assert store(tmp_path / "work", "17800836876").accepted() == frozenset()


def test_what_is_forgotten_is_accepted_no_more(tmp_path: Path) -> None:
    decision = store(tmp_path / "work", "17800836875")
    decision.accept({"abc"})

    decision.forget()
    decision.forget()

    assert decision.accepted() == frozenset()
    assert store(tmp_path / "work", "17800836875").accepted() == frozenset()


def test_another_directory_is_not_trusted_whatever_its_id(tmp_path: Path) -> None:
    for name in ("work", "copy"):
        (tmp_path / name / ".jp").mkdir(parents=True)
        (tmp_path / name / ".jp/.id").write_text("x\nsameid\n", encoding="utf-8")
    store(tmp_path / "work").accept({"abc"})

    assert store(tmp_path / "copy").accepted() == frozenset()


def test_the_decision_lies_in_the_users_directory_alone(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()

    store(tmp_path / "work").accept({"abc"})

    assert list((tmp_path / "work").iterdir()) == []
    (decision,) = (tmp_path / "user/trust").iterdir()
    assert str(tmp_path / "work") in decision.read_text(encoding="utf-8")


@pytest.mark.parametrize("content", [b"", b"{", b'{"accepted":["abc"]}', b"\xff"], ids=repr)
def test_a_decision_that_cannot_be_read_is_none(tmp_path: Path, content: bytes) -> None:
    store(tmp_path / "work").accept({"abc"})
    (decision,) = (tmp_path / "user/trust").iterdir()
    decision.write_bytes(content)

    assert store(tmp_path / "work").accepted() == frozenset()


def test_without_persistence_a_decision_lasts_as_long_as_the_process(tmp_path: Path) -> None:
    trust = store(tmp_path / "work", persistent=False)
    trust.accept({"abc"})

    assert trust.accepted() == {"abc"}
    assert store(tmp_path / "work").accepted() == frozenset()
    assert not (tmp_path / "user").exists()
    trust.forget()
    assert trust.accepted() == frozenset()


def test_a_decision_that_cannot_be_written_is_none(tmp_path: Path) -> None:
    trust = store(tmp_path / "work")
    with failing_disk(tmp_path, at=1, fault=error(errno.ENOSPC)), pytest.raises(StorageError):
        trust.accept({"abc"})

    assert trust.accepted() == frozenset()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
@pytest.mark.parametrize(
    ("user", "sudo", "strangers"),
    [
        (0, "1000", ()),
        (0, "", (1000,)),
        (0, "1001", (1000,)),
        (0, "\u0661\u0660\u0660\u0660", (1000,)),
        (0, "-1000", (1000,)),
        (1000, "", ()),
        (1001, "1000", (1000,)),
    ],
)
def test_files_of_the_user_who_called_sudo_are_their_own(
    user: int, sudo: str, strangers: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: user)
    monkeypatch.setenv("SUDO_UID", sudo)
    (tmp_path / ".jp").mkdir()
    for path in (tmp_path, tmp_path / ".jp"):
        os.chown(path, 1000, -1)

    assert foreign_owners(tmp_path) == strangers
