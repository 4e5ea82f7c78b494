from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TypeVar

import pytest

from disk_faults import error, failing_disk
from jp.conversation.ids import ConversationId
from jp.errors import StorageError
from jp.workspace.session import Session, SessionKey, session_key
from workspaces import fixed_stamps

KEY = SessionKey(source="terminal", value="123", leader="34816:99")
A, B, C = (ConversationId.at(number) for number in (1, 2, 3))


class Place:
    """A directory of sessions, and the conversations of its workspace."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.existing = {A, B, C}

    def __call__(self, *, create: bool) -> Path:
        return self.directory


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "silo" / "sessions")


def session(place: Place, key: SessionKey | None = KEY, *, persistent: bool = True) -> Session:
    return Session(
        key, directory=place, existing=place.existing.intersection, stamps=fixed_stamps(), persistent=persistent
    )


def test_nothing_is_active_at_first(place: Place) -> None:
    assert session(place).active() is None
    assert session(place).previous() is None
    assert not place.directory.exists()


def test_what_was_activated_is_active_in_later_processes(place: Place) -> None:
    session(place).activate(A)

    assert session(place).active() == A
    assert session(place).previous() is None

    session(place).activate(B)

    assert session(place).active() == B
    assert session(place).previous() == A


def test_going_back_and_forth_keeps_two(place: Place) -> None:
    current = session(place)
    for conversation in (A, B, A, B, A):
        current.activate(conversation)

    assert session(place).active() == A
    assert session(place).previous() == B


def test_activating_the_active_one_writes_nothing(place: Place) -> None:
    session(place).activate(A)

    with failing_disk(place.directory) as disk:
        session(place).activate(A)

    assert disk.calls == []


def test_a_removed_conversation_is_no_longer_active_and_nothing_takes_its_place(place: Place) -> None:
    session(place).activate(A)
    session(place).activate(B)
    place.existing.remove(B)

    assert session(place).active() is None
    assert session(place).previous() == A

    session(place).activate(C)

    assert session(place).active() == C
    assert session(place).previous() == A


def test_removed_conversations_give_way_where_the_list_is_full(place: Place) -> None:
    removed = [ConversationId.at(number) for number in range(10, 110)]
    place.existing.update(removed)
    for conversation in (A, *removed[1:]):
        session(place).activate(conversation)
    place.existing.difference_update(removed)

    session(place).activate(B)
    session(place).activate(C)

    assert session(place).previous() == B
    assert session(place).previous(without={B}) == A
    (file,) = place.directory.iterdir()
    assert removed[-1] not in file.read_text(encoding="utf-8")


def test_a_few_conversations_are_activated_without_a_look_at_all_others(place: Place) -> None:
    asked: list[Collection[ConversationId]] = []

    def existing(wanted: Collection[ConversationId]) -> set[ConversationId]:
        asked.append(wanted)
        return place.existing.intersection(wanted)

    found = Session(KEY, directory=place, existing=existing, stamps=fixed_stamps())
    for conversation in (A, B, C):
        found.activate(conversation)

    assert asked == []
    assert found.previous() == B
    assert asked == [[B, A]]


def test_a_removed_previous_one_is_passed_over(place: Place) -> None:
    for conversation in (A, B, C):
        session(place).activate(conversation)
    place.existing.remove(B)

    assert session(place).previous() == A


def test_sessions_do_not_know_of_each_other(place: Place) -> None:
    session(place).activate(A)

    for other in (
        SessionKey(source="terminal", value="124", leader="34816:99"),
        SessionKey(source="JP_SESSION", value="123"),
        SessionKey(source="TMUX_PANE", value="123"),
    ):
        assert session(place, other).active() is None


def test_a_leader_with_the_same_process_id_is_another_terminal(place: Place) -> None:
    session(place).activate(A)
    later = SessionKey(source="terminal", value="123", leader="34816:12345")

    assert session(place, later).active() is None
    session(place, later).activate(B)
    assert session(place, later).previous() is None
    assert session(place).active() is None


def test_a_leader_of_which_nothing_is_known_is_taken_for_the_same(place: Place) -> None:
    unknown = SessionKey(source="terminal", value="123")
    session(place).activate(A)

    assert session(place, unknown).active() == A


def test_without_a_session_nothing_is_remembered(place: Place) -> None:
    current = session(place, None)
    current.activate(A)

    assert current.active() is None
    assert current.previous() is None
    assert not place.directory.exists()


def test_without_persistence_a_session_is_read_and_not_changed(place: Place) -> None:
    session(place).activate(A)
    current = session(place, persistent=False)
    assert current.active() == A

    with failing_disk(place.directory) as disk:
        current.activate(B)

    assert disk.calls == []
    assert current.active() == B
    assert current.previous() == A
    assert session(place).active() == A


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"history":3}', b"\xff"], ids=repr)
def test_a_session_that_cannot_be_read_is_a_new_one(place: Place, content: bytes) -> None:
    session(place).activate(A)
    (file,) = place.directory.iterdir()
    file.write_bytes(content)

    assert session(place).active() is None
    session(place).activate(B)
    assert session(place).active() == B


def test_a_session_that_cannot_be_written_is_an_error_and_stays_as_it_was(place: Place) -> None:
    session(place).activate(A)
    current = session(place)

    with failing_disk(place.directory, at=2, fault=error(errno.ENOSPC)), pytest.raises(StorageError):
        current.activate(B)

    assert current.active() == A
    assert session(place).active() == A
    assert len(list(place.directory.iterdir())) == 1


def test_history_is_bounded(place: Place) -> None:
    place.existing = {ConversationId.at(number) for number in range(300)}
    for conversation in sorted(place.existing):
        session(place).activate(conversation)

    (file,) = place.directory.iterdir()
    assert file.read_text(encoding="utf-8").count("activated_at") == 100


def test_the_file_of_a_session_cannot_lead_elsewhere() -> None:
    key = SessionKey(source="JP_SESSION", value="../../etc/passwd")

    assert "/" not in key.file_name
    assert key.file_name != SessionKey(source="JP_SESSION", value="../../etc/shadow").file_name


def no_terminal(*_: object) -> str:
    raise OSError(errno.ENOTTY, "no terminal")


@pytest.fixture
def without_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def open_others(path: str, flags: int) -> int:
        if path == "/dev/tty":
            no_terminal()
        return real(path, flags)

    monkeypatch.setattr(os, "ttyname", no_terminal)
    monkeypatch.setattr(os, "open", open_others)


@pytest.mark.usefixtures("without_terminal")
def test_without_a_terminal_and_a_hint_there_is_no_session() -> None:
    assert session_key({}) is None
    assert session_key({"JP_SESSION": "", "TMUX_PANE": ""}) is None


@pytest.mark.usefixtures("without_terminal")
@pytest.mark.parametrize("name", ["TMUX_PANE", "WEZTERM_PANE", "TERM_SESSION_ID", "ITERM_SESSION_ID"])
def test_a_pane_is_a_session_where_there_is_no_terminal(name: str) -> None:
    assert session_key({name: "%3"}) == SessionKey(source=name, value="%3")


def test_what_the_user_says_is_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "ttyname", always("/dev/pts/1"))

    key = session_key({"JP_SESSION": "mine", "TMUX_PANE": "%3"})

    assert key == SessionKey(source="JP_SESSION", value="mine")


def test_the_environment_of_the_process_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JP_SESSION", "mine")

    assert session_key() == SessionKey(source="JP_SESSION", value="mine")


T = TypeVar("T")


def always(value: T) -> Callable[[int], T]:
    return lambda _: value


def test_a_terminal_is_known_by_its_leader_and_wins_over_a_pane(monkeypatch: pytest.MonkeyPatch) -> None:
    leader = os.getpid()
    monkeypatch.setattr(os, "ttyname", always("/dev/pts/1"))
    monkeypatch.setattr(os, "getsid", always(leader))

    key = session_key({"TMUX_PANE": "%3"})

    assert key is not None
    assert key.source == "terminal"
    assert key.value == str(leader)
    assert key.file_name == f"terminal-{leader}.json"


@pytest.mark.usefixtures("without_terminal")
def test_a_terminal_counts_even_where_every_stream_is_redirected(monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def opened(path: str, flags: int) -> int:
        return real(os.devnull if path == "/dev/tty" else path, flags)

    monkeypatch.setattr(os, "open", opened)
    monkeypatch.setattr(os, "getsid", always(2**30))

    assert session_key({}) == SessionKey(source="terminal", value=str(2**30))


def test_a_leader_without_a_trace_is_known_by_the_terminals_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "ttyname", always("/dev/ttys003"))
    monkeypatch.setattr(os, "getsid", always(2**30))

    key = session_key({})

    assert key == SessionKey(source="terminal", value=str(2**30), leader="/dev/ttys003")


def test_a_leader_outside_of_the_namespace_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "ttyname", always("/dev/pts/1"))
    monkeypatch.setattr(os, "getsid", always(0))

    assert session_key({"TMUX_PANE": "%3"}) == SessionKey(source="TMUX_PANE", value="%3")
