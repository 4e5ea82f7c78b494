"""What was asked and answered before, for whoever composes the next request. Pure.

Turns that were undone do not count here, and compactions change nothing: a person is shown what was said.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from jp.compaction.attempts import counted_answers
from jp.conversation.entries import AnyEntry, ChatRequest, ChatResponse, ToolCallRequest
from jp.conversation.reverts import undone
from jp.conversation.turns import Answer, Cycle, Turn, cycles_of, is_blank, turns_of


def standing_turns(entries: Sequence[AnyEntry]) -> list[Turn]:
    """The turns that were not undone, with their numbers in the stream."""
    gone = undone(entries)
    return [turn for turn in turns_of(entries) if turn.id not in gone]


def request_of(turn: Turn) -> ChatRequest | None:
    """What a turn asks, as one request: where the user added words to it later, these follow. None where it is empty.

    Of several schemas the last one counts.
    """
    requests = [entry for entry in turn.entries if isinstance(entry, ChatRequest)]
    if not requests:
        return None
    schemas = [request.schema for request in requests if request.schema is not None]
    return replace(
        requests[0],
        content="\n\n".join(request.content for request in requests if not is_blank(request.content)),
        resources=tuple(resource for request in requests for resource in request.resources),
        attachments=tuple(dict.fromkeys(text for request in requests for text in request.attachments)),
        schema=schemas[-1] if schemas else None,
    )


def answer_of(turn: Turn) -> str:
    """The last thing that the model said in a turn, empty where it said nothing; structured output as JSON.

    A message that was continued is whole.
    """
    said = (message_of(cycle) for cycle in reversed(cycles_of(turn)))
    return next((text for text in said if not is_blank(text)), "")


def calls_of(turn: Turn) -> tuple[str, ...]:
    """The names of the tools that were called in a turn, in order."""
    return tuple(entry.name for entry in turn.entries if isinstance(entry, ToolCallRequest))


def last_answer(entries: Sequence[AnyEntry]) -> str:
    """The last answer of a stream, empty where there is none."""
    answers = map(answer_of, reversed(standing_turns(entries)))
    return next((answer for answer in answers if answer), "")


def message_of(cycle: Cycle) -> str:
    """What the model said in a cycle, empty where it said nothing; structured output as JSON."""
    return "".join("\n\n".join(_texts(counted_answers(attempt))) for attempt in cycle.attempts).strip("\n")


def _texts(answers: Sequence[Answer]) -> list[str]:
    texts = (_text(answer) for answer in answers if isinstance(answer, ChatResponse))
    return [text for text in texts if text]


def _text(answer: ChatResponse) -> str:
    if answer.data is not msgspec.UNSET:
        return answer.data if isinstance(answer.data, str) else msgspec.json.encode(answer.data).decode()
    return answer.message or ""
