"""`jp query`, run: prepare everything that may fail, then write, ask, and say how it ended."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from time import time
from typing import TYPE_CHECKING, assert_never

from msgspec.structs import replace

from jp.cli.looks import check_theme
from jp.cli.options import GlobalOptions
from jp.cli.output import log, notice
from jp.cli.output import log as log_line
from jp.cli.places import open_workspace
from jp.cli.query.arguments import QueryArguments, check, flag_layers, read_wanted, with_schema
from jp.cli.query.asking import Asker
from jp.cli.query.attachments import Schemes, check_size, compose_request, healing, outside_of_root
from jp.cli.query.conversation import (
    Asked,
    Begun,
    Held,
    Place,
    Settings,
    begin,
    choose_conversation,
    find_place,
    hold,
    settle,
)
from jp.cli.query.question import Composed, Given, read_question
from jp.cli.query.standing_tools import Standing
from jp.cli.query.titling import Titling
from jp.cli.query.tool_flags import tool_layers, without_missing_tools
from jp.cli.query.wiring import Wiring, check_rendering, wire
from jp.cli.signals import Interruption, heed_interruptions, interruptions
from jp.cli.trust import require_tool, tell_ignored
from jp.config.model import AppConfig
from jp.conversation.entries import AnyEntry, ChatRequest, CycleEnd
from jp.conversation.usage import prompt_tokens
from jp.errors import ExitCode, JpError, UsageError
from jp.provider.errors import ProviderError
from jp.turn.loop import TurnOutcome
from jp.turn.ports import Recorder
from jp.turn.request import InlineLoader, Loader

if TYPE_CHECKING:
    from jp.cli.structured.check import Checker
    from jp.workspace.listing import ConversationInfo


def check_compaction(arguments: QueryArguments, config: AppConfig) -> None:
    """Refuse what `--compact` says before anything is written.

    Raises:
        UsageError: its value is a word of the query, or no profile.
        ConfigurationError: there is no such profile.
    """
    if arguments.compact is not None:
        from jp.cli.compacting.order import order_of

        order_of(config.conversation.compaction, profile=_profile_of(arguments, config))


async def compact_first(
    options: GlobalOptions, arguments: QueryArguments, wiring: Wiring, begun: Begun, place: Place
) -> None:
    """Compact as `--compact` says, and tell in a line what came of it. The turn that is to begin is not there yet.

    Raises:
        JpError: it could not be done; nothing was written, and nothing is asked.
    """
    if arguments.compact is None:
        return
    from jp.cli.compacting.applying import append, make
    from jp.cli.compacting.order import order_of
    from jp.cli.compacting.preview import Previewer
    from jp.cli.compacting.report import made_sentence
    from jp.cli.query.budget import payment

    config = wiring.config
    order = order_of(config.conversation.compaction, profile=_profile_of(arguments, config))
    entries = tuple(begun.log.entries)
    previewer = Previewer(entries, config, begun.log, now=time(), model=wiring.model)
    made = await make(
        previewer,
        previewer.plan(order),
        order,
        entries=entries,
        config=config,
        workspace=place.workspace,
        recorder=begun.log,
        notice=wiring.notice,
        pay=payment(wiring.cap, config),
    )
    append(begun.log, made.overlays)
    notice(options, made_sentence(made, str(begun.info.id)))


def compacted_entries(
    arguments: QueryArguments, entries: Sequence[AnyEntry], loader: Loader, wiring: Wiring
) -> Sequence[AnyEntry]:
    """The stream as `--compact` would leave it, for a dry run: no model is asked, so a summary is not there."""
    if arguments.compact is None:
        return entries
    from jp.cli.compacting.order import order_of
    from jp.cli.compacting.preview import Previewer
    from jp.cli.compacting.report import turns_text

    config = wiring.config
    order = order_of(config.conversation.compaction, profile=_profile_of(arguments, config))
    previewer = Previewer(entries, config, loader, now=time(), model=wiring.model)
    plan = previewer.plan(order)
    if plan.summary is not None:
        turns = turns_text(plan.summary.first, plan.summary.last)
        wiring.notice(f"a summary of {turns} would be written first; it is not in what is shown here")
    return (*entries, *plan.overlays)


def _profile_of(arguments: QueryArguments, config: AppConfig) -> str | None:
    """Return the profile that `--compact` names; None without one.

    Raises:
        UsageError: a word of the query is a profile of the user's own, which no word before the configuration tells.
    """
    detached = [word for word in arguments.words if word in config.conversation.compaction.profiles]
    if detached and not arguments.compact:
        raise UsageError(
            f"{detached[0]!r} is the name of a profile, but would be part of the query",
            hint=f"write `--compact={detached[0]}`",
        )
    return arguments.compact or None


async def compose(
    options: GlobalOptions,
    arguments: QueryArguments,
    given: Given,
    place: Place,
    chosen: ConversationInfo | None,
    stack: AsyncExitStack,
) -> Composed:
    """The words to ask. The conversation is not locked for it: who writes takes the time that it takes.

    What was written in an editor is kept until `stack` is left after the turn was answered.

    Raises:
        NotAskedError: the user left the editor without a text, or in a way that means so.
        JpError: something that the query needs is not there, or a template cannot be rendered.
    """
    if not (given.opens_editor or arguments.quote or arguments.template):
        return Composed(given.typed, given.piped, replays=arguments.replay)

    from jp.cli.query.composer import Composer

    return await Composer(options, arguments, place, chosen).compose(given, stack)


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
        from jp.cli.query.replaying import print_code

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


async def run_query(options: GlobalOptions, arguments: QueryArguments) -> int:
    """The exit code of a query.

    Raises:
        JpError: it could not be asked, or failed.
    """
    check(arguments)
    code: int = ExitCode.OK
    with interruptions(timeout_secs=arguments.deadline) as interruption:
        async with AsyncExitStack() as stack:
            code = await _query(options, arguments, stack, interruption)
    if interruption.exit_code == ExitCode.DEADLINE:
        notice(options, "the deadline passed")
    if interruption.exit_code is None and not arguments.dry_run:
        from jp.cli.held import tidy

        tidy(options, open_workspace(options))
    return code if interruption.exit_code is None else interruption.exit_code


async def _query(
    options: GlobalOptions, arguments: QueryArguments, stack: AsyncExitStack, interruption: Interruption
) -> int:
    wanted = read_wanted(arguments)
    given = await read_question(options, arguments)
    place = find_place(options)
    chosen = await choose_conversation(arguments, place)
    composed = await compose(options, arguments, given, place, chosen, stack)
    held = None if chosen is None else await hold(chosen, place, options, arguments, stack)
    schemes = Schemes(
        place.workspace, options, chosen, earlier=None if held is None or held.fork else len(held.entries)
    )
    settings = _settled(options, arguments, place, held, schemes)
    typed = schemes.typed(arguments.attach)
    config = await _with_tools(options, settings, place, schemes, stack)
    standing = Standing(schemes, config, held, typed, is_structured=wanted is not None)
    wiring = _wired(
        options, wire(config, place, arguments, partial(notice, options), standing, log=partial(log, options)), stack
    )
    question = composed.question(held, author=config.user.name)
    entries = question.after(() if held is None else held.entries)
    request, sentences = await compose_request(question.request, typed, schemes, entries, config.conversation)
    request, checker = with_schema(request, wanted)
    for sentence in sentences:
        notice(options, sentence)
    if not arguments.yes:
        check_size(request, limit=config.conversation.max_input_bytes)
    if arguments.dry_run:
        return await _shown(options, arguments, wiring, held and replace(held, entries=entries), request)
    check_theme(options, config.style)
    _check(wiring, held, entries, request)
    check_compaction(arguments, config)
    await heed_interruptions()  # before anything is written
    asked = Asked(
        options=options,
        arguments=arguments,
        outside=outside_of_root(typed),
        topic=composed.topic,
        first_words=composed.first_words,
    )
    begun = await begin(place, held, settings, asked, stack)
    await compact_first(options, arguments, wiring, begun, place)
    composed.begun()
    code = await take_turn(
        options,
        arguments,
        wiring,
        begun=begun,
        recorder=healing(question.recorder(begun.log), request, wiring.notice),
        config=config,
        request=request,
        checker=checker,
        interruption=interruption,
    )
    composed.answered()
    return code


def _settled(
    options: GlobalOptions, arguments: QueryArguments, place: Place, held: Held | None, schemes: Schemes
) -> Settings:
    """The settings of the turn. What is ignored of a stranger's files is named.

    Raises:
        ConfigurationError: a value is not accepted, or is needed and not trusted.
    """
    flags = flag_layers(arguments, [declaration.text for declaration in schemes.typed(arguments.attach)])
    settings = settle(place, held, [*flags, *tool_layers(arguments, place, held, flags)])
    info = None if held is None else held.info
    for name in sorted(arguments.approve.union(filter(None, [arguments.tool_use]))):
        require_tool(settings.resolved, name, info)
    tell_ignored(options, settings.resolved, info)
    schemes.distrust(settings.resolved)
    return settings


async def _with_tools(
    options: GlobalOptions, settings: Settings, place: Place, schemes: Schemes, stack: AsyncExitStack
) -> AppConfig:
    """The configuration without tools that are not here, and with those that MCP servers have, until the command ends.

    Raises:
        JpError: a server that is needed is not there.
    """
    config, missing = without_missing_tools(settings.resolved, place.cache)
    for sentence in missing:
        notice(options, sentence)
    servers = await stack.enter_async_context(schemes.servers)
    return await servers.join(config)


async def _shown(
    options: GlobalOptions, arguments: QueryArguments, wiring: Wiring, held: Held | None, request: ChatRequest
) -> int:
    """Show the request that would be sent."""
    from jp.cli.query.dry_run import show_request

    if held is not None:
        compacted = compacted_entries(arguments, held.entries, held.loader, wiring)
        held = replace(held, entries=compacted)
    return await show_request(options, held, wiring, request, exact=arguments.exact)


def _wired(options: GlobalOptions, wiring: Wiring, stack: AsyncExitStack) -> Wiring:
    """`wiring`, of which is learned in the end how far estimates were off."""
    stack.callback(_learn, options, wiring)
    return wiring


def _learn(options: GlobalOptions, wiring: Wiring) -> None:
    """Keep how far estimates were off."""
    if wiring.measuring is not None and wiring.measuring.measured and options.persist:
        from jp.cli.estimates import learn

        learn(wiring.model.provider, wiring.measuring.measured)


def _check(wiring: Wiring, held: Held | None, entries: Sequence[AnyEntry], request: ChatRequest) -> None:
    """Refuse a request that cannot be sent, or costs more than all may, before anything is written."""
    check_rendering(wiring, request)
    if wiring.cap is None:
        return
    from jp.cli.query.attachments import HealingLoader
    from jp.cli.query.budget import over_budget, permits_turn

    loader = HealingLoader(InlineLoader() if held is None else held.loader, request)
    if not permits_turn(wiring.cap, entries, request, wiring.settings, loader):
        raise over_budget(wiring.cap)
