"""Calls and results paired as providers want them, in damaged transcripts too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from jp.context.groups import Group, index_groups, opens_round
from jp.context.markers import Artifacts
from jp.context.types import Call, Message, StoredBlock, Transcript, has_content


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


ActionKind = Literal["moved", "duplicate_dropped", "orphan_dropped", "call_removed", "message_dropped", "id_assigned"]


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """What was done to message `position` of the transcript that came in. `handles` recall what is gone."""

    kind: ActionKind
    position: int
    call_id: str = ""
    handles: tuple[str, ...] = ()


class Sanitized(msgspec.Struct, frozen=True, kw_only=True):
    """`messages` is the very object that came in where there was nothing to do."""

    messages: Transcript
    actions: tuple[Action, ...] = ()


def sanitize_pairs(messages: Transcript, artifacts: Artifacts) -> Sanitized:
    """`messages` with its calls and results in order; every action is reported, what is dropped goes to `artifacts`.

    Results that stand apart from their calls move to them; of several answers the last one counts; results without a
    call go, and calls without a result, unless they are pending; ids that are empty or stand twice in a round are
    replaced. What people and models said is never dropped.
    """
    mending = _Mending(messages, artifacts)
    mending.run()
    if not mending.actions:
        return Sanitized(messages=messages)
    actions = sorted(mending.actions, key=lambda action: action.position)
    return Sanitized(messages=tuple(mending.rows), actions=tuple(actions))


class _Mending:
    def __init__(self, messages: Transcript, artifacts: Artifacts) -> None:
        self._messages = messages
        self._artifacts = artifacts
        self.rows: list[Message] = []
        self.actions: list[Action] = []

    def run(self) -> None:
        pairing = pair(self._messages)
        for position in pairing.orphans:
            self._remove_calls(position, self._messages[position].calls)
            self._drop("orphan_dropped", position)
        for position in pairing.duplicates:
            self._remove_calls(position, self._messages[position].calls)
            self._drop("duplicate_dropped", position)
        rounds = iter(pairing.rounds)
        for position, message in enumerate(self._messages):
            if opens_round(message):
                self._round(message, next(rounds))
            elif message.role != "tool":
                self._keep(position, message, without=message.calls)

    def _round(self, message: Message, found: PairedRound) -> None:
        position = found.group.start
        runs = found.group.pending
        stays = [paired for paired in found.calls if runs or paired.result is not None]
        gone = tuple(paired.call for paired in found.calls if not runs and paired.result is None)
        self._keep(position, message, without=gone, calls=tuple(self._named(position, paired) for paired in stays))
        answers = [(paired.result, paired) for paired in stays if paired.result is not None]
        for at, paired in sorted(answers, key=lambda answer: answer[0]):
            if not position < at < found.group.end:
                self._act("moved", at, paired.call.id)
            answer = self._messages[at]
            self._keep(at, _answering(answer, paired.id), without=answer.calls)

    def _keep(
        self, position: int, message: Message, *, without: tuple[Call, ...], calls: tuple[Call, ...] = ()
    ) -> None:
        """Write `message` with `calls`, of which those in `without` are gone; not at all if nothing is left of it."""
        self._remove_calls(position, without)
        if without and not calls and message.role in {"user", "assistant"} and not has_content(message):
            self._drop("message_dropped", position)
            return
        self.rows.append(message if calls == message.calls else replace(message, calls=calls))

    def _named(self, position: int, paired: PairedCall) -> Call:
        if paired.call.id == paired.id:
            return paired.call
        self._act("id_assigned", position, paired.id)
        return replace(paired.call, id=paired.id)

    def _remove_calls(self, position: int, calls: tuple[Call, ...]) -> None:
        for call in calls:
            self._act("call_removed", position, call.id, (self._artifacts.keep(call.arguments),))

    def _drop(self, kind: ActionKind, position: int) -> None:
        message = self._messages[position]
        self._act(kind, position, message.call_id, tuple(self._archived(message)))

    def _archived(self, message: Message) -> list[str]:
        """The handles of everything that `message` said or showed."""
        if isinstance(message.content, str):
            return [self._artifacts.keep(message.content)] if message.content else []
        return [
            self._artifacts.handle(block.sha256) if isinstance(block, StoredBlock) else self._artifacts.keep(block.text)
            for block in message.content
        ]

    def _act(self, kind: ActionKind, position: int, call_id: str, handles: tuple[str, ...] = ()) -> None:
        self.actions.append(Action(kind=kind, position=position, call_id=call_id, handles=handles))


def _answering(message: Message, call_id: str) -> Message:
    """The result `message`, under the id that its call has."""
    return message if message.call_id == call_id else replace(message, call_id=call_id)


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
