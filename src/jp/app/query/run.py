"""`jp query`: prepare everything that may fail, then write, ask, and report how it ended."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from time import time
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from jp.app.options import Options
from jp.app.query.arguments import QueryArguments, check, flag_layers, read_wanted, with_schema
from jp.app.query.attachments import AttachmentSchemes, compose_request, excess_of, outside_of_root, restoring
from jp.app.query.conversation import (
    ConversationContext,
    NewConversation,
    QueryContext,
    QueryConversation,
    TurnSettings,
    begin_conversation,
    choose_conversation,
    open_context,
    open_conversation,
    resolve_settings,
    with_declared,
    with_model,
    with_name,
    workspace_files,
)
from jp.app.query.question import ComposedQuery, QueryInput, Question, is_read_once, read_question
from jp.app.query.screen import NoScreen, Screen
from jp.app.query.tools import BuiltinTools, UsedKeys, tool_layers, without_missing_tools
from jp.app.query.turns import TitleCost, TitleWriter, TurnRunner
from jp.app.query.wiring import Wiring, check_rendering, wire
from jp.app.settings import require_tool, tell_ignored
from jp.config.model import AppConfig
from jp.conversation.entries import AnyEntry, ChatRequest
from jp.errors import UsageError
from jp.remedies import Option, UseOption, phrase
from jp.turn.loop import TurnOutcome
from jp.turn.ports import Recorder
from jp.turn.request import InlineLoader, Loader

if TYPE_CHECKING:
    from jp.app.compaction.order import CompactionOrder
    from jp.app.query.dry_run import DryRun
    from jp.app.query.structured import StructuredTurn
    from jp.app.schema_checker import Checker
    from jp.workspace.listing import ConversationInfo


class PreparedQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query of which everything is there that may be missing. Nothing of it is written yet.

    Args:
        entries: the stream that the request comes after; what it replaces is no part of it.
        checker: for the schema of `request`, None without one.
        outside: attachments that were typed and do not lie in the workspace.
        stack: what is held until the query is over: the conversation's lock, its log, MCP servers.
    """

    context: QueryContext
    held: QueryConversation | None
    settings: TurnSettings
    wiring: Wiring
    composed: ComposedQuery
    question: Question
    entries: Sequence[AnyEntry]
    request: ChatRequest
    checker: Checker | None
    outside: tuple[str, ...]
    stack: AsyncExitStack


class QueryReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a query.

    Args:
        conversation: its id.
        outcome: of the turn; with a schema of both turns, where the first answer did not fit.
        structured: what the answer is worth under the schema, None without one.
        recorder: the log, in which the entries of this query begin at `start`.
        max_cycles: how many requests the turn was allowed.
    """

    conversation: str
    outcome: TurnOutcome
    structured: StructuredTurn | None
    wiring: Wiring
    recorder: Recorder
    start: int
    max_cycles: int
    titling: TitleWriter

    @property
    def answer(self) -> str:
        """The text of the answer; empty where none came."""
        from jp.app.query.earlier_turns import last_answer

        return last_answer(self.recorder.entries[self.start :])

    async def title(self) -> TitleCost | None:
        """Wait a moment for the title of a new conversation; return what it cost."""
        return await self.titling.settle(answered=self.outcome.ending == "answered")


@asynccontextmanager
async def prepare(
    options: Options, arguments: QueryArguments, screen: Screen | None = None
) -> AsyncGenerator[PreparedQuery]:
    """Prepare a query; what it holds is let go when the block is left.

    Args:
        options: where it works.
        arguments: what is asked, and how.
        screen: who watches; None for nobody.

    Raises:
        JpError: something that it needs is not there, or contradicts something else.
    """
    check(arguments)
    async with AsyncExitStack() as stack:
        if not arguments.dry_run:
            from jp.provider.transport import sharing_connections

            stack.enter_context(sharing_connections(options.log if options.is_verbose else None))
        yield await _prepared(options, arguments, NoScreen() if screen is None else screen, stack)


async def _prepared(
    options: Options, arguments: QueryArguments, screen: Screen, stack: AsyncExitStack
) -> PreparedQuery:
    wanted = read_wanted(arguments)
    given = await read_question(options, arguments)
    arguments = replace(arguments, attach=tuple(text for text in arguments.attach if not is_read_once(text)))
    context = open_context(options, arguments, screen)
    chosen = await choose_conversation(context, stack)
    context = await with_model(with_declared(with_name(context, chosen), chosen), chosen)
    composed = await compose(context, given, chosen, stack)
    held = None if chosen is None else await open_conversation(chosen, context, stack)
    schemes = AttachmentSchemes(
        context.workspace, options, chosen, earlier=None if held is None or held.fork else len(held.entries)
    )
    settings = _settled(context, held, schemes)
    typed = schemes.typed(context.arguments.attach)
    config = await _with_tools(context, settings, schemes, stack)
    builtin = BuiltinTools(schemes, config, held, typed, is_structured=wanted is not None)
    wiring = wire(context, config, builtin)
    stack.callback(_learn, wiring)
    question = composed.question(held, author=config.user.name)
    entries = question.after(() if held is None else held.entries)
    request, sentences = await compose_request(
        question.request, typed, schemes, entries, config.conversation, given.resources
    )
    request, checker = with_schema(request, wanted)
    for sentence in sentences:
        options.notice(sentence)
    excess = "" if arguments.yes else excess_of(request, limit=config.conversation.max_input_bytes)
    if excess and not arguments.dry_run:
        hint = phrase(Option.YES, " sends it anyway; `conversation.max_input_bytes` is the limit")
        raise UsageError(excess, hint=hint)
    if excess:
        options.notice(phrase(f"{excess}; only `", Option.YES, "` would send it"))
    return PreparedQuery(
        context=context,
        held=held,
        settings=settings,
        wiring=wiring,
        composed=composed,
        question=question,
        entries=entries,
        request=request,
        checker=checker,
        outside=outside_of_root(typed),
        stack=stack,
    )


async def preview(prepared: PreparedQuery) -> DryRun:
    """Return the request that would be sent. Nothing is written, and sent only what has its tokens counted.

    Raises:
        UsageError: the tokens are to be counted, and the provider does not count.
        ProviderError: they could not be counted.
    """
    from jp.app.query.dry_run import preview_request

    held = prepared.held
    if held is not None:
        entries = compacted_entries(prepared.wiring, prepared.entries, held.loader)
        held = replace(held, entries=entries)
    return await preview_request(held, prepared.wiring, prepared.request)


async def run(prepared: PreparedQuery) -> QueryReport:
    """Ask, and record everything in the conversation.

    Raises:
        JpError: it cannot be sent, or could not be written.
    """
    context, wiring, request, composed = prepared.context, prepared.wiring, prepared.request, prepared.composed
    context.screen.check(wiring.config)
    _check(wiring, prepared.held, prepared.entries, request)
    check_compaction(wiring)
    await heed_interruptions()  # before anything is written
    new = NewConversation(outside=prepared.outside, topic=composed.topic, first_words=composed.first_words)
    begun = await begin_conversation(context, prepared.held, prepared.settings, new, prepared.stack)
    if context.arguments.print_id:
        context.screen.announce(str(begun.info.id))
    await compact_first(wiring, begun)
    composed.begun()
    recorder = restoring(prepared.question.recorder(begun.log), request, wiring.notice)
    titling = TitleWriter(wiring, begun=begun, recorder=recorder)
    await prepared.stack.enter_async_context(titling)
    asker = TurnRunner(titling.wiring, begun=begun, recorder=recorder)
    cycles, start = asker.limits.max_cycles, len(recorder.entries)
    structured = None
    if prepared.checker is None:
        outcome = await asker.ask(request, cycles)
    else:
        from jp.app.query.structured import take_structured_turn

        structured = await take_structured_turn(
            request, asker.ask, log=recorder, checker=prepared.checker, max_cycles=cycles, notice=wiring.notice
        )
        outcome = structured.outcome
    return QueryReport(
        conversation=str(begun.info.id),
        outcome=outcome,
        structured=structured,
        wiring=wiring,
        recorder=recorder,
        start=start,
        max_cycles=cycles,
        titling=titling,
    )


async def heed_interruptions() -> None:
    """Let a signal that has come, or a deadline that is over, stop the work here: without a wait, they never do."""
    from anyio import current_effective_deadline, current_time, sleep_forever
    from anyio.lowlevel import checkpoint

    await checkpoint()
    if current_effective_deadline() <= current_time():
        await sleep_forever()


def check_compaction(wiring: Wiring) -> None:
    """Refuse what `--compact` says before anything is written.

    Raises:
        UsageError: its value is a word of the query, or no profile.
        ConfigurationError: there is no such profile.
    """
    if wiring.context.arguments.compact is not None:
        _order(wiring)


async def compact_first(wiring: Wiring, begun: ConversationContext) -> None:
    """Compact as `--compact` says, and tell in a line what came of it. The turn that is to begin is not there yet.

    Raises:
        JpError: it could not be done; nothing was written, and nothing is asked.
    """
    if wiring.context.arguments.compact is None:
        return
    from jp.app.compaction.compact import append, made_sentence, make
    from jp.app.compaction.preview import Previewer
    from jp.app.query.budget import payment

    config, order = wiring.config, _order(wiring)
    entries = tuple(begun.log.entries)
    previewer = Previewer(entries, config, begun.log, now=time(), model=wiring.model)
    made = await make(
        previewer,
        previewer.plan(order),
        order,
        workspace=wiring.context.workspace,
        options=wiring.context.options,
        pay=payment(wiring.cap, config),
    )
    append(begun.log, made.overlays)
    wiring.notice(made_sentence(made, str(begun.info.id)))


def compacted_entries(wiring: Wiring, entries: Sequence[AnyEntry], loader: Loader) -> Sequence[AnyEntry]:
    """Return the stream as `--compact` would leave it, for a dry run: no model is asked, so a summary is not there."""
    if wiring.context.arguments.compact is None:
        return entries
    from jp.app.compaction.preview import Previewer
    from jp.conversation.turns import turns_text

    previewer = Previewer(entries, wiring.config, loader, now=time(), model=wiring.model)
    plan = previewer.plan(_order(wiring))
    if plan.summary is not None:
        turns = turns_text(plan.summary.first, plan.summary.last)
        wiring.notice(f"a summary of {turns} would be written first; it is not in what is shown here")
    return (*entries, *plan.overlays)


def _order(wiring: Wiring) -> CompactionOrder:
    """Return the compaction that `--compact` asks for.

    Raises:
        UsageError: a word of the query is a profile of the user's own, which no word before the configuration tells.
        ConfigurationError: there is no such profile.
    """
    from jp.app.compaction.order import order_of

    arguments, config = wiring.context.arguments, wiring.config
    detached = [word for word in arguments.words if word in config.conversation.compaction.profiles]
    if detached and not arguments.compact:
        raise UsageError(
            f"{detached[0]!r} is the name of a profile, but would be part of the query",
            hint=phrase("write `", UseOption(Option.COMPACT, detached[0]), "`"),
        )
    return order_of(config.conversation.compaction, profile=arguments.compact or None)


async def compose(
    context: QueryContext, given: QueryInput, chosen: ConversationInfo | None, stack: AsyncExitStack
) -> ComposedQuery:
    """Return the words to ask. The conversation is not locked for it: who writes takes the time that it takes.

    What was written in an editor is kept until `stack` is left after the turn was answered.

    Raises:
        NotAskedError: the user left the editor without a text, or in a way that means so.
        JpError: something that the query needs is not there, or a template cannot be rendered.
    """
    arguments = context.arguments
    if not (given.opens_editor or arguments.quote or arguments.template or arguments.prompt is not None):
        return ComposedQuery(given.typed, given.piped, replays=arguments.replay)

    from jp.app.query.composer import Composer

    return await Composer(context, chosen).compose(given, stack)


def _settled(context: QueryContext, held: QueryConversation | None, schemes: AttachmentSchemes) -> TurnSettings:
    """Return the settings of the turn. What is ignored of a stranger's files is named.

    Raises:
        ConfigurationError: a value is not accepted, or is needed and not trusted.
    """
    arguments = context.arguments
    files = workspace_files(context) if held is None else []
    flags = [*files, *flag_layers(arguments, [declaration.text for declaration in schemes.typed(arguments.attach)])]
    settings = resolve_settings(context, held, [*flags, *tool_layers(context, held, flags)])
    info = None if held is None else held.info
    for name in sorted(arguments.approve.union(filter(None, [arguments.tool_use]))):
        require_tool(settings.resolved, name, info)
    tell_ignored(context.options, settings.resolved, info, is_used=UsedKeys(settings.resolved, context).has)
    schemes.distrust(settings.resolved)
    return settings


async def _with_tools(
    context: QueryContext, settings: TurnSettings, schemes: AttachmentSchemes, stack: AsyncExitStack
) -> AppConfig:
    """Return the configuration without missing tools and with those of MCP servers, which run until the command ends.

    Raises:
        JpError: a server that is needed is not there.
    """
    config, missing = without_missing_tools(settings.resolved, context.cache)
    for sentence in missing:
        context.options.notice(sentence)
    servers = await stack.enter_async_context(schemes.servers)
    return await servers.join(config)


def _learn(wiring: Wiring) -> None:
    """Keep how far estimates were off."""
    if wiring.measuring is not None and wiring.measuring.measured and wiring.context.options.persist:
        from jp.app.estimates import learn

        learn(wiring.model.provider, wiring.measuring.measured)


def _check(wiring: Wiring, held: QueryConversation | None, entries: Sequence[AnyEntry], request: ChatRequest) -> None:
    """Refuse a request that cannot be sent, or costs more than all may, before anything is written."""
    check_rendering(wiring, request)
    if wiring.cap is None:
        return
    from jp.app.query.attachments import RestoringLoader
    from jp.app.query.budget import over_budget, permits_turn

    loader = RestoringLoader(InlineLoader() if held is None else held.loader, request)
    if not permits_turn(wiring.cap, entries, request, wiring.settings, loader):
        raise over_budget(wiring.cap)
