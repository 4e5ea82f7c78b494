"""Old calls with long arguments, made shorter: a file that was written need not be sent again with every request."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from jp.context.groups import GroupIndex
from jp.context.leaves import MAX_LEAF, LeafCut, shrink_json_string_leaves
from jp.context.markers import Cutter
from jp.context.types import Call, Message, Transcript


class CallCut(msgspec.Struct, frozen=True, kw_only=True):
    """What was cut in the arguments of call number `call` of message `position`."""

    position: int
    call: int
    cuts: tuple[LeafCut, ...]


class ShrunkCalls(msgspec.Struct, frozen=True, kw_only=True):
    """`messages` is the very object that came in where nothing was cut."""

    messages: Transcript
    cuts: tuple[CallCut, ...] = ()


def shrink_old_arguments(
    messages: Transcript,
    index: GroupIndex,
    cutter: Cutter,
    *,
    between: tuple[int, int],
    max_leaf: int = MAX_LEAF,
) -> ShrunkCalls:
    """`messages` with shorter strings in the arguments of the calls between two positions, the second one excluded.

    The first is where the protected head ends, the second where the exact tail starts. Pending calls and messages that
    are `verbatim` stay as they are.
    """
    start, end = between
    found: list[CallCut] = []
    changed: dict[int, Message] = {}
    for position in range(max(start, 0), min(end, len(messages))):
        message = messages[position]
        if not message.calls or message.meta.verbatim or index.groups[index.group_of[position]].pending:
            continue
        calls, cuts = _shrunk(position, message.calls, cutter, max_leaf)
        if cuts:
            found.extend(cuts)
            changed[position] = replace(message, calls=calls)
    if not changed:
        return ShrunkCalls(messages=messages)
    result = tuple(changed.get(position, message) for position, message in enumerate(messages))
    return ShrunkCalls(messages=result, cuts=tuple(found))


def _shrunk(
    position: int, calls: Sequence[Call], cutter: Cutter, max_leaf: int
) -> tuple[tuple[Call, ...], tuple[CallCut, ...]]:
    results = [shrink_json_string_leaves(call.arguments, cutter, max_leaf=max_leaf) for call in calls]
    cuts = tuple(
        CallCut(position=position, call=number, cuts=result.cuts)
        for number, result in enumerate(results)
        if result.changed
    )
    shorter = tuple(replace(call, arguments=result.text) for call, result in zip(calls, results, strict=True))
    return shorter, cuts
