"""A tail that cannot be shorter and is too large: the results in it give way, oldest first."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from jp.context.budget import estimate_message
from jp.context.groups import GroupIndex
from jp.context.handles import checksum_of
from jp.context.markers import Cutter, bounded
from jp.context.types import Digested, Message, TextBlock, Transcript, texts_of

Demote = Callable[[Message], Message]
"""What a result is replaced by; itself where nothing shorter says enough."""

BODY_LIMIT = 2_000


class Relief(msgspec.Struct, frozen=True, kw_only=True):
    """`tokens` is what the tail costs now; `demoted` are the positions of the results that gave way, in their order.

    `relieved` is False where it is still above the ceiling. `messages` is the very object that came in where nothing
    gave way.
    """

    messages: Transcript
    tokens: int
    relieved: bool
    demoted: tuple[int, ...] = ()


def relieve_pressure(
    messages: Transcript, index: GroupIndex, demote: Demote, *, tail_start: int, ceiling: int
) -> Relief:
    """`messages` with as many results from `tail_start` on demoted as it takes to cost at most `ceiling` tokens.

    The oldest go first and those of the newest round last. Those of pending calls, and what is `verbatim` or digested
    already, stay.
    """
    changed: dict[int, Message] = {}
    tokens = sum(estimate_message(message) for message in messages[tail_start:])
    for position in range(tail_start, len(messages)):
        if tokens <= ceiling:
            break
        message = messages[position]
        if not _may_give_way(message) or index.groups[index.group_of[position]].pending:
            continue
        shorter = demote(message)
        saved = estimate_message(message) - estimate_message(shorter)
        if saved > 0:
            changed[position] = shorter
            tokens -= saved
    result = tuple(changed.get(at, message) for at, message in enumerate(messages)) if changed else messages
    return Relief(messages=result, tokens=tokens, relieved=tokens <= ceiling, demoted=tuple(changed))


def bounding(cutter: Cutter, limit: int = BODY_LIMIT) -> Demote:
    """A way to demote that needs to know nothing of tools: every text keeps its beginning and end.

    The checksum in `meta.digested` is that of all texts together; each marker has the handle of its own.
    """

    def demote(message: Message) -> Message:
        if isinstance(message.content, str):
            content = bounded(message.content, limit, cutter)
        else:
            content = tuple(
                replace(block, text=bounded(block.text, limit, cutter)) if isinstance(block, TextBlock) else block
                for block in message.content
            )
        if content == message.content:
            return message
        whole = "".join(texts_of(message))
        size = len(whole.encode("utf-8", "surrogatepass"))
        digested = Digested(sha256=checksum_of(whole), original_bytes=size, rule="bounded")
        return replace(message, content=content, meta=replace(message.meta, digested=digested))

    return demote


def _may_give_way(message: Message) -> bool:
    return message.role == "tool" and not message.meta.verbatim and message.meta.digested is None
