from __future__ import annotations

import errno
import json
import os
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from disk_faults import Fault, error, failing_disk, short
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    CycleEnd,
    Header,
    RequestContext,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
    Unknown,
    decode,
)
from jp.conversation.resource import INTERRUPTED_CONTENT, Payload, Resource, ResourceBlock
from jp.errors import StorageError
from jp.turn.ports import Recorder
from jp.workspace.blobs import BlobMissingError, DiskBlobs, MemoryBlobs
from jp.workspace.files import Stamps
from jp.workspace.log import Log, NowhereSink, open_in_memory, open_log
from jp.workspace.store import LogDamagedError, Stream, read_stream
from workspaces import (
    LARGE_BYTES,
    LARGE_TEXT,
    START,
    fixed_stamps,
    new_conversation,
    new_workspace,
    open_log_of,
    raw_content,
    turn_entries,
)

HEADER = Header(id="h", at="t", format=1, created_at="t", nonce="n")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    directory = tmp_path / "conversations" / "17-a"
    directory.mkdir(parents=True)
    (directory / "events.jsonl").write_bytes(
        b'{"type":"header","id":"h","at":"t","format":1,"created_at":"t","nonce":"n"}\n'
    )
    return directory


def opened(directory: Path, *, stamps: Stamps | None = None) -> Log:
    return open_log(directory, DiskBlobs(directory.parent.parent / "blobs"), stamps=stamps or fixed_stamps())


def read(directory: Path) -> Stream:
    return read_stream(directory, DiskBlobs(directory.parent.parent / "blobs"))


def lines(directory: Path) -> list[bytes]:
    return (directory / "events.jsonl").read_bytes().split(b"\n")


def record_turn(log: Log) -> list[AnyEntry]:
    recorded: list[AnyEntry] = []
    for entry in turn_entries():
        if isinstance(entry, ToolCallResponse):
            call = next(other for other in recorded if isinstance(other, ToolCallRequest))
            recorded.append(log.append(replace(entry, request=call.id)))
        else:
            recorded.append(log.append(entry))
    return recorded


def test_an_appended_entry_is_stamped_and_on_disk_at_once(directory: Path) -> None:
    log = opened(directory)

    entry = log.append(ChatRequest(content="grüß"))

    assert isinstance(entry, ChatRequest)
    assert len(entry.id) == 26
    assert entry.at == "2025-12-17T19:33:20.000Z"
    assert decode(lines(directory)[1]) == entry
    assert lines(directory)[2:] == [b""]
    assert log.entries == [HEADER, entry]
    log.close()


def test_a_log_is_what_a_turn_records_to(directory: Path) -> None:
    with opened(directory) as log:
        recorder: Recorder = log
        entry = recorder.append(TurnStart())

        assert recorder.entries[-1] == entry


def test_ids_grow_even_where_the_clock_stands_still_or_goes_back(directory: Path) -> None:
    moments = iter([START, START, START - 5000, START + 1])
    stamps = Stamps(now=lambda: next(moments), entropy=bytes)
    with opened(directory, stamps=stamps) as log:
        ids = [log.append(TurnStart()).id for _ in range(4)]

    assert ids == sorted(set(ids))
    with opened(directory, stamps=Stamps(now=lambda: 0, entropy=bytes)) as log:
        assert log.append(TurnStart()).id > ids[-1]


def test_what_has_an_id_and_a_moment_keeps_them(directory: Path) -> None:
    with opened(directory) as log:
        entry = log.append(TurnStart(id="mine", at="then"))
        half = log.append(TurnStart(id="mine too"))

    assert entry == TurnStart(id="mine", at="then")
    assert half.id == "mine too"
    assert half.at


def test_an_unknown_entry_is_written_as_it_came_on_one_line(directory: Path) -> None:
    with opened(directory) as log:
        log.append(Unknown(raw=b'{"type":"x", "a":1.50}', id="u"))
        log.append(Unknown(raw=b'{"type":"x",\n"a":1.50}', id="v"))

    assert lines(directory)[1:3] == [b'{"type":"x", "a":1.50}', b'{"type":"x", "a":1.50}']


