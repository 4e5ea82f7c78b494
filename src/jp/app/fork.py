"""Forks: a range of turns, prepared from a conversation that is only read, written whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from jp.app.conversations import tidy
from jp.app.options import AnyWorkspace, Options, open_session, open_workspace
from jp.app.settings import (
    Sources,
    accepted_of,
    is_foreign,
    layers_from,
    layers_of,
    read_sources,
    require_none_ignored,
    trust_store,
)
from jp.app.targets import choose, parse_labels, title_of
from jp.app.values import given_title, parse_turn, parse_turns
from jp.compaction.overlays import forked_stream
from jp.config.layers import Layer
from jp.config.sources import frozen
from jp.config.trust import mark_of_change
from jp.conversation.entries import AnyEntry, ConfigDelta, Header, JsonObject
from jp.conversation.forking import TurnRange
from jp.conversation.turns import turns_of, undone
from jp.errors import StorageError, UsageError
from jp.remedies import Option, phrase
from jp.workspace.files import SYSTEM, timestamp
from jp.workspace.lifecycle import Seed
from jp.workspace.listing import Metadata, Parent
from jp.workspace.store import Stream, original_of

if TYPE_CHECKING:
    from jp.workspace.listing import ConversationInfo


class ForkRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a fork.

    Args:
        turns: the turns that are copied, such as `3`, `2..5`, `..-2`; they count from 0, -1 is the last. None for all.
        last: copy the last so many turns instead, undone ones not counted.
        title: its title; None for its source's.
        labels: labels as `K=V` or `K`, besides its source's.
        compact: the compaction profile that is applied to it, empty for the usual one; None for no compaction.
        local: whether it lies in the user's own data instead of the workspace; None for where its source lies.
        activate: make it the active conversation.
    """

    turns: str | None = None
    last: int | None = None
    title: str | None = None
    labels: tuple[str, ...] = ()
    compact: str | None = None
    local: bool | None = None
    activate: bool = True


class ForkReport(msgspec.Struct, frozen=True, kw_only=True):
    """A fork that was written, with the turns of its source (`parent`) that it has."""

    id: str
    title: str | None
    local: bool
    path: str
    parent: Parent
    active: bool


async def fork(options: Options, target: str = ".", request: ForkRequest | None = None) -> ForkReport:
    """Copy turns of the conversation `target` into a new one.

    Raises:
        UsageError: the request contradicts itself, or names no turn, label or profile.
        JpError: it could not be read, written or compacted; no fork is left.
    """
    request = ForkRequest() if request is None else request
    labels = parse_labels(request.labels, option=Option.LABEL)
    title = None if request.title is None else given_title(request.title)
    workspace = open_workspace(options)
    session = open_session(workspace)
    source = choose(options, target, workspace, session)
    forking = ForkMaker(options=options, workspace=workspace, sources=read_sources(options, workspace))
    prepared = forking.prepare(source, lambda entries: _chosen_turns(entries, request), local=request.local)
    if request.compact is not None:
        from jp.app.compaction.order import order_of

        settings = forking.sources.resolve(conversation=prepared.layers).config.conversation.compaction
        order_of(settings, profile=request.compact or None)  # a profile that does not exist is refused before the fork
    for text in prepared.notices:
        options.notice(text)
    info = forking.write(prepared, with_labels(prepared.metadata, title=title, labels=labels))
    if request.compact is not None:
        await _compact(forking, info, request.compact)
    if request.activate:
        session.activate(info.id)
    first, last = prepared.turns.first, prepared.turns.last
    report = ForkReport(
        id=str(info.id),
        title=info.metadata.title,
        local=info.local,
        path=str(info.directory),
        parent=Parent(conversation=str(source.id), from_turn=first, to_turn=last),
        active=session.active() == info.id,
    )
    copied = f"turn {first}" if first == last else f"turns {first} to {last}"
    active = "; the fork is active now" if report.active else ""
    options.notice(f"copied {copied} of {source.id} ({title_of(source)}){active}")
    tidy(options, workspace)
    return report


