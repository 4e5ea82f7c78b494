"""The conversation of a query: chosen, held with its log, and the configuration that holds for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from jp.app.options import (
    UNATTENDED_PATIENCE_SECS,
    AnyWorkspace,
    Options,
    base_directory,
    is_run_by_git,
    open_session,
    open_workspace,
)
from jp.app.query.arguments import FOR_ONE_TURN, QueryArguments
from jp.app.query.screen import Screen
from jp.app.settings import Sources, accept_own, layers_from, layers_of, read_sources, require_trust, trust_store
from jp.config.layers import Change, Layer, MapChange, Put, Resolved
from jp.config.sources import delta, frozen
from jp.conversation.entries import AnyEntry, ChatRequest, ConfigDelta, JsonObject
from jp.errors import ConfigurationError, StorageError, UsageError
from jp.remedies import ChangeConversation, CreateWorkspace, Option, SetSettings, phrase
from jp.turn.request import Loader

if TYPE_CHECKING:
    from jp.app.fork import Fork
    from jp.workspace.listing import ConversationInfo
    from jp.workspace.log import Log
    from jp.workspace.session import Session


class QueryContext(msgspec.Struct, frozen=True, kw_only=True):
    """The circumstances of a query: what is asked, who watches, and the workspace, session and settings.

    `root` confines file tools and declared attachments.
    """

    options: Options
    arguments: QueryArguments
    screen: Screen
    workspace: AnyWorkspace
    session: Session
    root: Path
    sources: Sources

    @property
    def cache(self) -> Path:
        """The directory for what is remembered, but can be found again."""
        return self.workspace.user_data / "cache"


class QueryConversation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation that exists. `log` is None where it is only read; `layers` are its own settings.

    With a `fork` it is what that will be: nothing of it is written yet, and `info` is its source's.
    """

    info: ConversationInfo
    entries: Sequence[AnyEntry]
    loader: Loader
    layers: tuple[Layer, ...]
    log: Log | None = None
    fork: Fork | None = None


class NewConversation(msgspec.Struct, frozen=True, kw_only=True):
    """The names of a conversation if it is new: `topic` of its directory, `first_words` of itself.

    `outside` are typed attachments that do not lie in the workspace.
    """

    outside: tuple[str, ...] = ()
    topic: str = ""
    first_words: str | None = None


class TurnSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of a turn, and what the conversation keeps of it.

    `change` is what the command line changes about what an existing conversation keeps.
    """

    resolved: Resolved
    kept: Resolved
    change: JsonObject


def is_attended() -> bool:
    """Return whether a person is present: stdin or stderr is a terminal, and not because git was run at one."""
    return not is_run_by_git() and (os.isatty(0) or os.isatty(2))


def _activate(context: QueryContext, info: ConversationInfo, *, attached: Sequence[str] = ()) -> None:
    """Make a conversation the active one, unless git runs this at a terminal that belongs to somebody's own queries."""
    if not is_run_by_git() or os.environ.get("JP_SESSION"):
        context.session.activate(info.id, attached=attached)


def open_context(options: Options, arguments: QueryArguments, screen: Screen) -> QueryContext:
    """Find the workspace, this terminal's session, and the configuration's sources.

    Raises:
        JpError: the workspace or a configuration file is not what it should be.
    """
    workspace = open_workspace(options)
    return QueryContext(
        options=options,
        arguments=arguments,
        screen=screen,
        workspace=workspace,
        session=open_session(workspace),
        root=base_directory(workspace),
        sources=read_sources(options, workspace),
    )


async def choose_conversation(context: QueryContext, stack: AsyncExitStack) -> ConversationInfo | None:
    """Return the conversation to continue, None for a new one.

    Until `stack` is left, nobody else makes one of the name for which this is None.

    Raises:
        UsageError: the one that was named does not exist, or is not the only one, or a new one is to be compacted.
        LockedError: another process kept making one of this name.
    """
    arguments = context.arguments
    if arguments.or_new:
        return await _named(context, stack)
    found = await _continued(context)
    if found is None and arguments.compact is not None:
        raise UsageError(
            phrase(Option.COMPACT, " needs a conversation, and none is active here"),
            hint=phrase("name one with `", Option.TARGET, "`, or set JP_SESSION to the name of its session"),
        )
    if found is not None and arguments.fork is None:
        _check_continuable(found, arguments)
    return found


