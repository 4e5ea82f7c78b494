"""What a transcript consists of, piece by piece: what kind, how large, from which tool. No text leaves it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import nlargest
from typing import Literal, assert_never

import msgspec
from msgspec.structs import replace

from jp.context.budget import PER_MESSAGE, PER_RESULT, estimate_block, estimate_call, size_of_block, size_of_call
from jp.context.estimate import estimate_tokens
from jp.context.types import Block, Message, ReasoningBlock, StoredBlock, TextBlock

ItemKind = Literal[
    "system",
    "user",
    "attachments",
    "assistant",
    "reasoning",
    "arguments",
    "results",
    "images",
    "summaries",
    "digests",
    "synthetic",
]
"""`images` is whatever is not text, wherever it stands; `digests` are results for which something shorter stands;
`synthetic` is what the host said on the person's behalf.
"""


class Item(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A block, a call, or a message that has neither. `tokens` include a share of what surrounds it.

    `message` is the position in the transcript, `block` the number of the block in its content, `call` that of the call
    in it. `tool` is the name that the model called.
    """

    kind: ItemKind
    tokens: int
    size: int
    message: int
    block: int | None = None
    call: int | None = None
    tool: str = ""


def items_of(messages: Iterable[Message]) -> Iterator[Item]:
    """Every item in its order; together they have the tokens that the messages have."""
    names: dict[str, str] = {}
    for position, message in enumerate(messages):
        if message.calls:
            names = {call.id: call.name for call in message.calls}
        tool = names.get(message.call_id, "") if message.role == "tool" else ""
        envelope = PER_MESSAGE
        if message.role == "tool":
            envelope += PER_RESULT + estimate_tokens(message.call_id)
        first, *others = _items_in(position, message, tool) or [_bare(position, message, tool)]
        yield replace(first, tokens=first.tokens + envelope)
        yield from others


def largest_items(items: Iterable[Item], count: int) -> list[Item]:
    """The `count` largest ones by tokens, earlier ones first among equals."""
    return nlargest(count, items, key=lambda item: item.tokens)


def _items_in(position: int, message: Message, tool: str) -> list[Item]:
    content = message.content
    if isinstance(content, str):
        blocks: tuple[Block, ...] = (TextBlock(text=content),) if content else ()
    else:
        blocks = content
    found = [
        Item(
            kind=_kind_of(message, block),
            tokens=estimate_block(block),
            size=size_of_block(block),
            message=position,
            block=number,
            tool=tool,
        )
        for number, block in enumerate(blocks)
    ]
    for number, call in enumerate(message.calls):
        tokens, size = estimate_call(call), size_of_call(call)
        found.append(Item(kind="arguments", tokens=tokens, size=size, message=position, call=number, tool=call.name))
    return found


def _bare(position: int, message: Message, tool: str) -> Item:
    return Item(kind=_kind_of(message, TextBlock(text="")), tokens=0, size=0, message=position, tool=tool)


def _kind_of(message: Message, block: Block) -> ItemKind:
    if message.role == "system":
        return "system"
    if message.meta.kind == "summary":
        return "summaries"
    if message.role == "tool" and message.meta.digested is not None:
        return "digests"
    match block:
        case ReasoningBlock():
            return "reasoning"
        case StoredBlock(chars=None):
            return "images"
        case StoredBlock(uri=uri) | TextBlock(uri=uri):
            return _kind_of_text(message, uri)
        case _:
            assert_never(block)


def _kind_of_text(message: Message, uri: str) -> ItemKind:
    match message.role:
        case "tool":
            return "results"
        case "assistant":
            return "assistant"
        case _:
            if message.meta.kind == "synthetic":
                return "synthetic"
            return "attachments" if uri else "user"
