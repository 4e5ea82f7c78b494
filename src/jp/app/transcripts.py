"""The turns of a conversation, and a request as it was sent."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from jp.app.conversations import ReadConversation, read_conversation
from jp.app.options import Options
from jp.app.values import parse_turns
from jp.compaction.fact_lines import StatusLineFormatter
from jp.conversation.entries import JsonObject
from jp.conversation.turns import turns_of
from jp.errors import JpError, UsageError
from jp.provider.base import WireRequest
from jp.provider.registry import ModelId, create_provider
from jp.remedies import Option, UseOption, phrase
from jp.turn.bound_reasoning import render_bound
from jp.turn.request import digests_of, rendering_version
from jp.turn.sent import SentRequest, sent_requests, thread_of

if TYPE_CHECKING:
    from jp.provider.base import Provider


class ReadTurns(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation and the numbers of the turns that were asked for, None for all."""

    conversation: ReadConversation
    turns: frozenset[int] | None


def read_turns(options: Options, target: str, *, turns: str | None = None, last: int | None = None) -> ReadTurns:
    """Read turns of a conversation without its lock, also where configuration files are invalid.

    Args:
        options: where, as for every use case.
        target: the conversation.
        turns: which, such as `3`, `2..5` or `-1`; None for all.
        last: the last so many turns instead.

    Raises:
        UsageError: `turns` names none, or both are given.
        JpError: the conversation does not exist or cannot be read.
    """
    read = read_conversation(options, target, lenient=True)
    return ReadTurns(conversation=read, turns=_chosen(read, turns, last))


class RequestBody(msgspec.Struct, frozen=True, kw_only=True):
    """A request to a provider, without credentials."""

    path: str
    headers: Mapping[str, str]
    body: JsonObject


class RequestReport(msgspec.Struct, frozen=True, kw_only=True):
    """A request as it was sent. `verified`: the hashes of the log confirm it; None if it has none."""

    turn: int
    cycle: int
    attempt: int
    model: str
    verified: bool | None
    request: RequestBody


def request_as_sent(options: Options, target: str, chosen: str) -> RequestReport:
    """Return a request of a conversation, rebuilt from its log. A notice says where it is not what was sent.

    Args:
        options: where, as for every use case.
        target: the conversation.
        chosen: `TURN` or `TURN.CYCLE`, negative ones from the last; of several attempts it is the last.

    Raises:
        UsageError: `chosen` names no request of the conversation.
        JpError: the request cannot be rebuilt.
    """
    read = read_conversation(options, target, lenient=True)
    sent = _choose(sent_requests(read.entries), chosen)
    provider = _provider_of(read, sent)
    thread = thread_of(sent, read.entries, loader=read.loader, status_formatter=StatusLineFormatter())
    request = render_bound(provider, thread, read.entries[: sent.entries]).wire
    is_verified = _is_verified(request, sent)
    if is_verified is False:
        options.notice(_difference(provider, sent))
    return RequestReport(
        turn=sent.turn,
        cycle=sent.cycle,
        attempt=sent.attempt,
        model=f"{sent.context.provider}/{sent.context.model}",
        verified=is_verified,
        request=RequestBody(path=request.path, headers=dict(request.headers), body=request.body),
    )


def _chosen(read: ReadConversation, turns: str | None, last: int | None) -> frozenset[int] | None:
    if turns is not None and last is not None:
        raise UsageError(phrase(Option.TURN, " and ", Option.LAST, " exclude each other"), hint="remove one of them")
    every = turns_of(read.entries)
    if turns is not None:
        found = parse_turns(turns, len(every), option=Option.TURN)
        return frozenset(range(found.first, found.last + 1))
    return None if last is None else frozenset(found.number for found in every[-last:])


_FORM = phrase(
    *("write TURN or TURN.CYCLE, such as ", UseOption(Option.AS_SENT, "3")),
    *(" or ", UseOption(Option.AS_SENT, "-1.2")),
)


def _choose(sent: Sequence[SentRequest], chosen: str) -> SentRequest:
    turn_text, dot, cycle_text = chosen.partition(".")
    try:
        turn, cycle = int(turn_text), int(cycle_text) if dot else 0
    except ValueError:
        raise UsageError(phrase(Option.AS_SENT, f" cannot be {chosen!r}"), hint=_FORM) from None
    if not sent:
        raise UsageError("the log of this conversation does not say what was sent", hint="ask in it or in a fork of it")
    turn = turn if turn >= 0 else max(request.turn for request in sent) + 1 + turn
    of_turn = [request for request in sent if request.turn == turn]
    if not of_turn:
        known = sorted({request.turn for request in sent})
        raise UsageError(f"no request of turn {turn} is known", hint=f"known are those of {_numbers(known)}")
    cycles = sorted({request.cycle for request in of_turn})
    if cycle < 0:
        cycle += cycles[-1] + 1
    attempts = [request for request in of_turn if request.cycle == cycle]
    if not attempts:
        raise UsageError(f"turn {turn} has no cycle {cycle}", hint=f"its cycles are {_numbers(cycles)}")
    return attempts[-1]


def _numbers(numbers: Sequence[int]) -> str:
    if len(numbers) == numbers[-1] - numbers[0] + 1 > 1:
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers))


def _provider_of(read: ReadConversation, sent: SentRequest) -> Provider:
    model = ModelId(sent.context.provider, sent.context.model)
    root = read.workspace.root
    try:
        return create_provider(
            read.resolved.config, model, environ=os.environ, root=root or read.workspace.user_data, needs_key=False
        )
    except JpError as error:
        error.hint = phrase(f"the request went to {str(model)!r}: ", error.hint)
        raise


def _is_verified(request: WireRequest, sent: SentRequest) -> bool | None:
    """Return whether the log's hashes confirm that this was sent; None if it has none."""
    return None if sent.digests is None else digests_of(request.sections, ()) == sent.digests


def _difference(provider: Provider, sent: SentRequest) -> str:
    version = rendering_version(provider.renderer)
    if version != sent.context.renderer:
        return (
            f"this is not what was sent to the byte: it was rendered by version {sent.context.renderer} "
            f"of the rules for {provider.id!r}, this is version {version}"
        )
    return "this is not what was sent to the byte: the log was changed since, or is not whole"