async def _named(context: QueryContext, stack: AsyncExitStack) -> ConversationInfo | None:
    from jp.app.targets import UnknownTargetError

    try:
        return await _continued(context)
    except UnknownTargetError:
        if context.arguments.dry_run or not context.options.persist:
            return None
    from jp.workspace.workspace import name_lock

    workspace = context.workspace
    lock = name_lock(context.arguments.target or "", root=workspace.root, user_data=workspace.user_data)
    await lock.acquire_async(patience=_patience(context.arguments), waiting=context.options.notice)
    stack.enter_context(lock)
    try:  # somebody may have made it since
        return await _continued(context)
    except UnknownTargetError:
        return None


def with_name(context: QueryContext, chosen: ConversationInfo | None) -> QueryContext:
    """Return the context of a new conversation that gets the name by which it was looked for."""
    arguments = context.arguments
    if chosen is not None or not arguments.or_new or arguments.target is None:
        return context
    from jp.app.targets import Labeled, parse_labels, parse_target

    target = parse_target(arguments.target)
    if isinstance(target, Labeled):
        labels = {**arguments.labels, **parse_labels([target.label], option=Option.TARGET)}
        named = msgspec.structs.replace(arguments, labels=labels, compact=None)
    else:
        from jp.app.values import given_title

        named = msgspec.structs.replace(arguments, title=given_title(arguments.target), compact=None)
    return msgspec.structs.replace(context, arguments=named)


def with_declared(context: QueryContext, chosen: ConversationInfo | None) -> QueryContext:
    """Return the context of a new conversation that gets what `jp attachment add` declared for it in this session."""
    if chosen is not None or not (is_attended() or os.environ.get("JP_SESSION")):
        return context
    declared = context.session.attachments()
    if not declared:
        return context
    context.options.notice(f"attached as declared before: {', '.join(declared)}")
    attach = tuple(dict.fromkeys((*declared, *context.arguments.attach)))
    return msgspec.structs.replace(context, arguments=msgspec.structs.replace(context.arguments, attach=attach))


def workspace_files(context: QueryContext) -> list[Layer]:
    """Return layers with the instructions that a new conversation takes from files of the workspace."""
    root = context.workspace.root
    # Nothing is imported where there is no such file.
    if root is None or not any(os.path.lexists(root / name) for name in ("AGENTS.md", "CLAUDE.md")):
        return []
    if not context.sources.resolve().config.assistant.agents_md:
        return []
    from jp.app.prompts import instruction_layers

    return instruction_layers(context.options, context.workspace)


async def with_model(context: QueryContext, chosen: ConversationInfo | None) -> QueryContext:
    """Return the context with a model: where none is set, that of the only account that can be used.

    A person at a terminal chooses among several.

    Raises:
        ConfigurationError: there are several, and nobody chose.
    """
    if context.arguments.model is not None or _has_model(context, chosen):
        return context
    from anyio.to_thread import run_sync

    from jp.app.models import usable_models

    settings = context.sources.resolve().config.providers.llm
    found = await run_sync(usable_models, settings, abandon_on_cancel=True)
    if not found:
        return context
    model = found[0].model if len(found) == 1 else await context.screen.choose_model(found, settings)
    if model is None:
        usable = ", ".join(f"{proposal.model} ({proposal.because})" for proposal in found)
        raise ConfigurationError(
            f"no model is set, and several can be used: {usable}",
            hint=phrase("name one with ", Option.MODEL, ", or set it: `", _kept_as(found[0].model), "`"),
        )
    keep = phrase("`", _kept_as(model), "` keeps it")
    if len(found) == 1:
        used = f"no model is set; using {model}, because {found[0].because}; "
        keep = phrase(used, keep, ", `", CreateWorkspace(), "` chooses another")
    context.options.notice(keep)
    return msgspec.structs.replace(context, arguments=msgspec.structs.replace(context.arguments, model=model))


def _kept_as(model: str) -> SetSettings:
    return SetSettings((f"assistant.model.id={model}",), scope="user")


