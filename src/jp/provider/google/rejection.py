"""Which signatures a rejection can be about. Pure; imported when it happens."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jp.conversation.thread import Thread, ToolCall, UserResource, UserText, ViewEvent
from jp.provider.google.messages import signature_of
from jp.provider.opaque import is_made_by

_FUNCTION = re.compile(r"function call\s+`(?:\w+:)?([^`]+)`", re.IGNORECASE)
"""How the API names the call whose signature it misses, with the namespace in which it keeps functions."""


def _current_turn(events: Sequence[ViewEvent]) -> Sequence[ViewEvent]:
    """The events after what the user said last: the only ones whose signatures the API checks."""
    for position in range(len(events) - 1, -1, -1):
        if isinstance(events[position], (UserText, UserResource)):
            return events[position + 1 :]
    return events


def locate(thread: Thread, message: str, *, provider: str) -> tuple[str, ...]:
    """The origins of the events in `thread` whose signatures an error's `message` can be about.

    Only the current turn is checked, and the API does not say which signature is corrupted; where it names a function,
    the calls of that function are meant.
    """
    signed = [
        event
        for event in _current_turn(thread.events)
        if not isinstance(event, (UserText, UserResource))
        and (metadata := getattr(event, "metadata", None)) is not None
        and is_made_by(metadata, provider, thread.model)
        and (signature_of(metadata) is not None or isinstance(event, ToolCall))
    ]
    named = _FUNCTION.search(message)
    meant = [event for event in signed if named and isinstance(event, ToolCall) and event.name == named[1]]
    return tuple(event.origin for event in meant or signed)
