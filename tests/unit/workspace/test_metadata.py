from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from disk_faults import error, failing_disk
from jp.errors import StorageError
from jp.workspace.listing import Metadata, Parent, encode_metadata, read_metadata, update_metadata


def titled(title: str) -> Metadata:
    return Metadata(title=title)


def test_metadata_comes_back_as_it_was_written(tmp_path: Path) -> None:
    metadata = Metadata(
        title="A title, ü",
        labels={"area": "lexer", "flag": ""},
        pinned_at="2026-01-01T00:00:00.000Z",
        archived_at="2026-01-02T00:00:00.000Z",
        expires_at="2026-01-03T00:00:00.000Z",
        last_activated_at="2026-01-04T00:00:00.000Z",
        parent=Parent(conversation="jp-c17800836875", from_turn=0, to_turn=3),
    )
    (tmp_path / "metadata.json").write_bytes(encode_metadata(metadata))

    assert read_metadata(tmp_path) == metadata


def test_what_is_not_set_is_not_written() -> None:
    assert encode_metadata(Metadata()) == b"{}\n"
    assert encode_metadata(Metadata(title="x")) == b'{\n  "title": "x"\n}\n'


@pytest.mark.parametrize("content", [None, b""], ids=["missing", "empty"])
def test_a_file_that_is_missing_or_empty_says_nothing(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "metadata.json").write_bytes(content)

    assert read_metadata(tmp_path) == Metadata()
    assert update_metadata(tmp_path, lambda before: replace(before, title="x")).title == "x"
    assert read_metadata(tmp_path).title == "x"


def test_a_rewrite_keeps_fields_that_this_version_does_not_know(tmp_path: Path) -> None:
    text = '{"title":"old","labels":{"a":"b"},"colour":{"shade": 1e400},"order":[3,2,1]}'
    (tmp_path / "metadata.json").write_text(text, encoding="utf-8")

    update_metadata(tmp_path, lambda before: replace(before, title="new", labels={}, pinned_at="now"))

    written = (tmp_path / "metadata.json").read_text(encoding="utf-8")
    assert "1e400" in written
    fields = json.loads(written)
    assert fields["title"] == "new"
    assert fields["pinned_at"] == "now"
    assert fields["order"] == [3, 2, 1]
    assert "labels" not in fields


def test_a_change_that_changes_nothing_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "metadata.json").write_bytes(b'{"title":"x"}')

    update_metadata(tmp_path, lambda before: before)

    assert (tmp_path / "metadata.json").read_bytes() == b'{"title":"x"}'


@pytest.mark.parametrize("content", [b"[]", b"{", b'{"title":3}', b'{"title":"\xff"}'], ids=repr)
def test_a_malformed_file_is_an_error_and_is_never_overwritten(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "metadata.json").write_bytes(content)

    with pytest.raises(StorageError, match=r"metadata\.json") as caught:
        read_metadata(tmp_path)
    with pytest.raises(StorageError):
        update_metadata(tmp_path, lambda before: replace(before, title="x"))

    assert caught.value.hint
    assert (tmp_path / "metadata.json").read_bytes() == content


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "metadata.json").mkdir()

    with pytest.raises(StorageError, match="cannot read"):
        read_metadata(tmp_path)


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_rewrite_that_fails_leaves_the_file_as_it_was(tmp_path: Path, at: int) -> None:
    (tmp_path / "metadata.json").write_bytes(encode_metadata(titled("before")))

    with failing_disk(tmp_path, at=at, fault=error(errno.ENOSPC)), pytest.raises(StorageError):
        update_metadata(tmp_path, lambda _: titled("after"))

    assert read_metadata(tmp_path) == titled("before")
    assert [path.name for path in tmp_path.iterdir()] == ["metadata.json"]
