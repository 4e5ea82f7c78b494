"""`jp conversation print --as-sent`: the request of a turn, made anew from the log alone."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from jp.cli.held import ReadConversation
from jp.cli.options import GlobalOptions
from jp.cli.output import notice, print_result
from jp.compaction.fact_lines import FactLines
from jp.errors import JpError, UsageError
from jp.provider.base import WireRequest
from jp.provider.registry import ModelId, create_provider
from jp.turn.bound_reasoning import render_bound
from jp.turn.digests import digests_of
from jp.turn.request import rendering_version
from jp.turn.sent import SentRequest, sent_requests, thread_of

if TYPE_CHECKING:
    from jp.provider.base import Provider

_FORM = "write TURN or TURN.CYCLE, such as --as-sent 3 or --as-sent -1.2"


def print_as_sent(options: GlobalOptions, read: ReadConversation, chosen: str) -> None:
    """Print a request as it went over the wire: its body; with `--format json` also where it went and what it was.

    Of a cycle that took several attempts, the last. Credentials are in no request.

    Raises:
        UsageError: `chosen` names no request of the conversation.
        JpError: the request cannot be made anew.
    """
    sent = _choose(sent_requests(read.entries), chosen)
    provider = _provider_of(read, sent)
    thread = thread_of(sent, read.entries, loader=read.loader, stand_ins=FactLines())
    request = render_bound(provider, thread, read.entries[: sent.entries]).wire
    is_verified = _is_verified(provider, request, sent)
    if is_verified is False:
        notice(options, _difference(provider, sent))
    print_result(
        options,
        text=msgspec.json.encode(request.body).decode(),
        value={
            "turn": sent.turn,
            "cycle": sent.cycle,
            "attempt": sent.attempt,
            "model": f"{sent.context.provider}/{sent.context.model}",
            "verified": is_verified,
            "request": {"path": request.path, "headers": dict(request.headers), "body": request.body},
        },
    )


def _choose(sent: Sequence[SentRequest], chosen: str) -> SentRequest:
    turn_text, dot, cycle_text = chosen.partition(".")
    try:
        turn, cycle = int(turn_text), int(cycle_text) if dot else 0
    except ValueError:
        raise UsageError(f"--as-sent cannot be {chosen!r}", hint=_FORM) from None
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
        error.hint = f"the request went to {str(model)!r}: {error.hint}"
        raise


def _is_verified(provider: Provider, request: WireRequest, sent: SentRequest) -> bool | None:
    """Whether the log's hashes say that this is what was sent; None where it has none."""
    return None if sent.digests is None else digests_of(provider.sections(request), ()) == sent.digests


def _difference(provider: Provider, sent: SentRequest) -> str:
    version = rendering_version(provider.renderer)
    if version != sent.context.renderer:
        return (
            f"this is not what was sent to the byte: it was rendered by version {sent.context.renderer} "
            f"of the rules for {provider.id!r}, this is version {version}"
        )
    return "this is not what was sent to the byte: the log was changed since, or is not whole"
