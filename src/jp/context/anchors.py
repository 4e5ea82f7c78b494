"""What must survive whatever is left out: the latest real request and the latest visible answer.

An anchor is content to preserve and not a reason to keep everything after it: where it lies before the tail, its text
goes into what stands for the middle, in bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from jp.context.markers import Cutter, bounded
from jp.context.types import Message, has_content, texts_of

ANCHOR_LIMIT = 4_000


class Preserved(msgspec.Struct, frozen=True, kw_only=True):
    """The text of message `position`; `exact` where all of it is there, else cut around a marker with a handle."""

    position: int
    text: str
    exact: bool


def latest_real_user(messages: Sequence[Message]) -> int | None:
    """The position of the newest thing that the person said or attached; None if they said nothing.

    What the host says on their behalf, summaries and hidden messages are none.
    """
    return _latest(messages, is_real_user)


def latest_visible_assistant(messages: Sequence[Message]) -> int | None:
    """The position of the newest answer that the person was shown; reasoning and calls alone are none."""
    return _latest(messages, is_visible_assistant)


def is_real_user(message: Message) -> bool:
    """Whether the person speaks: an exchange begins."""
    return message.role == "user" and _is_real(message) and has_content(message)


def is_visible_assistant(message: Message) -> bool:
    """Whether the model says something to the person."""
    return message.role == "assistant" and _is_real(message) and has_content(message)


def preserve(
    messages: Sequence[Message],
    position: int | None,
    cutter: Cutter,
    *,
    between: tuple[int, int],
    limit: int = ANCHOR_LIMIT,
) -> Preserved | None:
    """The text of the anchor at `position`, exact up to `limit` characters, else its beginning and end.

    None where there is no anchor, or where it does not lie `between` the end of the head and the start of the tail: in
    both it stands exactly, and must not stand twice.
    """
    if position is None or not between[0] <= position < between[1]:
        return None
    whole = "\n\n".join(text for text in texts_of(messages[position]) if text)
    text = bounded(whole, limit, cutter)
    return Preserved(position=position, text=text, exact=text == whole)


def _latest(messages: Sequence[Message], is_wanted: Callable[[Message], bool]) -> int | None:
    return next((at for at in range(len(messages) - 1, -1, -1) if is_wanted(messages[at])), None)


def _is_real(message: Message) -> bool:
    return message.meta.kind == "real" and not message.meta.hidden
