"""The parts of messages up to which a cache keeps its work, for servers that want to be told. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from jp.context.cache_hints import Piece, place_hints
from jp.conversation.entries import JsonObject
from jp.provider.chat.content import text_part

_TEXT: JsonObject = {}

_SYSTEM = Piece(section="system")
_ASKED = Piece(section="messages")
_ATTACHED = Piece(section="messages", is_attached=True)
_PASSING = Piece(section="messages", is_volatile=True)
_ANSWER = Piece(section="messages", is_answer=True, carries=False)


def cache_points(
    messages: Sequence[JsonObject], *, last_resource: JsonObject | None, passing: JsonObject | None
) -> tuple[JsonObject, ...]:
    """The parts to mark, at most four (the limit of those who want to be told).

    `last_resource` is the end of what was attached last. `passing` is a part that the next request will not have: what
    is kept behind it is never read again. A content that is text is made of parts where it is marked.
    """
    places: list[tuple[JsonObject, int]] = []
    pieces: list[Piece] = []
    for message in messages:
        content: str | list[JsonObject] = message.get("content", "")
        for number, part in enumerate([_TEXT] if isinstance(content, str) else content):
            places.append((message, number))
            pieces.append(_piece(message["role"], part, last_resource, passing))
    return tuple(_part(*places[hint.position]) for hint in place_hints(pieces))


def _piece(role: str, part: JsonObject, last_resource: JsonObject | None, passing: JsonObject | None) -> Piece:
    if role == "assistant":
        return _ANSWER
    if role in {"system", "developer"}:
        return _SYSTEM
    if part is passing:
        return _PASSING
    return _ATTACHED if part is last_resource else _ASKED


def _part(message: JsonObject, number: int) -> JsonObject:
    if isinstance(message["content"], str):
        message["content"] = [text_part(message["content"])]
    part: JsonObject = message["content"][number]
    return part
