from __future__ import annotations

from pathlib import Path

import pytest

from jp.conversation.entries import ChatRequest, Header, TurnStart, Unknown
from jp.errors import StorageError
from jp.workspace.blobs import MemoryBlobs
from jp.workspace.store import (
    LogDamagedError,
    LogFormatError,
    LogMissingError,
    Stream,
    parse_log,
    read_base_config,
    read_stream,
)

HEADER = b'{"type":"header","id":"h","at":"t","format":1,"created_at":"t","nonce":"n"}'
TURN = b'{"type":"turn_start","id":"a"}'
REQUEST = '{"type":"chat_request","id":"b","content":"grüß"}'.encode()
PATH = Path("/w/events.jsonl")


def read(directory: Path, data: bytes) -> Stream:
    (directory / "events.jsonl").write_bytes(data)
    return read_stream(directory, MemoryBlobs())


def test_a_log_is_its_lines(tmp_path: Path) -> None:
    stream = read(tmp_path, HEADER + b"\n" + TURN + b"\n" + REQUEST + b"\n")

    assert stream.entries == [
        Header(id="h", at="t", format=1, created_at="t", nonce="n"),
        TurnStart(id="a"),
        ChatRequest(id="b", content="grüß"),
    ]
    assert stream.notices == ()
    assert stream.conversation == tmp_path.name


def test_entries_of_a_later_version_are_kept_as_they_are(tmp_path: Path) -> None:
    line = b'{"type":"hologram", "id":"x","deep":{"a":[1, 2.50]}}'

    stream = read(tmp_path, HEADER + b"\n" + line + b"\n")

    assert stream.entries[1] == Unknown(raw=line, id="x", type="hologram")


@pytest.mark.parametrize("gap", [b"\n", b"\r\n", b"  \n\n"], ids=repr)
def test_blank_lines_and_carriage_returns_of_an_editor_do_no_harm(tmp_path: Path, gap: bytes) -> None:
    stream = read(tmp_path, HEADER + gap + gap + TURN + gap)

    assert stream.entries[1:] == [TurnStart(id="a")]
    assert stream.notices == ()


def test_a_line_that_only_lacks_its_newline_is_kept() -> None:
    log = parse_log(HEADER + b"\n" + REQUEST, PATH)

    assert log.entries[1:] == [ChatRequest(id="b", content="grüß")]
    assert not log.terminated
    assert log.end == len(HEADER) + 1 + len(REQUEST)


def test_blanks_without_a_newline_are_no_line() -> None:
    log = parse_log(HEADER + b"\n  ", PATH)

    assert log.terminated
    assert log.end == len(HEADER) + 3


@pytest.mark.parametrize("tail", [*(REQUEST[:cut] for cut in range(1, len(REQUEST))), b"\x00" * 50, b"12", b"\xff"])
def test_a_torn_last_line_is_omitted_and_told(tmp_path: Path, tail: bytes) -> None:
    stream = read(tmp_path, HEADER + b"\n" + TURN + b"\n" + tail)

    assert stream.entries[1:] == [TurnStart(id="a")]
    assert len(stream.notices) == 1
    assert "events.jsonl" in stream.notices[0]
    assert parse_log(HEADER + b"\n" + tail, PATH).end == len(HEADER) + 1


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"not json",
        b"12",
        b"[]",
        b'{"type":"chat_request","content":"a"} x',
        b'{"type":"nope", garb',
        b'{"type":"chat_request","content":"\xff"}',
        b'{"type":"x","id":"\xff"}',
        b'{"type":"x","y":' + b"[" * 100_000,
        b"\x00",
    ],
    ids=lambda line: repr(line[:40]),
)
def test_a_malformed_line_is_named_and_never_skipped(tmp_path: Path, line: bytes) -> None:
    with pytest.raises(LogDamagedError, match=r"events\.jsonl', line 3: not ") as caught:
        read(tmp_path, HEADER + b"\n" + TURN + b"\n" + line + b"\n" + TURN + b"\n")

    assert "by hand" in caught.value.hint


@pytest.mark.parametrize("line", [b"<<<<<<< HEAD", b"=======", b">>>>>>> other", b"||||||| base"], ids=repr)
def test_a_conflict_is_called_one(tmp_path: Path, line: bytes) -> None:
    with pytest.raises(LogDamagedError, match="line 2") as caught:
        read(tmp_path, HEADER + b"\n" + line + b"\n" + TURN + b"\n")

    assert "conflict" in caught.value.hint


@pytest.mark.parametrize(
    "header",
    [
        b'{"type":"header","format":2,"created_at":"t","nonce":"n"}',
        b'{"type":"header","format":2,"created_at":{"new":"form"}}',
        b'{"type":"header","format":99}',
    ],
    ids=repr,
)
def test_a_newer_format_is_not_guessed_at(tmp_path: Path, header: bytes) -> None:
    with pytest.raises(LogFormatError, match="has format") as caught:
        read(tmp_path, header + b"\n" + TURN + b"\n")

    assert "upgrade" in caught.value.hint


@pytest.mark.parametrize(
    "header",
    [
        b'{"type":"header","format":0,"created_at":"t","nonce":"n"}',
        b'{"type":"header","format":1,"created_at":"t"}',
        b'{"type":"header","format":"2"}',
        b'{"type":"header","format":1}',
        b'{"type":"header"}',
    ],
    ids=repr,
)
def test_a_malformed_header_is_an_error(tmp_path: Path, header: bytes) -> None:
    with pytest.raises(LogDamagedError, match="malformed header"):
        read(tmp_path, header + b"\n" + TURN + b"\n")


@pytest.mark.parametrize("data", [b"", b"\n", b"\n\n", HEADER[:20]], ids=repr)
def test_a_log_without_an_entry_is_an_error(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(LogDamagedError, match="holds no entry") as caught:
        read(tmp_path, data)

    assert caught.value.hint


def test_a_log_without_its_header_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LogDamagedError, match="header") as caught:
        read(tmp_path, TURN + b"\n")

    assert caught.value.hint


def test_a_directory_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LogMissingError, match="no conversation at") as caught:
        read_stream(tmp_path / "gone", MemoryBlobs())

    assert caught.value.hint


def test_a_file_is_no_conversation(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")

    with pytest.raises(LogMissingError, match="not a directory"):
        read_stream(tmp_path / "file", MemoryBlobs())


def test_a_directory_without_a_log_is_no_conversation(tmp_path: Path) -> None:
    with pytest.raises(LogMissingError, match=r"no 'events\.jsonl'"):
        read_stream(tmp_path, MemoryBlobs())


def test_a_log_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").mkdir()

    with pytest.raises(StorageError, match="cannot read"):
        read_stream(tmp_path, MemoryBlobs())


def test_a_log_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(HEADER + b"\n")
    (tmp_path / "events.jsonl").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(StorageError, match="cannot read"):
        read_stream(tmp_path, MemoryBlobs())


def test_the_base_config_is_an_object_or_nothing(tmp_path: Path) -> None:
    assert read_base_config(tmp_path) == {}

    (tmp_path / "base_config.json").write_text('{"a":{"b":[1]}}', encoding="utf-8")

    assert read_base_config(tmp_path) == {"a": {"b": [1]}}


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"a":"\xff"}'], ids=repr)
def test_a_malformed_base_config_is_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "base_config.json").write_bytes(content)

    with pytest.raises(StorageError, match=r"base_config\.json") as caught:
        read_base_config(tmp_path)
    assert caught.value.hint


def test_a_base_config_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "base_config.json").mkdir()

    with pytest.raises(StorageError, match="cannot read"):
        read_base_config(tmp_path)
