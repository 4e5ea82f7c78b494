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
    """A round and the results that may be its own, from the least likely place on.

    `early` stand right before its calls and belong to no other round, `apart` before the next round though not right
    after the calls, `adjacent` there.
    """

    group: Group
    ids: Counter[str]
    early: list[int]
    apart: list[int]
    adjacent: list[int]


def pair(messages: Sequence[Message]) -> Pairing:
    """The calls of `messages` with their results.

    A result belongs to the round before it that has its id, up to the next round; failing that to the round right after
    it. Of several results for one call the last counts, and one that stands where it should before any that does not.
    Calls of a round that share an id get their results in order.
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
            current = _Window(group=group, ids=ids, early=early, apart=[], adjacent=[])
        unclaimed = []
        for at in range(group.start, group.end):
            if messages[at].role != "tool":
                continue
            if current is None or messages[at].call_id not in current.ids:
                unclaimed.append(at)
            else:
                (current.adjacent if group is current.group else current.apart).append(at)
    if current is not None:
        yield current


def _paired(messages: Sequence[Message], window: _Window, ordinal: int) -> tuple[tuple[PairedCall, ...], list[int]]:
    calls = messages[window.group.start].calls
    if _is_plain(messages, window):
        return tuple([PairedCall(call, call.id, at) for call, at in zip(calls, window.adjacent, strict=True)]), []
    candidates: dict[str, list[int]] = {}
    for at in (*window.early, *window.apart, *window.adjacent):
        candidates.setdefault(messages[at].call_id, []).append(at)
    duplicates: list[int] = []
    answers: dict[str, Iterator[int]] = {}
    for call_id, positions in candidates.items():
        superfluous = max(len(positions) - window.ids[call_id], 0)
        duplicates += [at for at in positions[:superfluous] if at > window.group.start]
        answers[call_id] = iter(sorted(positions[superfluous:]))
    paired = (
        PairedCall(call, call_id, next(answers.get(call.id, iter(())), None))
        for call, call_id in zip(calls, _unique_ids(calls, ordinal), strict=True)
    )
    return tuple(paired), duplicates


def _is_plain(messages: Sequence[Message], window: _Window) -> bool:
    """Whether each call has one id and one result, in the same order, as in nearly all rounds."""
    calls, places = messages[window.group.start].calls, window.adjacent
    if window.early or window.apart or not len(calls) == len(places) == len(window.ids) or "" in window.ids:
        return False
    return all(messages[at].call_id == call.id for call, at in zip(calls, places, strict=True))


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
