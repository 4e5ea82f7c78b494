"""Taking the turn, and what its outcome is for whoever called jp."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, assert_never

from jp.cli.options import GlobalOptions
from jp.cli.output import log as log_line
from jp.cli.output import notice
from jp.cli.query.arguments import QueryArguments
from jp.cli.query.asking import Asker
from jp.cli.query.conversation import Begun
from jp.cli.query.titling import Titling
from jp.cli.query.wiring import Wiring
from jp.cli.signals import Interruption
from jp.config.model import AppConfig
from jp.conversation.entries import AnyEntry, ChatRequest, CycleEnd
from jp.conversation.usage import prompt_tokens
from jp.errors import ExitCode, JpError
from jp.provider.errors import ProviderError
from jp.turn.loop import TurnOutcome
from jp.turn.ports import Recorder

if TYPE_CHECKING:
    from jp.cli.structured.check import Checker


_LEAST_TOLD = 2_000
"""No window of a model is so small that fewer tokens fill most of it."""


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
    begun: Begun,
    recorder: Recorder,
    config: AppConfig,
    request: ChatRequest,
    checker: Checker | None,
    interruption: Interruption,
) -> int:
    """Take the turn, and print what is printed only once an answer is whole; its exit code.

    The turn is written to `recorder`, in the conversation that has `begun`. `checker` is for the schema of `request`.

    Raises:
        JpError: it did not come to an answer.
    """
    titling = Titling(options, wiring, begun=begun, recorder=recorder, config=config, interruption=interruption)
    asker = Asker(
        options,
        arguments,
        titling.wiring,
        begun=begun,
        recorder=recorder,
        config=config,
        interruption=interruption,
    )
    cycles, start = asker.limits.max_cycles, len(recorder.entries)
    async with titling:
        if checker is None:
            outcome = await asker.ask(request, cycles)
            _help_with_overflow(outcome, options, wiring, begun=begun, recorder=recorder)
            try:
                _print_extracted(options, arguments, outcome, recorder)
            finally:
                await _show_usage(options, wiring, titling, outcome=outcome, recorder=recorder, start=start)
            return _exit_code(outcome, options, wiring, cycles=cycles)

        from jp.cli.query.structured import print_value, take_structured_turn, value_of

        structured = await take_structured_turn(
            request, asker.ask, log=recorder, checker=checker, max_cycles=cycles, notice=wiring.notice
        )
        _help_with_overflow(structured.outcome, options, wiring, begun=begun, recorder=recorder)
        try:
            if structured.decides and not _is_over_budget(wiring, structured.outcome):
                print_value(options, value_of(structured, options))
        finally:
            await _show_usage(options, wiring, titling, outcome=structured.outcome, recorder=recorder, start=start)
        return _exit_code(structured.outcome, options, wiring, cycles=cycles)


def _print_extracted(
    options: GlobalOptions, arguments: QueryArguments, outcome: TurnOutcome, recorder: Recorder
) -> None:
    if arguments.extract and outcome.ending == "answered":
        from jp.cli.query.extraction import print_code

        print_code(options, recorder.entries)


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
            why = f": {outcome.detail}" if outcome.detail not in {"", "refusal"} else ""
            raise RefusedError(f"the model refused to answer{why}", hint="ask in other words, or another model")
        case "capped":
            if wiring.cap is not None and _is_over_budget(wiring, outcome):
                from jp.cli.query.budget import over_budget

                raise over_budget(wiring.cap)
            raise CappedError(
                f"the turn was stopped by a cap ({_cap(outcome, cycles)}); what came is kept",
                hint='go on with `jp query --id last "continue"`',
            )
        case "failed":
            _say_what_stays(options)
            raise _explained(outcome.error)
        case _:
            assert_never(outcome.ending)


def _is_over_budget(wiring: Wiring, outcome: TurnOutcome) -> bool:
    return wiring.cap is not None and wiring.cap.stopped and outcome.ending == "capped"


def _say_what_stays(options: GlobalOptions) -> None:
    """Tell a person at a terminal what to do instead of asking once more, which the model would be asked twice."""
    if os.isatty(2) and options.persist:
        asked = "what you asked stays in the conversation"
        notice(options, f"{asked}: `jp query --replay` asks it again, `jp conversation undo` takes it back")


def _help_with_overflow(
    outcome: TurnOutcome, options: GlobalOptions, wiring: Wiring, *, begun: Begun, recorder: Recorder
) -> None:
    """Name in the error what makes a request shorter that the provider found too long."""
    error = outcome.error
    if error is None or error.kind != "context_too_long" or not options.persist:
        return
    from jp.cli.query.spent import overflow_hint

    is_general = error.hint == ProviderError("", kind=error.kind).hint
    found = overflow_hint(wiring, recorder, str(begun.info.id))
    error.hint = found if is_general else f"{error.hint}; {found}"


def _explained(error: ProviderError | None) -> JpError:
    if error is None:
        return JpError("the turn was stopped", hint='go on with `jp query --id last "continue"`')
    if error.retry_after:
        error.hint = f"the provider asks to wait {error.retry_after:,.0f} s: try again then"
    return error


def _cap(outcome: TurnOutcome, cycles: int) -> str:
    return f"{cycles} requests" if outcome.cycles >= cycles else "the longest answer that the model may give"


def _after_answer(outcome: TurnOutcome, options: GlobalOptions) -> int:
    denied, unanswered = (", ".join(dict.fromkeys(names)) for names in (outcome.denied, outcome.unanswered))
    if denied:
        notice(options, f"denied, so not run: {denied} (--approve NAME lets a tool run)")
    if unanswered:
        notice(options, f"without an answer that it needs of a person: {unanswered}")
    return ExitCode.TOOL_DENIED if denied or unanswered else ExitCode.OK


async def _show_usage(
    options: GlobalOptions,
    wiring: Wiring,
    titling: Titling,
    *,
    outcome: TurnOutcome,
    recorder: Recorder,
    start: int,
) -> None:
    """What the turn cost, for a person at a terminal; elsewhere only where it was asked to be talkative.

    The entries from `start` on were recorded for it. A title that is written beside it is waited for, but for a moment.
    """
    title = await titling.settle(answered=outcome.ending == "answered")
    used = _newest_usage(recorder.entries)
    if used >= _LEAST_TOLD and not wiring.config.conversation.compaction.auto.enabled:
        from jp.cli.query.spent import fullness_text

        if outcome.ending == "answered" and (full := fullness_text(wiring, used)):
            notice(options, full)
    is_watched = os.isatty(2)
    if options.quiet if is_watched else not options.verbosity:
        return
    from jp.cli.query.spent import spent_text

    said = spent_text(wiring, recorder.entries, start=start, title=title)
    if not said:
        return
    if is_watched:
        notice(options, said)
    else:
        log_line(options, said)


def _newest_usage(entries: Sequence[AnyEntry]) -> int:
    """Return the tokens of the newest request and its answer, 0 where the provider has not reported them."""
    usage = next((entry.usage for entry in reversed(entries) if isinstance(entry, CycleEnd)), None)
    return 0 if usage is None else prompt_tokens(usage) + usage.output
