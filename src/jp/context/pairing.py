"""Which result answers which call, in transcripts that may be damaged: by place first, and by id within that place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from jp.context.groups import Group, index_groups
from jp.context.types import Call, Message


class PairedCall(msgspec.Struct, frozen=True):
    """A call as it came, the id that it should have, and the position of its result."""

    call: Call
    id: str
    result: int | None


class PairedRound(msgspec.Struct, frozen=True):
    """`group` is the round as it stands in the transcript, with whatever stands there."""

    group: Group
    calls: tuple[PairedCall, ...]


class Pairing(msgspec.Struct, frozen=True):
    """The rounds in order, and the positions of results that answer a call once more or answer none."""

    rounds: tuple[PairedRound, ...]
    duplicates: tuple[int, ...]
    orphans: tuple[int, ...]


class _Window(msgspec.Struct):
    """A round and the results that may be its own.

    `results` stand after its calls and before the next round, `early` right before them and belong to no other.
    """

    group: Group
    ids: Counter[str]
    early: list[int]
    results: list[int]


def pair(messages: Sequence[Message]) -> Pairing:
    """The calls of `messages` with their results.

    A result belongs to the round before it that has its id, up to the next round; failing that to the round right after
    it. Of several results for one call the last counts. Calls of a round that share an id get their results in order.
    """
    rounds: list[PairedRound] = []
    duplicates: list[int] = []
    for ordinal, window in enumerate(_windows(messages)):
        calls, superfluous = _paired(messages, window, ordinal)
        rounds.append(PairedRound(window.group, calls))
        duplicates += superfluous
    used = {paired.result for found in rounds for paired in found.calls}.union(duplicates)
    orphans = (at for at, message in enumerate(messages) if message.role == "tool" and at not in used)
    return Pairing(tuple(rounds), tuple(duplicates), tuple(orphans))


def _windows(messages: Sequence[Message]) -> Iterator[_Window]:
    current: _Window | None = None
    unclaimed: list[int] = []
    for group in index_groups(messages).groups:
        if group.kind == "round":
            if current is not None:
                yield current
            ids = Counter(call.id for call in messages[group.start].calls)
            early = [at for at in unclaimed if messages[at].call_id in ids]
            current = _Window(group=group, ids=ids, early=early, results=[])
        unclaimed = []
        for at in range(group.start, group.end):
            if messages[at].role != "tool":
                continue
            if current is not None and messages[at].call_id in current.ids:
                current.results.append(at)
            else:
                unclaimed.append(at)
    if current is not None:
        yield current


def _paired(messages: Sequence[Message], window: _Window, ordinal: int) -> tuple[tuple[PairedCall, ...], list[int]]:
    by_id = _by_id(messages, window.early) | _by_id(messages, window.results)
    duplicates: list[int] = []
    for call_id, positions in by_id.items():
        superfluous = len(positions) - window.ids[call_id]
        if superfluous > 0:
            duplicates += positions[:superfluous]
            del positions[:superfluous]
    ids = _unique_ids(messages[window.group.start].calls, ordinal)
    answers = {call_id: iter(positions) for call_id, positions in by_id.items()}
    calls = zip(messages[window.group.start].calls, ids, strict=True)
    paired = (PairedCall(call, call_id, next(answers.get(call.id, iter(())), None)) for call, call_id in calls)
    return tuple(paired), duplicates


def _by_id(messages: Sequence[Message], positions: Sequence[int]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for at in positions:
        found.setdefault(messages[at].call_id, []).append(at)
    return found


def _unique_ids(calls: Sequence[Call], ordinal: int) -> list[str]:
    """The ids of the calls of round number `ordinal`; new ones where one is empty or was there before."""
    given = {call.id for call in calls}
    found: dict[str, None] = {}
    for number, call in enumerate(calls):
        call_id = call.id
        if not call_id or call_id in found:
            call_id = f"r{ordinal}c{number}"
            while call_id in given or call_id in found:
                call_id += "_"
        found[call_id] = None
    return list(found)
