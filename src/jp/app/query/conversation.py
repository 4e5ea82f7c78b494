"""The conversation of a query: chosen, held with its log, and the configuration that holds for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from jp.app.options import Options
from jp.app.places import UNATTENDED_PATIENCE_SECS, AnyWorkspace, base_directory, open_session, open_workspace
from jp.app.query.arguments import FOR_ONE_TURN, QueryArguments
from jp.app.settings import Sources, accept_own, layers_of, read_sources, require_trust, trust_store
from jp.config.layers import Layer, Resolved
from jp.config.sources import delta, frozen
from jp.conversation.entries import AnyEntry, ChatRequest, ConfigDelta, JsonObject
from jp.errors import StorageError, UsageError
from jp.turn.request import Loader

if TYPE_CHECKING:
    from jp.app.forking import Fork
    from jp.workspace.listing import ConversationInfo
    from jp.workspace.log import Log
    from jp.workspace.session import Session


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """The place where a command works. `root` confines file tools and declared attachments."""

    workspace: AnyWorkspace
    session: Session
    root: Path
    sources: Sources

    @property
    def cache(self) -> Path:
        """The directory for what is remembered, but can be found again."""
        return self.workspace.user_data / "cache"


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation that exists. `log` is None where it is only read; `layers` are its own settings.

    With a `fork` it is what that will be: nothing of it is written yet, and `info` is its source's.
    """

    info: ConversationInfo
    entries: Sequence[AnyEntry]
    loader: Loader
    layers: tuple[Layer, ...]
    log: Log | None = None
    fork: Fork | None = None


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The question of the command line. `outside` are typed attachments that do not lie in the workspace.

    `topic` names the directory of a new conversation, `first_words` are what it is called.
    """

    options: Options
    arguments: QueryArguments
    outside: tuple[str, ...] = ()
    topic: str = ""
    first_words: str | None = None


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of a turn, and what the conversation keeps of it.

    `change` is what the command line changes about what an existing conversation keeps.
    """

    resolved: Resolved
    kept: Resolved
    change: JsonObject


def is_attended() -> bool:
    """Return whether a person is present: stdin or stderr is a terminal, and not because git was run at one."""
    return not _is_run_by_git() and (os.isatty(0) or os.isatty(2))


def _is_run_by_git() -> bool:
    """Return whether git runs this as a hook, an alias or an editor: see "Environment Variables" in githooks(5)."""
    return any(os.environ.get(name) for name in ("GIT_EXEC_PATH", "GIT_INDEX_FILE"))


def _activate(place: Place, info: ConversationInfo) -> None:
    """Make a conversation the active one, unless git runs this at a terminal that belongs to somebody's own queries."""
    if not _is_run_by_git() or os.environ.get("JP_SESSION"):
        place.session.activate(info.id)


def find_place(options: Options) -> Place:
    """The workspace, this terminal's session, and the configuration's sources.

    Raises:
        JpError: the workspace or a configuration file is not what it should be.
    """
    workspace = open_workspace(options)
    return Place(
        workspace=workspace,
        session=open_session(workspace),
        root=base_directory(workspace),
        sources=read_sources(options, workspace),
    )


async def choose_conversation(options: Options, arguments: QueryArguments, place: Place) -> ConversationInfo | None:
    """The conversation to continue, None for a new one.

    Raises:
        UsageError: the one that was named does not exist, or is not the only one, or a new one is to be compacted.
    """
    found = await _continued(options, arguments, place)
    if found is None and arguments.compact is not None:
        raise UsageError(
            "--compact needs a conversation, and none is active here",
            hint="name one with `--id`, or set JP_SESSION to the name of its session",
        )
    if found is not None and arguments.fork is None:
        _check_continuable(found, arguments)
    return found


async def _continued(options: Options, arguments: QueryArguments, place: Place) -> ConversationInfo | None:
    if arguments.new:
        return None
    if arguments.target is not None or arguments.fork is not None:
        from jp.app.targets import choose_async

        target = "." if arguments.target is None else arguments.target
        return await choose_async(options, target, place.workspace, place.session, is_attended=is_attended())
    if not is_attended() and not os.environ.get("JP_SESSION"):
        return None
    active = place.session.active()
    return None if active is None else place.workspace.get(active)


def _check_continuable(found: ConversationInfo, arguments: QueryArguments) -> None:
    for option, is_given in (
        ("--local", arguments.local),
        ("--title", arguments.title is not None),
        ("--label", bool(arguments.labels)),
        ("--tmp", arguments.expires_at is not None),
    ):
        if is_given:
            raise UsageError(f"{option} is for a new conversation", hint="add --new, or --fork")
    if found.metadata.archived_at is not None:
        raise UsageError(
            f"conversation {str(found.id)!r} is archived",
            hint=f"bring it back with `jp conversation unarchive {found.id}`, or go on in a copy with --fork",
        )


def peek(info: ConversationInfo, place: Place, options: Options, arguments: QueryArguments) -> Held:
    """A conversation as it is now, or as its fork will be, only to read it.

    Raises:
        JpError: it cannot be read, or not be forked.
    """
    if arguments.fork is None:
        stream = place.workspace.read(info)
        layers = layers_of(place.workspace, info, stream.entries)
        return Held(info=info, entries=stream.entries, loader=stream, layers=layers)

    from jp.app.forking import Forking, up_to

    forking = Forking(options=options, workspace=place.workspace, sources=place.sources)
    fork = forking.prepare(info, up_to(arguments.fork, option="--fork"), local=arguments.local or None)
    return Held(info=info, entries=fork.entries, loader=fork.stream, layers=fork.layers, fork=fork)


