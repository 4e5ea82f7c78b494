"""What the person said, word for word, where the messages that said it leave the view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import msgspec

from jp.context.anchors import ANCHOR_LIMIT, is_real_user
from jp.context.excerpt import excerpt
from jp.context.markers import Cutter
from jp.context.types import Answered, Block, Message, ReasoningBlock, StoredBlock, TextBlock

SPOKEN_LIMIT = 24_000


class Spoken(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Each message of the person once, oldest first.

    `first` is what they began with. `active` is their newest, where no message after the summary is newer: it is being
    worked on. `later` are those between.
    """

    first: str = ""
    later: tuple[str, ...] = ()
    active: str = ""

    def all(self) -> tuple[str, ...]:
        """All of them, oldest first."""
        return tuple(text for text in (self.first, *self.later, self.active) if text)


class SpokenFold(msgspec.Struct, frozen=True, kw_only=True):
    """`evicted` are those for which there is no room any more, oldest first."""

    spoken: Spoken
    evicted: tuple[str, ...] = ()


def speaks(message: Message) -> bool:
    """Return whether the person says something in a message: a request, or an answer to a tool's question."""
    return is_real_user(message) or bool(message.meta.said)


def spoken_in(messages: Sequence[Message], cutter: Cutter) -> tuple[str, ...]:
    """Return what the person says in `messages`, without secrets, exact up to 4,000 characters each.

    Attachments are named. Answers to tools' questions follow the request that the tools work on.
    """
    said: list[str] = []
    for message in messages:
        if is_real_user(message):
            said.append(excerpt(_whole(message, cutter), ANCHOR_LIMIT, cutter))
        elif message.meta.said:
            answers = "\n".join(_answer(answered, cutter) for answered in message.meta.said)
            said[-1:] = [f"{said[-1]}\n\n{answers}" if said else answers]
    return tuple(said)


def fold_spoken(said: Sequence[str], *, begins: bool, is_active: bool, limit: int = SPOKEN_LIMIT) -> SpokenFold:
    """What stays of `said`, oldest first: the newest that `limit` has room for, and always the first and the active.

    `begins` is whether the first of them is what the person began with, `is_active` whether the last is their newest.
    """
    left = list(said)
    active = left.pop() if left and is_active else ""
    first = left.pop(0) if left and begins else ""
    room = limit - len(active) - len(first)
    kept = 0
    for text in reversed(left):
        room -= len(text)
        if room < 0:
            break
        kept += 1
    gone = len(left) - kept
    return SpokenFold(spoken=Spoken(first=first, later=tuple(left[gone:]), active=active), evicted=tuple(left[:gone]))


def _answer(answered: Answered, cutter: Cutter) -> str:
    question = excerpt(answered.question, ANCHOR_LIMIT, cutter)
    return f"(asked: {question}) {excerpt(answered.answer, ANCHOR_LIMIT, cutter)}"


def _whole(message: Message, cutter: Cutter) -> str:
    if isinstance(message.content, str):
        return message.content
    said = (block.text for block in message.content if isinstance(block, TextBlock) and not block.uri)
    attached = (_name(block, cutter) for block in message.content)
    return "\n\n".join(filter(None, (*said, *attached)))


def _name(block: Block, cutter: Cutter) -> str:
    """What says in one line that `block` was attached; nothing where it was not."""
    match block:
        case StoredBlock(sha256=sha256, size=size):
            return _attached(block.mime_type or "content", block.uri, size, cutter.artifacts.handle(sha256))
        case TextBlock(text=text, uri=uri) if uri:
            size = len(text.encode("utf-8", "surrogatepass"))
            return _attached("text", uri, size, cutter.artifacts.keep(text))
        case TextBlock() | ReasoningBlock():
            return ""
        case _:
            assert_never(block)


def _attached(kind: str, uri: str, size: int, handle: str) -> str:
    name = f" {uri}" if uri else ""
    return f"[attached: {kind}{name}, {size} bytes, recall {handle}]"
