"""The latest real request and the latest visible answer, and a transcript split into three parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from jp.context.groups import align_back, align_forward, index_groups, leading_systems, opens_round, pending_group
from jp.context.markers import Cutter, bounded
from jp.context.types import Message, Transcript, has_content, texts_of
from jp.errors import JpError

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


class SeamError(JpError):
    """What is to stand for the middle does not fit between the head and the tail."""


class Split(msgspec.Struct, frozen=True, kw_only=True):
    """`head`, `middle` and `tail` are the transcript. Where the middle is empty, there is nothing to leave out."""

    head: Transcript
    middle: Transcript
    tail: Transcript

    @property
    def status(self) -> Literal["split", "nothing_to_compact"]:
        """Whether there is a middle."""
        return "split" if self.middle else "nothing_to_compact"


def split(messages: Transcript, *, keep_last_exchanges: int, head_end: int | None = None) -> Split:
    """The tail has the last `keep_last_exchanges` exchanges, each of which begins where the person speaks.

    Where there are fewer, nothing is in the middle. With none, the tail has only what is pending. The head ends at
    `head_end`, by default behind the system messages that come first, and is never part of another.
    """
    starts = [at for at, message in enumerate(messages) if is_real_user(message)]
    if keep_last_exchanges <= 0:
        position = len(messages)
    elif keep_last_exchanges <= len(starts):
        position = starts[-keep_last_exchanges]
    else:
        position = 0
    return split_at(messages, position, head_end=head_end)


def split_at(messages: Transcript, position: int, *, head_end: int | None = None) -> Split:
    """The tail begins with the group of message `position`, or with what is pending before it."""
    index = index_groups(messages)
    head = leading_systems(messages) if head_end is None else align_forward(index, head_end)
    pending = pending_group(index)
    if pending is not None:
        position = min(position, index.groups[pending].start)
    start = max(align_back(index, position), head)
    return Split(head=messages[:head], middle=messages[head:start], tail=messages[start:])


def rejoin(parts: Split, replacement: Transcript) -> Transcript:
    """The transcript with `replacement` in place of its middle; the head and the tail are not looked into.

    Raises:
        SeamError: `replacement` has more than one summary, or calls and their results come apart at one of its ends.
    """
    if replacement == parts.middle:
        return (*parts.head, *parts.middle, *parts.tail)
    summaries = sum(message.meta.kind == "summary" for message in replacement)
    if summaries > 1:
        raise SeamError(f"there can be one summary between the head and the tail, not {summaries}")
    if replacement and replacement[0].role == "tool":
        raise SeamError(f"the result of {replacement[0].call_id!r} is apart from its call")
    unanswered = _unanswered(replacement)
    if unanswered:
        raise SeamError(f"the call {unanswered[0]!r} has no result before the tail")
    return (*parts.head, *replacement, *parts.tail)


def _unanswered(messages: Transcript) -> list[str]:
    """The ids of the calls of the last round without a result."""
    start = next((at for at in range(len(messages) - 1, -1, -1) if opens_round(messages[at])), len(messages))
    answered = {message.call_id for message in messages[start:] if message.role == "tool"}
    return [call.id for message in messages[start : start + 1] for call in message.calls if call.id not in answered]