async def _compact(forking: ForkMaker, info: ConversationInfo, profile: str) -> None:
    """Compact a fork that was just written, or remove it again where that fails."""
    from jp.app.compaction.compact import CompactionRequest, compact, made_sentence

    try:
        made = await compact(forking.options, str(info.id), CompactionRequest(profile=profile or None))
    except BaseException:
        forking.take_back(info)
        raise
    forking.options.notice(made_sentence(made, str(info.id)))


def _chosen_turns(entries: Sequence[AnyEntry], request: ForkRequest) -> TurnRange:
    """Return the turns that are copied. Undone ones among them come along."""
    if request.turns is not None and request.last is not None:
        raise UsageError(phrase(Option.TURN, " and ", Option.LAST, " exclude each other"), hint="remove one of them")
    turns = turns_of(entries)
    if request.turns is not None:
        return parse_turns(request.turns, len(turns), option=Option.TURN)
    gone = undone(entries)
    effective = [found.number for found in turns if found.id not in gone]
    first = 0 if request.last is None or request.last >= len(effective) else effective[-request.last]
    return TurnRange(first=first, last=len(turns) - 1)


ChooseTurns = Callable[[Sequence[AnyEntry]], TurnRange]
"""A choice of the turns of a stream that a fork copies. It has at least one."""


class Fork(msgspec.Struct, frozen=True, kw_only=True):
    """A fork that is not written. `stream` is its source's, `layers` are its own settings.

    `metadata` has the source's title and labels. `accepted` are hashes of what counts as the user's in it. `notices`
    say what of it could not come along.
    """

    source: ConversationInfo
    stream: Stream
    entries: tuple[AnyEntry, ...]
    base_config: JsonObject
    layers: tuple[Layer, ...]
    metadata: Metadata
    local: bool
    accepted: frozenset[str]
    turns: TurnRange
    notices: tuple[str, ...]


