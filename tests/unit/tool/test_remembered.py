from __future__ import annotations

from doubles import MemoryRecorder
from jp.conversation.entries import TurnStart
from jp.tool.consent import RememberedAnswers


def test_an_answer_holds_for_the_same_call_until_the_turn_is_over() -> None:
    stream = MemoryRecorder()
    stream.append(TurnStart())
    answers = RememberedAnswers()

    assert answers.answer(stream, "write", {"path": "a"}) is None
    answers.remember(stream, "write", {"path": "a", "text": "b"}, may_run=True)
    answers.remember(stream, "read", {}, may_run=False)

    assert answers.answer(stream, "write", {"text": "b", "path": "a"}) is True
    assert answers.answer(stream, "read", {}) is False
    assert answers.answer(stream, "write", {"path": "a"}) is None
    assert answers.answer(stream, "write", {"path": "c", "text": "b"}) is None
    assert answers.answer(stream, "delete", {"path": "a", "text": "b"}) is None

    stream.append(TurnStart())
    assert answers.answer(stream, "write", {"path": "a", "text": "b"}) is None
