"""What can be told without a model: what the earlier summary knew, and the newest answers word for word."""

from __future__ import annotations

from collections.abc import Sequence

from jp.context.anchors import is_visible_assistant
from jp.context.excerpt import excerpt
from jp.context.markers import Cutter
from jp.context.summary_fold import Told
from jp.context.summary_schema import NOTHING_SAID
from jp.context.summary_state import SummaryState
from jp.context.types import Message, texts_of

ANSWERS_LIMIT = 8_000
ANSWER_LIMIT = 700


def told_locally(previous: SummaryState | None) -> Told:
    """The account of the earlier summary as it is: nobody is asked, so nothing in it is brought up to date."""
    return Told(account=NOTHING_SAID if previous is None else previous.account, is_local=True)


def answers_in(messages: Sequence[Message], cutter: Cutter, older: Sequence[str] = ()) -> tuple[str, ...]:
    """The newest visible answers in `messages`, and before them `older` ones, whole as far as there is room for them.

    Each in at most 700 characters, without secrets, oldest first.
    """
    room = ANSWERS_LIMIT
    found: list[str] = []
    for message in reversed(messages):
        if not is_visible_assistant(message):
            continue
        text = excerpt("\n\n".join(filter(None, texts_of(message))), ANSWER_LIMIT, cutter)
        room -= len(text)
        if room < 0:
            return tuple(reversed(found))
        found.append(text)
    for text in reversed(older):
        room -= len(text)
        if room < 0:
            break
        found.append(text)
    return tuple(reversed(found))
