"""What messages cost in tokens, and how many there is room for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

import msgspec

from jp.context.estimate import estimate_tokens, estimate_tokens_of_bytes
from jp.context.types import Block, Call, Message, ReasoningBlock, StoredBlock, TextBlock

PER_MESSAGE = 4
PER_CALL = 12
PER_RESULT = 8
"""What a role, a call's and a result's envelope take besides what stands in them."""

PER_IMAGE = 1_600
"""Providers scale a picture down until it costs about this much."""

_PER_PAGE = 2_250
_BYTES_PER_PAGE = 50_000

_TRIGGER_PERCENT = 80
_MOST_USEFUL = 350_000


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens. `window` is the model's, of which `reserved` are kept for its answer."""

    window: int
    reserved: int = 0


def threshold(budget: Budget) -> int:
    """From how many tokens on, equality included, something should be left out.

    Four fifths of what the answer leaves, and never so much that models lose the thread in it.
    """
    return min(max(budget.window - budget.reserved, 0) * _TRIGGER_PERCENT // 100, _MOST_USEFUL)


def estimate_message(message: Message) -> int:
    """Tokens of `message` as it is sent: its content, its calls with their envelopes, what it answers."""
    content = message.content
    tokens = PER_MESSAGE
    tokens += estimate_tokens(content) if isinstance(content, str) else sum(map(estimate_block, content))
    tokens += sum(map(estimate_call, message.calls))
    if message.role == "tool":
        tokens += PER_RESULT + estimate_tokens(message.call_id)
    return tokens


def estimate_messages(messages: Iterable[Message]) -> int:
    """Tokens of `messages` together."""
    return sum(map(estimate_message, messages))


def size_of_call(call: Call) -> int:
    """Bytes of what is sent of `call`, as for a message."""
    return _utf8(call.id) + _utf8(call.name) + _utf8(call.arguments)


def estimate_call(call: Call) -> int:
    """Tokens of a call with its envelope."""
    return PER_CALL + estimate_tokens(call.id) + estimate_tokens(call.name) + estimate_tokens(call.arguments)


def estimate_block(block: Block) -> int:
    """Tokens of a block of content."""
    match block:
        case TextBlock(text=text) | ReasoningBlock(text=text):
            return estimate_tokens(text)
        case StoredBlock(size=size, chars=chars) if chars is not None:
            return estimate_tokens_of_bytes(size, chars)
        case StoredBlock(mime_type="application/pdf", size=size):
            return max(size // _BYTES_PER_PAGE, 1) * _PER_PAGE
        case StoredBlock():
            return PER_IMAGE
        case _:
            assert_never(block)


def size_of_block(block: Block) -> int:
    """Bytes of what is sent of `block`, as for a message."""
    match block:
        case TextBlock(text=text):
            return _utf8(text)
        case ReasoningBlock(text=text, signature=signature):
            return _utf8(text) + _utf8(signature)
        case StoredBlock(size=size):
            return size
        case _:
            assert_never(block)


def _utf8(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