def _has_model(context: QueryContext, chosen: ConversationInfo | None) -> bool:
    """Return whether anything sets a model. The conversation is only read if no file and no variable does."""
    sources, workspace = context.sources, context.workspace
    if any(_sets_model(layer.change) for layer in (*sources.lower, *sources.cfg)):
        return True
    if chosen is None:
        return False
    base = layers_from(workspace.base_config(chosen), (), foreign=False)
    return any(_sets_model(layer.change) for layer in base) or any(
        _sets_model(layer.change) for layer in layers_of(workspace, chosen, workspace.read(chosen).entries)
    )


def _sets_model(change: Change) -> bool:
    for name in ("assistant", "model", "id"):
        below = change.entries.get(name) if isinstance(change, MapChange) else change
        if below is None:
            return False
        change = below
    return isinstance(change, Put)


async def _continued(context: QueryContext) -> ConversationInfo | None:
    arguments, workspace, session = context.arguments, context.workspace, context.session
    if arguments.new:
        return None
    if arguments.target is not None or arguments.fork is not None:
        from jp.app.targets import choose_async

        target = "." if arguments.target is None else arguments.target
        return await choose_async(context.options, target, workspace, session, is_attended=is_attended())
    if not is_attended() and not os.environ.get("JP_SESSION"):
        return None
    active = session.active()
    return None if active is None else workspace.get(active)


def _check_continuable(found: ConversationInfo, arguments: QueryArguments) -> None:
    for option, is_given in (
        (Option.LOCAL, arguments.local),
        (Option.TITLE, arguments.title is not None),
        (Option.LABEL, bool(arguments.labels)),
        (Option.EXPIRES_AT, arguments.expires_at is not None),
    ):
        if is_given:
            hint = phrase("add ", Option.NEW, ", or ", Option.FORK)
            raise UsageError(phrase(option, " is for a new conversation"), hint=hint)
    if found.metadata.archived_at is not None:
        raise UsageError(
            f"conversation {str(found.id)!r} is archived",
            hint=phrase(
                *("bring it back with `", ChangeConversation("unarchive", str(found.id))),
                *("`, or go on in a copy with ", Option.FORK),
            ),
        )


def read_conversation(info: ConversationInfo, context: QueryContext) -> QueryConversation:
    """Return a conversation as it is now, or as its fork will be, only to read it.

    Raises:
        JpError: it cannot be read, or not be forked.
    """
    arguments, workspace = context.arguments, context.workspace
    if arguments.fork is None:
        stream = workspace.read(info)
        layers = layers_of(workspace, info, stream.entries)
        return QueryConversation(info=info, entries=stream.entries, loader=stream, layers=layers)

    from jp.app.fork import ForkMaker, up_to

    forking = ForkMaker(options=context.options, workspace=workspace, sources=context.sources)
    fork = forking.prepare(info, up_to(arguments.fork, option=Option.FORK), local=arguments.local or None)
    return QueryConversation(info=info, entries=fork.entries, loader=fork.stream, layers=fork.layers, fork=fork)


async def open_conversation(info: ConversationInfo, context: QueryContext, stack: AsyncExitStack) -> QueryConversation:
    """Open a conversation: for writing, with its lock, until `stack` is left; for a dry run or a fork only to read.

    Raises:
        LockedError: another process kept writing it.
        StorageError: it cannot be read or written.
    """
    options, arguments, workspace = context.options, context.arguments, context.workspace
    if arguments.dry_run or arguments.fork is not None:
        read = read_conversation(info, context)
        for text in () if read.fork is None else read.fork.notices:
            options.notice(text)
        return read
    lock = workspace.lock(info)
    await lock.acquire_async(patience=_patience(arguments), waiting=options.notice)
    stack.enter_context(lock)
    log = stack.enter_context(workspace.open(info, lock))
    for text in log.notices:
        options.notice(text)
    layers = layers_of(workspace, info, log.entries)
    return QueryConversation(info=info, entries=log.entries, loader=log, layers=layers, log=log)


def _patience(arguments: QueryArguments) -> float | None:
    if arguments.patience is None and not is_attended():
        return UNATTENDED_PATIENCE_SECS
    return arguments.patience


