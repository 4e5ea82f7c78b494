"""What providers reject in a sequence of messages, written from their rules alone: the oracle for views.

It shares no pairing code with the package: it plays a provider that reads the messages one after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from jp.context.types import Message


def complaints(messages: Sequence[Message]) -> list[str]:
    """Every reason for which a provider would send `messages` back; empty where they are fine."""
    found: list[str] = []
    called: list[str] = []
    unanswered: list[str] = []
    for at, row in enumerate(messages):
        if row.role == "tool":
            if row.call_id in unanswered:
                unanswered.remove(row.call_id)
            else:
                found.append(f"{at}: {row.call_id!r} is {'answered twice' if row.call_id in called else 'not open'}")
            continue
        found.extend(f"{at}: {call_id!r} is unanswered before it" for call_id in unanswered)
        called = [call.id for call in row.calls]
        unanswered = list(called)
        found.extend(_of_calls(at, row))
    return [*found, *(f"end: {call_id!r} is unanswered" for call_id in unanswered)]


def _of_calls(at: int, row: Message) -> list[str]:
    ids = Counter(call.id for call in row.calls)
    return [
        *([f"{at}: calls of a {row.role}"] if row.calls and row.role != "assistant" else []),
        *([f"{at}: an empty id"] if "" in ids else []),
        *(f"{at}: {call_id!r} is called twice" for call_id, times in ids.items() if times > 1),
    ]
