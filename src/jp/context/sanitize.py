"""Calls and results paired as providers want them, in transcripts that come from elsewhere or that hands have changed.

A provider wants every result right after the message with its call, each call answered once, and ids that are there and
differ within the round.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec.structs import replace

from jp.context.groups import opens_round
from jp.context.handles import Artifacts
from jp.context.pairing import PairedCall, PairedRound, pair
from jp.context.types import Call, Message, StoredBlock, Transcript, has_content

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