def resolve_settings(context: QueryContext, held: QueryConversation | None, flags: Sequence[Layer]) -> TurnSettings:
    """Return the configuration of the turn. What it needs of a stranger's files must have been trusted.

    Raises:
        ConfigurationError: a value is not accepted, or not trusted.
    """
    sources, layers = context.sources, () if held is None else held.layers
    resolved = sources.resolve(conversation=layers, flags=flags)
    require_trust(resolved, None if held is None else held.info, model=resolved.config.assistant.model.id)
    lasting = [layer for layer in flags if layer.origin.where not in FOR_ONE_TURN]
    kept = sources.kept(conversation=None if held is None else layers, flags=lasting)
    change = {} if held is None else delta(sources.resolve(conversation=layers, cfg=False), kept)
    return TurnSettings(resolved=resolved, kept=kept, change=change)


class ConversationContext(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation in which a turn is about to begin."""

    info: ConversationInfo
    log: Log

    @property
    def entries(self) -> Sequence[AnyEntry]:
        """Its header, and what was written since it was opened."""
        return (*self.log.entries[:1], *self.log.fresh)


async def begin_conversation(
    context: QueryContext,
    held: QueryConversation | None,
    settings: TurnSettings,
    new: NewConversation,
    stack: AsyncExitStack,
) -> ConversationContext:
    """Write what comes before the turn: a new conversation, or what the command line changes about one.

    From here on it is this terminal's active conversation, unless git runs this. A new one that fails before its first
    request is in the log is taken away again.

    Raises:
        StorageError: it could not be written.
    """
    if held is None:
        return await _create(context, settings.kept, new, stack)
    if held.fork is None:
        info, log = held.info, _log_of(held)
    else:
        info, log = await _create_fork(held.fork, context, new, stack)
    if settings.change:
        accept_own(
            settings.change,
            context.options,
            context.workspace,
            info,
            over=settings.resolved,
            attachments=new.outside,
        )
        log.append(ConfigDelta(delta=settings.change))
    _activate(context, info)
    return ConversationContext(info=info, log=log)


async def _create(
    context: QueryContext, kept: Resolved, new: NewConversation, stack: AsyncExitStack
) -> ConversationContext:
    from jp.workspace.listing import Metadata

    arguments, workspace = context.arguments, context.workspace
    local = arguments.local or kept.config.conversation.start_local
    base = frozen(kept)
    metadata = Metadata(
        title=arguments.title,
        first_words=new.first_words,
        labels=dict(arguments.labels),
        expires_at=arguments.expires_at,
    )
    info = workspace.create(base, metadata, local=local, topic=new.topic)

    def accept_base() -> None:
        accept_own(base, context.options, workspace, info, attachments=new.outside)

    log = await _open_new(info, context, stack, accept_base)
    _activate(context, info, attached=arguments.attach)
    return ConversationContext(info=info, log=log)


async def _create_fork(
    fork: Fork, context: QueryContext, new: NewConversation, stack: AsyncExitStack
) -> tuple[ConversationInfo, Log]:
    from jp.app.fork import ForkMaker, with_labels

    arguments = context.arguments
    metadata = with_labels(fork.metadata, title=arguments.title, labels=arguments.labels)
    first_words = new.first_words or metadata.first_words
    metadata = msgspec.structs.replace(metadata, first_words=first_words, expires_at=arguments.expires_at)
    forking = ForkMaker(options=context.options, workspace=context.workspace, sources=context.sources)
    info = forking.write(fork, metadata, topic=new.topic)
    return info, await _open_new(info, context, stack, lambda: None)


async def _open_new(
    info: ConversationInfo,
    context: QueryContext,
    stack: AsyncExitStack,
    prepare: Callable[[], None],
) -> Log:
    """Return the log of a conversation that was just created, and is taken away again if nothing is asked in it."""
    workspace = context.workspace
    lock = workspace.lock(info)
    logs: list[tuple[Log, int]] = []

    def take_back() -> None:
        if not any(isinstance(entry, ChatRequest) for log, count in logs for entry in log.entries[count:]):
            with suppress(StorageError):
                workspace.remove(info, lock if lock.held else None)
            trust_store(context.options, workspace, info).forget()

    stack.callback(lock.release)
    stack.callback(take_back)
    await lock.acquire_async(patience=0, waiting=lambda _: None)
    prepare()
    log = stack.enter_context(workspace.open(info, lock))
    logs.append((log, len(log.entries)))
    return log


def _log_of(held: QueryConversation) -> Log:
    if held.log is None:
        msg = "a conversation that is only read cannot be written"
        raise RuntimeError(msg)
    return held.log
