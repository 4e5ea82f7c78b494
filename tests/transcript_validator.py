"""What providers reject in a sequence of messages, written from their rules alone: the oracle for `jp.context`.

It shares no pairing code with the package: it plays a provider that reads the messages one after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from jp.context.types import Message


def complaints(messages: Sequence[Message], *, alternate: bool = False) -> list[str]:
    """Every reason for which a provider would send `messages` back; empty where they are fine.

    Calls of the last message with calls may be open if it is marked as pending. `alternate` is the rule of those
    providers that take no two messages of one side in a row, tools' messages being on the user's.
    """
    found: list[str] = []
    last_caller = max((at for at, row in enumerate(messages) if row.calls), default=-1)
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
        if at == last_caller and row.meta.pending:
            found.extend(_of_pending(messages[at + 1 :], called))
            break
    else:
        found.extend(f"end: {call_id!r} is unanswered" for call_id in unanswered)
    return [*found, *(_of_alternation(messages) if alternate else [])]


def _of_calls(at: int, row: Message) -> list[str]:
    ids = Counter(call.id for call in row.calls)
    return [
        *([f"{at}: calls of a {row.role}"] if row.calls and row.role != "assistant" else []),
        *([f"{at}: an empty id"] if "" in ids else []),
        *(f"{at}: {call_id!r} is called twice" for call_id, times in ids.items() if times > 1),
    ]


def _of_pending(rest: Sequence[Message], called: Sequence[str]) -> list[str]:
    """Of what follows the pending calls: results that came already stand first, each call has at most one."""
    results = [row.call_id for row in rest if row.role == "tool"]
    adjacent = [row.role == "tool" for row in rest]
    return [
        *(["a result apart from the pending calls"] if adjacent != sorted(adjacent, reverse=True) else []),
        *(f"{call_id!r} was not called" for call_id in results if call_id not in called),
        *(f"{call_id!r} is answered twice" for call_id, times in Counter(results).items() if times > 1),
    ]


def _of_alternation(messages: Sequence[Message]) -> list[str]:
    sides = ["assistant" if row.role == "assistant" else "user" for row in messages if row.role != "system"]
    rounds = [row.role == "tool" for row in messages if row.role != "system"]
    return [
        f"two messages of the {one} in a row"
        for (one, other), (_, is_result) in zip(pairwise(sides), pairwise(rounds), strict=True)
        if one == other and not is_result
    ]
