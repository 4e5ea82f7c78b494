"""Whether what a compaction made may take the place of what was there."""

from __future__ import annotations

from collections.abc import Sequence

from jp.context.pairing import PairedRound, pair
from jp.context.types import Message

WORTH_PERCENT = 80


def is_worth_it(before: int, after: int) -> bool:
    """Whether `after` tokens instead of `before` are worth a prompt that no provider has cached."""
    return after * 100 <= before * WORTH_PERCENT


def is_well_paired(messages: Sequence[Message]) -> bool:
    """Whether providers take `messages` as far as calls and their results are concerned."""
    pairing = pair(messages)
    if pairing.orphans or pairing.duplicates:
        return False
    if any(message.calls and message.role != "assistant" for message in messages):
        return False
    return all(map(_is_whole, pairing.rounds))


def _is_whole(found: PairedRound) -> bool:
    group = found.group
    for paired in found.calls:
        if paired.id != paired.call.id:
            return False
        if paired.result is None and not group.pending:
            return False
        if paired.result is not None and not group.start < paired.result < group.end:
            return False
    return True
