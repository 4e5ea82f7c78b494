"""Taking the turn, and what its outcome is for whoever called jp."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, assert_never

from msgspec.structs import replace

from jp.cli.options import GlobalOptions
from jp.cli.output import log as log_line
from jp.cli.output import notice
from jp.cli.query.arguments import QueryArguments
from jp.cli.query.display import open_display
from jp.cli.query.wiring import Wiring
from jp.compaction.stand_ins import StatusLines
from jp.config.model import AppConfig
from jp.conversation.entries import ChatRequest, Usage
from jp.errors import ExitCode, JpError
from jp.provider.errors import ProviderError
from jp.turn.clock import SystemClock
from jp.turn.loop import TurnLoop, TurnOutcome
from jp.turn.machine import Limits
from jp.turn.ports import Recorder, TurnPorts
from jp.turn.settings import limits_of, retry_policy_of

if TYPE_CHECKING:
    from jp.cli.structured.check import Checker

Animation = Callable[[], Coroutine[object, object, None]]


class RefusedError(JpError):
    """The model did not answer."""

    exit_code = ExitCode.REFUSED


class CappedError(JpError):
    """The turn was stopped by a cap; what came is kept."""

    exit_code = ExitCode.CAPPED


async def take_turn(
    options: GlobalOptions,
    arguments: QueryArguments,
    wiring: Wiring,
    *,
    log: Recorder,
    config: AppConfig,
    request: ChatRequest,
    checker: Checker | None,
) -> int:
    """Take the turn, and print what is printed only once an answer is whole; its exit code.

    `checker` is for the schema of `request`.

    Raises:
        JpError: it did not come to an answer.
    """
    limits = limits_of(config)
    if arguments.max_cycles is not None:
        limits = replace(limits, max_cycles=arguments.max_cycles)
    cycles = limits.max_cycles

    async def ask(request: ChatRequest, max_cycles: int) -> TurnOutcome:
        allowed = replace(limits, max_cycles=max_cycles)
        return await _ask(options, arguments, wiring, log=log, config=config, request=request, limits=allowed)

    if checker is None:
        outcome = await ask(request, cycles)
        _show_usage(options, wiring, outcome.usage)
        if arguments.extract and outcome.ending == "answered":
            from jp.cli.query.extraction import print_code

            print_code(options, log.entries)
        return _exit_code(outcome, options, wiring, cycles=cycles)

    from jp.cli.query.structured import print_value, take_structured_turn, value_of

    structured = await take_structured_turn(
        request, ask, log=log, checker=checker, max_cycles=cycles, notice=wiring.notice
    )
    _show_usage(options, wiring, structured.outcome.usage)
    if structured.decides:
        print_value(options, value_of(structured))
    return _exit_code(structured.outcome, options, wiring, cycles=cycles)


async def _ask(
    options: GlobalOptions,
    arguments: QueryArguments,
    wiring: Wiring,
    *,
    log: Recorder,
    config: AppConfig,
    request: ChatRequest,
    limits: Limits,
) -> TurnOutcome:
    """Take one turn and show it as it comes."""
    from anyio import get_cancelled_exc_class

    clock = SystemClock()
    renderer = open_display(options, arguments.display, config.style, clock=clock, entries=log.entries)
    ports = TurnPorts(
        provider=wiring.provider,
        recorder=log,
        renderer=renderer,
        tools=wiring.tools,
        clock=clock,
        stand_ins=StatusLines(),
    )
    turn = TurnLoop(ports, wiring.settings, limits=limits, retry=retry_policy_of(config))
    is_watched = options.format == "pretty" or os.isatty(2)
    try:
        return await (_watched(turn, request, renderer.animate) if is_watched else turn.run(request))
    except get_cancelled_exc_class():
        notice(options, "stopped; what came is kept")
        raise


async def _watched(turn: TurnLoop, request: ChatRequest, animate: Animation) -> TurnOutcome:
    """The outcome of a turn that somebody watches: it shows for how long nothing came."""
    from anyio import create_task_group

    outcomes: list[TurnOutcome] = []
    async with create_task_group() as tasks:
        tasks.start_soon(animate)
        outcomes.append(await turn.run(request))
        tasks.cancel_scope.cancel()
    return outcomes[0]


def _exit_code(outcome: TurnOutcome, options: GlobalOptions, wiring: Wiring, *, cycles: int) -> int:
    match outcome.ending:
        case "answered":
            return _after_answer(outcome, options)
        case "empty":
            raise RefusedError("the answer is empty", hint="ask again, or in other words")
        case "uncalled":
            choice = wiring.settings.parameters.tool_choice
            raise RefusedError(
                f"the model called no tool, although 'assistant.tool_choice' is {choice!r}",
                hint="ask in other words, or another model; `--cfg assistant.tool_choice=auto` leaves the choice to it",
            )
        case "refused":
            why = f": {outcome.detail}" if outcome.detail else ""
            raise RefusedError(f"the model refused to answer{why}", hint="ask in other words, or another model")
        case "capped":
            raise CappedError(
                f"the turn was stopped by a cap ({_cap(outcome, cycles)}); what came is kept",
                hint='go on with `jp query --id . "continue"`',
            )
        case "failed":
            raise _explained(outcome.error)
        case _:
            assert_never(outcome.ending)


def _explained(error: ProviderError | None) -> JpError:
    if error is None:
        return JpError("the turn was stopped", hint='go on with `jp query --id . "continue"`')
    if error.retry_after:
        error.hint = f"the provider asks to wait {error.retry_after:,.0f} s: try again then"
    return error


def _cap(outcome: TurnOutcome, cycles: int) -> str:
    return f"{cycles} requests" if outcome.cycles >= cycles else "the longest answer that the model may give"


def _after_answer(outcome: TurnOutcome, options: GlobalOptions) -> int:
    if not outcome.denied:
        return ExitCode.OK
    names = ", ".join(dict.fromkeys(outcome.denied))
    notice(options, f"denied, so not run: {names} (--approve NAME lets a tool run)")
    return ExitCode.TOOL_DENIED


def _show_usage(options: GlobalOptions, wiring: Wiring, usage: Usage) -> None:
    """What the turn cost, for a person at a terminal; elsewhere only where it was asked to be talkative."""
    from jp.provider.models import cost, find_model

    total = usage.input + usage.cache_read + usage.cache_write
    if not (total or usage.output):
        return
    cached = f" ({usage.cache_read:,} cached)" if usage.cache_read else ""
    money = cost(usage, find_model(wiring.model.provider, wiring.model.name).details)
    price = "" if money is None else f", ${money:.4f}"
    said = f"{total:,} tokens in{cached}, {usage.output:,} out{price}"
    if os.isatty(2):
        notice(options, said)
    else:
        log_line(options, said)
