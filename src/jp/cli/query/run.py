"""`jp query`, run: prepare everything that may fail, then write, ask, and say how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial

from msgspec.structs import replace

from jp.cli.looks import check_theme
from jp.cli.options import GlobalOptions
from jp.cli.output import log, notice
from jp.cli.places import open_workspace
from jp.cli.query.arguments import QueryArguments, check, flag_layers
from jp.cli.query.attachments import Schemes, check_size, compose_request, healing, outside_of_root
from jp.cli.query.compacting import check_compaction, compact_first, compacted_entries
from jp.cli.query.composing import compose
from jp.cli.query.conversation import (
    Asked,
    Held,
    Place,
    Settings,
    begin,
    choose_conversation,
    find_place,
    hold,
    settle,
)
from jp.cli.query.missing_tools import without_missing_tools
from jp.cli.query.question import read_question
from jp.cli.query.schema import read_wanted, with_schema
from jp.cli.query.standing_tools import Standing
from jp.cli.query.tool_flags import tool_layers
from jp.cli.query.turn import take_turn
from jp.cli.query.wiring import Wiring, check_rendering, wire
from jp.cli.signals import Interruption, heed_interruptions, interruptions
from jp.cli.trust import require_tool, tell_ignored
from jp.config.model import AppConfig
from jp.conversation.entries import AnyEntry, ChatRequest
from jp.errors import ExitCode
from jp.turn.request import InlineLoader


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
        from jp.cli.tidying import tidy

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
    from jp.cli.query.budget import over_budget, permits_turn
    from jp.cli.query.healing import HealingLoader

    loader = HealingLoader(InlineLoader() if held is None else held.loader, request)
    if not permits_turn(wiring.cap, entries, request, wiring.settings, loader):
        raise over_budget(wiring.cap)