class ForkMaker(msgspec.Struct, frozen=True, kw_only=True):
    """The place where forks are made: what every fork of a command has in common."""

    options: Options
    workspace: AnyWorkspace
    sources: Sources

    def prepare(self, source: ConversationInfo, choose_turns: ChooseTurns, *, local: bool | None = None) -> Fork:
        """Read a conversation and decide what its fork is. A `local` of None: where the source lies.

        Raises:
            StorageError: it cannot be read.
            UntrustedError: a stranger's values would become the user's own.
            UsageError: it has no turns.
        """
        stream = self.workspace.read(source)
        if not turns_of(stream.entries):
            raise UsageError(f"conversation {str(source.id)!r} has no turns yet", hint="ask something in it first")
        turns = choose_turns(stream.entries)
        forked = forked_stream(stream.entries, turns)
        is_own = not is_foreign(self.workspace, source, stream.entries)
        metadata = _inherited(source, stream.entries, turns)
        is_local = source.local if local is None else local
        foreign = (self.workspace.root is not None and not is_local) or metadata.imported_at is not None
        if not foreign:
            self._require_own(source, stream.entries, is_own=is_own, folds=turns.first > 0)
        accepted = accepted_of(self.workspace, source)
        if is_own:
            accepted |= {*map(mark_of_change, own_changes(self.workspace.base_config(source), stream.entries))}
        base, is_clean = self._base_config(source, turns, forked.before, accepted)
        accepted |= {mark_of_change(base)} if is_clean else set[str]()
        return Fork(
            source=source,
            stream=stream,
            entries=forked.entries,
            base_config=base,
            layers=layers_from(base, forked.entries, foreign=foreign, accepted=accepted),
            metadata=metadata,
            local=is_local,
            accepted=accepted,
            turns=turns,
            notices=(*stream.notices, *forked.notices),
        )

    def write(self, fork: Fork, metadata: Metadata, *, topic: str = "") -> ConversationInfo:
        """Make a fork a conversation. `topic` names its directory where it has no title.

        Raises:
            StorageError: it could not be written; nothing of it is left.
        """
        words = topic or fork.source.directory.name.partition("-")[2].replace("-", " ")
        first = fork.stream.entries[0] if fork.stream.entries else None
        nonce = first.nonce if isinstance(first, Header) else ""
        seed = Seed(entries=fork.entries, blobs=fork.stream.blobs, nonce=nonce)
        info = self.workspace.create(fork.base_config, metadata, local=fork.local, topic=words, seed=seed)
        try:
            self._pass_trust_on(fork, info)
        except StorageError:
            self.take_back(info)
            raise
        return info

    def take_back(self, info: ConversationInfo) -> None:
        """Remove a fork that could not be completed."""
        with suppress(StorageError):
            self.workspace.remove(info, None)
        trust_store(self.options, self.workspace, info).forget()

    def _pass_trust_on(self, fork: Fork, info: ConversationInfo) -> None:
        """Have the user's decisions about the source hold for its fork."""
        if fork.accepted:
            trust_store(self.options, self.workspace, info).accept(fork.accepted)

    def _require_own(self, source: ConversationInfo, entries: Sequence[AnyEntry], *, is_own: bool, folds: bool) -> None:
        """Refuse to write a stranger's values where they would count as the user's; `folds`: those of files, too."""
        if is_own and not folds:
            return
        lower = tuple(layer for layer in self.sources.lower if folds or not layer.foreign)
        layers = layers_of(self.workspace, source, entries)
        require_none_ignored(replace(self.sources, lower=lower, cfg=()).resolve(conversation=layers), source)

    def _base_config(
        self, source: ConversationInfo, turns: TurnRange, before: Sequence[ConfigDelta], accepted: Collection[str]
    ) -> tuple[JsonObject, bool]:
        """Return the source's first configuration, and the deltas that held before the first turn that is copied.

        Besides, whether that was put together now, of nothing that waits for the user's trust.
        """
        base = self.workspace.base_config(source)
        if turns.first == 0 or not before:
            return base, False
        layers = layers_from(base, before, foreign=True, accepted=accepted)
        resolved = self.sources.resolve(conversation=layers, cfg=False)
        return frozen(resolved), not resolved.ignored


def _inherited(source: ConversationInfo, entries: Sequence[AnyEntry], turns: TurnRange) -> Metadata:
    """Return the metadata that a fork has from its source. A fork of what came from elsewhere came from there, too."""
    imported = source.metadata.imported_at
    if imported is None and original_of(entries) is not None:
        imported = timestamp(SYSTEM.now())
    return Metadata(
        title=source.metadata.title,
        untitled=source.metadata.untitled,
        first_words=source.metadata.first_words,
        labels=source.metadata.labels,
        imported_at=imported,
        parent=Parent(conversation=str(source.id), from_turn=turns.first, to_turn=turns.last),
    )


def up_to(text: str, *, option: str | Option) -> ChooseTurns:
    """Return all turns up to and including the one that `text` names."""

    def choose(entries: Sequence[AnyEntry]) -> TurnRange:
        return TurnRange(first=0, last=parse_turn(text, len(turns_of(entries)), option=option))

    return choose


def own_changes(base_config: JsonObject, entries: Sequence[AnyEntry]) -> list[JsonObject]:
    """Return the changes of the configuration that a conversation of the user's own makes, one by one."""
    gone = undone(entries)
    deltas = [entry.delta for entry in entries if isinstance(entry, ConfigDelta) and entry.id not in gone]
    return [base_config, *deltas]


def with_labels(metadata: Metadata, *, title: str | None, labels: Mapping[str, str]) -> Metadata:
    """Return the metadata of a fork under the title and with the labels that were asked for besides its source's."""
    untitled = metadata.untitled and title is None
    title = metadata.title if title is None else title
    return replace(metadata, title=title, untitled=untitled, labels={**metadata.labels, **labels})
