"""Which thoughts a rejection is about, found by the place that it names. Pure; imported when it happens."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jp.conversation.entries import JsonObject
from jp.conversation.thread import AssistantReasoning, Thread
from jp.provider.anthropic.messages import THINKING_TYPES, own_thinking
from jp.provider.base import WireRequest

_PLACE = re.compile(r"messages\.(\d+)\.content\.(\d+)")

_Blocks = Sequence[JsonObject]


def _sides(messages: Sequence[JsonObject]) -> list[tuple[str, list[JsonObject]]]:
    """The messages as the API counts them in its errors.

    An answer goes on after the results of its tools, so it spans the messages that carry them, and its blocks are
    counted through all of these.
    """
    sides: list[tuple[str, list[JsonObject]]] = []
    for message in messages:
        for block in message["content"]:
            role = "assistant" if block["type"] == "tool_result" else message["role"]
            if not sides or sides[-1][0] != role:
                sides.append((role, []))
            sides[-1][1].append(block)
    return sides


def _is_thinking(block: JsonObject) -> bool:
    return block["type"] in THINKING_TYPES


def _thoughts_at(counted: Sequence[_Blocks], number: int, index: int) -> list[JsonObject]:
    """The block at a place where it is a thought, else all thoughts beside it."""
    blocks = counted[number] if number < len(counted) else ()
    if index < len(blocks) and _is_thinking(blocks[index]):
        return [blocks[index]]
    return list(filter(_is_thinking, blocks))


def locate(request: WireRequest, thread: Thread, message: str, *, provider: str) -> tuple[str, ...]:
    """The origins of the thoughts in `thread` that an error's `message` points at, none where it points nowhere.

    Of the newest answer all thoughts are meant: the API wants them as one whole. `request` is what was sent.
    """
    place = _PLACE.search(message)
    if place is None:
        return ()
    number, index = int(place[1]), int(place[2])
    messages: list[JsonObject] = request.body["messages"]
    sides = _sides(messages)
    plain: list[_Blocks] = [given["content"] for given in messages]
    found = _thoughts_at([blocks for _, blocks in sides], number, index) or _thoughts_at(plain, number, index)
    answers = [blocks for role, blocks in sides if role == "assistant"]
    newest = list(filter(_is_thinking, answers[-1] if answers else ()))
    meant = newest if any(block in newest for block in found) else found
    reasoning = (event for event in thread.events if isinstance(event, AssistantReasoning))
    return tuple(event.origin for event in reasoning if own_thinking(event, thread.model, provider) in meant)