def test_the_result_has_its_content_and_the_stream_its_stored_form(directory: Path) -> None:
    with opened(directory) as log:
        recorded = record_turn(log)
        kept = log.entries[1:]

    assert read(directory).entries[1:] == kept
    request, stored = recorded[1], kept[1]
    assert isinstance(request, ChatRequest)
    assert isinstance(stored, ChatRequest)
    assert [raw_content(resource) for resource in request.resources] == [LARGE_TEXT, LARGE_BYTES, "small"]
    assert [resource.sha256 is None for resource in stored.resources] == [False, False, True]
    assert len(lines(directory)[2]) < 1000


def test_stored_content_is_loaded_as_it_came(directory: Path) -> None:
    with opened(directory) as log:
        record_turn(log)
        request = log.entries[2]
        assert isinstance(request, ChatRequest)
        assert [raw_content(log.load(one)) for one in request.resources] == [LARGE_TEXT, LARGE_BYTES, "small"]

    stream = read(directory)
    response = next(entry for entry in stream.entries if isinstance(entry, ToolCallResponse))
    block = response.content[1]
    assert isinstance(block, ResourceBlock)
    assert raw_content(stream.load(block.resource)) == LARGE_TEXT


def test_what_a_request_holds_is_stored_too(directory: Path) -> None:
    context = RequestContext(
        provider="p", model="m", renderer=1, system=(Payload(text="s" * 5000),), tools=Payload(text="t" * 5000)
    )
    with opened(directory) as log:
        log.append(context)
        kept = log.entries[1]
        assert isinstance(kept, RequestContext)
        assert kept.tools is not None
        assert log.load(kept.system[0]).text == "s" * 5000
        assert log.load(kept.tools).text == "t" * 5000

    assert len(lines(directory)[1]) < 1000


def test_a_line_edited_by_hand_to_hold_its_text_is_read_like_any_other(directory: Path) -> None:
    with opened(directory) as log:
        log.append(ChatRequest(content="x", resources=(Resource(uri="file:///a", text=LARGE_TEXT),)))
    edited = json.loads(lines(directory)[1])
    resource = edited["resources"][0]
    for field in ("$blob", "size", "chars", "lines"):
        del resource[field]
    resource["text"] = "edited " * 2000
    (directory / "events.jsonl").write_bytes(lines(directory)[0] + b"\n" + json.dumps(edited).encode() + b"\n")

    with opened(directory) as log:
        request = log.entries[1]
        assert isinstance(request, ChatRequest)
        assert log.load(request.resources[0]).text == "edited " * 2000


def test_a_blob_that_is_missing_is_told_with_blob_and_conversation(directory: Path) -> None:
    with opened(directory) as log:
        record_turn(log)
        request = log.entries[2]
        assert isinstance(request, ChatRequest)
        sha256 = request.resources[0].sha256 or ""
        DiskBlobs(directory.parent.parent / "blobs").path(sha256).unlink()
        with pytest.raises(BlobMissingError, match=f"'17-a'.*{sha256}"):
            log.load(request.resources[0])


def fresh(directory: Path) -> Path:
    return new_conversation(new_workspace(directory)).directory


def record_stubbornly(log: Log, directory: Path, refused: list[StorageError]) -> list[AnyEntry]:
    """Append the entries of a turn; one that is refused must have left nothing and is appended again."""
    recorded: list[AnyEntry] = []
    for entry in turn_entries():
        try:
            recorded.append(log.append(entry))
        except StorageError as trouble:
            refused.append(trouble)
            left = read(directory).entries
            recorded.append(log.append(entry))
            if left != log.entries[: len(left)] or len(left) != len(recorded):
                raise
    return recorded


@pytest.mark.parametrize("fault", [error(errno.ENOSPC), error(errno.EIO), short], ids=["full", "broken", "short"])
def test_whatever_call_fails_the_log_holds_what_was_acknowledged_and_nothing_else(tmp_path: Path, fault: Fault) -> None:
    directory = fresh(tmp_path / "counted")
    with failing_disk(directory.parent.parent) as disk, opened(directory) as log:
        record_stubbornly(log, directory, [])
    calls = list(disk.calls)
    assert calls.count("write") > 8

    for at in range(2, len(calls) + 1):
        directory = fresh(tmp_path / str(at))
        refused: list[StorageError] = []
        with failing_disk(directory.parent.parent, at=at, fault=fault):
            log = opened(directory)
            recorded = record_stubbornly(log, directory, refused)
            with suppress(StorageError):
                log.close()

        assert all(trouble.hint for trouble in refused)
        assert len(refused) == refusals(calls[at - 1], fault)
        assert [entry.id for entry in read(directory).entries[1:]] == [entry.id for entry in recorded]


