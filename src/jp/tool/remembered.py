"""Answers that hold for the rest of a turn: for the same tool with the same arguments."""

from __future__ import annotations

import msgspec

from jp.conversation.entries import JsonObject, TurnStart
from jp.tool.base import Stream

_Key = tuple[str, str, str]


class RememberedAnswers:
    """What a person answered once and for all of a turn; nothing of it is kept for the next."""

    def __init__(self) -> None:
        self._answers: dict[_Key, bool] = {}

    def answer(self, stream: Stream, name: str, arguments: JsonObject) -> bool | None:
        """Whether the call may run; None where nobody has said so of such a call."""
        return self._answers.get(_key(stream, name, arguments))

    def remember(self, stream: Stream, name: str, arguments: JsonObject, *, may_run: bool) -> None:
        """Keep an answer."""
        self._answers[_key(stream, name, arguments)] = may_run


def _key(stream: Stream, name: str, arguments: JsonObject) -> _Key:
    turn = next((entry.id for entry in reversed(stream.entries) if isinstance(entry, TurnStart)), "")
    return turn, name, msgspec.json.encode(arguments, order="deterministic").decode()
