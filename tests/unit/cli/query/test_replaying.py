from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from jp.app.query.conversation import QueryConversation
from jp.app.query.earlier_turns import ReplacingRecorder, conversation_of, last_request, request_again
from jp.conversation.entries import AnyEntry, ChatRequest, ChatResponse, CycleEnd, Revert, TurnStart
from jp.conversation.resource import Carrier, Resource
from jp.conversation.turns import undone
from jp.errors import StorageError, UsageError
from jp.turn.ports import Recorder
from jp.workspace.log import Log
from workspaces import LARGE_TEXT, new_conversation, new_workspace, open_log_of

C = TypeVar("C", bound=Carrier)

FILE = Resource(uri="file:///a", text=LARGE_TEXT)


def turn(number: int) -> list[AnyEntry]:
    return [
        TurnStart(id=f"t{number}"),
        ChatRequest(id=f"r{number}", at="then", content=f"question {number}", resources=(FILE,), author="them"),
        ChatResponse(id=f"m{number}", message="answer"),
        CycleEnd(id=f"c{number}", attempt=1, finish="stop"),
    ]


class _Loader:
    def load(self, carrier: C, /) -> C:
        return carrier


def held(entries: Sequence[AnyEntry], tmp_path: Path) -> QueryConversation:
    info = new_conversation(new_workspace(tmp_path))
    return QueryConversation(info=info, entries=entries, loader=_Loader(), layers=())


def test_the_last_request_that_stands_is_asked_again() -> None:
    assert last_request([*turn(0), *turn(1)]).revert == Revert(entries=("t1",))

    found = last_request([*turn(0), *turn(1), Revert(id="x", entries=("t1",))])

    assert found.revert == Revert(entries=("t0",))
    assert found.identity == "t0"
    assert found.request.content == "question 0"


def test_turns_without_a_request_after_it_are_undone_too() -> None:
    entries = [*turn(0), TurnStart(id="t1"), ChatResponse(message="x"), TurnStart(id="t2"), ChatResponse(message="y")]

    assert last_request(entries).revert == Revert(entries=("t2", "t1", "t0"))


def test_what_cannot_be_undone_is_refused() -> None:
    with pytest.raises(UsageError, match="has no turn that could be asked again"):
        last_request([])
    with pytest.raises(UsageError, match="cannot be undone"):
        last_request([ChatRequest(content="before any turn")])
    with pytest.raises(UsageError, match="no conversation here"):
        conversation_of(None)


def test_a_request_that_is_asked_again_is_new_and_has_the_old_snapshots(tmp_path: Path) -> None:
    conversation = held(turn(0), tmp_path)

    request, revert = request_again(conversation, "more", author="me", edited="")

    assert request == ChatRequest(content="question 0\n\nmore", resources=(FILE,), author="me")
    assert revert == Revert(entries=("t0",))
    assert request_again(conversation, "", author=None, edited="")[0].content == "question 0"


def test_edited_words_stand_in_place_of_the_old_ones_unless_the_conversation_went_on(tmp_path: Path) -> None:
    assert request_again(held(turn(0), tmp_path / "a"), "new", author=None, edited="t0")[0].content == "new"
    with pytest.raises(UsageError, match="has gone on"):
        request_again(held([*turn(0), *turn(1)], tmp_path / "b"), "new", author=None, edited="t0")


class _FullDisk:
    """A log that takes single entries, and no two at once."""

    def __init__(self, log: Log) -> None:
        self._log = log

    @property
    def entries(self) -> Sequence[AnyEntry]:
        return self._log.entries

    def append(self, entry: AnyEntry) -> AnyEntry:
        return self._log.append(entry)

    def append_together(self, entries: Sequence[AnyEntry]) -> tuple[AnyEntry, ...]:
        raise StorageError("full")

    def load(self, carrier: C, /) -> C:
        return self._log.load(carrier)


def test_the_old_turn_is_undone_with_the_new_request_and_only_then(tmp_path: Path) -> None:
    workspace = new_workspace(tmp_path)
    with open_log_of(workspace, new_conversation(workspace)) as log:
        for entry in turn(0):
            log.append(entry)
        recorder: Recorder = ReplacingRecorder(log, Revert(entries=("t0",)))
        failing = ReplacingRecorder(_FullDisk(log), Revert(entries=("t0",)))

        with pytest.raises(StorageError):
            failing.append(ChatRequest(content="never"))
        recorder.append(TurnStart())
        assert undone(log.entries) == frozenset()

        recorded = recorder.append(ChatRequest(content="again", resources=(FILE,)))
        assert isinstance(recorded, ChatRequest)
        assert recorded.resources == (FILE,)
        assert undone(log.entries) == {"t0"}

        recorder.append(ChatRequest(content="a reply"))
        stored = recorder.entries[-3]
        assert isinstance(stored, ChatRequest)
        assert recorder.load(stored.resources[0]) == FILE
        assert [type(entry) for entry in recorder.entries[-3:]] == [ChatRequest, Revert, ChatRequest]