def refusals(call: str, fault: Fault) -> int:
    """How many entries are refused: none where syncing or touching fails, or where a write is continued."""
    return 0 if call in {"fsync", "utime"} or (call == "write" and fault is short) else 1


def test_text_that_is_not_unicode_is_refused_and_more_can_be_appended(directory: Path) -> None:
    with opened(directory) as log:
        for entry in (
            ChatResponse(message="\ud800"),
            ChatRequest(content="x", resources=(Resource(uri="u", text="\ud800" * 5000),)),
        ):
            with pytest.raises(StorageError, match="surrogates"):
                log.append(entry)
        log.append(ChatResponse(message="fine"))

    assert len(read(directory).entries) == 2


def test_the_disk_keeps_everything_from_the_end_of_a_cycle_on(directory: Path) -> None:
    with failing_disk(directory.parent.parent) as disk, opened(directory) as log:
        log.append(ChatRequest(content="x", resources=(Resource(uri="u", text=LARGE_TEXT),)))
        assert "fsync" not in disk.calls
        log.append(CycleEnd(attempt=1, finish="stop"))
        assert disk.calls.count("fsync") == 2
        log.close()
        assert disk.calls.count("fsync") == 2
        log.close()


def test_the_disk_has_what_an_entry_names_before_the_entry(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_ino)
        real(descriptor)

    with opened(directory) as log:
        log.append(ChatRequest(content="x", resources=(Resource(uri="u", text=LARGE_TEXT),)))
        monkeypatch.setattr(os, "fsync", fsync)
        log.append(CycleEnd(attempt=1, finish="stop"))

    (blob,) = (path for path in (directory.parent.parent / "blobs").rglob("*") if path.is_file())
    assert synced == [blob.stat().st_ino, (directory / "events.jsonl").stat().st_ino]


def test_entries_that_are_appended_together_have_ascending_ids_and_take_one_write(directory: Path) -> None:
    with failing_disk(directory.parent.parent) as disk, opened(directory) as log:
        one, two = log.append_together((ChatRequest(content="x"), CycleEnd(attempt=1, finish="stop")))
        assert disk.calls.count("write") == 1
        assert disk.calls.count("fsync") == 1
        three = log.append(TurnStart())

    assert one.id < two.id < three.id
    assert [entry.id for entry in read(directory).entries[1:]] == [one.id, two.id, three.id]


@pytest.mark.parametrize("fault", [error(errno.ENOSPC), short])
def test_of_entries_that_are_appended_together_all_are_there_or_none(directory: Path, fault: Fault) -> None:
    content = "y" * 4000
    with failing_disk(directory.parent.parent) as disk, opened(directory) as log:
        disk.break_calls({1: fault, 2: error(errno.ENOSPC)})
        with pytest.raises(StorageError):
            log.append_together((ChatRequest(content="x"), ChatRequest(content=content)))
        disk.break_calls({})
        assert len(log.entries) == 1
        log.append(TurnStart())

    assert [type(entry) for entry in read(directory).entries] == [Header, TurnStart]


def test_closing_syncs_what_is_left_and_nothing_where_nothing_was_appended(directory: Path) -> None:
    with failing_disk(directory.parent.parent) as disk:
        opened(directory).close()
        assert "fsync" not in disk.calls
        with opened(directory) as log:
            log.append(TurnStart())
        assert disk.calls.count("fsync") == 1


def test_a_new_conversation_is_synced_as_a_whole(tmp_path: Path) -> None:
    workspace = new_workspace(tmp_path)
    info = new_conversation(workspace)
    with failing_disk(tmp_path) as disk, open_log_of(workspace, info) as log:
        log.append(TurnStart())
        log.close()

    assert disk.calls.count("fsync") == 3


def test_a_disk_that_reports_an_error_late_is_told_at_the_end_once(directory: Path) -> None:
    with failing_disk(directory.parent.parent) as disk:
        log = opened(directory)
        disk.break_calls({2: error(errno.EIO)})
        log.append(CycleEnd(attempt=1, finish="stop"))
        assert disk.calls == ["write", "fsync"]
        with pytest.raises(StorageError, match="may be lost") as caught:
            log.close()
        log.close()

    assert caught.value.hint
    assert len(read(directory).entries) == 2


