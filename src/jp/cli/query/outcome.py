"""The end of a query for its user: what is printed of the answer, its cost, and the exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any, assert_never

import msgspec

from jp.app.options import open_workspace
from jp.app.query.arguments import QueryArguments
from jp.app.query.run import PreparedQuery, QueryReport, prepare, preview, run
from jp.cli.options import GlobalOptions
from jp.cli.query.terminal import TerminalScreen
from jp.cli.terminal.signals import interruptions
from jp.conversation.entries import AnyEntry, CycleEnd
from jp.conversation.turns import prompt_tokens
from jp.errors import ExitCode, JpError
from jp.provider.errors import ProviderError
from jp.remedies import phrase
from jp.turn.loop import TurnOutcome

_LEAST_TOLD = 2_000
"""No window of a model is so small that fewer tokens fill most of it."""


class RefusedError(JpError):
    """The model did not answer."""

    exit_code = ExitCode.REFUSED


class CappedError(JpError):
    """The turn was stopped by a cap; the output so far is kept."""

    exit_code = ExitCode.CAPPED


class DeadlineError(JpError):
    """The deadline passed before the turn was over; the output so far is kept."""

    exit_code = ExitCode.DEADLINE


class UnapprovedError(JpError):
    """A tool was denied, or needs an answer that nobody could give; the answer of the turn may have come."""

    exit_code = ExitCode.TOOL_DENIED


async def run_query(options: GlobalOptions, arguments: QueryArguments, *, has_menu: bool = True) -> int:
    """Return the exit code of a query: that of the signal that stopped it, else 0.

    Without `has_menu`, a Ctrl-C stops the turn at once and keeps what came.

    Raises:
        JpError: it could not be asked, failed, or came to less than a whole answer.
    """
    problem: JpError | None = None
    with interruptions(timeout_secs=arguments.deadline) as interruption:
        async with prepare(options, arguments, TerminalScreen(options, interruption, has_menu=has_menu)) as prepared:
            with _announced(options, prepared):
                problem = await _run(options, prepared)
    if interruption.exit_code is None and not arguments.dry_run:
        from jp.app.conversations import tidy

        tidy(options, open_workspace(options))
    if interruption.exit_code == ExitCode.DEADLINE:
        raise DeadlineError("the deadline passed", hint="allow it more time with `--deadline`")
    if interruption.exit_code is None and problem is not None:
        raise problem
    return ExitCode.OK if interruption.exit_code is None else interruption.exit_code


@contextmanager
def _announced(options: GlobalOptions, prepared: PreparedQuery) -> Generator[None]:
    """Send the configured notification when a long turn ends, except where a signal or a person stops it."""
    style = prepared.wiring.config.style
    if style.notification == "off" or options.quiet or options.format == "json" or prepared.context.arguments.dry_run:
        yield
        return
    begun = monotonic()

    def tell(ending: str) -> None:
        elapsed = monotonic() - begun
        if style.notification != "off" and elapsed >= style.notification_secs:
            from jp.render.tables import elapsed_text
            from jp.render.tty import notify

            title = "" if prepared.held is None else prepared.held.info.metadata.title
            text = f"{ending} after {elapsed_text(int(elapsed))}{f': {title}' if title else ''}"
            notify(style.notification, text, sys.stderr, os.environ)

    try:
        yield
    except JpError:
        tell("failed")
        raise
    tell("answered")


async def _run(options: GlobalOptions, prepared: PreparedQuery) -> JpError | None:
    """Ask, and print what is printed only once an answer is whole; return the reason for which it may not be used.

    Raises:
        JpError: it did not come to an answer.
    """
    if prepared.context.arguments.dry_run:
        from jp.cli.query.report import show_dry_run

        show_dry_run(options, prepared, await preview(prepared))
        return None
    report = await run(prepared)
    _help_with_overflow(report, options)
    try:
        _print_answer(options, prepared.context.arguments, report)
    finally:
        await _show_usage(options, report)
    return _problem(report, options)


def _print_answer(options: GlobalOptions, arguments: QueryArguments, report: QueryReport) -> None:
    """Print the value of an answer under a schema, or its code; as JSON the entries have been printed already."""
    if report.structured is None:
        if arguments.extract and report.outcome.ending == "answered":
            from jp.app.query.earlier_turns import code_in
            from jp.cli.terminal.streams import write_stdout
            from jp.render.sanitize import sanitize

            code = sanitize(code_in(report.recorder.entries, options))
            if options.format != "json":
                write_stdout(code if code.endswith("\n") else f"{code}\n")
    elif report.structured.decides and not _is_over_budget(report):
        from jp.app.query.structured import value_of

        _print_value(options, value_of(report.structured, options))


def _print_value(options: GlobalOptions, value: Any) -> None:
    """Print the value: in one line, or indented for a person."""
    if options.format == "json":
        return
    from jp.cli.terminal.streams import write_stdout
    from jp.render.json_lines import escape_controls

    text = msgspec.json.encode(value)
    if options.format == "pretty" or sys.stdout.isatty():
        text = msgspec.json.format(text, indent=2)
    write_stdout(f"{escape_controls(text.decode())}\n")


def _problem(report: QueryReport, options: GlobalOptions) -> JpError | None:
    outcome, wiring = report.outcome, report.wiring
    match outcome.ending:
        case "answered":
            return _unapproved(outcome)
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
            if wiring.cap is not None and _is_over_budget(report):
                from jp.app.query.budget import over_budget

                raise over_budget(wiring.cap)
            raise CappedError(
                f"the turn was stopped by a cap ({_cap(outcome, report.max_cycles)}); the output so far is kept",
                hint='go on with `jp query --id last "continue"`',
            )
        case "failed":
            _hint_at_resuming(options)
            raise _error_of(outcome.error)
        case _:
            assert_never(outcome.ending)


def _is_over_budget(report: QueryReport) -> bool:
    cap = report.wiring.cap
    return cap is not None and cap.stopped and report.outcome.ending == "capped"


def _hint_at_resuming(options: GlobalOptions) -> None:
    """Tell a person at a terminal what to do instead of asking once more, which the model would be asked twice."""
    if os.isatty(2) and options.persist:
        asked = "what you asked stays in the conversation"
        options.notice(f"{asked}: `jp query --replay` asks it again, `jp conversation undo` takes it back")


def _help_with_overflow(report: QueryReport, options: GlobalOptions) -> None:
    """Name in the error what makes a request shorter that the provider found too long."""
    error = report.outcome.error
    if error is None or error.kind != "context_too_long" or not options.persist:
        return
    from jp.cli.query.report import overflow_hint

    is_general = error.hint == ProviderError("", kind=error.kind).hint
    found = overflow_hint(report.wiring, report.recorder, report.conversation)
    error.hint = found if is_general else phrase(error.hint, "; ", found)


def _error_of(error: ProviderError | None) -> JpError:
    if error is None:
        return JpError("the turn was stopped", hint='go on with `jp query --id last "continue"`')
    if error.retry_after:
        error.hint = f"the provider asks to wait {error.retry_after:,.0f} s: try again then"
    return error


def _cap(outcome: TurnOutcome, cycles: int) -> str:
    return f"{cycles} requests" if outcome.cycles >= cycles else "the longest answer that the model may give"


def _unapproved(outcome: TurnOutcome) -> UnapprovedError | None:
    """Return the error for calls that did not run as the model asked, None if all did."""
    denied, unanswered = (", ".join(dict.fromkeys(names)) for names in (outcome.denied, outcome.unanswered))
    texts = [
        *([f"denied, so not run: {denied}"] if denied else []),
        *([f"without an answer that it needs of a person: {unanswered}"] if unanswered else []),
    ]
    if not texts:
        return None
    hint = "`--approve NAME` lets a tool run" if denied else "run it at a terminal, or answer in the configuration"
    return UnapprovedError("; ".join(texts), hint=hint)


async def _show_usage(options: GlobalOptions, report: QueryReport) -> None:
    """Tell a person at a terminal the cost of the turn; elsewhere only with `--verbose`."""
    title = await report.title()
    wiring, entries = report.wiring, report.recorder.entries
    used = _newest_usage(entries)
    if used >= _LEAST_TOLD and not wiring.config.conversation.compaction.auto.enabled:
        from jp.cli.query.report import fullness_text

        if report.outcome.ending == "answered" and (full := fullness_text(wiring, used)):
            options.notice(full)
    is_watched = os.isatty(2)
    if options.quiet if is_watched else not options.verbosity:
        return
    from jp.cli.query.report import spent_text

    said = spent_text(wiring, entries, start=report.start, title=title)
    if not said:
        return
    if is_watched:
        options.notice(said)
    else:
        options.log(said)


def _newest_usage(entries: Sequence[AnyEntry]) -> int:
    """Return the tokens of the newest request and its answer, 0 where the provider has not reported them."""
    usage = next((entry.usage for entry in reversed(entries) if isinstance(entry, CycleEnd)), None)
    return 0 if usage is None else prompt_tokens(usage) + usage.output