async def hold(
    info: ConversationInfo, place: Place, options: Options, arguments: QueryArguments, stack: AsyncExitStack
) -> Held:
    """Open a conversation: for writing, with its lock, until `stack` is left; for a dry run or a fork only to read.

    Raises:
        LockedError: another process kept writing it.
        StorageError: it cannot be read or written.
    """
    if arguments.dry_run or arguments.fork is not None:
        read = peek(info, place, options, arguments)
        for text in () if read.fork is None else read.fork.notices:
            options.notice(text)
        return read
    lock = place.workspace.lock(info)
    patience = arguments.patience
    if patience is None and not is_attended():
        patience = UNATTENDED_PATIENCE_SECS
    await lock.acquire_async(patience=patience, waiting=options.notice)
    stack.enter_context(lock)
    log = stack.enter_context(place.workspace.open(info, lock))
    for text in log.notices:
        options.notice(text)
    layers = layers_of(place.workspace, info, log.entries)
    return Held(info=info, entries=log.entries, loader=log, layers=layers, log=log)


def settle(place: Place, held: Held | None, flags: Sequence[Layer]) -> Settings:
    """The configuration of the turn. What it needs of a stranger's files must have been trusted.

    Raises:
        ConfigurationError: a value is not accepted, or not trusted.
    """
    sources, layers = place.sources, () if held is None else held.layers
    resolved = sources.resolve(conversation=layers, flags=flags)
    require_trust(resolved, None if held is None else held.info, model=resolved.config.assistant.model.id)
    lasting = [layer for layer in flags if layer.origin.where not in FOR_ONE_TURN]
    kept = sources.kept(conversation=None if held is None else layers, flags=lasting)
    change = {} if held is None else delta(sources.resolve(conversation=layers, cfg=False), kept)
    return Settings(resolved=resolved, kept=kept, change=change)


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation in which a turn is about to begin."""

    info: ConversationInfo
    log: Log

    @property
    def entries(self) -> Sequence[AnyEntry]:
        """Its header, and what was written since it was opened."""
        return (*self.log.entries[:1], *self.log.fresh)


async def begin(place: Place, held: Held | None, settings: Settings, asked: Asked, stack: AsyncExitStack) -> Begun:
    """Write what comes before the turn: a new conversation, or what the command line changes about one.

    From here on it is this terminal's active conversation, unless git runs this. A new one that fails before its first
    request is in the log is taken away again.

    Raises:
        StorageError: it could not be written.
    """
    if held is None:
        return await _create(place, settings.kept, asked, stack)
    if held.fork is None:
        info, log = held.info, _log_of(held)
    else:
        info, log = await _create_fork(held.fork, place, asked, stack)
    if settings.change:
        accept_own(
            settings.change,
            asked.options,
            place.workspace,
            info,
            over=settings.resolved,
            attachments=asked.outside,
        )
        log.append(ConfigDelta(delta=settings.change))
    _activate(place, info)
    return Begun(info=info, log=log)


async def _create(place: Place, kept: Resolved, asked: Asked, stack: AsyncExitStack) -> Begun:
    from jp.workspace.listing import Metadata

    arguments, workspace = asked.arguments, place.workspace
    local = arguments.local or kept.config.conversation.start_local
    base = frozen(kept)
    metadata = Metadata(
        title=arguments.title,
        first_words=asked.first_words,
        labels=dict(arguments.labels),
        expires_at=arguments.expires_at,
    )
    info = workspace.create(base, metadata, local=local, topic=asked.topic)

    def accept_base() -> None:
        accept_own(base, asked.options, workspace, info, attachments=asked.outside)

    log = await _open_new(info, place, asked, stack, accept_base)
    _activate(place, info)
    return Begun(info=info, log=log)


async def _create_fork(fork: Fork, place: Place, asked: Asked, stack: AsyncExitStack) -> tuple[ConversationInfo, Log]:
    from jp.app.forking import Forking, with_labels

    arguments = asked.arguments
    metadata = with_labels(fork.metadata, title=arguments.title, labels=arguments.labels)
    first_words = asked.first_words or metadata.first_words
    metadata = msgspec.structs.replace(metadata, first_words=first_words, expires_at=arguments.expires_at)
    forking = Forking(options=asked.options, workspace=place.workspace, sources=place.sources)
    info = forking.write(fork, metadata, topic=asked.topic)
    return info, await _open_new(info, place, asked, stack, lambda: None)


async def _open_new(
    info: ConversationInfo, place: Place, asked: Asked, stack: AsyncExitStack, prepare: Callable[[], None]
) -> Log:
    """The log of a conversation that was just created, and is taken away again if nothing is asked in it."""
    workspace = place.workspace
    lock = workspace.lock(info)
    logs: list[tuple[Log, int]] = []

    def take_back() -> None:
        if not any(isinstance(entry, ChatRequest) for log, count in logs for entry in log.entries[count:]):
            with suppress(StorageError):
                workspace.remove(info, lock if lock.held else None)
            trust_store(asked.options, workspace, info).forget()

    stack.callback(lock.release)
    stack.callback(take_back)
    await lock.acquire_async(patience=0, waiting=lambda _: None)
    prepare()
    log = stack.enter_context(workspace.open(info, lock))
    logs.append((log, len(log.entries)))
    return log


def _log_of(held: Held) -> Log:
    if held.log is None:
        msg = "a conversation that is only read cannot be written"
        raise RuntimeError(msg)
    return held.log
