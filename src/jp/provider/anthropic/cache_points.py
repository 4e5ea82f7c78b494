"""The blocks of a request up to which the API keeps its work. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jp.context.cache_hints import Piece, place_hints
from jp.conversation.entries import JsonObject
from jp.provider.anthropic.messages import THINKING_TYPES, Message

_TOOL = Piece(section="tools")
_SYSTEM = Piece(section="system")
_ASKED = Piece(section="messages")
_ATTACHED = Piece(section="messages", is_attached=True)
_PASSING = Piece(section="messages", is_volatile=True)
_ANSWER = Piece(section="messages", is_answer=True)
_THOUGHT = Piece(section="messages", is_answer=True, carries=False)


def cache_points(
    tools: Sequence[JsonObject],
    system: Sequence[JsonObject],
    messages: Sequence[Message],
    *,
    last_resource: JsonObject | None,
    passing: JsonObject | None,
) -> tuple[JsonObject, ...]:
    """The blocks to mark, at most four (the limit of the API).

    `last_resource` is the end of what was attached last. `passing` is a block that the next request will not have: what
    is kept behind it is never read again. The API ignores marks in a prompt that is too short for them, and knows its
    length better than an estimate does.
    """
    blocks = [*tools, *system]
    pieces = [_TOOL] * len(tools) + [_SYSTEM] * len(system)
    for message in messages:
        blocks += message.content
        if message.role == "assistant":
            pieces += [_THOUGHT if block["type"] in THINKING_TYPES else _ANSWER for block in message.content]
        else:
            pieces += _asked(message.content, last_resource, passing)
    return tuple(blocks[hint.position] for hint in place_hints(pieces))


def _asked(
    content: Sequence[JsonObject], last_resource: JsonObject | None, passing: JsonObject | None
) -> Iterator[Piece]:
    for block in content:
        if block is passing:
            yield _PASSING
        else:
            yield _ATTACHED if block is last_resource else _ASKED
