from __future__ import annotations

import errno
from pathlib import Path

import pytest

from disk_faults import error, failing_disk
from jp.errors import StorageError
from jp.workspace.trust import TrustStore


def store(root: Path, *, persistent: bool = True) -> TrustStore:
    return TrustStore(root, user_data=root.parent / "user", persistent=persistent)


def test_nothing_is_trusted_at_first(tmp_path: Path) -> None:
    assert not store(tmp_path / "work").is_trusted("abc")


def test_exactly_what_was_trusted_last_is_trusted(tmp_path: Path) -> None:
    store(tmp_path / "work").trust("abc")
    assert store(tmp_path / "work").is_trusted("abc")
    assert not store(tmp_path / "work").is_trusted("abd")

    changed = store(tmp_path / "work")
    changed.trust("abd")

    assert changed.is_trusted("abd")
    assert not changed.is_trusted("abc")
    assert not store(tmp_path / "work").is_trusted("abc")


def test_another_directory_is_not_trusted_whatever_its_id(tmp_path: Path) -> None:
    for name in ("work", "copy"):
        (tmp_path / name / ".jp").mkdir(parents=True)
        (tmp_path / name / ".jp/.id").write_text("x\nsameid\n", encoding="utf-8")
    store(tmp_path / "work").trust("abc")

    assert not store(tmp_path / "copy").is_trusted("abc")


def test_the_decision_lies_in_the_users_directory_alone(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()

    store(tmp_path / "work").trust("abc")

    assert list((tmp_path / "work").iterdir()) == []
    (decision,) = (tmp_path / "user/trust").iterdir()
    assert str(tmp_path / "work") in decision.read_text(encoding="utf-8")


@pytest.mark.parametrize("content", [b"", b"{", b'{"hash":"abc"}', b"\xff"], ids=repr)
def test_a_decision_that_cannot_be_read_is_none(tmp_path: Path, content: bytes) -> None:
    store(tmp_path / "work").trust("abc")
    (decision,) = (tmp_path / "user/trust").iterdir()
    decision.write_bytes(content)

    assert not store(tmp_path / "work").is_trusted("abc")


def test_without_persistence_a_decision_lasts_as_long_as_the_process(tmp_path: Path) -> None:
    trust = store(tmp_path / "work", persistent=False)
    trust.trust("abc")

    assert trust.is_trusted("abc")
    assert not store(tmp_path / "work").is_trusted("abc")
    assert not (tmp_path / "user").exists()


def test_a_decision_that_cannot_be_written_is_none(tmp_path: Path) -> None:
    trust = store(tmp_path / "work")
    with failing_disk(tmp_path, at=1, fault=error(errno.ENOSPC)), pytest.raises(StorageError):
        trust.trust("abc")

    assert not trust.is_trusted("abc")
