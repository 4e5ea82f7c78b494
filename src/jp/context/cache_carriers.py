"""Cache hints for a transcript: its blocks as a cache reads them, and which of them may carry a mark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

import msgspec

from jp.context.budget import estimate_block, estimate_call
from jp.context.cache_hints import Limits, Piece, Reason, Section, Ttl, place_hints
from jp.context.groups import index_groups
from jp.context.types import Block, Message, ReasoningBlock, StoredBlock, TextBlock, Transcript


class Carrier(msgspec.Struct, frozen=True, kw_only=True):
    """Where a mark stands.

    In `messages` and `system`, `message` is the position in the transcript and `block` the number of the block in its
    content; a content that is one text is block 0, and calls count on from there. In `tools`, `block` is the tool's.
    """

    section: Section
    block: int
    message: int | None = None


class CarrierHint(msgspec.Struct, frozen=True, kw_only=True):
    """A mark for a provider, for how long what ends there is to be kept, and why."""

    carrier: Carrier
    ttl: Ttl
    reason: Reason


_COMMON = Limits()


def cache_hints(
    messages: Transcript, *, tool_tokens: Sequence[int] = (), volatile_from: int | None = None, limits: Limits = _COMMON
) -> tuple[CarrierHint, ...]:
    """Where to mark a request of `messages` and of tools that have so many tokens each, in their order.

    From message `volatile_from` on, the next request will say something else. Nothing is changed: placing the marks is
    the adapter's part, on what it renders.
    """
    carriers: list[Carrier] = []
    pieces: list[Piece] = []
    for number, tokens in enumerate(tool_tokens):
        carriers.append(Carrier(section="tools", block=number))
        pieces.append(Piece(section="tools", tokens=tokens))
    ordered = _in_reading_order(messages)
    pending = _pending_from(messages)
    for position in ordered:
        is_volatile = volatile_from is not None and position >= volatile_from
        for block, piece in enumerate(_pieces_of(messages[position], is_pending=position >= pending)):
            carriers.append(Carrier(section=piece.section, block=block, message=position))
            pieces.append(msgspec.structs.replace(piece, is_volatile=True) if is_volatile else piece)
    return tuple(
        CarrierHint(carrier=carriers[hint.position], ttl=hint.ttl, reason=hint.reason)
        for hint in place_hints(pieces, limits)
    )


def _in_reading_order(messages: Transcript) -> list[int]:
    """System messages first, wherever they stand: so they are read."""
    return sorted(range(len(messages)), key=lambda position: messages[position].role != "system")


def _pending_from(messages: Transcript) -> int:
    """Where the calls begin that still run: from there on the next request has more."""
    index = index_groups(messages)
    return next((group.start for group in index.groups if group.pending), len(messages))


def _pieces_of(message: Message, *, is_pending: bool) -> Iterator[Piece]:
    section: Section = "system" if message.role == "system" else "messages"
    is_answer = message.role == "assistant"
    blocks = (TextBlock(text=message.content),) if isinstance(message.content, str) else message.content
    for block in blocks:
        yield Piece(
            section=section,
            tokens=estimate_block(block),
            is_answer=is_answer,
            carries=not (is_pending or _is_unfit(block)),
            is_attached=message.role == "user" and not isinstance(block, ReasoningBlock) and block.uri != "",
        )
    for call in message.calls:
        yield Piece(section=section, tokens=estimate_call(call), is_answer=True, carries=not is_pending)


def _is_unfit(block: Block) -> bool:
    """Whether providers refuse a mark on `block`: on thinking, and on what shows nothing."""
    match block:
        case ReasoningBlock():
            return True
        case TextBlock(text=text):
            return not text or text.isspace()
        case StoredBlock(size=size):
            return size == 0
        case _:
            assert_never(block)