def test_a_torn_line_is_cut_off_kept_and_told(directory: Path) -> None:
    with opened(directory) as log:
        log.append(TurnStart())
    whole = (directory / "events.jsonl").read_bytes()
    (directory / "events.jsonl").write_bytes(whole + b'{"type":"chat_req')

    with opened(directory) as log:
        assert (directory / "events.jsonl").read_bytes() == whole
        assert "events.jsonl.torn-1" in log.notices[0]
        log.append(TurnStart())

    assert (directory / "events.jsonl.torn-1").read_bytes() == b'{"type":"chat_req'
    assert len(read(directory).entries) == 3
    with opened(directory) as log:
        assert log.notices == ()


def test_a_missing_newline_is_added(directory: Path) -> None:
    whole = (directory / "events.jsonl").read_bytes()
    (directory / "events.jsonl").write_bytes(whole + b'{"type":"turn_start","id":"a"}')

    with opened(directory) as log:
        assert log.notices == ()
        assert log.entries[1:] == [TurnStart(id="a")]
        log.append(TurnStart(id="b"))

    assert [entry.id for entry in read(directory).entries] == ["h", "a", "b"]


def test_calls_that_a_crash_left_open_are_answered_once(directory: Path) -> None:
    with opened(directory) as log:
        log.append(TurnStart())
        log.append(ChatRequest(content="x"))
        call = log.append(ToolCallRequest(call_id="t", name="rm", arguments={}))
        log.append(CycleEnd(attempt=1, finish="tools"))

    with opened(directory) as log:
        answer = log.entries[-1]
        assert isinstance(answer, ToolCallResponse)
        assert answer.request == call.id
        assert answer.is_error
        assert answer.content == INTERRUPTED_CONTENT
        assert "rm" in log.notices[0]
    with opened(directory) as log:
        assert log.entries[-1] == answer
        assert log.notices == ()


def test_a_repair_that_cannot_be_written_is_an_error_and_lets_go_of_the_log(directory: Path) -> None:
    with opened(directory) as log:
        log.append(ToolCallRequest(call_id="t", name="rm", arguments={}))

    with failing_disk(directory.parent, at=2, fault=error(errno.ENOSPC)), pytest.raises(StorageError, match="space"):
        opened(directory)
    with opened(directory) as log:
        assert isinstance(log.entries[-1], ToolCallResponse)


def test_a_damaged_log_is_not_opened_and_stays_as_it_is(directory: Path) -> None:
    damaged = (directory / "events.jsonl").read_bytes() + b"garbage\n" + b'{"type":"turn_start"'
    (directory / "events.jsonl").write_bytes(damaged)

    for _ in range(2):
        with pytest.raises(LogDamagedError):
            opened(directory)

    assert (directory / "events.jsonl").read_bytes() == damaged
    assert [path.name for path in directory.iterdir()] == ["events.jsonl"]


def test_a_log_in_memory_grows_and_writes_nothing(directory: Path) -> None:
    with opened(directory) as log:
        log.append(ToolCallRequest(call_id="t", name="rm", arguments={}))
    before = (directory / "events.jsonl").read_bytes()
    stream = replace(read(directory), blobs=MemoryBlobs())

    with failing_disk(directory.parent.parent) as disk, open_in_memory(stream, stamps=fixed_stamps()) as log:
        assert isinstance(log.entries[-1], ToolCallResponse)
        entry = log.append(ChatRequest(content="x", resources=(Resource(uri="u", text=LARGE_TEXT),)))
        kept = log.entries[-1]
        log.append(CycleEnd(attempt=1, finish="stop"))

    assert disk.calls == []
    assert isinstance(kept, ChatRequest)
    assert kept.resources[0].text is None
    assert isinstance(entry, ChatRequest)
    assert log.load(kept.resources[0]) == entry.resources[0]
    assert stream.entries is log.entries
    assert (directory / "events.jsonl").read_bytes() == before


def test_a_sink_to_nowhere_keeps_nothing() -> None:
    sink = NowhereSink()
    sink.append(b"x\n")
    sink.sync()
    sink.close()
