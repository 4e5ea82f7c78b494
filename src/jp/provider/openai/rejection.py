"""Which reasoning a rejection is about, found by the id that it names. Pure; imported when it happens."""

from __future__ import annotations

import re

from jp.conversation.thread import AssistantReasoning, Thread
from jp.provider.openai.items import own_reasoning

_ITEM = re.compile(r"\brs_\w+")


def locate(thread: Thread, message: str, *, provider: str) -> tuple[str, ...]:
    """The origins of the reasoning in `thread` that an error's `message` names, none where it names none."""
    named = set(_ITEM.findall(message))
    reasoning = (event for event in thread.events if isinstance(event, AssistantReasoning))
    return tuple(
        event.origin
        for event in reasoning
        if (own := own_reasoning(event, thread.model, provider)) is not None and own["id"] in named
    )
