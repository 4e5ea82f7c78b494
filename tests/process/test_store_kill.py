"""What is left of a recording whose process is killed, at every call that changes the disk."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jp.conversation.entries import ChatRequest, Header, ToolCallRequest, ToolCallResponse, TurnStart
from jp.conversation.thread import carriers_in
from jp.workspace.listing import Metadata
from jp.workspace.session import SessionKey
from jp.workspace.workspace import Workspace, find_workspace
from originals import ID as ORIGINAL
from originals import current
from workspaces import no_waiting

DRIVER = Path(__file__).parent / "store_driver.py"
KEY = SessionKey(source="JP_SESSION", value="test")


def driven(scenario: str, directory: Path) -> list[dict[str, Any]]:
    """What came of a scenario of the driver."""
    done = subprocess.run(
        [sys.executable, str(DRIVER), scenario, str(directory)],
        check=True,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return driven("killed", tmp_path_factory.mktemp("killed"))


def acknowledged_in(place: Path) -> list[str]:
    return place.with_suffix(".acknowledged").read_text(encoding="utf-8").split()


def reopened(place: Path) -> Workspace:
    return find_workspace(place / "work", user_data=place / "user")


def test_every_kind_of_call_was_died_at(outcomes: list[dict[str, Any]]) -> None:
    calls = {outcome["call"] for outcome in outcomes}

    assert calls >= {"mkdir", "open", "write", "pwrite", "rename", "replace", "link", "unlink", "utime", "fsync"}
    assert len(outcomes) > 60
    assert all(outcome["killed"] for outcome in outcomes)


def test_there_is_no_conversation_or_a_whole_one(outcomes: list[dict[str, Any]]) -> None:
    for place in (Path(outcome["place"]) for outcome in outcomes):
        found = reopened(place).conversations()

        assert len(found) == 1 or (not found and acknowledged_in(place) == [])
        for info in found:
            assert info.problem == ""
            assert info.metadata.title in {"A title", "Another"}
            assert reopened(place).base_config(info) == {"a": 1}


def test_nothing_that_was_acknowledged_is_lost(outcomes: list[dict[str, Any]]) -> None:
    for place in (Path(outcome["place"]) for outcome in outcomes):
        for info in reopened(place).conversations():
            stream = reopened(place).read(info)
            header, *entries = [entry.id for entry in stream.entries]
            expected = acknowledged_in(place)[1:]

            assert header
            # One entry may be written whole and yet unacknowledged.
            assert entries[: len(expected)] == expected
            assert len(entries) <= len(expected) + 1
            assert len(stream.notices) <= 1


def test_every_blob_that_an_entry_names_is_there(outcomes: list[dict[str, Any]]) -> None:
    for place in (Path(outcome["place"]) for outcome in outcomes):
        for info in reopened(place).conversations():
            stream = reopened(place).read(info)
            for carrier in (carrier for entry in stream.entries for carrier in carriers_in(entry)):
                assert stream.load(carrier).sha256 is None


def test_the_next_writer_mends_says_so_and_goes_on(outcomes: list[dict[str, Any]]) -> None:
    repaired: set[str] = set()
    for place in (Path(outcome["place"]) for outcome in outcomes):
        workspace = reopened(place)
        for info in workspace.conversations():
            before = workspace.read(info)
            lock = workspace.lock(info)
            lock.acquire(patience=0, waiting=no_waiting)
            with lock, workspace.open(info, lock) as log:
                repaired.update(notice.partition("'")[0] for notice in log.notices)
                torn = len(before.notices) == 1
                assert any("cut off" in notice for notice in log.notices) == torn
                assert len(list(info.directory.glob("events.jsonl.torn-1"))) == torn
                log.append(ChatRequest(content="go on"))
            after = workspace.read(info)

            assert after.notices == ()
            assert after.entries[: len(before.entries)] == before.entries
            assert isinstance(after.entries[0], Header)
            assert after.entries[-1] == log.entries[-1]
            calls = [entry.id for entry in after.entries if isinstance(entry, ToolCallRequest)]
            assert calls == [entry.request for entry in after.entries if isinstance(entry, ToolCallResponse)]

    assert len(repaired) == 3


def test_the_session_names_the_conversation_or_nothing(outcomes: list[dict[str, Any]]) -> None:
    for place in (Path(outcome["place"]) for outcome in outcomes):
        workspace = reopened(place)

        assert workspace.session(KEY).active() in {None, *workspace.ids()}


def test_another_conversation_can_be_created(outcomes: list[dict[str, Any]]) -> None:
    for place in (Path(outcome["place"]) for outcome in outcomes):
        workspace = reopened(place)
        before = workspace.ids()

        info = workspace.create({}, Metadata(title="another"))

        assert workspace.ids() == {*before, info.id}
        assert info.id not in before


def test_a_conversion_that_is_killed_leaves_no_log_or_a_whole_one(tmp_path: Path) -> None:
    outcomes = driven("converted", tmp_path)
    events = len(current())

    assert {outcome["call"] for outcome in outcomes} >= {"open", "write", "link", "unlink", "fsync"}
    found: set[int] = set()
    for outcome in outcomes:
        place = Path(outcome["place"])
        workspace = reopened(place)
        (info,) = workspace.conversations()
        log = info.directory / "events.jsonl"
        entries = len(workspace.read(info).entries) - 1
        found.add(entries)
        assert outcome["killed"]
        assert entries >= events + 1 if log.exists() else entries == events
        lock = workspace.lock(info)
        lock.acquire(patience=0, waiting=no_waiting)
        with lock, workspace.open(info, lock) as opened:
            opened.append(TurnStart())
        again = workspace.read(info)
        assert [carrier for entry in again.entries for carrier in map(again.load, carriers_in(entry))]
        assert [path.name for path in info.directory.glob(".*")] == [] or entries > events
    assert found == {events, events + 1, events + 2}


def test_an_import_that_is_killed_leaves_whole_conversations_only(tmp_path: Path) -> None:
    outcomes = driven("imported", tmp_path)

    for outcome in outcomes:
        assert outcome["killed"]
        workspace = reopened(Path(outcome["place"]))
        for info in workspace.conversations():
            stream = workspace.read(info)
            assert info.problem == ""
            assert info.metadata.imported_at is not None
            assert len(stream.entries) > len(current()) or info.id != ORIGINAL
            assert all(map(stream.load, (carrier for entry in stream.entries for carrier in carriers_in(entry))))
    assert {len(reopened(Path(outcome["place"])).conversations()) for outcome in outcomes} == {0, 1, 2}
